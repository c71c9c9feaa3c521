// The curves of any runs over each other. Everything that is chosen stands in the address, so that a view can be sent.

import { at, picture, pointTo, smoothed, together, withLegend } from "./curve-plot.js";
import { count, duration, el, percent } from "./format.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);
const root = $("compare");
const config = JSON.parse(root.dataset.config);
const share = (v) => percent(v);
const number = (v) => String(Number(v.toPrecision(4)));
const FIGURES = {
  validation: { label: "validation success", share: true, write: share, read: (p) => p.validation?.value, about: "The share of validation tasks that the agent does right when it takes its likeliest action at every step." },
  training_success: { label: "training success", share: true, write: share, read: (p) => p.training_success, about: "The share of the executions drawn from the exploration policy since the last point that did what was asked." },
  loss: { label: "loss", write: number, read: (p) => p.loss, about: "The mean negative log likelihood of an execution given its description, in nats per sequence: natural logarithms, and 0 would be certainty." },
  valid_share: { label: "valid executions", share: true, write: share, read: (p) => p.valid_share, about: "The share of sampled executions that can be carried out at all." },
  gold_share: { label: "gold descriptions", share: true, write: share, read: (p) => p.gold_share, about: "The share of simulated descriptions that are the request itself, because the execution was as good as the gold one." },
  lambda: { label: "mixing weight λ", write: number, read: (p) => p.lambda, about: "The share of the approximate marginal P_ω in the policy from which executions are drawn; it falls as the agent learns." },
};
const AXES = {
  episodes: { label: "episodes", whole: true, read: (p) => p.episodes, write: count },
  descriptions: { label: "descriptions", whole: true, read: (p) => p.descriptions, write: count },
  seconds: { label: "training time", time: true, read: (p) => p.seconds, write: duration },
  update: { label: "updates", whole: true, read: (p) => p.update, write: count },
};
const COLOURS = ["agent", "you", "good", "bad", "muted"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];
// Runs that are laid over each other before anybody has chosen.
const FIRST = 4;

const state = {
  runs: [], y: "validation", x: "episodes", logX: false, logY: false, smooth: 0, seeds: false,
  ...fromAddress(),
};
let runs = [];
const loaded = new Map();
let drawn = null;

function fromAddress() {
  const query = new URLSearchParams(location.search);
  const found = {};
  if (query.has("run")) found.runs = query.getAll("run");
  if (query.get("y") in FIGURES) found.y = query.get("y");
  if (query.get("x") in AXES) found.x = query.get("x");
  const log = query.get("log") ?? "";
  [found.logX, found.logY] = [log.includes("x"), log.includes("y")];
  found.smooth = Math.min(0.99, Math.max(0, Number(query.get("smooth")) || 0));
  found.seeds = query.get("seeds") === "1";
  return found;
}

function toAddress() {
  const query = new URLSearchParams();
  for (const run of state.runs) query.append("run", run);
  query.set("y", state.y);
  query.set("x", state.x);
  const log = (state.logX ? "x" : "") + (state.logY ? "y" : "");
  if (log) query.set("log", log);
  if (state.smooth > 0) query.set("smooth", state.smooth);
  if (state.seeds) query.set("seeds", "1");
  history.replaceState(null, "", `${location.pathname}?${query}`);
}

// The settings of a run without its seed, by which runs are replicates of each other.
function replicates({ config: settings, id }) {
  if (!settings || Object.keys(settings).length === 0) return id;
  const { seed, differences, ...rest } = settings;
  return JSON.stringify(rest);
}

async function load(id) {
  if (!loaded.has(id)) {
    const address = `${config.runs}/${encodeURIComponent(id)}`;
    loaded.set(id, Promise.all([ask(address), ask(`${address}/points`)]).then(([run, points]) => ({ ...run, points })));
    loaded.get(id).catch(() => loaded.delete(id));
  }
  return loaded.get(id);
}

