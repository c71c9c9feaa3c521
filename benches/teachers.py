#!/usr/bin/env python3
"""Many scripted teachers at once on one run: how many of their leases find nothing to describe, and how long they wait.

  teachers.py ILIAD [--teachers 20,50,100] [--seconds 90] [--warm 30] [--think 3,5] [--busy 0] [--set KEY=VALUE ...] [-o FILE]

For each number of teachers a server is started anew in an empty data folder (preset `small` unless --preset says
otherwise). Each teacher opens the page, then leases, thinks for a time drawn evenly from --think, and sends a made-up
sentence. Counted from --warm on, when the agent is warmed up and the pool has met its people. --busy starts so many other
processes that compute all the time. Prints JSON; needs Python's standard library only.
"""
import argparse, datetime, http.client, http.cookiejar, json, multiprocessing, os, random, signal, statistics, subprocess
import tempfile, threading, time, urllib.parse, urllib.request

WORDS = "the agent took put changed first last every letter vowel away before after end start doubled replaced by".split()


def spin():
    while True:
        pass


class Teacher(threading.Thread):
    """One scripted teacher. `stored` gets the key and the words of each answer that the server has acknowledged."""

    def __init__(self, base, run, seed, think, begin, until, cookie=None):
        super().__init__(daemon=True)
        self.base, self.run_id, self.random = urllib.parse.urlparse(base), run, random.Random(seed)
        self.think, self.begin, self.until, self.cookie = think, begin, until, cookie
        self.leases, self.answers, self.empty, self.errors, self.stored = [], [], 0, [], []

    def call(self, method, path, body=None):
        headers = {"content-type": "application/json", **({"cookie": self.cookie} if self.cookie else {})}
        start = time.monotonic()
        try:
            self.line.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self.line.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self.line.close()
            raise
        cookie = answer.getheader("set-cookie")
        if cookie:
            self.cookie = cookie.split(";")[0]
        return answer.status, text, time.monotonic() - start

    def counted(self):
        return time.monotonic() >= self.begin

    def run(self):
        self.line = http.client.HTTPConnection(self.base.hostname, self.base.port, timeout=60)
        time.sleep(self.random.uniform(0, self.think[1]))
        api = f"/api/runs/{self.run_id}"
        try:
            self.call("GET", f"/teach/{self.run_id}")
        except (OSError, http.client.HTTPException) as error:
            self.errors.append(repr(error))
        while time.monotonic() < self.until:
            try:
                status, text, seconds = self.call("POST", f"{api}/lease", {"except": []})
                if status != 200:
                    raise OSError(f"lease: {status} {text[:200]}")
                offer = json.loads(text)
                if self.counted():
                    self.leases.append(seconds)
                    self.empty += "execution" not in offer
                time.sleep(self.random.uniform(*self.think))
                if "execution" not in offer:
                    continue
                said = " ".join(self.random.choice(WORDS) for _ in range(6))
                body = {"client_key": offer["client_key"], "execution": offer["execution"], "kind": "described", "text": said}
                status, text, seconds = self.call("POST", f"{api}/answers", body)
                if status not in (200, 201):
                    raise OSError(f"answer: {status} {text[:200]}")
                self.stored.append((offer["client_key"], said))
                if self.counted():
                    self.answers.append(seconds)
            except (OSError, http.client.HTTPException) as error:
                self.errors.append(repr(error))
                time.sleep(1)


def p95(values):
    return round(1000 * statistics.quantiles(values, n=20)[-1], 1) if len(values) > 1 else None


def measure(given, teachers):
    settings = [part for one in given.set for part in ("--set", one)]
    with tempfile.TemporaryDirectory() as data:
        server = subprocess.Popen([given.iliad, "--preset", given.preset, "--port", "0", "--data-dir", data, *settings],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            base = server.stdout.readline().split()[-1].rstrip("/")
            while True:
                run = json.load(urllib.request.urlopen(f"{base}/api/runs", timeout=60))[0]
                state = run["status"]["state"]
                if (state["state"] if isinstance(state, dict) else state) == "running":
                    break
                time.sleep(1)
            begin = time.monotonic() + given.warm
            people = [Teacher(base, run["id"], n, given.think, begin, begin + given.seconds) for n in range(teachers)]
            for one in people:
                one.start()
            for one in people:
                one.join()
            status = json.load(urllib.request.urlopen(f"{base}/api/runs/{run['id']}", timeout=60))["status"]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()
    leases, answers = [s for one in people for s in one.leases], [s for one in people for s in one.answers]
    empty, errors = sum(one.empty for one in people), [e for one in people for e in one.errors]
    return {"teachers": teachers, "leases": len(leases), "found_nothing": empty,
            "found_nothing_percent": round(100 * empty / max(1, len(leases)), 1), "lease_p95_ms": p95(leases),
            "answers": len(answers), "answer_p95_ms": p95(answers), "errors": errors[:5], "updates": status["update"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("iliad")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--teachers", default="20,50,100")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--warm", type=float, default=30)
    parser.add_argument("--think", default="3,5", type=lambda text: tuple(map(float, text.split(","))))
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("-o", metavar="FILE")
    given = parser.parse_args()
    others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(given.busy)]
    for other in others:
        other.start()
    rows = [measure(given, int(n)) for n in given.teachers.split(",")]
    for other in others:
        other.terminate()
    result = {"what": "leases of scripted teachers that find nothing", "preset": given.preset, "set": given.set,
              "date": datetime.date.today().isoformat(), "cores": os.cpu_count(), "busy_processes": given.busy,
              "think_seconds": given.think, "seconds": given.seconds, "rows": rows}
    text = json.dumps(result, indent=1)
    print(text)
    if given.o:
        with open(given.o, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
