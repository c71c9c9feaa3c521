// The learning curves. uPlot draws; the legend is ours, because it must say n and the interval and be read aloud.

import { TIMES, timeTick } from "./aggregate.js";
import { count, duration, percent } from "./format.js";

const uPlot = window.uPlot;
const share = (value) => (value == null ? "–" : percent(value));
export const AXES = {
  episodes: { read: (p) => p.episodes, label: "episodes", write: count, whole: true },
  descriptions: { read: (p) => p.descriptions, label: "descriptions", write: count, whole: true },
  seconds: { read: (p) => p.seconds, label: "training time", write: timeTick, steps: TIMES },
};
const CHARTS = {
  success: { share: true, write: share, height: 372, lines: [["validation", "validation", "agent", 2.4], ["training_success", "training", "line-strong", 1.4]] },
  loss: { share: false, write: (v) => (v == null ? "–" : v.toFixed(3)), height: 100, lines: [["loss", "loss", "agent", 1.6]] },
  valid: { share: true, write: share, height: 100, lines: [["valid_share", "valid", "agent", 1.6]] },
  gold: { share: true, write: share, height: 100, lines: [["gold_share", "gold", "agent", 1.6]] },
};

// Shares begin at 0 and end at a round number above the highest, so that a young agent's curve is no line on the floor.
export const top = (high) => [0.1, 0.2, 0.4, 0.6, 0.8].find((end) => (high ?? 0) <= end * 0.96) ?? 1;

// The points with a new one at their end. A run that goes on from a checkpoint makes its last points again.
function joined(points, point) {
  const before = points.length > 0 && points.at(-1).update >= point.update ? points.filter((p) => p.update < point.update) : points;
  before.push(point);
  return before;
}

// Between two of a count's whole numbers there is nothing to name.
const tick = (axis, t) => (axis.whole && !Number.isInteger(t) ? "" : axis.write(t));

// The look that all charts of the page have: colours of the theme, axes, grid.
export function look({ axis, height, width, share: isShare, tall, labelled }) {
  const style = getComputedStyle(document.documentElement);
  const colour = (key) => style.getPropertyValue(`--${key}`).trim();
  const font = `12px ${style.getPropertyValue("--sans")}`;
  const grid = { stroke: colour("line"), width: 1 };
  const options = {
    width,
    height,
    padding: [10, 22, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "run" }, y: false, drag: { x: false, y: false }, points: { size: 7 } },
    axes: [
      { stroke: colour("muted"), font, grid: { show: false }, ticks: { ...grid, size: 4 }, size: 26, gap: 4, label: labelled ? axis.label : undefined, labelFont: font, labelSize: 20, labelGap: 0, space: 80, ...(axis.steps ? { incrs: axis.steps } : {}), values: (u, ticks) => ticks.map((t) => tick(axis, t)) },
      { stroke: colour("muted"), font, grid, ticks: { show: false }, size: 46, gap: 6, space: tall ? 50 : 22, values: (u, ticks) => ticks.map((t) => (isShare ? percent(t, 0) : String(Number(t.toFixed(3))))) },
    ],
  };
  return { colour, options };
}

const value = (point, key) => (key === "validation" ? point.validation?.value : point[key]) ?? null;

export const AXIS_NAMES = Object.keys(AXES);

export class Charts {
  #own = [];
  #other = null;
  #axis = "episodes";
  #plots = new Map();
  #drawn = 0;
  #rest = 0;