function curve(points) {
  const [x, y] = [AXES[state.x].read, FIGURES[state.y].read];
  const rows = new Map();
  for (const p of points) if (y(p) != null) rows.set(x(p), y(p));
  return [...rows].sort((a, b) => a[0] - b[0]);
}

function series(found, colours) {
  const look = (i) => ({ colour: colours[COLOURS[i % COLOURS.length]], dash: DASHES[Math.floor(i / COLOURS.length) % DASHES.length] });
  if (!state.seeds) {
    return found.map((run, i) => {
      const raw = curve(run.points);
      return { name: run.called, ...look(i), points: smoothed(raw, state.smooth), faint: state.smooth > 0 ? raw : [] };
    });
  }
  const groups = Map.groupBy ? Map.groupBy(found, replicates) : found.reduce((all, run) => all.set(replicates(run), [...(all.get(replicates(run)) ?? []), run]), new Map());
  return [...groups.values()].map((group, i) => {
    const rows = together(group.map((run) => smoothed(curve(run.points), state.smooth)));
    const seeds = group.length > 1 ? `, mean of ${group.length} seeds` : "";
    const name = group.length > 1 ? group[0].called.replace(/, seed \d+.*$/, "") : group[0].called;
    return { name: `${name}${seeds}`, ...look(i), points: rows.map(([x, mean]) => [x, mean]), band: group.length > 1 ? rows.map(([x, , low, high]) => [x, low, high]) : [] };
  });
}

function theme() {
  const style = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(["agent", "you", "good", "bad", "muted", "ink", "line", "surface"].map((key) => [key, style.getPropertyValue(`--${key}`).trim()]));
  return { colours, font: style.getPropertyValue("--sans").trim() };
}

let turn = 0;
async function draw() {
  toAddress();
  const mine = ++turn;
  const outcomes = await Promise.allSettled(state.runs.map(load));
  if (mine !== turn) return;
  const found = outcomes.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const missing = outcomes.length - found.length;
  $("compare-problem").textContent = missing === 0 ? "" : missing === 1 ? "One of the runs could not be loaded." : `${missing} of the runs could not be loaded.`;
  $("compare-problem").hidden = missing === 0;
  const { colours, font } = theme();
  const all = series(found, colours);
  const [x, y] = [{ ...AXES[state.x], log: state.logX }, { ...FIGURES[state.y], log: state.logY }];
  const host = $("compare-plot");
  const made = picture({ series: all, x, y: { ...y, share: y.share && !y.log }, width: Math.max(280, host.clientWidth), height: innerWidth < 600 ? 320 : 440, colours, font });
  made.svg.setAttribute("aria-label", `${y.label} by ${x.label} of ${all.length} curves. Their last values are in the table below.`);
  host.replaceChildren(made.svg);
  drawn = { ...made, series: all, x, y, colours, font };
  $("compare-about").textContent = y.about + (state.seeds ? " Bands reach from the lowest to the highest seed." : "") + (state.smooth > 0 ? " Faint lines are the readings themselves." : "");
  values(null);
  for (const button of document.querySelectorAll("#compare-files button")) button.disabled = made.place === null;
}

// The values at an x, or the last ones.
function values(where) {
  const { series: all, x, y } = drawn;
  $("compare-at").textContent = where === null ? "Last value" : `At ${x.write(where)} ${x.time ? "" : x.label}`;
  $("compare-values").tBodies[0].replaceChildren(...all.map((one) => {
    const last = one.points.at(-1);
    const value = where === null ? last?.[1] ?? null : at(one.points, where);
    const key = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    key.setAttribute("width", 26);
    key.setAttribute("height", 8);
    key.setAttribute("aria-hidden", "true");
    const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, v] of Object.entries({ x1: 0, x2: 26, y1: 4, y2: 4, stroke: one.colour, "stroke-width": 3, ...(one.dash ? { "stroke-dasharray": one.dash } : {}) })) stroke.setAttribute(name, v);
    key.append(stroke);
    return el("tr", {}, el("th", { scope: "row" }, key, ` ${one.name}`), el("td", { class: "number" }, value === null ? "–" : y.write(value)), el("td", { class: "number" }, last ? x.write(last[0]) : "–"));
  }));
}

