#!/usr/bin/env python3
"""A language model that teaches an agent of Iliad. Python's standard library is all it needs.

    ILIAD_URL=http://localhost:8642 ILIAD_RUN=regex-small-20260102-030405 \\
    LM_URL=http://localhost:8000/v1 LM_MODEL=my-model python3 language_model_teacher.py --descriptions 50

It takes an execution, asks the model for the request that would have led to it, and sends the reply as the description. LM_URL is
the address of any server that speaks the chat-completions protocol; LM_KEY is its key, where it wants one. ILIAD_TOKEN is needed
where Iliad wants a token: `iliad token create "language model" --scope teach`. Each token is a teacher of its own.
"""

import argparse
import json
import os
import time
import urllib.error
import urllib.request

SERVER = os.environ.get("ILIAD_URL", "http://localhost:8642").rstrip("/") + "/api/v1"
INSTRUCTIONS = (
    "You see what an agent did. Write the one request, as a person would say it, that would have led to exactly this. "
    "Answer with the request alone, in one sentence. Answer with the single word NOTHING if the agent did nothing."
)


def send(url, body, token=None):
    """Posts JSON and reads the JSON of the reply, with its status. Where the server asks to wait, it waits."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers, method="POST")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as refused:
            if refused.code in (429, 503) and refused.headers.get("Retry-After"):
                time.sleep(int(refused.headers["Retry-After"]))
                continue
            text = refused.read()
            try:
                return refused.code, json.loads(text)
            except ValueError:
                return refused.code, {"title": "It was refused", "detail": text.decode(errors="replace")}


def ask_language_model(execution):
    """The model's description of an execution, which is given to it as text."""
    body = {
        "model": os.environ.get("LM_MODEL", "default"),
        "messages": [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": execution}],
        "temperature": 0.7,
        "max_tokens": 100,
    }
    status, reply = send(os.environ["LM_URL"].rstrip("/") + "/chat/completions", body, os.environ.get("LM_KEY"))
    if status != 200:
        raise SystemExit(f"the language model refused: {status} {reply}")
    return reply["choices"][0]["message"]["content"].strip().strip('"')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--descriptions", type=int, default=10, help="descriptions to give before it ends")
    parser.add_argument("--wait", type=float, default=2.0, help="seconds to wait when nothing is there to describe")
    options = parser.parse_args()
    run, token = os.environ["ILIAD_RUN"], os.environ.get("ILIAD_TOKEN")

    given = 0
    while given < options.descriptions:
        status, offer = send(f"{SERVER}/runs/{run}/lease", {}, token)
        if status != 200:
            raise SystemExit(f"{offer['title']}. {offer['detail']}")
        if "execution" not in offer:
            print(offer["message"], flush=True)
            if offer["ended"]:
                break
            time.sleep(options.wait)
            continue
        began = time.monotonic()
        words = ask_language_model(offer["text"])
        kind = "nothing_changed" if words.upper().startswith("NOTHING") else "described" if words else "cannot_describe"
        answer = {
            "client_key": offer["client_key"],
            "execution": offer["execution"],
            "kind": kind,
            "text": words if kind == "described" else "",
            "active_ms": int((time.monotonic() - began) * 1000),
            # A model that contradicts what Iliad knows means what it says.
            "confirmed": True,
        }
        status, reply = send(f"{SERVER}/runs/{run}/answers", answer, token)
        if status not in (200, 201):
            raise SystemExit(f"{reply['title']}. {reply['detail']}")
        given += kind == "described"
        print(f"{offer['text']!r}: {words!r}", flush=True)


if __name__ == "__main__":
    main()
