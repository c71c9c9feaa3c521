#!/usr/bin/env python3
"""Many scripted teachers on a server whose store is full of rows, while it trains.

  load.py ILIAD [--teachers 200] [--minutes 30] [--think 4,6] [--stored 1000000] [--open 100000] [--no-paint] [-o FILE]
          [--results FOLDER]

A data folder is filled first: an ended run with --stored descriptions (half of them by three people, the other half
simulated), and --open executions that wait for people in a run of the preset `small`. The server then trains that run on
what --teachers people send, who think for a time drawn evenly from --think; one of them gave a sixth of what is stored.
Reported are

  - the times of leases and answers, errors, and answers that were acknowledged and are not stored once, as sent,
  - how many of these answers the agent had learned from when the last one was sent, and a minute later,
  - the memory of the server (VmRSS) over time,
  - the speed of a simulated run beside it, while nobody teaches and while all do,
  - the first paint of the ended run's dashboard (Chromium, by tests/browser/first-paint.js; not with --no-paint),
  - the export of all rows over HTTP and by `iliad export`, with its time and its memory.

Prints JSON, and keeps the figures as files `load-*.json` for BENCHMARKS.md where --results names a folder. Needs Python's
standard library, and `npm ci` in tests/browser for the first paint.
"""
import argparse, datetime, hashlib, json, os, pathlib, re, signal, sqlite3, statistics, subprocess, tempfile, time
import urllib.request

from teachers import Teacher

HERE = pathlib.Path(__file__).resolve().parent
BUSY = "0123456789abcdef0123456789abcdef"


def milliseconds(seconds):
    if len(seconds) < 2:
        return None
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"count": len(seconds), "median": round(1000 * cuts[49], 1), "p95": round(1000 * cuts[94], 1),
            "p99": round(1000 * cuts[98], 1), "most": round(1000 * max(seconds), 1)}


