#!/usr/bin/env python3
"""A table of evaluations over several seeds: by kind of task, or of the same policies acting in several ways.

  evaluations.py -o FILE ROW=EVALUATION,EVALUATION... ROW=...
        keeps what `iliad evaluate --by KIND --json` or `iliad evaluate --set KEY=VALUE --json` printed
  evaluations.py --table FILE
        prints it as Markdown: means over seeds, with their spread

Needs Python's standard library only.
"""
import argparse, datetime, json, statistics


def read(path):
    with open(path) as file:
        return json.load(file)


def cell(values, scale=100):
    spread = f" ± {scale * statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{scale * statistics.mean(values):.1f}{spread}"


def successes(seeds):
    return [seed["success"]["value"] for seed in seeds]


def show(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def by_kind(kept):
    first = kept["rows"][0]["seeds"][0]
    groups = [(g["group"], g["success"]["n"]) for g in first["groups"]]
    rows = []
    for row in kept["rows"]:
        of = lambda group: [next(g["success"]["value"] for g in s["groups"] if g["group"] == group) for s in row["seeds"]]
        rows.append([f"{row['name']} ({len(row['seeds'])})", cell(successes(row["seeds"]))] + [cell(of(g)) for g, _ in groups])
    show([f"{first['split']} success by {first['by']}, % (seeds)", "all"] + [f"{g} (n = {n:,})" for g, n in groups], rows)


def by_acting(kept):
    first = kept["rows"][0]["seeds"][0]
    figures = sorted(first["figures"])
    units = {name: ("m", 1) if name == "distance" else ("%", 100) for name in figures}
    rows = []
    for row in kept["rows"]:
        ways = {}
        for evaluation in row["seeds"]:
            ways.setdefault(", ".join(evaluation.get("set", [])) or "as trained", []).append(evaluation)
        for way, seeds in ways.items():
            others = [cell([s["figures"][name] for s in seeds], units[name][1]) for name in figures]
            rows.append([row["name"], way, f"{cell(successes(seeds))} ({len(seeds)})"] + others)
    head = [f"{first['success']['n']:,} tasks", "acting", f"{first['split']} success, % (seeds)"]
    show(head + [f"{name}, {units[name][0]}" for name in figures], rows)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("rows", nargs="*", metavar="ROW=EVALUATION,...")
    arguments.add_argument("-o", metavar="FILE")
    arguments.add_argument("--device", default="", help="the device that the policies were evaluated on")
    arguments.add_argument("--table", metavar="FILE")
    given = arguments.parse_args()
    if given.table:
        kept = read(given.table)
        return (by_kind if "groups" in kept["rows"][0]["seeds"][0] else by_acting)(kept)
    if not (given.rows and given.o):
        arguments.error("ROW=EVALUATION,... and -o are needed")
    rows = [{"name": name, "seeds": [read(path) for path in paths.split(",")]} for name, paths in (row.split("=", 1) for row in given.rows)]
    what = "success by kind of task" if "groups" in rows[0]["seeds"][0] else "success by way of acting"
    with open(given.o, "w") as file:
        json.dump({"what": what, "device": given.device, "date": datetime.date.today().isoformat(), "rows": rows}, file, indent=1)
        file.write("\n")


main()
