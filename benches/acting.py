#!/usr/bin/env python3
"""A table of the same policies acting in several ways, of several seeds.

  acting.py -o FILE ROW=EVALUATION,EVALUATION... ROW=...     keeps what `iliad evaluate [--set KEY=VALUE] --json` printed
  acting.py --table FILE                                      prints it as Markdown: means over seeds, with their spread

Needs Python's standard library only.
"""
import argparse, datetime, json, statistics


def read(path):
    with open(path) as file:
        return json.load(file)


def cell(values, scale):
    spread = f" ± {scale * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{scale * statistics.mean(values):.1f}{spread}"


def table(kept):
    figures = sorted(kept["rows"][0]["evaluations"][0]["figures"])
    units = {name: ("m", 1) if name == "distance" else ("%", 100) for name in figures}
    split, tasks = (kept["rows"][0]["evaluations"][0][key] for key in ("split", "success"))
    titles = [f"{split} success, % (seeds)"] + [f"{name}, {units[name][0]}" for name in figures]
    print(f"| {tasks['n']:,} tasks | acting | " + " | ".join(titles) + " |")
    print("|---" * (2 + len(titles)) + "|")
    for row in kept["rows"]:
        ways = {}
        for evaluation in row["evaluations"]:
            ways.setdefault(", ".join(evaluation.get("set", [])) or "as trained", []).append(evaluation)
        for way, seeds in ways.items():
            success = f"{cell([s['success']['value'] for s in seeds], 100)} ({len(seeds)})"
            others = [cell([s["figures"][name] for s in seeds], units[name][1]) for name in figures]
            print(f"| {row['name']} | {way} | {success} | " + " | ".join(others) + " |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rows", nargs="*", metavar="ROW=EVALUATION,...")
    arguments.add_argument("-o", metavar="FILE")
    arguments.add_argument("--device", default="", help="the device that the policies were evaluated on")
    arguments.add_argument("--date", default=datetime.date.today().isoformat())
    arguments.add_argument("--table", metavar="FILE")
    given = arguments.parse_args()
    if given.table:
        return table(read(given.table))
    if not (given.rows and given.o):
        arguments.error("ROW=EVALUATION,... and -o are needed")
    named = (row.split("=", 1) for row in given.rows)
    rows = [{"name": name, "evaluations": [read(path) for path in paths.split(",")]} for name, paths in named]
    kept = {"what": "success by way of acting", "device": given.device, "date": given.date, "rows": rows}
    with open(given.o, "w") as file:
        json.dump(kept, file, indent=1)
        file.write("\n")


main()
