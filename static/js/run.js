// The researcher's page: a snapshot first, then events. After every interruption the snapshot is fetched again.

import { AXIS_NAMES, Charts, fillTable } from "./charts.js";
import { Episodes } from "./episodes.js";
import { ago, bytes, count, duration, el, percent, time } from "./format.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("run").dataset.config);
const charts = new Charts($("charts"));
const episodes = new Episodes($("episodes"), $("episodes-empty"), $("episodes-new"));
const WORDS = { starting: "Getting ready", running: "Learning", paused: "Paused", stopped: "Ended", failed: "Stopped by an error" };
const over = (state) => state === "stopped" || state === "failed";
let status = null;
let live = config.live;

const rate = (r) => (r ? percent(r.value) : "–");
const rateOf = (n) => (n < 0.05 ? "" : `${n.toFixed(n < 10 ? 1 : 0)} a second`);
const say = (id, text) => { const e = $(id); if (e.textContent !== text) e.textContent = text; };

function problem(text) {
  $("run-problem").textContent = text ?? "";
  $("run-problem").hidden = !text;
}

// ---- Status --------------------------------------------------------------------------------------------------------

function showStatus(now) {
  status = now;
  const state = live ? now.state : over(now.state) ? now.state : "stopped";
  $("run-state").className = `state ${state}`;
  say("run-word", WORDS[state] ?? state);
  const done = now.done == null ? "" : ` ${percent(now.done, 0)}`;
  say("run-detail", state === "starting" ? `${now.what}${done}` : state === "failed" ? now.message : "");
  say("device", now.device);
  const best = now.best_validation;
  say("t-best", rate(best));
  say("t-best-n", best ? `of ${count(best.n)} (${percent(best.low, 0)}–${percent(best.high, 0)}) · now ${rate(now.validation)}` : "not tested yet");
  say("t-episodes", count(now.episodes));
  say("t-rate", state === "running" ? rateOf(now.episodes_per_second) : "");
  say("t-human", count(now.descriptions_human));
  say("t-simulated", count(now.descriptions_simulated));
  say("t-update", `${count(now.update)} update${now.update === 1 ? "" : "s"} made`);
  say("t-lambda", now.lambda.toPrecision(3));
  say("t-time", duration(now.seconds));
  const ended = !live || over(state);
  if (ended) say("link-state", "");
  for (const id of ["pause", "checkpoint", "stop", "teach-link", "teacher"]) $(id).hidden = ended;
  document.querySelector(".try").hidden = ended;
  if ($("go-on")) $("go-on").hidden = !ended;
  say("pause", state === "paused" ? "Resume" : "Pause");
  $("pause").disabled = state === "starting";
  showTeacher(now);
}

function showTeacher({ teacher, simulated_available: available }) {
  const form = $("teacher");
  for (const input of form.elements.mode) {
    input.checked = input.value === teacher.mode;
    input.disabled = !available && input.value !== "human";
  }
  $("share-row").hidden = teacher.mode !== "mixed";
  if (teacher.mode === "mixed" && document.activeElement !== $("share")) {
    $("share").value = Math.round(teacher.share * 100);
    $("share-out").textContent = percent(teacher.share, 0);
  }
  const notes = {
    human: "Only people describe; the agent learns when they do.",
    simulated: "The simulated teacher describes everything; people get nothing to describe.",
    mixed: "People get some executions, the simulated teacher the rest; training never waits.",
  };
  say("teacher-note", available ? notes[teacher.mode] : `${notes[teacher.mode]} No simulated teacher is available for this task.`);
}

// ---- Lists ---------------------------------------------------------------------------------------------------------

let checkpoints = [];