  constructor(root) {
    this.root = root;
    new ResizeObserver(() => this.#resize()).observe(root);
    document.addEventListener("iliad:theme", () => this.redraw());
  }

  get axis() { return this.#axis; }
  set axis(name) { this.#axis = name; this.redraw(); }
  set points(points) { this.#own = points; this.#schedule(); }
  get points() { return this.#own; }

  // Another run's points under a name, or null.
  compare(name, points) { this.#other = name ? { name, points } : null; this.redraw(); }

  add(point) {
    this.#own = joined(this.#own, point);
    this.#schedule();
  }

  // The compared run goes on as well. What is shown of it stays, only its points are other ones.
  set compared(points) {
    if (!this.#other) return;
    this.#other.points = points;
    this.#schedule();
  }

  addCompared(point) {
    if (this.#other) this.compared = joined(this.#other.points, point);
  }

  redraw() {
    for (const { plot } of this.#plots.values()) plot.destroy();
    this.#plots.clear();
    this.#draw();
  }

  #schedule() {
    this.#drawn ||= setTimeout(() => requestAnimationFrame(() => {
      this.#drawn = 0;
      const begun = performance.now();
      this.#draw();
      // Points come faster than anybody reads. Drawing takes a fifth of the page's time at most, so that it stays quick to use.
      this.#rest = begun + Math.max(200, 5 * (performance.now() - begun));
    }), Math.max(0, this.#rest - performance.now()));
  }

  #resize() {
    for (const { plot, host, chart } of this.#plots.values()) {
      if (host.clientWidth > 0) plot.setSize({ width: host.clientWidth, height: chart.height });
    }
  }

  // One value per x: of several points at the same x the last counts, but a validation reading is kept.
  #table(points, keys) {
    const rows = new Map();
    for (const point of points) {
      const x = AXES[this.#axis].read(point);
      const before = rows.get(x);
      rows.set(x, before && !point.validation ? { ...point, validation: before.validation } : point);
    }
    const sorted = [...rows].sort((a, b) => a[0] - b[0]);
    return [sorted.map(([x]) => x), ...keys.map((read) => sorted.map(([, p]) => read(p)))];
  }

  #data(chart, name) {
    const reads = chart.lines.map(([key]) => (p) => value(p, key));
    if (name === "success") reads.push((p) => p.validation?.low ?? null, (p) => p.validation?.high ?? null, (p) => p.validation?.n ?? null);
    const own = this.#table(this.#own, reads);
    if (!this.#other) return own;
    const other = this.#table(this.#other.points, chart.lines.map(([key]) => (p) => value(p, key)));
    return uPlot.join([own, other]);
  }

  #draw() {
    for (const figure of this.root.querySelectorAll("[data-chart]")) {
      const name = figure.dataset.chart;
      const chart = CHARTS[name];
      const data = this.#data(chart, name);
      const there = this.#plots.get(name);
      if (there) {
        there.plot.setData(data);
        this.#legend(there, null);
        continue;
      }
      const host = figure.querySelector(".plot");
      if (host.clientWidth === 0) continue;
      const entry = { chart, name, host, legend: figure.querySelector(".legend") };
      entry.plot = new uPlot(this.#options(entry), data, host);
      host.querySelector("canvas").setAttribute("role", "img");
      host.querySelector("canvas").setAttribute("aria-label", `${figure.querySelector("figcaption").textContent}. The same as numbers: “The curves as a table” below.`);
      this.#plots.set(name, entry);
      this.#legend(entry, null);
    }
  }

  #options(entry) {
    const { chart, name, host } = entry;
    const main = name === "success";
    const { colour, options } = look({ axis: AXES[this.#axis], width: host.clientWidth, height: chart.height, share: chart.share, tall: main, labelled: main });
    const line = ([, , key, width], dash) => ({
      stroke: colour(key), width, spanGaps: true, dash,
      // A single reading has no line yet.
      points: { show: (u, i) => (key === "agent" && !dash && name === "success") || u.data[i].filter((v) => v != null).length < 2, size: 6, fill: colour(key), stroke: colour(key) },
    });
    const hidden = () => ({ stroke: "transparent", width: 0, spanGaps: true, points: { show: false } });
    const series = [{}, ...chart.lines.map((l) => line(l))];
    const bands = [];
    if (name === "success") {
      series.push(hidden(), hidden(), { ...hidden(), scale: "n" });
      bands.push({ series: [4, 3], fill: `${colour("agent")}2b` });
    }
    if (this.#other) series.push(...chart.lines.map((l) => line([l[0], l[1], l[2] === "agent" ? "you" : "line-strong", Math.max(l[3] - 0.5, 1)], [6, 4])));
    return {
      ...options,
      series,
      bands,
      scales: { x: { time: false }, y: { range: chart.share ? (u, low, high) => [0, top(high)] : (u, low, high) => uPlot.rangeNum(low ?? 0, high ?? 1, 0.1, true) }, n: { auto: false, range: [0, 1] } },
      hooks: { setCursor: [(u) => this.#legend(entry, u.cursor.idx)] },
    };
  }

  // The values under the pointer, or the last ones.
  #legend({ chart, name, plot, legend }, index) {
    if (!plot) return;
    const at = (series) => {
      const values = plot.data[series] ?? [];
      for (let i = index ?? values.length - 1; i >= 0; i -= 1) if (values[i] != null) return [values[i], i];
      return [null, -1];
    };
    const parts = [];
    const item = (label, text, series, dashed) => {
      const span = document.createElement("span");
      const key = document.createElement("i");
      key.style.borderTopColor = plot.series[series].stroke();
      key.classList.toggle("dashed", dashed);
      const strong = document.createElement("b");
      strong.textContent = text;
      span.append(key, label, " ", strong);
      parts.push(span);
    };
    chart.lines.forEach(([key, label], i) => {
      const [now, row] = at(i + 1);
      let text = chart.write(now);
      if (key === "validation" && row >= 0) {
        const [low, high, n] = [3, 4, 5].map((series) => plot.data[series][row]);
        text += ` of ${count(n)} (${percent(low, 0)}–${percent(high, 0)})`;
      }
      item(label, text, i + 1, false);
    });
    if (this.#other) {
      const first = 1 + chart.lines.length + (name === "success" ? 3 : 0);
      chart.lines.forEach(([, label], i) => item(`${this.#other.name}: ${label}`, chart.write(at(first + i)[0]), first + i, true));
    }
    if (index != null && plot.data[0][index] != null && name === "success") {
      const span = document.createElement("span");
      span.textContent = `at ${AXES[this.#axis].write(plot.data[0][index])} ${this.#axis === "seconds" ? "" : AXES[this.#axis].label}`;
      parts.push(span);
    }
    legend.replaceChildren(...parts);
  }
}

// The newest points as table rows. `learned` is the page of what was learned: each point leads to what came since the one before.
export function fillTable(body, points, learned) {
  const first = (p, since) => {
    const there = document.createElement("td");
    there.className = "number";
    const link = Object.assign(document.createElement("a"), { textContent: count(p.episodes), title: "What was learned since the point before" });
    link.href = `${learned}?from=${since + 1}&to=${p.update}`;
    there.append(link);
    return there;
  };
  const cell = (text) => Object.assign(document.createElement("td"), { className: "number", textContent: text });
  const newest = points.slice(-60);
  const before = [points[points.length - newest.length - 1], ...newest].map((p) => p?.update ?? 0);
  const rows = newest.map((p, i) => {
    const since = before[i];
    const row = document.createElement("tr");
    const v = p.validation;
    row.append(
      p.update > since ? first(p, since) : cell(count(p.episodes)), cell(count(p.descriptions)), cell(duration(p.seconds)),
      cell(v ? `${percent(v.value)} of ${count(v.n)} (${percent(v.low, 0)}–${percent(v.high, 0)})` : "–"),
      cell(share(p.training_success)), cell(p.loss == null ? "–" : p.loss.toFixed(3)), cell(share(p.valid_share)), cell(share(p.gold_share)),
    );
    return row;
  });
  body.replaceChildren(...rows.reverse());
}
