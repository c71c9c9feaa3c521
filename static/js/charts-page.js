// Any number of runs over each other. The address holds all that is chosen, so that a chart can be sent to somebody.

import { csv, differing, flatten, merge, pairs, smooth } from "./aggregate.js";
import { asPng, asSvg, draw, MOST } from "./chart-figure.js";
import { duration, el } from "./format.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);
const api = $("workbench").dataset.api;
const rate = (member) => (point) => point[member]?.value;

// The figures that can be drawn, with a sentence for each.
const MEASURES = {
  validation: { label: "Validation success", read: rate("validation"), percent: true, about: "Share of validation tasks in which the agent, asked without chance, does what the request says." },
  smoothed: { label: "Validation success, trailing mean", read: (p) => p.validation_smoothed, percent: true, about: "The mean of the last evaluations; by it the best policy is kept where schedule.smooth is on." },
  training: { label: "Training success", read: (p) => p.training_success, percent: true, about: "Share of the executions sampled since the last point that did what the request says." },
  total: { label: "Training success so far", read: (p) => p.training_success_total, percent: true, about: "Share of all executions sampled in the run so far that did what the request says." },
  loss: { label: "Loss", read: (p) => p.loss, about: "Negative log-likelihood of executions given their descriptions under π_θ, in nats a sequence (1 nat is 1.44 bits)." },
  valid: { label: "Valid executions", read: (p) => p.valid_share, percent: true, about: "Share of sampled executions that the task accepts at all, right or wrong." },
  gold: { label: "Gold descriptions", read: (p) => p.gold_share, percent: true, about: "Share of the simulated teacher’s descriptions that were the human request, since the execution was good enough." },
  lambda: { label: "Mixing weight λ", read: (p) => p.lambda, about: "Share of the marginal P_ω, executions as such, in the mixture π_β from which the agent samples; the rest comes from π_θ." },
  descriptions: { label: "Answers used", read: (p) => p.descriptions, about: "Descriptions, demonstrations, ratings or requests that updates have used, of people and simulated." },
};
const AXES = {
  episodes: { label: "episodes", read: (p) => p.episodes, about: "An episode is one request and what the agent did." },
  descriptions: { label: "answers used", read: (p) => p.descriptions, about: "Teaching effort: every answer that an update has used." },
  seconds: { label: "training time", read: (p) => p.seconds, time: true, about: "Pauses are not counted." },
  update: { label: "updates", read: (p) => p.update, about: "Steps in which the agent learned from new answers." },
};
const BANDS = { sd: "± one standard deviation over runs", ci: "Student’s 95% interval of the mean over runs", range: "smallest to largest run", none: "no band" };

const known = new Map();
let chart = null;
let series = [];

// Reads the choices from the address.
function chosen() {
  const query = new URLSearchParams(location.search);
  const one = (name, from, otherwise) => (Object.hasOwn(from, query.get(name) ?? "") ? query.get(name) : otherwise);
  const number = (name) => { const value = Number.parseFloat(query.get(name) ?? ""); return Number.isFinite(value) ? value : null; };
  return {
    runs: query.getAll("run"), y: one("y", MEASURES, "validation"), x: one("x", AXES, "episodes"), group: query.get("group") ?? "",
    band: one("band", BANDS, "sd"), smooth: Math.min(0.99, Math.max(0, number("smooth") ?? 0)), xlog: query.get("xlog") === "1", ylog: query.get("ylog") === "1",
    from: number("from"), to: number("to"),
  };
}

function choose(changes) {
  const next = { ...chosen(), ...changes };
  const query = new URLSearchParams();
  for (const run of next.runs) query.append("run", run);
  for (const name of ["y", "x", "group", "band"]) query.set(name, next[name]);
  for (const name of ["smooth", "from", "to"]) if (next[name]) query.set(name, next[name]);
  for (const name of ["xlog", "ylog"]) if (next[name]) query.set(name, "1");
  history.replaceState(null, "", `?${query}`);
  show();
}

async function load(run) {
  if (!known.has(run)) {
    const [{ items: points }, snapshot] = await Promise.all([ask(`${api}/${encodeURIComponent(run)}/points?thin=2000`), ask(`${api}/${encodeURIComponent(run)}`)]);
    known.set(run, { points, settings: flatten({ ...snapshot.config, differences: null }), preset: snapshot.preset, seed: String(snapshot.seed), family: snapshot.family });
  }
  return known.get(run);
}