function showCheckpoints(rows) {
  checkpoints = rows;
  $("checkpoints").hidden = rows.length === 0;
  $("checkpoints-empty").hidden = rows.length > 0;
  $("checkpoints").tBodies[0].replaceChildren(...rows.slice(0, 12).map((row) => el("tr", {},
    el("th", { scope: "row", title: row.name }, row.name === "best.safetensors" ? null : row.name.replace(/\.safetensors$/, " "), row.best ? el("span", { class: "best-mark" }, "★ best") : null,
      el("span", { class: "sub" }, `${bytes(row.bytes)}, `, time(row.written_at))),
    el("td", { class: "number" }, count(row.episodes)),
    el("td", { class: "number" }, row.validation ? `${percent(row.validation.value)} of ${count(row.validation.n)}` : "–"),
  )));
}

function addCheckpoint(row) {
  const others = checkpoints.filter((other) => other.name !== row.name).map((other) => (row.best ? { ...other, best: false } : other));
  showCheckpoints([row, ...others]);
}

function addLog(at, message) {
  $("log-empty").hidden = true;
  $("log").prepend(el("li", {}, time(at), el("span", {}, message)));
  while ($("log").children.length > 200) $("log").lastElementChild.remove();
}

function showPoints(points) {
  charts.points = points;
  afterPoints();
}

function afterPoints() {
  const none = charts.points.length === 0;
  $("curves-empty").hidden = !none;
  $("charts").hidden = none;
  if (document.querySelector(".table-view").open) fillTable($("points").tBodies[0], charts.points);
}

// ---- The connection ------------------------------------------------------------------------------------------------

async function snapshot() {
  const [run, points, rows, marks] = await Promise.all(["", "/points", "/episodes", "/checkpoints"].map((part) => ask(config.api + part)));
  live = run.live;
  showStatus(run.status);
  showPoints(points);
  episodes.fill(rows);
  showCheckpoints(marks);
  showPool(run.pool);
  $("log").replaceChildren();
  run.log.forEach(({ at, message }) => addLog(at, message));
}

const showPool = ({ open, leased }) => say("t-pool", `${count(open)} waiting · ${count(leased)} in hand`);

let waiting = null;
let renewing = null;

// Many reasons to fetch a snapshot at once make one fetch.
function resync() {
  renewing ??= snapshot()
    .then(() => true, () => false)
    .then((fine) => { renewing = null; if (!fine) retry(); return fine; });
  return renewing;
}

function retry() {
  say("link-state", "Connection lost; trying again…");
  clearTimeout(waiting);
  waiting = setTimeout(begin, 3000);
}

let source = null;

async function begin() {
  source?.close();
  if (!(await resync())) return;
  if (!live) { say("link-state", ""); return; }
  let before = false;
  source = new EventSource(config.events);
  source.addEventListener("open", () => {
    say("link-state", over(status.state) ? "" : "Live");
    if (before) resync();
    before = true;
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) retry();
    else say("link-state", "Connection lost; trying again…");
  });
  const on = (name, handle) => source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  on("status", showStatus);
  on("point", (point) => { charts.add(point); afterPoints(); });
  on("episode", (episode) => episodes.add(episode));
  on("checkpoint", addCheckpoint);
  on("log", ({ message }) => addLog(new Date().toISOString(), message));
  on("resync", resync);
}

setInterval(() => {
  for (const t of document.querySelectorAll("time[datetime]")) t.textContent = ago(t.dateTime);
  if (document.hidden) return;
  ask(config.api).then((run) => {
    showPool(run.pool);
    // Somebody let the run go on: its events come from another trainer now.
    if (run.live && !over(run.status.state) && (!live || over(status.state))) begin();
  }, () => {});
}, 10_000);

// ---- Commands ------------------------------------------------------------------------------------------------------

async function command(button, path, body = {}) {
  if (button.getAttribute("aria-disabled") === "true") return undefined;
  button.setAttribute("aria-disabled", "true");
  problem(null);
  try {
    return await ask(config.api + path, { body }) ?? true;
  } catch (error) {
    problem(error.detail);
    return undefined;
  } finally {
    button.removeAttribute("aria-disabled");
  }
}

