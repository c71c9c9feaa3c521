// The researcher's page: a snapshot first, then events. After every interruption the snapshot is fetched again.

import { AXIS_NAMES, Charts, fillTable } from "./charts.js";
import { Episodes } from "./episodes.js";
import { remaining } from "./estimate.js";
import { ago, count, duration, el, percent, time } from "./format.js";
import { ask, askItems } from "./net.js";
import { Readings } from "./readings.js";
import { SavedAgents } from "./saved-agents.js";
import { Stream } from "./stream.js";
import { setUpTry } from "./try.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("run").dataset.config);
const charts = new Charts($("charts"));
const readings = new Readings({ figure: $("readings"), view: $("readings-view"), table: $("readings-table") }, () => charts.axis);
const episodes = new Episodes($("episodes"), $("episodes-empty"), $("episodes-new"), config.learns, config.learned);
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

let testing = "";
const SPLITS = { train: "training", validation: "validation", test: "test" };

function showTesting({ split, done, of, seconds_left: left }) {
  testing = `Testing the agent: ${count(done)} of ${count(of)} ${SPLITS[split]} tasks${remaining(left)}`;
  if (status) showDetail();
}

let heard = 0;
setInterval(() => { if (status?.state === "starting") showDetail(); }, 1000);

function showDetail() {
  const state = status.state;
  const share = status.done == null ? "" : ` ${percent(status.done, 0)}`;
  // Between two readings the time goes on.
  const left = status.seconds_left == null ? null : status.seconds_left - (performance.now() - heard) / 1000;
  const done = `${share}${remaining(left)}`;
  const spent = over(state) && config.budget > 0 && status.episodes >= config.budget;
  const step = testing && status.what === "Testing the agent" ? testing : `${status.what}${done}`;
  say("run-detail", live && state === "starting" ? step : live && !over(state) ? testing : spent ? `It has used all of its ${count(config.budget)} episodes` : "");
}

function showStatus(now) {
  status = now;
  heard = performance.now();
  const state = live ? now.state : over(now.state) ? now.state : "stopped";
  $("run-state").className = `state ${state}`;
  say("run-word", WORDS[state] ?? state);
  const spent = state === "stopped" && config.budget > 0 && now.episodes >= config.budget;
  showDetail();
  say("run-why", state === "failed" ? now.message : "");
  $("run-failed").hidden = state !== "failed";
  say("device", now.device);
  const best = now.best_validation;
  say("t-best", rate(best));
  // The latest reading may be of a policy long ago, at the beginning of the one before anything was learnt.
  const at = charts.points.findLast((point) => point.validation)?.update;
  const latest = at === undefined ? "" : ` · ${rate(now.validation)} at update ${count(at)}`;
  say("t-best-n", best ? `of ${count(best.n)} (${percent(best.low, 0)}–${percent(best.high, 0)})${latest}` : "not tested yet");
  say("t-episodes", count(now.episodes));
  say("t-rate", state === "running" ? rateOf(now.episodes_per_second) : "");
  say("t-human", count(now.descriptions_human));
  say("t-simulated", count(now.descriptions_simulated));
  say("t-update", `${count(now.update)} update${now.update === 1 ? "" : "s"} made`);
  const mixes = config.learns.algorithm === "adel";
  say("t-lambda", mixes ? now.lambda.toPrecision(3) : "–");
  $("t-lambda-is").hidden = !mixes;
  say("t-lambda-not", mixes ? "" : `not used by ${config.learns.algorithm}`);
  say("t-time", duration(now.seconds));
  const spare = now.spare_words;
  $("words-tile").hidden = !spare?.rows;
  if (spare?.rows) {
    say("t-words", `${count(spare.taken)} of ${count(spare.rows)}`);
    const full = spare.taken >= spare.rows ? "all rows are taken; new words replace rare ones" : "new words that the agent has learnt";
    say("t-words-full", spare.waiting ? `${full} · ${count(spare.waiting)} met once or waiting` : full);
  }
  const ended = !live || over(state);
  showLink();
  if (ended) say("t-pool", "");
  for (const id of ["pause", "checkpoint", "stop", "teacher"]) $(id).hidden = ended;
  $("teach-link").hidden = ended || now.teacher.mode === "simulated" || !config.learns.people;
  if ($("resume")) $("resume").hidden = !ended || spent || !config.resumes;
  if ($("after-end")) $("after-end").hidden = !ended;
  $("delete").hidden = !ended || !config.can_start;
  savedAgents.showEnded(ended);
  say("pause", state === "paused" ? "Resume" : "Pause");
  $("pause").disabled = state === "starting";
  showTeacher(now);
}

