// The conditions of a study against each other: a curve with its interval for each, over minutes, responses or updates.

import { look, top } from "./charts.js";
import { count, el, percent } from "./format.js";
import { ask } from "./net.js";

const uPlot = window.uPlot;
const AXES = {
  active_minutes: { label: "active minutes of teachers", write: (x) => Number(x.toFixed(1)).toLocaleString("en") },
  responses: { label: "responses", write: count, whole: true },
  updates: { label: "updates since the study began", write: count, whole: true },
};
// Colour and dashes: either alone tells the first curves apart.
const STYLES = [["agent", []], ["you", [9, 5]], ["good", [2, 4]], ["ink", [12, 4, 2, 4]], ["bad", [5, 3]], ["muted", [1, 3]]];
const MOST = STYLES.length;

const height = (width) => (width < 600 ? 260 : 360);
const root = document.getElementById("comparison");

class Comparison {
  #plot = null;
  #axis = "active_minutes";

  constructor(conditions) {
    this.all = conditions;
    this.drawn = conditions.filter((condition) => condition.curves.updates.length > 0).slice(0, MOST);
    this.host = root.querySelector(".plot");
    this.legend = root.querySelector(".legend");
    new ResizeObserver(() => this.#resize()).observe(this.host);
    document.addEventListener("iliad:theme", () => this.draw());
  }

  set axis(name) { this.#axis = name; this.draw(); }

  #resize() {
    const width = this.host.clientWidth;
    if (width === 0) return;
    if (this.#plot) this.#plot.setSize({ width, height: height(width) });
    else this.draw();
  }

  draw() {
    this.#plot?.destroy();
    this.#plot = null;
    const width = this.host.clientWidth;
    if (width === 0 || this.drawn.length === 0) return;
    const axis = AXES[this.#axis];
    const curves = this.drawn.map((condition) => condition.curves[this.#axis]);
    const data = uPlot.join(curves.map((curve) => [curve.map((p) => p.x), curve.map((p) => p.value), curve.map((p) => p.low), curve.map((p) => p.high)]));
    const { colour, options } = look({ axis, width, height: height(width), share: true, tall: true, labelled: true });
    const series = [{}];
    const bands = [];
    curves.forEach((curve, i) => {
      const [key, dash] = STYLES[i];
      const hidden = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
      // Few tests are shown as points, so that one sees where the line only joins them.
      const points = { show: curve.length <= 40, size: 6, fill: colour(key), stroke: colour(key) };
      series.push({ stroke: colour(key), width: 2.4, dash, spanGaps: true, points }, hidden, { ...hidden });
      bands.push({ series: [3 + 3 * i, 2 + 3 * i], fill: `${colour(key)}1f` });
    });
    const scales = {
      x: { time: false, range: (u, low, high) => [0, Math.max(high ?? 1, 1e-9)] },
      y: { range: (u, low, high) => [0, top(high)] },
    };
    this.#plot = new uPlot({ ...options, series, bands, scales, hooks: { setCursor: [(u) => this.#legend(u.cursor.idx)] } }, data, this.host);
    const canvas = this.host.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${document.getElementById("curves-title").textContent} over ${axis.label}. The same as numbers: “The curves as a table” below.`);
    this.#legend(null);
  }

  // The values under the pointer, or the last ones.
  #legend(index) {
    const data = this.#plot?.data;
    if (!data) return;
    const items = this.drawn.map((condition, i) => {
      const [value, low, high] = [1, 2, 3].map((k) => data[k + 3 * i]);
      let at = index ?? value.length - 1;
      while (at >= 0 && value[at] == null) at -= 1;
      const dash = STYLES[i][1];
      const key = el("i", { class: dash.length === 0 ? null : dash[0] <= 2 ? "dotted" : "dashed" });
      key.style.borderTopColor = this.#plot.series[1 + 3 * i].stroke();
      const text = at < 0 ? "–" : `${percent(value[at])} (${percent(low[at], 0)}–${percent(high[at], 0)})`;
      return el("span", {}, key, el("span", { dir: "auto" }, condition.name), " ", el("b", {}, text));
    });
    if (index != null && data[0][index] != null) items.push(el("span", {}, `at ${AXES[this.#axis].write(data[0][index])} ${AXES[this.#axis].label}`));
    if (this.all.length > MOST) items.push(el("span", {}, `and ${count(this.all.length - MOST)} more in the table`));
    this.legend.replaceChildren(...items);
  }
}

async function start() {
  const problem = document.getElementById("comparison-problem");
  try {
    const { conditions } = await ask(root.dataset.source);
    const comparison = new Comparison(conditions);
    const switcher = root.querySelector(".segments");
    switcher.hidden = false;
    switcher.addEventListener("change", (event) => { comparison.axis = event.target.value; });
    comparison.axis = switcher.querySelector("input:checked").value;
    root.dataset.ready = "";
  } catch (error) {
    problem.textContent = `The curves cannot be drawn now: ${error.message} The tables below have the numbers.`;
    problem.hidden = false;
  }
}

if (root) await start();
