#!/usr/bin/env python3
"""Times a small training with the default number of threads and with one, on a calm machine and on a busy one.

  busy_machine.py NAME=ILIAD [NAME=ILIAD ...] [--rounds 5] [--busy 0,2] [--episodes 96] [-o FILE]

Each round carries out `iliad train --preset tiny --set schedule.episodes=N` once for each binary and each number of
threads, one after the other in a drawn order, so that whatever else the machine does falls on all alike. --busy says
beside how many processes that compute all the time. Prints seconds, medians and the ratio of the default to one thread
as JSON; needs Python's standard library only.
"""
import argparse, datetime, json, multiprocessing, os, random, statistics, subprocess, tempfile, time


def spin():
    while True:
        pass


def train(iliad, threads, episodes):
    environment = dict(os.environ)
    environment.pop("RAYON_NUM_THREADS", None)
    if threads:
        environment["RAYON_NUM_THREADS"] = str(threads)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        subprocess.run([iliad, "train", "--preset", "tiny", "--device", "cpu", "--set", f"schedule.episodes={episodes}",
                        "--run-dir", os.path.join(folder, "run")],
                       check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return round(time.monotonic() - begin, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="NAME=ILIAD")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", default="0,2")
    parser.add_argument("--episodes", type=int, default=96)
    parser.add_argument("-o", metavar="FILE")
    given = parser.parse_args()
    binaries = dict(one.split("=", 1) for one in given.binaries)
    rows = []
    for busy in map(int, given.busy.split(",")):
        others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(busy)]
        for other in others:
            other.start()
        seconds = {(name, threads): [] for name in binaries for threads in ("default", "one")}
        for _ in range(given.rounds):
            for name, threads in random.sample(list(seconds), len(seconds)):
                seconds[name, threads].append(train(binaries[name], 1 if threads == "one" else 0, given.episodes))
        for other in others:
            other.terminate()
        for name in binaries:
            default, one = seconds[name, "default"], seconds[name, "one"]
            rows.append({"program": name, "busy_processes": busy, "default_seconds": default, "one_thread_seconds": one,
                         "default_median": statistics.median(default), "one_thread_median": statistics.median(one),
                         "default_to_one": round(statistics.median(default) / statistics.median(one), 2)})
    result = {"what": f"seconds of a training of {given.episodes} episodes",
              "preset": "tiny", "cores": os.cpu_count(), "rounds": given.rounds,
              "date": datetime.date.today().isoformat(), "rows": rows}
    text = json.dumps(result, indent=1)
    print(text)
    if given.o:
        with open(given.o, "w") as file:
            file.write(text + "\n")


main()