function showTeacher({ teacher, simulated_available: available }) {
  const form = $("teacher");
  for (const input of form.elements.mode) {
    input.checked = input.value === teacher.mode;
    input.disabled = input.value === "human" ? !config.learns.people : !available || (input.value === "mixed" && !config.learns.people);
  }
  $("share-row").hidden = teacher.mode !== "mixed";
  if (teacher.mode === "mixed" && document.activeElement !== $("share")) {
    $("share").value = Math.round(teacher.share * 100);
    $("share-out").textContent = percent(teacher.share, 0);
  }
  const notes = {
    human: config.learns.feedback === "descriptions" ? "Only people describe; the agent learns when they do." : "Only people teach; the agent learns when they do.",
    simulated: config.learns.feedback === "descriptions"
      ? "The simulated teacher describes what the agent does; people get nothing new to describe."
      : `The agent learns from ${config.learns.feedback} that the task itself gives.`,
    mixed: "People get some executions, the simulated teacher the rest; training never waits.",
  };
  // A run that gets ready has not looked for its teacher yet.
  const without = available || status.state === "starting" ? "" : " No simulated teacher is available for this run.";
  say("teacher-note", `${notes[teacher.mode]}${without}`);
}

// ---- Lists ---------------------------------------------------------------------------------------------------------

const savedAgents = new SavedAgents(config, problem);

function addLog(at, message) {
  $("log-empty").hidden = true;
  $("log").prepend(el("li", {}, time(at), el("span", {}, message)));
  while ($("log").children.length > 200) $("log").lastElementChild.remove();
}

function showPoints(points) {
  charts.points = points;
  afterPoints();
}

// A table that is made anew at every point of a quick run would leave the page no time for anything else.
let filling = 0;
function afterPoints() {
  const none = charts.points.length === 0;
  $("curves-empty").hidden = !none;
  $("charts").hidden = none;
  filling ||= setTimeout(() => {
    filling = 0;
    if ($("curves-table").open) fillTable($("points").tBodies[0], charts.points, config.learned);
  }, 250);
}

// ---- The connection ------------------------------------------------------------------------------------------------

// The run that is laid over this one, or "".
let other = "";
// Whether events flow.
let flows = false;
// Events that came while a snapshot was on its way: they are newer, or it holds them already.
let held = [];
let renewing = null;
let again = false;
let retrying = 0;

const POINTS = "/points?thin=2000";
const part = (run, what) => ask(`${config.runs}/${encodeURIComponent(run)}${what}`);

async function snapshot() {
  const compared = other;
  const parts = ["", POINTS, "/episodes?limit=40", "/checkpoints?limit=500", "/readings"].map((what) => part(config.run, what));
  const [run, points, rows, marks, curves, others] = await Promise.all([...parts, compared ? part(compared, POINTS) : null]);
  live = run.live;
  showPoints(points.items);
  showStatus(run.status);
  readings.show(curves);
  if (compared && compared === other) charts.compared = others.items;
  episodes.fill(rows.items);
  savedAgents.show(marks.items);
  showPool(run);
  $("log").replaceChildren();
  $("log-empty").hidden = run.log.length > 0;
  run.log.forEach(({ at, message }) => addLog(at, message));
}

// The pool of a run that has ended is nobody's any more.
const showPool = ({ pool: { open, leased } }) => say("t-pool", !live || over(status.state) ? "" : `${count(open)} waiting · ${count(leased)} in hand`);

function showLink() {
  say("link-state", flows && live && status && !over(status.state) ? "Live" : "");
}

// Many reasons to fetch a snapshot at once make one fetch, and one more for those that came while it was on its way.
function resync() {
  again = renewing !== null;
  renewing ??= renew().finally(() => { renewing = null; });
  return renewing;
}

async function renew() {
  clearTimeout(retrying);
  try {
    do {
      again = false;
      await snapshot();
    } while (again);
    showLink();
  } catch (error) {
    say("link-state", error.status > 0 ? error.detail : "Connection lost; trying again…");
    retrying = setTimeout(resync, 3000);
  }
  held.splice(0).forEach(({ run, name, data }) => happened(run, name, data));
}