class Server:
    """A server on a data folder."""

    def __init__(self, iliad, data, settings):
        self.process = subprocess.Popen([iliad, "--port", "0", "--data-dir", data, *settings], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.base = self.process.stdout.readline().split()[-1].rstrip("/")

    def ask(self, path, body=None):
        request = urllib.request.Request(f"{self.base}{path}", None if body is None else json.dumps(body).encode(),
                                         {"content-type": "application/json", "origin": self.base})
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def memory(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status") as file:
            return round(int(re.search(rf"{field}:\s+(\d+)", file.read()).group(1)) / 1024)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def state(run):
    found = run["status"]["state"]
    return found["state"] if isinstance(found, dict) else found


def fill(file, live, stored, waiting):
    """Fills the store of a stopped server, whose executions nobody has seen yet."""
    store = sqlite3.connect(file)
    store.row_factory = sqlite3.Row
    samples = store.execute("SELECT e.*, b.view, b.trace FROM executions e JOIN execution_bodies b ON b.execution = e.id").fetchall()
    store.executescript("DELETE FROM leases; DELETE FROM execution_bodies; DELETE FROM executions;")
    columns = "family, preset, config, seed, teacher, created_at"
    store.execute(f"INSERT INTO runs (id, active, {columns}) SELECT 'filled', 0, {columns} FROM runs WHERE id = ?", [live])
    teachers = [store.execute("INSERT INTO teachers (token_hash, seen_guide, created_at) VALUES (?, 1, ?)",
                              [hashlib.sha256(name.encode()).digest(), time.time_ns() // 1_000_000]).lastrowid for name in (BUSY, "b", "c")]
    script = (HERE.parent / "tests/support/filled.sql").read_text()
    for name, value in {"{n}": stored // 2, "{run}": "filled", **dict(zip(("{a}", "{b}", "{c}"), teachers))}.items():
        script = script.replace(name, str(value))
    store.commit()
    store.executescript(script)
    first = store.execute("SELECT max(id) + 1 FROM executions").fetchone()[0]
    for n in range(waiting):
        sample = samples[n % len(samples)]
        store.execute("INSERT INTO executions (id, run, episode, policy_update, wanted, success, request, summary, offered_at)"
                      " VALUES (?, ?, ?, 0, 1, ?, ?, ?, ?)",
                      [first + n, live, n, sample["success"], sample["request"], sample["summary"], sample["offered_at"]])
        store.execute("INSERT INTO execution_bodies (execution, view, trace) VALUES (?, ?, json_set(?, '$.number', ?))",
                      [first + n, sample["view"], sample["trace"], n])
    store.commit()
    store.close()


def ready(server, live):
    while state(server.ask(f"/api/v1/runs/{live}")) != "running":
        time.sleep(0.5)


def speed(server, run, seconds):
    """Episodes of a simulated run per second of the wall."""
    begin, before = time.monotonic(), server.ask(f"/api/v1/runs/{run}")["status"]["episodes"]
    time.sleep(seconds)
    return (server.ask(f"/api/v1/runs/{run}")["status"]["episodes"] - before) / (time.monotonic() - begin)


def used(file, live):
    store = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    counts = store.execute("SELECT count(*), count(used_in_update) FROM answers WHERE run = ?", [live]).fetchone()
    store.close()
    return {"stored": counts[0], "learned_from": counts[1]}


def compare(file, live, acknowledged):
    """The acknowledged answers that are not stored once, in the words that were sent."""
    store = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    rows = store.execute("SELECT client_key, text FROM answers WHERE run = ?", [live]).fetchall()
    store.close()
    texts = dict(rows)
    return {"acknowledged": len(acknowledged), "lost": sum(key not in texts for key, _ in acknowledged),
            "changed": sum(texts.get(key, said) != said for key, said in acknowledged),
            "doubled": len(rows) - len(texts), "never_acknowledged": len(set(texts) - {key for key, _ in acknowledged})}


def download(server):
    """The export of the ended run over HTTP, and the server's memory meanwhile."""
    begin, size, lines, most = time.monotonic(), 0, 0, 0
    with urllib.request.urlopen(f"{server.base}/runs/filled/export.jsonl", timeout=600) as answer:
        while piece := answer.read(1 << 20):
            size, lines = size + len(piece), lines + piece.count(b"\n")
            most = max(most, server.memory())
    return {"seconds": round(time.monotonic() - begin, 1), "rows": lines, "megabytes": round(size / 1e6), "server_mebibytes": most}


def command(iliad, data):
    """`iliad export` of the ended run, and its greatest memory."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        process = subprocess.Popen([iliad, "export", "--data-dir", data, "--run", "filled", "--format", "csv", "-o", f"{folder}/all.csv"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        error = process.stderr.read().decode()
        _, code, usage = os.wait4(process.pid, 0)
        if code:
            raise SystemExit(f"iliad export ended with {code}: {error}")
        size = sum(file.stat().st_size for file in pathlib.Path(folder).rglob("*") if file.is_file())
        return {"seconds": round(time.monotonic() - begin, 1), "megabytes": round(size / 1e6),
                "mebibytes": round(usage.ru_maxrss / 1024)}


def version(iliad):
    return subprocess.run([iliad, "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]


def processor():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return f"{model.group(1).strip() if model else 'unknown processor'}, {os.cpu_count()} threads"


def figures(result, samples):
    """What BENCHMARKS.md shows: name, value, unit, number of samples, least and most."""
    for name, key in (("lease", "lease_ms"), ("lease-of-who-gave-a-sixth", "lease_ms_of_who_gave_a_sixth"), ("answer", "answer_ms")):
        found = result[key]
        if found:
            yield f"load-{name}-p95", found["p95"], "ms", found["count"], found["median"], found["most"]
    yield "load-answers-lost-doubled-or-changed", result["lost"] + result["doubled"] + result["changed"], "answers", result["acknowledged"], 0, 0
    yield "load-errors", result["errors"], "requests", samples, 0, 0
    memory = result["memory_mebibytes"]["every_15_seconds"]
    if memory:
        last = memory[-max(1, len(memory) // 10):]
        yield "load-memory-in-the-last-tenth", round(statistics.mean(last)), "MiB", len(last), min(memory), max(memory)
    speeds = result["simulated_episodes_per_second"]
    if speeds["all_teach"] and speeds["nobody_teaches"]:
        yield "load-training-speed-kept", round(100 * speeds["all_teach"] / speeds["nobody_teaches"]), "%", len(memory), None, None
    if paint := result["dashboard_first_paint_ms"]:
        yield "load-dashboard-first-paint", paint["median"], "ms", len(paint["rounds"]), min(paint["rounds"]), paint["most"]
    for name, key in (("http", "export_over_http"), ("command", "export_by_command")):
        yield f"load-export-by-{name}", result[key]["seconds"], "s", 1, None, None
    yield "load-export-by-command-memory", result["export_by_command"]["mebibytes"], "MiB", 1, None, None


def write_figure(folder, given, program, name, value, unit, n, least, most):
    """One file a figure, as `iliad dev bench --render` reads them."""
    row = {"name": name, "title": "", "value": value, "unit": unit, "n": n,
           "min": value if least is None else least, "max": value if most is None else most,
           "device": processor(), "date": datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z"),
           "command": given, "program": program, "complete": True, "levels": [], "rows": []}
    pathlib.Path(folder, f"{name}.json").write_text(json.dumps(row, indent=2) + "\n")


def keep(folder, result, samples):
    given = " ".join(f"--{name} {result[name]:g}" for name in ("teachers", "minutes", "stored", "open"))
    for figure in figures(result, samples):
        write_figure(folder, f"benches/load.py ILIAD {given}", result["program"], *figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("iliad")
    parser.add_argument("--teachers", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--think", default="4,6", type=lambda text: tuple(map(float, text.split(","))))
    parser.add_argument("--stored", type=int, default=1_000_000)
    parser.add_argument("--open", type=int, default=100_000)
    parser.add_argument("--no-paint", action="store_true")
    parser.add_argument("-o", metavar="FILE")
    parser.add_argument("--results", metavar="FOLDER")
    given = parser.parse_args()
    settings = ["--preset", "small", "--set", "pool.max_age=1000000000", "--rate-limits", "false"]
    with tempfile.TemporaryDirectory() as data:
        file = os.path.join(data, "iliad.sqlite")
        server = Server(given.iliad, data, settings)
        live = server.ask("/api/v1/runs")["items"][0]["id"]
        ready(server, live)
        server.stop()
        fill(file, live, given.stored, given.open)
        begin = time.monotonic()
        server = Server(given.iliad, data, settings)
        try:
            server.ask("/api/v1/runs")
            start = round(time.monotonic() - begin, 1)
            ready(server, live)
            other = server.ask("/api/v1/runs", {"preset": "small", "teacher": {"mode": "simulated"}})["id"]
            ready(server, other)
            time.sleep(20)
            alone = speed(server, other, 60)
            memory = [server.memory()]
            begin = time.monotonic()
            until = begin + 60 * given.minutes
            people = [Teacher(server.base, live, n, given.think, begin + 15, until, f"iliad_teacher={BUSY}" if n == 0 else None)
                      for n in range(given.teachers)]
            for one in people:
                one.start()
            speeds, load = [], []
            while time.monotonic() < until - 20:
                speeds.append(speed(server, other, 15))
                memory.append(server.memory())
                load.append(os.getloadavg()[0])
            for one in people:
                one.join()
            at_end = used(file, live)
            server.ask(f"/api/v1/runs/{other}/stop", {})
            time.sleep(60)
            later = used(file, live)
            acknowledged = [one for person in people for one in person.stored]
            kept = compare(file, live, acknowledged)
            paint = None
            if not given.no_paint:
                paint = json.loads(subprocess.run(["node", "first-paint.js", f"{server.base}/runs/filled"], check=True,
                                                  cwd=HERE.parent / "tests/browser", stdout=subprocess.PIPE).stdout)
            export = download(server)
        finally:
            server.stop()
        by_command = command(given.iliad, data)
    errors = [error for one in people for error in one.errors]
    result = {
        "what": "many teachers on a full store, while it trains", "date": datetime.date.today().isoformat(),
        "program": version(given.iliad),
        "cores": os.cpu_count(), "load_average": {"least": min(load, default=None), "most": max(load, default=None)},
        "teachers": given.teachers, "minutes": given.minutes, "think_seconds": given.think, "stored": given.stored,
        "open": given.open, "start_seconds": start,
        "lease_ms": milliseconds([s for one in people[1:] for s in one.leases]),
        "lease_ms_of_who_gave_a_sixth": milliseconds(people[0].leases),
        "answer_ms": milliseconds([s for one in people for s in one.answers]),
        "found_nothing": sum(one.empty for one in people), "errors": len(errors), "first_errors": errors[:5], **kept,
        "at_the_last_answer": at_end, "a_minute_later": later,
        "memory_mebibytes": {"before": memory[0], "every_15_seconds": memory[1:]},
        "simulated_episodes_per_second": {"nobody_teaches": round(alone, 1),
                                          "all_teach": round(statistics.mean(speeds), 1) if speeds else None},
        "dashboard_first_paint_ms": paint, "export_over_http": export, "export_by_command": by_command,
    }
    text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found.group().split()), json.dumps(result, indent=1))
    print(text)
    if given.o:
        with open(given.o, "w") as out:
            out.write(text + "\n")
    if given.results:
        keep(given.results, result, sum(len(one.leases) + len(one.answers) for one in people))


if __name__ == "__main__":
    main()
