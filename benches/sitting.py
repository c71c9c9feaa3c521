#!/usr/bin/env python3
"""Lets a scripted person teach a fresh server through its pages, and keeps how much the agent understands after how many answers.

  sitting.py ILIAD --person SCRIPT --name words [--preset small] [--seeds 1,2,3] [--answers 200] [--every 25] [--pause 3]
             [--cores 2] [--together 1] [--peer SCRIPT] [--set KEY=VALUE ...] [--person-options "--varied"] -o FILE
  sitting.py --merge FILE... -o FILE      puts results of single seeds together
  sitting.py --table FILE...     prints the rows of the table in BENCHMARKS.md
  sitting.py --plot FILE... -o FILE.svg     draws the curves

SCRIPT is a program that teaches by the page's addresses: `SCRIPT URL --answers N --every N --pause S --seed N --json` prints
{"curve": [[answers, seconds, share right], ...]}. PEER, where given, is one that gets the export of a sitting on its standard
input and prints lines of `answers share%`. Each seed has a server of its own with a new data folder. Requests go through a proxy in this program, which
times them: `lease` is the next execution, `answers` the reply to a sent answer, `try` a try. Needs Python's standard library only.
"""
import argparse, concurrent.futures, datetime, http.client, http.server, json, os, platform, re, shlex, socket, statistics
import subprocess, sys, tempfile, threading, time

COLUMNS = [25, 50, 100, 200]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Proxy(http.server.BaseHTTPRequestHandler):
    """Hands every request on to the server, and notes how long its reply took."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=300)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("connection", "accept-encoding")}
        headers["Host"] = f"127.0.0.1:{self.server.target}"
        begun = time.monotonic()
        connection.request(self.command, self.path, body, headers)
        reply = connection.getresponse()
        content = reply.read()
        took = time.monotonic() - begun
        if self.command == "POST":
            self.server.took.setdefault(self.path.rsplit("/", 1)[-1], []).append(took)
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        connection.close()

    do_GET = do_POST = pass_on


def pinned(cores, command):
    return ["taskset", "-c", cores, *command] if cores else command


def sit(given, seed, cores):
    """One sitting: the curve, the latencies, and the peer's curve."""
    port, front = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "data")
        settings = [part for one in given.set for part in ("--set", one)]
        log = open(os.path.join(folder, "log"), "w")
        command = [given.iliad, "serve", "--port", str(port), "--data-dir", data, "--seed", str(seed), "--preset", given.preset, *settings]
        server = subprocess.Popen(pinned(cores, command), stdout=log, stderr=log)
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", front), Proxy)
        proxy.target, proxy.took = port, {}
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            for _ in range(600):
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                    connection.request("GET", "/api/runs")
                    if json.loads(connection.getresponse().read()):
                        break
                except (OSError, ValueError):
                    pass
                if server.poll() is not None:
                    raise SystemExit(f"the server ended: {open(log.name).read()[-2000:]}")
                time.sleep(0.5)
            time.sleep(given.settle)
            person = [sys.executable, given.person, f"http://127.0.0.1:{front}", "--answers", str(given.answers), "--every", str(given.every),
                      "--pause", str(given.pause), "--seed", str(seed), "--json", *shlex.split(given.person_options)]
            done = subprocess.run(pinned(cores, person), stdout=subprocess.PIPE, check=True, text=True)
            found = json.loads(done.stdout)
        finally:
            proxy.shutdown()
            server.terminate()
            server.wait(60)
        result = {"seed": seed, "curve": [[n, s, round(v, 4)] for n, s, v in found["curve"]], "milliseconds": latencies(proxy.took)}
        if given.peer:
            rows = subprocess.run([given.iliad, "export", "--data-dir", data], stdout=subprocess.PIPE, check=True, text=True).stdout
            peer = subprocess.run([sys.executable, given.peer, "--seed", str(seed), *shlex.split(given.person_options)], input=rows,
                                  stdout=subprocess.PIPE, check=True, text=True).stdout
            result["peer"] = [[int(n), int(v) / 100] for n, v in re.findall(r"^(\d+)\s+(\d+)%", peer, re.M)]
    print(f"{given.name} seed {seed}: " + ", ".join(f"{v:.0%} after {n}" for n, _, v in result["curve"]), file=sys.stderr)
    return result