// Many descriptions at once make one request.
let renewingReadings = 0;
function renewReadings() {
  renewingReadings ||= setTimeout(async () => {
    renewingReadings = 0;
    await part(config.run, "/readings").then((curves) => readings.show(curves), () => {});
  }, 1000);
}

const HAPPENED = {
  // A status comes when a test is over: the trainer does nothing else meanwhile.
  status: (now) => { live = true; testing = ""; showStatus(now); },
  point: (point) => { charts.add(point); afterPoints(); },
  evaluating: showTesting,
  episode: (episode) => episodes.add(episode),
  checkpoint: (row) => savedAgents.add(row),
  log: ({ message }) => addLog(new Date().toISOString(), message),
  comprehension: renewReadings,
  absent: () => { if (live) resync(); },
};

function happened(run, name, data) {
  if (run === config.run) HAPPENED[name]?.(data);
  else if (run === other && name === "point") charts.addCompared(data);
}

const stream = new Stream({ events: config.events, worker: config.worker }, (message) => {
  if (message.type === "lost") {
    flows = false;
    if (live && !over(status?.state)) say("link-state", "Connection lost; trying again…");
  } else if (message.type === "open") {
    flows = true;
    resync();
  } else if (message.name === "resync") {
    resync();
  } else if (renewing) {
    held.push(message);
  } else {
    happened(message.run, message.name, message.data);
  }
});

const watch = () => stream.watch(other ? [config.run, other] : [config.run]);

setInterval(() => {
  if (document.hidden) return;
  for (const t of document.querySelectorAll("time[datetime]")) t.textContent = ago(t.dateTime);
  if (live && status && !over(status.state)) part(config.run, "").then(showPool, () => {});
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
  if (row?.name) savedAgents.add(row);
});
$("stop").addEventListener("click", () => $("stop-ask").showModal());
$("stop-ask").addEventListener("close", () => {
  if ($("stop-ask").returnValue === "stop") command($("stop"), "/stop");
  $("stop-ask").returnValue = "";
});

$("resume")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  // Everything on this page belongs to the ended trainer; a fresh page belongs to the new one.
  if (await command($("resume-button"), "/resume")) location.reload();
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

setUpTry(config.api, () => savedAgents.chosen());

// ---- Curves --------------------------------------------------------------------------------------------------------

function setAxis() {
  charts.axis = $("axis").value;
  readings.redraw();
}
$("axis").addEventListener("change", setAxis);
$("curves-table").addEventListener("toggle", afterPoints);

// Runs that began since the page was opened can be compared with, too.
function offer() {
  askItems(`${config.runs}?limit=500`).then((runs) => {
    const there = new Set([...$("overlay").options].map((option) => option.value));
    for (const { id, called } of runs) if (id !== config.run && !there.has(id)) $("overlay").append(el("option", { value: id }, called));
  }, () => {});
}
$("overlay").addEventListener("focus", offer);
$("overlay").addEventListener("change", () => {
  other = $("overlay").value;
  const link = new URL($("compare-link").href);
  link.searchParams.delete("run");
  for (const run of [config.run, other]) if (run) link.searchParams.append("run", run);
  $("compare-link").href = link;
  charts.compare(other || null, []);
  watch();
  if (other) resync();
});
offer();

// ---- Keys ----------------------------------------------------------------------------------------------------------

const KEYS = {
  p: () => { if (!$("pause").hidden && !$("pause").disabled) $("pause").click(); },
  c: () => { if (!$("checkpoint").hidden) $("checkpoint").click(); },
  x: () => {
    $("axis").value = AXIS_NAMES[(AXIS_NAMES.indexOf($("axis").value) + 1) % AXIS_NAMES.length];
    setAxis();
  },
  t: () => $("request").focus(),
  e: () => episodes.focus(),
  "?": () => $("shortcuts").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.closest("input:not([type=radio], [type=range]), textarea, select, dialog, [contenteditable]") || document.querySelector("dialog[open]")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
$("help").hidden = false;
$("help").addEventListener("click", KEYS["?"]);

watch();
// Where no stream comes, the page shows what there is all the same.
setTimeout(() => { if (!status) resync(); }, 1500);
