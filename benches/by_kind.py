#!/usr/bin/env python3
"""A table of success by kind of task, of several seeds.

  by_kind.py -o FILE ROW=EVALUATION,EVALUATION... ROW=...     keeps what `iliad evaluate --by KIND --json` printed
  by_kind.py --table FILE                                      prints it as Markdown: means over seeds, with their spread

Needs Python's standard library only.
"""
import argparse, datetime, json, statistics


def read(path):
    with open(path) as file:
        return json.load(file)


def cell(shares):
    spread = f" ± {100 * statistics.stdev(shares):.1f}" if len(shares) > 1 else ""
    return f"{100 * statistics.mean(shares):.1f}{spread}"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rows", nargs="*", metavar="ROW=EVALUATION,...")
    arguments.add_argument("-o", metavar="FILE")
    arguments.add_argument("--device", default="", help="the device that the policies were evaluated on")
    arguments.add_argument("--table", metavar="FILE")
    given = arguments.parse_args()
    if given.table:
        kept = read(given.table)
        first = kept["rows"][0]["seeds"][0]
        groups = [(g["group"], g["success"]["n"]) for g in first["groups"]]
        print(f"| {first['split']} success by {first['by']}, % (seeds) | all | " + " | ".join(f"{g} (n = {n:,})" for g, n in groups) + " |")
        print("|---" * (2 + len(groups)) + "|")
        for row in kept["rows"]:
            of = lambda group: [next(g["success"]["value"] for g in s["groups"] if g["group"] == group) for s in row["seeds"]]
            cells = [cell([s["success"]["value"] for s in row["seeds"]])] + [cell(of(g)) for g, _ in groups]
            print(f"| {row['name']} ({len(row['seeds'])}) | " + " | ".join(cells) + " |")
        return
    if not (given.rows and given.o):
        arguments.error("ROW=EVALUATION,... and -o are needed")
    rows = [{"name": name, "seeds": [read(path) for path in paths.split(",")]} for name, paths in (row.split("=", 1) for row in given.rows)]
    with open(given.o, "w") as file:
        json.dump({"what": "success by kind of task", "device": given.device, "date": datetime.date.today().isoformat(), "rows": rows}, file, indent=1)
        file.write("\n")


main()
