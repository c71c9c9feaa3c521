// The checkpoints of a run: their list, what they are good for, and the choice of the one that is tried.

import { remaining } from "./estimate.js";
import { bytes, count, el, percent, time } from "./format.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);
const BEST = "best.safetensors";
const called = (name) => (name === BEST ? "★ best" : name.replace(/\.safetensors$/, ""));
// How often the page asks how an evaluation stands.
const EVERY = 1000;

export class SavedAgents {
  constructor(config, problem) {
    Object.assign(this, { config, problem, rows: [], ended: false, timer: 0 });
    this.renewEvaluations();
  }

  show(rows) {
    this.rows = rows;
    // The best one stands first, and what is no longer kept behind a fold.
    const kept = rows.filter((row) => row.kept).sort((a, b) => (b.name === BEST) - (a.name === BEST));
    const gone = rows.filter((row) => !row.kept);
    $("checkpoints").hidden = kept.length === 0;
    $("checkpoints-empty").hidden = rows.length > 0;
    $("checkpoints").tBodies[0].replaceChildren(...kept.map((row) => this.line(row)));
    $("checkpoints-gone").hidden = gone.length === 0;
    $("checkpoints-gone").querySelector("summary").textContent = `${count(gone.length)} earlier ${gone.length === 1 ? "one is" : "ones are"} no longer kept as ${gone.length === 1 ? "a file" : "files"}`;
    $("checkpoints-gone").querySelector("tbody").replaceChildren(...gone.map((row) => this.line(row)));
    $("evaluate-on").hidden = kept.length === 0 || !this.config.can_start;
    const best = kept.find((row) => row.name === BEST);
    if ($("continue-best")) $("continue-best").hidden = !best;
    this.showChoice();
  }

  add(row) {
    const others = this.rows.filter((other) => other.name !== row.name).map((other) => (row.best ? { ...other, best: false } : other));
    this.show([{ ...row, kept: true }, ...others]);
  }

  line(row) {
    const address = `${this.config.page}/checkpoints/${encodeURIComponent(row.name)}`;
    const on = `${this.config.new}?from=${encodeURIComponent(this.config.run)}&checkpoint=${encodeURIComponent(row.name)}`;
    const evaluate = el("button", { class: "link", type: "button", "aria-label": `Evaluate ${called(row.name)}` }, "Evaluate");
    evaluate.addEventListener("click", () => this.evaluate(row.name));
    const doing = row.kept && this.config.can_start
      ? el("span", { class: "checkpoint-do" },
        el("a", { href: address, download: true, "aria-label": `Download ${called(row.name)}` }, "Download"),
        el("a", { href: on, "aria-label": `Continue from it: ${called(row.name)}, as another run` }, "Continue from it"),
        evaluate)
      : null;
    return el("tr", {},
      el("th", { scope: "row", title: row.name }, row.name === BEST ? null : el("span", { translate: "no" }, row.name.replace(/\.safetensors$/, " ")), row.best ? el("span", { class: "best-mark" }, "★ best") : null,
        el("span", { class: "sub" }, `${bytes(row.bytes)}, `, time(row.written_at)), doing),
      el("td", { class: "number" }, count(row.episodes)),
      el("td", { class: "number" }, row.validation ? `${percent(row.validation.value)} of ${count(row.validation.n)}` : "–"));
  }

  // ---- Which agent is tried ----

  showEnded(ended) {
    if (this.ended === ended) return;
    this.ended = ended;
    this.showChoice();
  }

  showChoice() {
    const select = $("try-checkpoint");
    const before = select.value;
    const kept = this.rows.filter((row) => row.kept);
    const best = kept.filter((row) => row.name === BEST);
    const others = kept.filter((row) => row.name !== BEST);
    const option = (row) => el("option", { value: row.name }, `${called(row.name)}, update ${count(row.update)}`);
    select.replaceChildren(...(this.ended ? [] : [el("option", { value: "" }, "this moment")]), ...[...best, ...others].map(option));
    if ([...select.options].some((one) => one.value === before)) select.value = before;
    $("try-which").hidden = !this.config.can_start || select.options.length < 2;
    $("try").closest(".try").hidden = this.ended && (kept.length === 0 || !this.config.can_start);
  }

  chosen() {
    return $("try-checkpoint").value || null;
  }

  // ---- Evaluations ----

  async evaluate(checkpoint) {
    this.problem(null);
    const split = $("evaluate-split").value;
    const limit = Math.max(0, Math.round(Number($("evaluate-limit").value) || 0));
    try {
      await ask(`${this.config.api}/evaluations`, { body: { checkpoint, split, limit } });
    } catch (error) {
      this.problem(error.detail);
    }
    this.renewEvaluations();
  }

  async renewEvaluations() {
    clearTimeout(this.timer);
    let found;
    try {
      found = await ask(`${this.config.api}/evaluations`);
    } catch {
      return;
    }
    const { pending, done } = found;
    const where = ({ checkpoint, split }) => `${called(checkpoint)} on ${split === "train" ? "training" : split} tasks`;
    const waiting = pending.map((one) => {
      if (one.failed) return el("li", {}, `${where(one)}: ${one.failed}`);
      const name = `Evaluation of ${where(one)}`;
      const bar = el("progress", { max: one.tasks || null, value: one.tasks ? one.done : null, "aria-label": name });
      const how = one.tasks ? `${count(one.done)} of ${count(one.tasks)} tasks${remaining(one.seconds_left)}` : "loading the agent…";
      return el("li", { "aria-live": "off" }, `${where(one)}: ${how}`, bar);
    });
    const ready = done.map((one) => {
      const { success, figures } = one.evaluation;
      const more = Object.entries(figures).map(([name, value]) => `, ${name} ${value.toFixed(3)}`).join("");
      return el("li", {}, el("b", {}, percent(success.value)), ` of ${count(success.n)} (${percent(success.low, 0)}–${percent(success.high, 0)})${more}: `, `${where(one)}, after ${count(one.update)} updates, `, time(one.evaluated_at));
    });
    $("evaluations").replaceChildren(...waiting, ...ready);
    if (pending.some((one) => !one.failed)) this.timer = setTimeout(() => this.renewEvaluations(), EVERY);
  }
}
