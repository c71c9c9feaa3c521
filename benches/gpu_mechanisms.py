#!/usr/bin/env python3
"""Times an update of the simulated teacher on a GPU, with all of the engine's mechanisms and without one after the other.

  gpu_mechanisms.py ILIAD [--base OLD] [--whole] --regex CORPUS --nav CORPUS [--rounds 3] -o FILE
  gpu_mechanisms.py --table FILE        prints the rows of the table in docs/gpu.md

ILIAD is a binary that was built with the feature `cuda`; OLD is one of an earlier commit, timed in the same rounds. Every round
times each variant once, so that the machine's mood meets all of them. Needs Python's standard library only.
"""
import argparse, datetime, json, os, statistics, subprocess, sys, tempfile

VARIANTS = {
    "everything": [],
    "no captured graphs (`--no-recording`)": ["--no-recording"],
    "no programs (`--single`)": ["--single"],
    "no recurrences in one launch, no small gemm, and so no programs (`--by-step`)": ["--by-step"],
    "full precision, and so neither of these (`--full-precision`)": ["--full-precision"],
}
MODELS = ["regex-executor", "regex-describer", "nav-executor", "nav-describer"]


def updates(iliad, flags, corpora, command):
    """Median milliseconds of an update of each model."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for preset, corpus in corpora:
            subprocess.run([iliad, *command, "--preset", preset, "--set", f"task.path={corpus}", "--only", "updates", "--warm", "60",
                            "--samples", "15", "--results", folder, "--device", "cuda", *flags],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for model in MODELS:
            with open(os.path.join(folder, f"{model}-update-gpu.json")) as file:
                result = json.load(file)
            found[model], device = result["value"], result["device"]
    return found, device


def measure(given):
    corpora = [("paper", given.regex), ("nav/paper", given.nav)]
    programs = {"everything": (given.iliad, [], ["dev", "bench"])}
    if given.base:
        programs["everything, before"] = (given.base, [], ["bench"])
    if not given.whole:
        programs |= {name: (given.iliad, flags, ["dev", "bench"]) for name, flags in VARIANTS.items() if flags}
    rounds, device = {name: [] for name in programs}, None
    for _ in range(given.rounds):
        for name, (program, flags, command) in programs.items():
            found, device = updates(program, flags, corpora, command)
            rounds[name].append(found)
    rows = [{"variant": name,
             "milliseconds": {m: round(statistics.median(r[m] for r in all), 3) for m in MODELS},
             "lowest": {m: round(min(r[m] for r in all), 3) for m in MODELS},
             "highest": {m: round(max(r[m] for r in all), 3) for m in MODELS}} for name, all in rounds.items()]
    return {"what": "milliseconds of an update of the simulated teacher at the paper's sizes", "device": device,
            "date": datetime.date.today().isoformat(), "rounds": given.rounds, "samples": 15, "rows": rows}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("iliad", nargs="?")
    arguments.add_argument("--base")
    arguments.add_argument("--whole", action="store_true", help="no mechanism is left out: compares with --base alone")
    arguments.add_argument("--regex")
    arguments.add_argument("--nav")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("-o", metavar="FILE")
    arguments.add_argument("--table", metavar="FILE")
    given = arguments.parse_args()
    if given.table:
        with open(given.table) as file:
            result = json.load(file)
        print(f"{result['device']}, {result['date']}, medians of {result['rounds']} rounds of {result['samples']} samples")
        for row in result["rows"]:
            whole = result["rows"][0]["milliseconds"]
            cells = (f"{row['milliseconds'][m]:.2f} ({row['lowest'][m]:.2f} to {row['highest'][m]:.2f}) × "
                     f"{row['milliseconds'][m] / whole[m]:.2f}" for m in MODELS)
            print(f"| {row['variant']} | {' | '.join(cells)} |")
        return
    if not (given.iliad and given.regex and given.nav and given.o):
        sys.exit("gpu_mechanisms.py: ILIAD, --regex, --nav and -o are needed; see --help")
    with open(given.o, "w") as file:
        file.write(json.dumps(measure(given), indent=1) + "\n")


main()