def latencies(took):
    def quantile(values, q):
        values = sorted(values)
        return round(1000 * values[min(len(values) - 1, int(q * len(values)))], 1)
    return {path: {"requests": len(all), "p50": quantile(all, 0.5), "p95": quantile(all, 0.95), "p99": quantile(all, 0.99)}
            for path, all in sorted(took.items()) if path in ("lease", "answers", "try")}


def processor():
    try:
        return re.search(r"model name\s*:\s*(.*)", open("/proc/cpuinfo").read()).group(1)
    except (OSError, AttributeError):
        return platform.processor()


def at(curve, n):
    return next((row[-1] for row in curve if row[0] == n), None)


def spread(values):
    values = [v for v in values if v is not None]
    if not values:
        return None
    return {"mean": round(statistics.mean(values), 4), "deviation": round(statistics.stdev(values), 4) if len(values) > 1 else None,
            "seeds": len(values)}


def measure(given):
    seeds = [int(s) for s in given.seeds.split(",")]
    cores = [f"{given.cores * i}-{given.cores * (i + 1) - 1}" if given.together > 1 else "" for i in range(given.together)]
    with concurrent.futures.ThreadPoolExecutor(given.together) as pool:
        sittings = list(pool.map(lambda pair: sit(given, pair[1], cores[pair[0] % given.together]), enumerate(seeds)))
    result = {"what": given.what or given.name, "name": given.name, "preset": given.preset, "settings": given.set,
              "person": os.path.basename(given.person) + " " + given.person_options, "pause": given.pause, "cores": given.cores,
              "machine": processor(), "date": datetime.date.today().isoformat()}
    return summary(result, sittings)


def summary(result, sittings):
    """The means over the sittings, with the sittings after them."""
    points = sorted({row[0] for s in sittings for row in s["curve"]})
    result["mean"] = {str(n): spread([at(s["curve"], n) for s in sittings]) for n in points}
    if any(s.get("peer") for s in sittings):
        result["peer"] = {str(n): spread([at(s["peer"], n) for s in sittings if s.get("peer")]) for n in points
                          if any(at(s.get("peer", []), n) is not None for s in sittings)}
    result["sittings"] = sittings
    return result


def merge(files):
    """One result of several that differ in their seeds alone."""
    parts = [json.load(open(file)) for file in files]
    described = lambda part: {k: v for k, v in part.items() if k not in ("mean", "peer", "sittings", "date", "machine")}
    if any(described(part) != described(parts[0]) for part in parts):
        raise SystemExit("the files differ in more than their seeds")
    sittings = sorted((s for part in parts for s in part["sittings"]), key=lambda s: s["seed"])
    result = {k: v for k, v in parts[0].items() if k not in ("mean", "peer", "sittings")}
    for key in ("machine", "date"):
        result[key] = ", ".join(sorted({part[key] for part in parts}))
    return summary(result, sittings)


def percent(cell):
    if not cell:
        return ""
    deviation = f" ± {100 * cell['deviation']:.1f}" if cell["deviation"] is not None else ""
    return f"{100 * cell['mean']:.0f}{deviation} ({cell['seeds']})"


def table(files):
    rows = [json.load(open(file)) for file in files]
    print("| right, in the teacher's own words, % (seeds) | before | " + " | ".join(map(str, COLUMNS)) + " | next execution, reply, try: p95 |")
    print("|---|" + "---|" * (len(COLUMNS) + 2))
    for row in rows:
        worst = lambda path: max((s["milliseconds"].get(path, {}).get("p95", 0) for s in row["sittings"]), default=0)
        times = ", ".join(f"{worst(path):.0f}" for path in ("lease", "answers", "try"))
        print(f"| {row['what']} | {percent(row['mean'].get('0'))} | " + " | ".join(percent(row["mean"].get(str(n))) for n in COLUMNS) + f" | {times} ms |")
        if row.get("peer"):
            print("| — the log-linear peer, same answers | | " + " | ".join(percent(row["peer"].get(str(n))) for n in COLUMNS) + " | |")


