#!/usr/bin/env python3
"""An agent that lives outside of Iliad. Python's standard library is all it needs.

    ILIAD_URL=http://localhost:8642 python3 outside_agent.py --descriptions 10

It starts a run (or takes the one in ILIAD_RUN), posts executions of a toy policy that edits words, or with --walks of one that walks
through generated houses, and receives what people say about them as it comes. After each description it learns, and tells Iliad so. A real agent replaces the classes.

ILIAD_TOKEN is needed where the server wants a token: `iliad token create robot --scope agent` (and steer, to start the run).
"""

import argparse
import json
import os
import random
import urllib.error
import urllib.request
import uuid

SERVER = os.environ.get("ILIAD_URL", "http://localhost:8642").rstrip("/") + "/api/v1"
TOKEN = os.environ.get("ILIAD_TOKEN")
WORDS = ["garden", "stone", "river", "cloud", "winter", "lantern", "copper", "meadow", "button", "harbour"]
EDITS = {
    "add an e at the end": lambda word: word + "e",
    "remove the first letter": lambda word: word[1:],
    "double the last letter": lambda word: word + word[-1],
    "replace every vowel with o": lambda word: "".join("o" if letter in "aeiou" else letter for letter in word),
}
WALKS = {"go one step ahead": 1, "go three steps ahead": 3, "walk on for five steps": 5}


def call(method, path, body=None, headers=None):
    """Sends a request. A POST carries a key, so that it can be sent again after a lost connection and is carried out once."""
    headers = {"Content-Type": "application/json", **(headers or {})}
    if TOKEN:
        headers["Authorization"] = f"Bearer {TOKEN}"
    if method == "POST":
        headers["Idempotency-Key"] = str(uuid.uuid4())
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, data=data, headers=headers, method=method)
    for attempt in range(5):
        try:
            return urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError:
            raise
        except OSError:
            if attempt == 4:
                raise


def answer(method, path, body=None):
    """Sends a request and reads the JSON of its reply."""
    try:
        with call(method, path, body) as reply:
            return json.loads(reply.read() or b"null")
    except urllib.error.HTTPError as refused:
        problem = json.loads(refused.read())
        raise SystemExit(f"{method} {path}: {problem['title']}. {problem['detail']}") from refused


class Agent:
    """A toy policy: for each request it keeps a preference for each edit, and what it was told moves the preferences."""

    does = EDITS

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.preferences = {}
        self.updates = 0

    def execute(self, request):
        """Does what the request says, as far as the agent knows: the name of what it did, and what people are shown of it."""
        scores = self.preferences.get(request, {})
        name = max(self.does, key=lambda name: (scores.get(name, 0), self.random.random()))
        return name, self.show(self.does[name])

    def show(self, edit):
        return {"pairs": [{"in": word, "out": edit(word)} for word in self.random.sample(WORDS, 3)]}

    def learn(self, name, description):
        """The words of a person are from now on a request for what they described."""
        scores = self.preferences.setdefault(description.strip().lower(), {})
        scores[name] = scores.get(name, 0) + 1
        self.updates += 1


class Walker(Agent):
    """The same for walks: it goes so many steps straight ahead, and stops."""

    does = WALKS

    def show(self, steps):
        house, viewpoint, heading = (self.random.randrange(n) for n in (5, 20, 12))
        actions = [1] * steps + [0]
        return {"walk": {"house": f"house-{house}", "viewpoint": str(viewpoint), "heading": heading, "actions": actions}}


def descriptions(run, last=0):
    """Every description of a run, as it comes. A connection that is lost is made again after the last one that was received."""
    while True:
        try:
            with call("GET", f"/runs/{run}/descriptions/events", headers={"Last-Event-ID": str(last)}) as stream:
                event = {}
                for line in stream:
                    line = line.decode().rstrip("\n")
                    if line.startswith(":"):
                        continue
                    if line:
                        name, _, value = line.partition(":")
                        event[name] = value.removeprefix(" ")
                        continue
                    if event.get("event") == "description":
                        last = int(event["id"])
                        yield json.loads(event["data"])
                    event = {}
        except (TimeoutError, ConnectionError):
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=4, help="executions that wait for people at a time")
    parser.add_argument("--descriptions", type=int, default=10, help="descriptions to learn from before it ends")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--walks", action="store_true", help="walk through houses, and edit no words")
    options = parser.parse_args()

    run = os.environ.get("ILIAD_RUN") or answer("POST", "/outside-runs", {})["id"]
    print(f"run {run}", flush=True)
    agent, made = (Walker if options.walks else Agent)(options.seed), {}

    def post(count):
        batch = []
        for _ in range(count):
            request = agent.random.choice(list(agent.does))
            name, shown = agent.execute(request)
            batch.append((name, {"request": request, **shown, "update": agent.updates, "success": name == request}))
        posted = answer("POST", f"/runs/{run}/executions", {"executions": [execution for _, execution in batch]})
        for (name, _), stored in zip(batch, posted["executions"]):
            made[stored["execution"]] = name

    post(options.executions)
    for description in descriptions(run):
        name = made.get(description["execution"])
        if name is None or description["kind"] != "described" or description["state"] != "standing":
            continue
        agent.learn(name, description["text"])
        right = sum(agent.execute(request)[0] == request for request in agent.does)
        test = {"right": right, "of": len(agent.does)}
        update = {"update": agent.updates, "descriptions": [description["id"]], "validation": test}
        answer("POST", f"/runs/{run}/updates", update)
        print(f"learned that {name!r} is called {description['text']!r}", flush=True)
        if agent.updates >= options.descriptions:
            break
        post(1)


if __name__ == "__main__":
    main()
