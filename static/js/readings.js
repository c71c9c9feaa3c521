// The share that the agent understood before it was told: a curve for each teacher, in the look of the learning curves, and as a table.

import { AXES, look, top } from "./charts.js";
import { count, el, percent } from "./format.js";

const uPlot = window.uPlot;
const MOST = 6;   // curves that can be told from each other; the table has all teachers
const HEIGHT = 180;
const STYLES = [["you", []], ["agent", []], ["you", [7, 4]], ["agent", [7, 4]], ["you", [2, 3]], ["agent", [2, 3]]];

const share = (rate) => `${percent(rate.value, 0)} of ${count(rate.n)}`;
const called = (curve) => `teacher ${count(curve.teacher)}`;

export class Readings {
  #curves = [];
  #drawn = [];
  #plot = null;

  constructor({ figure, view, table }, axis) {
    Object.assign(this, { figure, view, table, axis });
    new ResizeObserver(() => this.#resize()).observe(figure);
    document.addEventListener("iliad:theme", () => this.redraw());
  }

  // A run that nobody taught, or that an earlier version taught, has none and shows none.
  show(curves) {
    this.#curves = curves.filter((curve) => curve.points.length > 0);
    this.figure.hidden = this.view.hidden = this.#curves.length === 0;
    const most = [...this.#curves].sort((a, b) => b.points.length - a.points.length).slice(0, MOST);
    this.#drawn = this.#curves.filter((curve) => most.includes(curve));
    this.#fill();
    this.redraw();
  }

  redraw() {
    this.#plot?.destroy();
    this.#plot = null;
    this.#draw();
  }

  #resize() {
    const host = this.figure.querySelector(".plot");
    if (host.clientWidth === 0) return;
    if (this.#plot) this.#plot.setSize({ width: host.clientWidth, height: HEIGHT });
    else this.#draw();
  }

  #draw() {
    const host = this.figure.querySelector(".plot");
    if (this.#drawn.length === 0 || host.clientWidth === 0) return;
    const axis = AXES[this.axis()];
    // One value per x: of several descriptions in one update the last counts.
    const table = (curve) => {
      const rows = [...new Map(curve.points.map((p) => [axis.read(p), p]))].sort((a, b) => a[0] - b[0]);
      return [rows.map(([x]) => x), rows.map(([, p]) => p.rate.value), rows.map(([, p]) => p.rate.n)];
    };
    const data = uPlot.join(this.#drawn.map(table));
    const { colour, options } = look({ axis, width: host.clientWidth, height: HEIGHT, share: true, tall: true, labelled: true });
    const series = [{}];
    this.#drawn.forEach((curve, i) => {
      const [key, dash] = STYLES[i];
      const line = { stroke: colour(key), width: 2, dash, spanGaps: true, points: { show: curve.points.length === 1, size: 6, fill: colour(key), stroke: colour(key) } };
      series.push(line, { scale: "n", stroke: "transparent", width: 0, points: { show: false } });
    });
    const scales = { x: { time: false, range: (u, low, high) => [0, Math.max(high ?? 1, 1)] }, y: { range: (u, low, high) => [0, top(high)] }, n: { auto: false, range: [0, 1] } };
    this.#plot = new uPlot({ ...options, series, scales, hooks: { setCursor: [(u) => this.#legend(u.cursor.idx)] } }, data, host);
    const canvas = host.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${this.figure.querySelector("figcaption").textContent}. The same as numbers: “Understood before told, as a table” below.`);
    this.#legend(null);
  }

  // The values under the pointer, or the last ones.
  #legend(index) {
    const { data } = this.#plot ?? {};
    if (!data) return;
    const items = this.#drawn.map((curve, i) => {
      const [shares, counts] = [data[1 + 2 * i], data[2 + 2 * i]];
      let at = index ?? shares.length - 1;
      while (at >= 0 && shares[at] == null) at -= 1;
      const key = el("i", { class: STYLES[i][1].length > 0 ? "dashed" : null });
      key.style.borderTopColor = this.#plot.series[1 + 2 * i].stroke();
      if (STYLES[i][1][0] === 2) key.style.borderTopStyle = "dotted";
      return el("span", {}, key, called(curve), " ", el("b", {}, at < 0 ? "–" : share({ value: shares[at], n: counts[at] })));
    });
    const others = this.#curves.length - this.#drawn.length;
    if (others > 0) items.push(el("span", {}, `and ${count(others)} more in the table`));
    this.figure.querySelector(".legend").replaceChildren(...items);
  }

  #fill() {
    const part = (points, is) => {
      const of = points.filter((p) => is(p) != null);
      return of.length === 0 ? "–" : share({ value: of.filter(is).length / of.length, n: of.length });
    };
    const rows = this.#curves.map((curve) => {
      const { rate } = curve.points.at(-1);
      return el("tr", {},
        el("th", { scope: "row" }, called(curve)),
        el("td", { class: "number" }, share(rate)),
        el("td", { class: "number" }, `${percent(rate.low, 0)}–${percent(rate.high, 0)}`),
        el("td", { class: "number" }, part(curve.points, (p) => p.understood)),
        el("td", { class: "number" }, part(curve.points, (p) => p.understood_after)));
    });
    this.table.tBodies[0].replaceChildren(...rows);
  }
}