def plot(files, output):
    width, height, left, top, right, bottom = 760, 400, 56, 24, 230, 48
    rows = [json.load(open(file)) for file in files]
    colours = ["#2563a8", "#b4552d", "#3b7d4f", "#7a4b94", "#8a6d1b"]
    most = max(int(n) for row in rows for n in row["mean"])
    x = lambda n: left + (width - left - right) * n / most
    y = lambda v: top + (height - top - bottom) * (1 - v)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="13" role="img">',
           "<title>Share of requests done right, in the teacher's own words, by number of answers</title>",
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for v in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path d="M{left} {y(v):.1f}H{width - right}" stroke="#d9d9d9"/><text x="{left - 8}" y="{y(v) + 4:.1f}" text-anchor="end" fill="#444">{v:.0%}</text>')
    for n in range(0, most + 1, 50):
        out.append(f'<text x="{x(n):.1f}" y="{height - bottom + 20}" text-anchor="middle" fill="#444">{n}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle" fill="#444">answers</text>')
    ends = []
    for i, row in enumerate(rows):
        for key, dash, label in (("mean", "", row["what"]), ("peer", "5 4", "log-linear peer")):
            cells = sorted((int(n), c) for n, c in (row.get(key) or {}).items() if c)
            if not cells:
                continue
            colour = colours[i % len(colours)]
            if key == "mean" and any(c["deviation"] for _, c in cells):
                upper = [(x(n), y(min(1, c["mean"] + (c["deviation"] or 0)))) for n, c in cells]
                lower = [(x(n), y(max(0, c["mean"] - (c["deviation"] or 0)))) for n, c in reversed(cells)]
                out.append(f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in upper + lower)}" fill="{colour}" opacity="0.12"/>')
            points = " ".join(f"{x(n):.1f},{y(c['mean']):.1f}" for n, c in cells)
            out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>')
            ends.append([y(cells[-1][1]["mean"]) + 4, label, colour])
    ends.sort()
    for before, end in zip(ends, ends[1:]):
        end[0] = max(end[0], before[0] + 16)
    out += [f'<text x="{width - right + 8}" y="{at:.1f}" fill="{colour}">{label}</text>' for at, label, colour in ends]
    open(output, "w").write("\n".join(out + ["</svg>"]) + "\n")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("iliad", nargs="?")
    arguments.add_argument("--person")
    arguments.add_argument("--person-options", default="")
    arguments.add_argument("--peer")
    arguments.add_argument("--name", default="words")
    arguments.add_argument("--what", default="", help="the row's words in the table")
    arguments.add_argument("--preset", default="small")
    arguments.add_argument("--seeds", default="1,2,3")
    arguments.add_argument("--answers", type=int, default=200)
    arguments.add_argument("--every", type=int, default=25)
    arguments.add_argument("--pause", type=float, default=3)
    arguments.add_argument("--cores", type=int, default=2, help="processors of each sitting, where several are held together")
    arguments.add_argument("--together", type=int, default=1, help="sittings at once, each on processors of its own")
    arguments.add_argument("--settle", type=float, default=5, help="seconds before the person begins")
    arguments.add_argument("--set", action="append", default=[])
    arguments.add_argument("--table", nargs="+")
    arguments.add_argument("--plot", nargs="+")
    arguments.add_argument("--merge", nargs="+", help="results of single seeds to be put together")
    arguments.add_argument("-o", "--output")
    given = arguments.parse_args()
    if given.table:
        return table(given.table)
    if given.plot:
        return plot(given.plot, given.output)
    if given.merge:
        with open(given.output, "w") as file:
            json.dump(merge(given.merge), file, indent=1)
            file.write("\n")
        return None
    if not given.iliad or not given.person or not given.output:
        arguments.error("ILIAD, --person and -o are needed")
    with open(given.output, "w") as file:
        json.dump(measure(given), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
