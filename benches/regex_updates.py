#!/usr/bin/env python3
"""The teacher's two updates on REGEX in plain PyTorch, decoded step by step as a first program would: for comparison
with `iliad dev bench --only updates --device cpu` on the same machine at the same time.

    python3 benches/regex_updates.py CORPUS [--threads 2] [--samples 5]

CORPUS holds corpus.json.gz (see `iliad data import-l3`). Needs PyTorch. Prints milliseconds of each update of 256
examples at the paper's sizes: median, least and most.
"""

import argparse
import gzip
import json
import random
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

HIDDEN, CHARACTER, WORD, BATCH, HORIZON = 512, 32, 128, 256, 40


class Table(dict):
    """Numbers of symbols; 0 is padding."""

    def ids(self, symbols):
        return [self.setdefault(s, len(self) + 1) for s in symbols]


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


class DotAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(HIDDEN, HIDDEN // 2), nn.Linear(HIDDEN, HIDDEN // 2)

    def forward(self, state, memory, padding):
        scores = (self.key(memory) @ self.query(state).unsqueeze(2)).squeeze(2)
        weights = scores.masked_fill(padding, -1e18).softmax(1)
        return (weights.unsqueeze(1) @ memory).squeeze(1)


class Decoder(nn.Module):
    def __init__(self, symbols, size, memories):
        super().__init__()
        self.embedding = nn.Embedding(symbols, size, padding_idx=0)
        self.cell = nn.LSTM(size, HIDDEN, batch_first=True)
        self.attentions = nn.ModuleList(DotAttention() for _ in range(memories))
        self.join, self.out = nn.Linear(HIDDEN * (1 + memories), HIDDEN), nn.Linear(HIDDEN, symbols)

    def forward(self, state, memories, target):
        loss = 0
        for t in range(target.size(1) - 1):
            output, state = self.cell(self.embedding(target[:, t : t + 1]), state)
            output = output.squeeze(1)
            seen = [attend(output, *memory) for attend, memory in zip(self.attentions, memories)]
            logits = self.out(torch.tanh(self.join(torch.cat([output, *seen], 1))))
            loss = loss + F.cross_entropy(logits, target[:, t + 1], ignore_index=0)
        return loss


class Executor(nn.Module):
    def __init__(self, characters, words):
        super().__init__()
        self.characters = nn.Embedding(characters, CHARACTER, padding_idx=0)
        self.words = nn.Embedding(words, WORD, padding_idx=0)
        self.read_word = nn.LSTM(CHARACTER, HIDDEN, batch_first=True)
        self.read_request = nn.LSTM(WORD, HIDDEN, batch_first=True)
        self.to_request, self.to_output = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.decoder = Decoder(characters, CHARACTER, 2)

    def forward(self, word, request, output):
        words, (h, c) = self.read_word(self.characters(word))
        requests, (h, c) = self.read_request(self.words(request), (torch.tanh(self.to_request(h)), c))
        memories = [(requests, request == 0), (words, word == 0)]
        return self.decoder((torch.tanh(self.to_output(h)), c), memories, output)


class Describer(nn.Module):
    def __init__(self, characters, words):
        super().__init__()
        self.characters = nn.Embedding(characters, CHARACTER, padding_idx=0)
        self.read = nn.LSTM(CHARACTER, HIDDEN, batch_first=True)
        self.bridge = nn.Linear(HIDDEN, HIDDEN)
        self.decoder = Decoder(words, WORD, 1)

    def forward(self, pairs, request):
        embedded = self.characters(pairs).mean(1)
        context, (h, c) = self.read(embedded)
        nothing = torch.zeros(context.shape[:2], dtype=torch.bool)
        return self.decoder((torch.tanh(self.bridge(h)), c), [(context, nothing)], request)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samples", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    draw = random.Random(1)
    with gzip.open(f"{args.corpus}/corpus.json.gz", "rt") as file:
        items = json.load(file)["train"]
    characters, words = Table(), Table()
    batches = []
    for _ in range(args.samples + 1):
        chosen = draw.sample(items, BATCH)
        requests = [["<", *draw.choice(item["instructions"]), ">"] for item in chosen]
        examples = [draw.choice(item["examples"]) for item in chosen]
        longest = max(len(f"<{a}>@<{b}>") for item in chosen for a, b in item["examples"])
        pairs = []
        for item in chosen:
            rows = [characters.ids(f"<{a}>@<{b}>") for a, b in item["examples"]]
            pairs.append([row + [0] * (longest - len(row)) for row in rows])
        batches.append((
            padded([characters.ids(f"<{a}>") for a, _ in examples]),
            padded([words.ids(request) for request in requests]),
            padded([characters.ids(f"<{b}>")[:HORIZON] for _, b in examples]),
            torch.tensor(pairs),
        ))
    sizes = len(characters) + 1, len(words) + 1
    for name, model, chosen in [
        ("executor", Executor(*sizes), lambda b: (b[0], b[1], b[2])),
        ("describer", Describer(*sizes), lambda b: (b[3], b[1])),
    ]:
        adam = torch.optim.Adam(model.parameters(), lr=1e-3)
        times = []
        for batch in batches:
            begin = time.perf_counter()
            adam.zero_grad()
            model(*chosen(batch)).backward()
            adam.step()
            times.append((time.perf_counter() - begin) * 1000)
        times = times[1:]
        low, mid, high = min(times), statistics.median(times), max(times)
        print(f"{name} update: {mid:.0f} ms (median of {len(times)}, {low:.0f} to {high:.0f})", flush=True)


main()