const label = (run) => document.querySelector(`#runs input[value="${CSS.escape(run)}"]`)?.dataset.name ?? run;
const settingsOf = (data) => ({ preset: data.preset, ...data.settings });

// The series of what is chosen: a run each, or a group each.
function collect(now, loaded) {
  const { read, percent } = MEASURES[now.y];
  const groups = new Map();
  for (const [run, data] of loaded) {
    const curve = pairs(data.points, AXES[now.x].read, read);
    const key = now.group === "" ? run : settingsOf(data)[now.group] ?? "not set";
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(curve);
  }
  return [...groups].map(([key, curves]) => {
    const rows = merge(curves.map((curve) => smooth(curve, now.smooth)), now.band);
    const runs = curves.filter((curve) => curve.length > 0).length;
    const name = now.group === "" ? label(key) : `${now.group} = ${key} (${runs} ${runs === 1 ? "run" : "runs"})`;
    return { name, run: now.group === "" ? key : null, rows, faint: now.smooth > 0 && curves.length === 1 ? curves : [], percent };
  });
}

function showTable(now) {
  const { percent } = MEASURES[now.y];
  const write = (value) => (value === null || value === undefined ? "" : percent ? `${(value * 100).toFixed(1)}%` : value.toPrecision(4));
  const at = (x) => (AXES[now.x].time ? duration(x) : Math.round(x).toLocaleString("en"));
  const seen = (row) => (now.from === null || row.x >= now.from) && (now.to === null || row.x <= now.to);
  const rows = series.flatMap((one) => one.rows.filter(seen).map((row) => [one.name, at(row.x), write(row.y), write(row.low), write(row.high), String(row.n)]));
  $("table-body").replaceChildren(...rows.slice(0, 2000).map((cells) => el("tr", {}, ...cells.map((cell, i) => el(i === 0 ? "th" : "td", i === 0 ? { scope: "row", dir: "auto" } : { class: "number" }, cell)))));
  $("table-x").textContent = AXES[now.x].label;
  $("table-y").textContent = MEASURES[now.y].label;
}

let turn = 0;
async function show() {
  const now = chosen();
  const mine = (turn += 1);
  for (const input of document.querySelectorAll("#runs input")) input.checked = now.runs.includes(input.value);
  for (const name of ["y", "x", "band"]) $(name).value = now[name];
  $("smooth").value = now.smooth;
  $("smooth-out").textContent = now.smooth === 0 ? "off" : now.smooth.toFixed(2);
  $("xlog").checked = now.xlog;
  $("ylog").checked = now.ylog;
  $("from").value = now.from ?? "";
  $("to").value = now.to ?? "";
  $("whole").disabled = now.from === null && now.to === null;
  $("about").textContent = `${MEASURES[now.y].about} ${AXES[now.x].about}`;
  if (chart === null && now.runs.length > 0) { $("empty").hidden = false; $("empty").textContent = "Reading the curves…"; }
  let loaded;
  try {
    loaded = await Promise.all(now.runs.map(async (run) => [run, await load(run)]));
  } catch (error) {
    $("problem").hidden = false;
    $("problem").textContent = `A run could not be read: ${error.message}`;
    return;
  }
  if (mine !== turn) return;
  $("problem").hidden = true;
  const names = differing(loaded.map(([, data]) => settingsOf(data))).filter((name) => name !== "seed");
  if (now.group && !names.includes(now.group)) names.unshift(now.group);
  $("group").replaceChildren(el("option", { value: "" }, "each run by itself"), ...names.map((name) => el("option", { value: name }, name)));
  $("group").value = now.group;
  const all = collect(now, loaded);
  series = all.filter((one) => one.rows.length > 0).slice(0, MOST);
  const left = all.length - series.length;
  const empty = all.filter((one) => one.rows.length === 0).length;
  $("left-out").textContent = left === 0 ? "" : empty === left ? `${left} without such points.` : `${MOST} curves can be told apart; ${left - empty} are left out. Group them by a setting.`;
  const range = now.from !== null || now.to !== null ? [now.from ?? 0, now.to ?? Math.max(...series.flatMap((one) => one.rows.map((row) => row.x)))] : null;
  const grouped = now.group !== "" && now.band !== "none" && series.some((one) => one.rows.some((row) => row.n > 1));
  $("band-about").textContent = grouped ? `Band: ${BANDS[now.band]}, as far as all runs of a group go.` : "";
  const { label: title, percent } = MEASURES[now.y];
  const axis = AXES[now.x];
  chart = series.length === 0 ? null : draw($("plot"), { title, series, x: { label: axis.label, time: axis.time, log: now.xlog, range }, y: { log: now.ylog, percent } }, (to) => choose(to ? { from: Number(to[0].toPrecision(6)), to: Number(to[1].toPrecision(6)) } : { from: null, to: null }));
  if (!chart) $("plot").replaceChildren();
  $("empty").hidden = chart !== null;
  $("empty").textContent = now.runs.length === 0 ? "Choose runs." : "These runs have no such points yet.";
  $("save").hidden = chart === null;
  $("readout").replaceChildren();
  $("pinned").replaceChildren();
  showTable(now);
}