$("pause").addEventListener("click", () => command($("pause"), status?.state === "paused" ? "/resume" : "/pause"));
$("checkpoint").addEventListener("click", async () => {
  const row = await command($("checkpoint"), "/checkpoints");
  if (row?.name) addCheckpoint(row);
});
$("stop").addEventListener("click", () => $("stop-ask").showModal());
$("stop-ask").addEventListener("close", () => {
  if ($("stop-ask").returnValue === "stop") command($("stop"), "/stop");
  $("stop-ask").returnValue = "";
});

$("go-on")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  // Everything on this page belongs to the ended trainer; a fresh page belongs to the new one.
  if (await command($("go-on-button"), "/go-on")) location.reload();
});

$("teacher").addEventListener("submit", (event) => event.preventDefault());
$("teacher").addEventListener("change", async () => {
  const mode = new FormData($("teacher")).get("mode");
  const share = Number($("share").value) / 100;
  $("share-row").hidden = mode !== "mixed";
  const done = await command($("teacher"), "/teacher", mode === "mixed" ? { mode, share } : { mode });
  if (!done && status) showTeacher(status);
});
$("share").addEventListener("input", () => { $("share-out").textContent = `${$("share").value}%`; });

// Fields that share a name make a list, others a text: the family's own form decides.
function fields(form, without) {
  const start = {};
  const data = new FormData(form);
  for (const name of new Set(data.keys())) {
    if (name === without) continue;
    const values = data.getAll(name);
    start[name] = form.elements[name] instanceof RadioNodeList ? values : values[0];
  }
  return start;
}

$("try").addEventListener("submit", async (event) => {
  event.preventDefault();
  const go = $("try-go");
  if (go.getAttribute("aria-disabled") === "true") return;
  go.setAttribute("aria-disabled", "true");
  const tell = (text) => { $("try-problem").textContent = text; $("try-problem").hidden = !text; };
  tell("");
  const slow = setTimeout(() => $("tried").replaceChildren(el("p", { class: "small muted" }, "It finishes the update it is at, then it tries…")), 400);
  try {
    const tried = await ask(`${config.api}/try`, { body: { request: $("request").value, start: fields($("try"), "request") } });
    const drawing = el("div", { class: "drawing" });
    drawing.innerHTML = tried.html;
    $("tried").replaceChildren(
      drawing,
      el("p", { class: "small muted" }, tried.valid ? "What it did: " : "What it did cannot be carried out: ", el("code", {}, tried.summary), `, after ${count(tried.update)} updates.`),
    );
  } catch (error) {
    $("tried").replaceChildren();
    tell(error.detail ?? "Something went wrong on this page; reload it and try again.");
  } finally {
    clearTimeout(slow);
    go.removeAttribute("aria-disabled");
  }
});

// ---- Curves --------------------------------------------------------------------------------------------------------

$("axis").addEventListener("change", () => { charts.axis = $("axis").value; });
document.querySelector(".table-view").addEventListener("toggle", afterPoints);

ask(config.runs).then((runs) => {
  for (const run of runs) if (run.id !== config.run) $("overlay").append(el("option", { value: run.id }, run.id));
}, () => {});
$("overlay").addEventListener("change", async () => {
  const other = $("overlay").value;
  if (!other) { charts.compare(null); return; }
  try {
    charts.compare(other, await ask(`${config.runs}/${encodeURIComponent(other)}/points`));
  } catch (error) {
    problem(error.detail);
    $("overlay").value = "";
  }
});

// ---- Keys ----------------------------------------------------------------------------------------------------------

const KEYS = {
  p: () => { if (!$("pause").hidden && !$("pause").disabled) $("pause").click(); },
  c: () => { if (!$("checkpoint").hidden) $("checkpoint").click(); },
  x: () => {
    $("axis").value = AXIS_NAMES[(AXIS_NAMES.indexOf($("axis").value) + 1) % AXIS_NAMES.length];
    charts.axis = $("axis").value;
  },
  t: () => $("request").focus(),
  e: () => $("episodes").querySelector("summary")?.focus(),
  "?": () => $("shortcuts").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input, textarea, select, dialog, [contenteditable]") || document.querySelector("dialog[open]")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
$("help").hidden = false;
$("help").addEventListener("click", KEYS["?"]);

begin();
