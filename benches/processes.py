#!/usr/bin/env python3
"""Many scripted teachers on one run: over SQLite's file, over PostgreSQL, and over PostgreSQL with three more processes for the pages.

  tests/with-postgres benches/processes.py ILIAD [--teachers 100] [--minutes 2] [--think 4,6] [--rounds 1] [-o FILE]
          [--results FOLDER]

Each arrangement starts anew with an empty store, trains the preset `small` on what the people send, and takes its turn in every
round, so that all meet the same machine. Everything runs on this machine, PostgreSQL as well. Reported are the times of leases
and answers, errors, and answers that were acknowledged and are not stored once, as sent (by the export). Prints JSON, and keeps the
figures as files `processes-*.json` for BENCHMARKS.md where --results names a folder. Needs Python's standard library, and a PostgreSQL
server in ILIAD_TEST_POSTGRES whose psql is on the path.
"""
import argparse, collections, datetime, json, os, pathlib, signal, subprocess, tempfile, time, urllib.request

from load import milliseconds, version, write_figure
from teachers import Teacher

ARRANGEMENTS = {"sqlite": 0, "postgres": 0, "postgres-three-more": 3}


class Server:
    """A process of an arrangement."""

    def __init__(self, iliad, folder, database, *settings):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ILIAD_")}
        if database:
            environment["ILIAD_DATABASE"] = database
        self.process = subprocess.Popen([iliad, "--port", "0", "--data-dir", folder, "--rate-limits", "false", *settings],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.base = self.process.stdout.readline().split()[-1].rstrip("/")

    def ask(self, path):
        with urllib.request.urlopen(f"{self.base}{path}", timeout=120) as answer:
            return answer.read().decode()

    def runs(self):
        return json.loads(self.ask("/api/v1/runs"))["items"]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def database(name):
    """An empty database on the server, and its address."""
    server = os.environ["ILIAD_TEST_POSTGRES"]
    for statement in (f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"):
        subprocess.run(["psql", "-q", server, "-c", statement], check=True, stderr=subprocess.DEVNULL)
    place, _, parameters = server.partition("?")
    return f"{place.rsplit('/', 1)[0]}/{name}?{parameters}"


def running(server):
    return [run["id"] for run in server.runs() if run["live"] and run["status"]["state"] == "running"]


def measure(iliad, arrangement, given):
    address = None if arrangement == "sqlite" else database("benchmark")
    with tempfile.TemporaryDirectory() as folder:
        servers = [Server(iliad, f"{folder}/0", address, "--preset", "small")]
        try:
            for n in range(ARRANGEMENTS[arrangement]):
                servers.append(Server(iliad, f"{folder}/{n + 1}", address, "--trains", "false"))
            pages = servers[1:] or servers
            while not all(running(server) for server in servers):
                time.sleep(0.5)
            run = running(servers[0])[0]
            time.sleep(10)
            begin = time.monotonic()
            people = [Teacher(pages[n % len(pages)].base, run, n, given.think, begin + 15, begin + 60 * given.minutes)
                      for n in range(given.teachers)]
            for one in people:
                one.start()
            for one in people:
                one.join()
            learned = json.loads(servers[0].ask(f"/api/v1/runs/{run}"))["status"]["descriptions_human"]
            rows = collections.Counter()
            for line in servers[-1].ask(f"/runs/{run}/export.jsonl").splitlines():
                rows[json.loads(line)["description"]] += 1
        finally:
            for server in reversed(servers):
                server.stop()
    said = collections.Counter(words for one in people for _, words in one.stored)
    return {"people": people, "acknowledged": said.total(), "learned_from": learned,
            "wrong": (said - rows).total() + (rows - said).total()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("iliad")
    parser.add_argument("--teachers", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--think", default="4,6", type=lambda text: tuple(map(float, text.split(","))))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("-o", metavar="FILE")
    parser.add_argument("--results", metavar="FOLDER")
    given = parser.parse_args()
    measured = {name: [] for name in ARRANGEMENTS}
    for _ in range(given.rounds):
        for name in ARRANGEMENTS:
            measured[name].append(measure(given.iliad, name, given))
    result = {"what": "many teachers over one and several processes", "date": datetime.date.today().isoformat(), "cores": os.cpu_count(),
              "load_average": os.getloadavg()[0], "teachers": given.teachers, "minutes": given.minutes, "rounds": given.rounds}
    for name, rounds in measured.items():
        people = [one for found in rounds for one in found["people"]]
        result[name] = {
            "lease_ms": milliseconds([s for one in people for s in one.leases]),
            "answer_ms": milliseconds([s for one in people for s in one.answers]),
            "found_nothing": sum(one.empty for one in people),
            "errors": sum(len(one.errors) for one in people), "first_errors": [e for one in people for e in one.errors][:3],
            **{key: sum(found[key] for found in rounds) for key in ("acknowledged", "learned_from", "wrong")},
        }
    text = json.dumps(result, indent=1)
    print(text)
    if given.o:
        pathlib.Path(given.o).write_text(text + "\n")
    if given.results:
        keep(given, result)


def keep(given, result):
    command = (f"tests/with-postgres benches/processes.py ILIAD --teachers {given.teachers} --minutes {given.minutes:g} "
               f"--rounds {given.rounds}")
    for name in ARRANGEMENTS:
        found = result[name]
        figures = [("wrong-or-lost", found["wrong"], "answers", found["acknowledged"], 0, 0),
                   ("errors", found["errors"], "requests", found["lease_ms"]["count"] + found["answer_ms"]["count"], 0, 0)]
        for what in ("lease", "answer"):
            times = found[f"{what}_ms"]
            figures.append((f"{what}-p95", times["p95"], "ms", times["count"], times["median"], times["most"]))
        for what, *figure in figures:
            write_figure(given.results, command, version(given.iliad), f"processes-{name}-{what}", *figure)


if __name__ == "__main__":
    main()
