#!/usr/bin/env python3
"""Times how long a server on a GPU takes from its start to its first update, with and without the driver's cache.

  gpu_start.py ILIAD [--starts 3] [-o FILE]

ILIAD is a binary that was built with the feature `cuda`. Each round starts it twice with an empty home folder and the
preset `tiny` taught by the simulated teacher: once in an empty data folder, once in a data folder that holds nothing but
the cache of the first. Prints the seconds as JSON, with the card and the driver. Needs Python's standard library only.
"""
import argparse, datetime, json, os, shutil, signal, statistics, subprocess, sys, tempfile, time, urllib.request

LIMIT = 300  # seconds after which a start has failed


def first_update(iliad, data):
    """Seconds from the start of the server to the first update that its status shows."""
    home = tempfile.mkdtemp()
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_CACHE_PATH"} | {"HOME": home}
    begin = time.monotonic()
    server = subprocess.Popen(
        [iliad, "--preset", "tiny", "--set", 'teacher.mode={"mode":"simulated"}', "--device", "cuda", "--port", "0",
         "--data-dir", data], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    try:
        address = server.stdout.readline().split()[-1].rstrip("/")
        while time.monotonic() - begin < LIMIT:
            status = json.load(urllib.request.urlopen(f"{address}/api/runs", timeout=30))[0]["status"]
            if status["update"] > 0:
                if not status["device"].startswith("cuda"):
                    sys.exit("the server does not use the GPU")
                return time.monotonic() - begin
            time.sleep(0.05)
        sys.exit(f"no update within {LIMIT} s")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
        shutil.rmtree(home)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("iliad")
    arguments.add_argument("--starts", type=int, default=3)
    arguments.add_argument("-o", metavar="FILE")
    given = arguments.parse_args()
    cold, kept = [], []
    for _ in range(given.starts):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            cold.append(round(first_update(given.iliad, one), 2))
            shutil.copytree(os.path.join(one, "cache"), os.path.join(two, "cache"))
            kept.append(round(first_update(given.iliad, two), 2))
    card = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                          capture_output=True, text=True).stdout.strip()
    result = {"what": "seconds from the start of a server to its first update", "preset": "tiny", "card": card,
              "date": datetime.date.today().isoformat(), "without_cache": cold, "with_cache": kept,
              "median_without": statistics.median(cold), "median_with": statistics.median(kept)}
    text = json.dumps(result, indent=1)
    print(text)
    if given.o:
        with open(given.o, "w") as file:
            file.write(text + "\n")


main()
