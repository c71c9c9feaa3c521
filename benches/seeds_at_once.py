#!/usr/bin/env python3
"""Times a grid of several seeds on one card against one seed alone.

  seeds_at_once.py ILIAD [--seeds 8] [--name NAME] [-o FOLDER] -- FAMILY REPRODUCE-ARGUMENTS

Runs `iliad reproduce FAMILY …` with one seed, then with as many as are asked for, each in an empty folder; how many run at once is the
command's own decision. The result is how many times as long the seeds take as one, from start to end of the commands, with what the
command itself says of its gain. Writes it to FOLDER/NAME.json. Needs Python's standard library only.
"""
import argparse, datetime, json, os, subprocess, sys, tempfile, time


def command_of(iliad, arguments, seeds, folder):
    """The command that carries these seeds out in a folder."""
    return [iliad, "reproduce", *arguments, "--seeds", ",".join(str(seed) for seed in seeds),
            "--run-dir", os.path.join(folder, "runs"), "--results", folder, "--name", "grid"]


def timed(iliad, arguments, seeds, folder):
    """Seconds that the grid of these seeds takes, and the file of its results."""
    command = command_of(iliad, arguments, seeds, folder)
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    seconds = time.monotonic() - begin
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}")
    with open(os.path.join(folder, "grid.json")) as file:
        return seconds, json.load(file)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("iliad")
    arguments.add_argument("--seeds", type=int, default=8)
    arguments.add_argument("--name", default="seeds-at-once")
    arguments.add_argument("-o", metavar="FOLDER")
    arguments.add_argument("reproduce", nargs="+", metavar="FAMILY REPRODUCE-ARGUMENTS")
    given = arguments.parse_args()
    folders = tempfile.TemporaryDirectory
    with folders() as first, folders() as one, folders() as several:
        # The driver compiles for a card once; what it keeps should serve both sides.
        warm = [*command_of(given.iliad, given.reproduce, [1], first), "--seconds", "5"]
        subprocess.run(warm, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        alone, _ = timed(given.iliad, given.reproduce, [1], one)
        together, results = timed(given.iliad, given.reproduce, range(1, given.seeds + 1), several)
    ratio = together / alone
    result = {"name": given.name, "title": f"{given.seeds} seeds on one card: {alone:.0f} s alone, {together:.0f} s together",
              "value": ratio, "unit": "times the time of one seed", "n": 1, "min": ratio, "max": ratio,
              "device": results["device"], "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
              "command": "benches/seeds_at_once.py ILIAD " + " ".join(sys.argv[2:]), "program": results["program"],
              "complete": results["complete"], "levels": [], "rows": [], "side_by_side": results.get("side_by_side"),
              "seconds": {"alone": alone, "together": together}}
    text = json.dumps(result, indent=2)
    print(text)
    if given.o:
        os.makedirs(given.o, exist_ok=True)
        with open(os.path.join(given.o, given.name + ".json"), "w") as file:
            file.write(text + "\n")


main()