$("compare-plot").addEventListener("pointermove", (event) => {
  if (!drawn?.place) return;
  const { svg, place, colours } = drawn;
  const box = svg.getBoundingClientRect();
  const px = ((event.clientX - box.left) * Number(svg.getAttribute("width"))) / box.width;
  const inside = px >= place.left && px <= place.right;
  pointTo(svg, place, inside ? px : null, colours.muted);
  values(inside ? place.x.from(px) : null);
});
$("compare-plot").addEventListener("pointerleave", () => {
  if (!drawn?.place) return;
  pointTo(drawn.svg, drawn.place, null);
  values(null);
});

// ---- Files of what is seen ----

function save(name, blob) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
const fileName = (ending) => `${state.y}-by-${state.x}.${ending}`;
const asSvg = () => withLegend(drawn, drawn.series, drawn);

$("save-svg").addEventListener("click", () => save(fileName("svg"), new Blob([asSvg()], { type: "image/svg+xml" })));
$("save-png").addEventListener("click", async () => {
  const text = asSvg();
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width * 2, height: image.height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(fileName("png"), blob), "image/png");
});
$("save-csv").addEventListener("click", () => {
  const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  // A spreadsheet would carry out a name that begins like a formula.
  const name = (text) => cell(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  const lines = [["curve", state.x, state.y, "low", "high"].join(",")];
  for (const one of drawn.series) one.points.forEach(([x, y], i) => lines.push([name(one.name), x, y, one.band?.[i]?.[1] ?? "", one.band?.[i]?.[2] ?? ""].join(",")));
  save(fileName("csv"), new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
});

// ---- What is chosen ----

function showRuns() {
  const words = $("compare-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ id, called, label }) => { const text = `${called} ${id} ${label.tags.join(" ")}`.toLowerCase(); return words.every((word) => text.includes(word)); };
  $("compare-runs").replaceChildren(...runs.filter((run) => fits(run) || state.runs.includes(run.id)).map(({ id, called }) => {
    const box = el("input", { type: "checkbox", value: id, checked: state.runs.includes(id) });
    box.addEventListener("change", () => {
      state.runs = box.checked ? [...state.runs, id] : state.runs.filter((other) => other !== id);
      draw();
    });
    return el("label", { class: "check" }, box, el("span", { dir: "auto" }, called));
  }));
}

for (const [id, key] of [["compare-y", "y"], ["compare-x", "x"]]) {
  $(id).value = state[key];
  $(id).addEventListener("change", () => { state[key] = $(id).value; draw(); });
}
for (const [id, key] of [["compare-log-x", "logX"], ["compare-log-y", "logY"], ["compare-seeds", "seeds"]]) {
  $(id).checked = state[key];
  $(id).addEventListener("change", () => { state[key] = $(id).checked; draw(); });
}
$("compare-smooth").value = state.smooth;
$("compare-smooth").addEventListener("input", () => { state.smooth = Number($("compare-smooth").value); draw(); });
$("compare-search").addEventListener("input", showRuns);
document.addEventListener("iliad:theme", () => { if (drawn) draw(); });
let resizing = 0;
addEventListener("resize", () => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(() => { if (drawn) draw(); }); });

ask(config.runs).then((all) => {
  runs = all;
  if (state.runs.length === 0) state.runs = runs.filter(({ status }) => status.update > 0).slice(0, FIRST).map(({ id }) => id);
  showRuns();
  return draw();
}).catch((error) => {
  $("compare-problem").textContent = error.detail ?? "The runs could not be loaded.";
  $("compare-problem").hidden = false;
});