function save(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
const fileName = (ending) => `${chosen().y}-by-${chosen().x}.${ending}`;

for (const name of ["y", "x", "group", "band"]) $(name).addEventListener("change", () => choose({ [name]: $(name).value, ...(name === "x" ? { from: null, to: null } : {}) }));
for (const name of ["xlog", "ylog"]) $(name).addEventListener("change", () => choose({ [name]: $(name).checked }));
for (const name of ["from", "to"]) $(name).addEventListener("change", () => choose({ [name]: $(name).value === "" ? null : Number($(name).value) }));
$("smooth").addEventListener("input", () => choose({ smooth: Number($("smooth").value) }));
$("whole").addEventListener("click", () => choose({ from: null, to: null }));
$("runs").addEventListener("change", () => choose({ runs: [...document.querySelectorAll("#runs input:checked")].map((input) => input.value) }));
$("none").addEventListener("click", () => choose({ runs: [] }));
$("seen").addEventListener("click", () => choose({ runs: [...document.querySelectorAll("#runs li:not([hidden]) input")].map((input) => input.value) }));
$("filter").addEventListener("input", () => {
  const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const item of document.querySelectorAll("#runs li")) item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
});
$("full").addEventListener("click", () => (document.fullscreenElement ? document.exitFullscreen() : $("stage").requestFullscreen()));
document.addEventListener("fullscreenchange", () => { $("full").textContent = document.fullscreenElement ? "Leave full screen" : "Full screen"; show(); });
$("svg").addEventListener("click", () => save(fileName("svg"), new Blob([asSvg(chart.node)], { type: "image/svg+xml" })));
$("png").addEventListener("click", async () => save(fileName("png"), await asPng(chart.node)));
$("csv").addEventListener("click", () => {
  const now = chosen();
  const seen = (row) => (now.from === null || row.x >= now.from) && (now.to === null || row.x <= now.to);
  const rows = series.flatMap((one) => one.rows.filter(seen).map((row) => [one.name, row.x, row.y, row.low, row.high, row.n]));
  save(fileName("csv"), new Blob([csv([["curve", now.x, now.y, "low", "high", "runs"], ...rows])], { type: "text/csv" }));
});
$("plot").addEventListener("pointermove", (event) => {
  const read = chart?.read(event.clientX);
  $("readout").replaceChildren(...(read ?? []).map((one) => el("span", {}, el("b", {}, one.y), ` ${one.name} at ${one.x}`)));
});
$("plot").addEventListener("pointerleave", () => { chart?.hide(); $("readout").replaceChildren(); });
// A click leads from a place on a curve to the answers that were learned from since the point before.
$("plot").addEventListener("click", (event) => {
  const now = chosen();
  const links = (chart?.read(event.clientX) ?? []).flatMap(({ name, row }) => {
    const run = series.find((one) => one.name === name)?.run;
    if (!run) return [];
    const { points } = known.get(run);
    const at = points.findIndex((point) => AXES[now.x].read(point) === row.x);
    const from = (points[at - 1]?.update ?? 0) + 1;
    if (at < 0 || points[at].update < from) return [];
    return [el("a", { href: `${$("workbench").dataset.runs}/${encodeURIComponent(run)}/learned?from=${from}&to=${points[at].update}` }, `What ${name} learned in updates ${from} to ${points[at].update}`)];
  });
  $("pinned").replaceChildren(...links);
});
document.addEventListener("iliad:theme", show);
addEventListener("popstate", show);
let width = 0;
new ResizeObserver(() => { if ($("plot").clientWidth !== width) { width = $("plot").clientWidth; show(); } }).observe($("plot"));
show();
