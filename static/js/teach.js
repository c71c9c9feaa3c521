// The teacher's page: one execution, one sentence, next. Without this script the page works as a plain form; with it the
// next execution is there already, and text survives whatever happens to the connection.

import { Activity } from "./activity.js";
import { Comprehension } from "./comprehension.js";
import { Drafts } from "./drafts.js";
import { Fulfilled } from "./fulfilled.js";
import { panelOf } from "./media/panel.js";
import { ask, newKey } from "./net.js";
import { Preview } from "./preview.js";
import { Queue } from "./queue.js";
import { watchScreen } from "./screen.js";
import { setUpSkipMenu } from "./skip-menu.js";
import { stands } from "./study.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("teach").dataset.config);
const [box, form, skip, skipForm] = [$("text"), $("describe"), $("skip"), $("skip-form")];
const drafts = new Drafts(config);
const activity = new Activity();
const panel = panelOf(config, box, () => send("described", box.value));
const queue = new Queue(config, { stored: storedLater, refused: refusedLater, again: tryAgain });
const preview = new Preview(config, () => showPreview(box.value));
const fulfilled = new Fulfilled(config, {
  current: () => current,
  yes: (request) => send("described", request, { fulfilled: true }),
  no: () => { showRequest(current?.request); box.focus({ preventScroll: true }); },
});
const comprehension = new Comprehension(config, () => box.focus({ preventScroll: true }), learned);
const tabs = "BroadcastChannel" in window ? new BroadcastChannel(`iliad.${config.run}`) : null;
const LEASE = config.lease_seconds * 1000;
const UNDO = 10_000;          // how long the last answer can be taken back with one press

let current = config.shown;   // the execution on the page
let next = null;              // the one after it, fetched ahead
let fetching = null;          // a fetch under way
let attempt = null;           // the last answer that was tried to be sent
let sending = false;
let before = null;            // what the box held when the last answer was sent: what came after is for the next execution
let moving = null;            // the way to the next execution, while it is under way
let offered = null;           // the answer that Undo takes back
let offering = null;          // timer of the offer
let lost = false;             // the lease of the current one is gone
let staying = false;          // leaving for a page that comes back here
let ended = config.ended;

// ---- What is on the page -------------------------------------------------------------------------------------------

function notice(text, fresh = true) {
  const line = $("notice");
  line.textContent = text;
  line.classList.remove("fresh");
  if (fresh && text) { void line.offsetWidth; line.classList.add("fresh"); }
}

function problem(text) {
  $("problem").textContent = text ?? "";
  $("problem").hidden = !text;
  $("doubt").hidden = true;
  $("go-on").hidden = true;
  box.toggleAttribute("aria-invalid", Boolean(text));
}

// Asks whether an answer is meant that contradicts what the server knows.
function doubt(question, kind) {
  problem(question);
  $("confirm").value = kind;
  $("confirm").textContent = kind === "described" ? "Yes, it did that" : config.sure;
  $("doubt").hidden = false;
  $("doubt").scrollIntoView({ block: "nearest", behavior: "instant" });
}

function grow() {
  if (CSS.supports("field-sizing", "content")) return;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 4, innerHeight / 2)}px`;
}

function count() {
  const counter = $("counter");
  const length = box.value.length < config.limit * 0.8 ? 0 : Array.from(box.value).length;
  counter.hidden = length === 0;
  counter.textContent = `${length.toLocaleString("en")} of ${config.limit.toLocaleString("en")} characters`;
  counter.classList.toggle("over", length > config.limit);
}

function fill(text) {
  box.value = text;
  grow();
  count();
}

// What was typed after the last answer was sent. It never belongs to what was answered.
function typedAhead() {
  const ahead = before !== null && box.value.startsWith(before) ? box.value.slice(before.length) : "";
  before = null;
  return ahead;
}

// Puts an execution on the page. The focus goes into the box, whatever was pressed to come here: no key that is typed
// next may press anything.
function show(shown, { announce = "Next" } = {}) {
  const ahead = typedAhead();
  clearTimeout(polling);
  current = shown;
  lost = false;
  attempt = null;
  $("stage").hidden = false;
  $("idle").hidden = true;
  if (shown.html !== undefined) {
    showRequest(shown.request);
    $("execution").innerHTML = shown.html;
    $("execution").dispatchEvent(new CustomEvent("iliad:execution", { bubbles: true }));
  }
  for (const f of [form, skipForm]) {
    for (const name of ["execution", "client_key", "shown_at"]) {
      let field = f.elements[name];
      if (!field) {
        field = Object.assign(document.createElement("input"), { type: "hidden", name });
        f.append(field);
      }
      field.value = shown[name];
    }
  }
  if (shown.placeholder) box.placeholder = shown.placeholder;
  preview.reset();
  fulfilled.close();
  fill(drafts.restore(shown) + ahead);
  panel.show(shown);
  if (ahead) drafts.set(shown.execution, box.value);
  problem(null);
  skip.open = false;
  $("reason").value = "";
  activity.reset();
  if (announce) {
    const did = Object.assign(document.createElement("span"), { translate: false, textContent: shown.spoken ?? shown.text });
    $("state").replaceChildren(`${announce}. The agent did this: `, did);
  }
  box.focus({ preventScroll: true });
  if (announce) scrollTo({ top: 0, behavior: "instant" });
  unsent();
}

function showRequest(request) {
  $("asked").hidden = !request;
  $("asked-words").textContent = request ?? "";
}

function showProgress({ progress } = {}) {
  if (progress !== undefined) $("progress").textContent = progress;
}

function rest(offer) {
  current = null;
  ended = offer?.ended ?? ended;
  $("stage").hidden = true;
  $("idle").hidden = false;
  document.body.classList.toggle("ended", ended);
  if (offer?.message) $("idle-text").textContent = offer.message;
  unsent();
}

function unsent() {
  const others = [...queue.executions.filter((execution) => execution !== current?.execution)];
  const waits = others.length;
  $("queued").hidden = waits === 0;
  if (waits > 0) $("queued").textContent = waits === 1 ? "One answer is not sent yet: no connection. It goes as soon as there is one." : `${waits} answers are not sent yet: no connection. They go as soon as there is one.`;
  const [draft] = !panel.writes ? [] : drafts.others([current?.execution, next?.execution, ...others].filter(Boolean));
  $("unsent").hidden = !draft;
  if (!draft) return;
  $("unsent-about").textContent = draft.same
    ? "You typed this about the same execution on another device:"
    : `You did not send this sentence. It is about another execution${current ? " than the one above" : ""}:`;
  $("unsent-text").textContent = draft.text;
  $("unsent-take").hidden = !current;
  $("unsent").dataset.execution = draft.execution;
}

// ---- Getting executions --------------------------------------------------------------------------------------------

function lease() {
  fetching ??= ask(`${config.api}/lease`, { body: { except: [current, next].filter(Boolean).map((s) => s.execution) } })
    .finally(() => { fetching = null; });
  return fetching;
}

async function prefetch() {
  if (next || !current || ended) return;
  try {
    const offer = await lease();
    ended = offer.ended;
    showProgress(offer);
    if (offer.execution && offer.execution !== current?.execution) next = offer;
  } catch {
    // Not needed yet; advance() asks again and says what is wrong.
  }
}

let pause = 1500;
let polling = null;

function poll(soon = false) {
  clearTimeout(polling);
  if (current || ended) return;
  if (soon) pause = 1500;
  polling = setTimeout(async () => {
    if (document.hidden) return poll();
    pause = Math.min(pause * 1.4, 8000);
    await advance();
  }, soon ? 0 : pause);
}

// On to the next execution: the one fetched ahead, or whatever the server has.
function advance() {
  moving = step().finally(() => { moving = null; });
  return moving;
}

async function step() {
  if (next) {
    const shown = next;
    next = null;
    show(shown);
    prefetch();
    return;
  }
  const last = current;
  current = null;
  try {
    let offer = await lease();
    // A fetch that was under way may bring the one that was just answered.
    if (last && offer.execution === last.execution) offer = await lease();
    // The page's own fetch ahead may have brought the same one.
    if (next?.execution === offer.execution) next = null;
    if (stands(offer.study)) return;
    showProgress(offer);
    if (offer.execution) {
      pause = 1500;
      show(offer);
      prefetch();
    } else {
      rest(offer);
    }
  } catch (error) {
    rest({ message: `${error.detail ?? error.message} This page tries again by itself. ${queue.length > 0 ? "What you have written is kept and goes as soon as it can." : "What you sent is stored."}` });
  }
  poll();
}

// ---- Sending -------------------------------------------------------------------------------------------------------

function lock(on) {
  sending = on;
  box.classList.toggle("sending", on);
  for (const button of document.querySelectorAll("#stage button")) button.setAttribute("aria-disabled", String(on));
}

// An answer waits for the connection: the one on the page goes through send(), so that the page moves on with it.
function tryAgain() {
  const item = current && queue.of(current.execution);
  if (!item) queue.flush();
  else if (!sending) send(item.kind, item.text, { confirmed: item.confirmed, fulfilled: item.fulfilled, previewed: true });
}

// An answer whose execution left the page was stored.
async function storedLater(item, stored) {
  drafts.stored(item.execution);
  tabs?.postMessage({ answered: item.execution });
  showProgress(stored);
  notice(`Sent now: your answer that waited for the connection. ${stored.thanks}`);
  if (item.kind === "described" && panel.waiting(item.text)) comprehension.sent(panel.waiting(item.text));
  if (!current && stands(stored.study)) return;
  unsent();
}

function refusedLater(item, error) {
  notice(`An answer that waited for the connection could not be stored. ${error.detail ?? ""}${item.text ? " Your words are kept below." : ""}`);
  unsent();
}

// The answer as it is sent. The same words have the same key; other words need another: an earlier try may have arrived after
// all, and these words then replace it.
function answerOf(kind, text, { confirmed, fulfilled }) {
  const waiting = queue.of(current.execution);
  if (attempt?.execution !== current.execution) attempt = waiting;
  const same = attempt && attempt.kind === kind && attempt.text === text;
  return {
    key: same ? attempt.key : attempt ? newKey() : current.client_key,
    execution: current.execution, corrects: current.corrects, kind, text, ...panel.answer(kind, text), confirmed, fulfilled,
    shown_at: current.shown_at,
    active_ms: same ? attempt.active_ms : activity.milliseconds,
    idle_ms: same ? attempt.idle_ms : activity.idleMilliseconds,
    first_text: kind !== "described" || fulfilled ? undefined : (same && attempt.first_text) || (preview.first ?? undefined),
  };
}

async function showPreview(text) {
  if (sending || !current) return false;
  lock(true);
  const slow = setTimeout(() => { $("send").textContent = "One moment…"; }, 300);
  const seen = await preview.show(current.execution, text);
  clearTimeout(slow);
  $("send").textContent = "Send";
  lock(false);
  box.focus({ preventScroll: true });
  if (seen) $("send").scrollIntoView({ block: "nearest", behavior: "instant" });
  return seen;
}

async function send(kind, text, { confirmed = false, fulfilled = false, previewed = false } = {}) {
  if (sending || !current) return;
  box.focus({ preventScroll: true });
  const missing = kind === "described" ? panel.missing(text, config.nothing) : null;
  if (missing) {
    problem(missing);
    return;
  }
  if (Array.from(text).length > config.limit) {
    problem(`This is longer than ${config.limit.toLocaleString("en")} characters. Shorten it and send it again.`);
    return;
  }
  if (kind === "nothing_changed" && !confirmed && current.doubt) {
    doubt(current.doubt, kind);
    return;
  }
  const execution = current.execution;
  if (panel.writes && kind === "described" && !fulfilled && !confirmed && !previewed && preview.wanted()) {
    if (await showPreview(text)) return;
    if (current?.execution !== execution) return;
  }
  lock(true);
  const slow = setTimeout(() => { $("send").textContent = "Sending…"; }, 300);
  before = box.value;
  try {
    await drafts.settled();
    attempt = answerOf(kind, text, { confirmed, fulfilled });
    const stored = await queue.deliver(attempt);
    problem(null);
    keepRest(execution, kind === "described" && !fulfilled);
    tabs?.postMessage({ answered: execution });
    notice(stored.thanks);
    showProgress(stored);
    offerUndo(stored.answer);
    if (kind === "described" && panel.waiting(text)) comprehension.sent(panel.waiting(text));
    lock(false);
    if (stands(stored.study)) return;
    await advance();
  } catch (error) {
    lock(false);
    before = null;
    failed(error, kind);
  } finally {
    clearTimeout(slow);
    $("send").textContent = "Send";
  }
}

// What stays of the box as a draft once an answer is stored: nothing of what was sent, everything that was changed since.
function keepRest(execution, sent) {
  const changed = !box.value.startsWith(before);
  drafts.stored(execution);
  if (changed) drafts.set(execution, box.value);
  else if (!sent && before.trim() !== "") drafts.set(execution, before);
}

function failed(error, kind) {
  if (error.code === "unconfirmed") {
    doubt(error.detail, kind);
  } else if (error.passing) {
    const what = kind === "described" ? "Your words are kept and are sent" : "Your choice is sent";
    problem(error.status === 0 ? "Not sent yet: no connection. It goes as soon as there is one." : `${error.detail} ${what} as soon as it is back; you need not do anything.`);
    $("go-on").hidden = !next;
  } else {
    problem(error.detail ?? "Something went wrong on this page. Your words are kept; reload the page and send them again.");
  }
}

// ---- Taking back ---------------------------------------------------------------------------------------------------

function offerUndo(answer, seconds = true) {
  clearTimeout(offering);
  offered = answer;
  $("undo-form").hidden = false;
  $("told").classList.add("offer");
  if (seconds) offering = setTimeout(endOffer, UNDO);
}

// An answer that the agent has learned from cannot be taken back any more, and the line of thanks is out of date. Its correction
// is under Back.
function learned(answer) {
  if (offered !== answer) return;
  endOffer();
  notice(`Thank you. The agent has learned your ${config.noun}. You can still correct it under Back.`, false);
}

function endOffer() {
  clearTimeout(offering);
  if (document.activeElement === $("undo")) box.focus({ preventScroll: true });
  offered = null;
  $("undo-form").hidden = true;
  $("told").classList.remove("offer");
}

async function undo() {
  if (sending || offered === null) return;
  const answer = offered;
  clearTimeout(offering);
  lock(true);
  box.focus({ preventScroll: true });
  try {
    await moving;
    const back = await ask(`${config.api}/answers/${answer}/undo`, { body: {} });
    lock(false);
    endOffer();
    comprehension.refresh();
    putBack(back);
  } catch (error) {
    lock(false);
    notice(error.passing ? `${error.detail} Nothing was taken back yet; press Undo again in a moment.` : error.detail ?? "Something went wrong on this page. Look under Back for your last answers.");
    if (error.passing) offerUndo(answer, false);
    else endOffer();
  }
}

// The execution whose answer was taken back comes onto the page again, and what was there comes after it.
function putBack(back) {
  if (current && current.execution !== back.execution) {
    if (next) navigator.sendBeacon(`${config.api}/executions/${next.execution}/release`);
    next = current;
  }
  const said = panel.said(back);
  if (said) drafts.set(back.execution, said);
  show(back.undone ? back : { ...back, corrects: back.answer }, { announce: "Again" });
  notice(back.notice);
}

$("undo-form").addEventListener("submit", (event) => {
  event.preventDefault();
  undo();
});

// A press acts on the execution at which it began: the second half of a double click, or a button of the mouse that is let
// go after the next one has come, answers nothing. Clicks that no mouse made (a key, a screen reader) have no detail.
let aimed;
document.addEventListener("mousedown", (event) => { if (event.detail <= 1) aimed = current?.execution ?? null; }, true);
$("stage").addEventListener("click", (event) => {
  if (event.detail === 0 || !event.isTrusted || !event.target.closest("button") || aimed === (current?.execution ?? null)) return;
  event.preventDefault();
  event.stopPropagation();
}, true);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter === $("fulfilled")) return fulfilled.confirm();
  if (event.submitter === $("look")) {
    if (!sending) fulfilled.ask().catch((error) => problem(`${error.detail ?? error.message} Nothing has been sent.`));
    return;
  }
  const kind = panel.pressed(event.submitter);
  send(kind, kind === "described" ? box.value : "", { confirmed: event.submitter === $("confirm") });
});

skipForm.addEventListener("submit", (event) => {
  event.preventDefault();
  skip.open = false;
  send("skipped", $("reason").value.trim() || event.submitter?.value || "");
});

box.addEventListener("keydown", (event) => {
  // Enter that ends a composition belongs to the input method; some browsers report it as key code 229 only.
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    if (!event.repeat) send("described", box.value);
  }
});

box.addEventListener("input", () => {
  if (current) drafts.set(current.execution, box.value);
  grow();
  count();
  preview.typed(box.value);
  if (!sending && current && queue.of(current.execution)) {
    queue.remove(current.execution);
    problem("There is no connection to the server at the moment. Your words are kept on this page; press Send when you are done.");
  } else if (!sending) {
    problem(null);
  }
});

// ---- Leases, connection, other tabs --------------------------------------------------------------------------------

async function renew(shown) {
  try {
    await ask(`${config.api}/executions/${shown.execution}/renew`, { body: {} });
    return true;
  } catch (error) {
    return error.code !== "lease-lost" && error.code !== "not-found";
  }
}

async function keep() {
  if (document.hidden || sending) return;
  if (next && !(await renew(next))) {
    next = null;
    prefetch();
  }
  const shown = current;
  // What is being corrected needs no lease.
  if (!shown || shown.corrects || lost || (await renew(shown)) || shown !== current || sending) return;
  if (box.value.trim() === "") {
    notice("While you were away, that one went to somebody else. Here is another one.");
    await advance();
  } else {
    lost = true;
    notice("While you were away, this one was given to somebody else. You can still send your words; they will be stored.");
  }
}

setInterval(() => { if (activity.idle < Math.max(LEASE / 2, 60_000)) keep(); }, LEASE / 3);
activity.onReturn((gap) => { if (gap > LEASE * 0.8) keep(); });

addEventListener("online", () => poll(true));
document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(true); });

for (const link of document.querySelectorAll("[data-stay]")) {
  link.addEventListener("click", () => { staying = true; });
}
addEventListener("pagehide", () => {
  if (staying) return;
  const back = [next, box.value.trim() === "" && !sending ? current : null].filter(Boolean);
  for (const shown of back) navigator.sendBeacon(`${config.api}/executions/${shown.execution}/release`);
});
addEventListener("pageshow", (event) => {
  staying = false;
  if (!event.persisted) return;
  next = null;
  keep().then(prefetch);
});

tabs?.addEventListener("message", ({ data }) => {
  if (next?.execution === data.answered) {
    next = null;
    prefetch();
  }
  if (current?.execution !== data.answered || sending) return;
  if (box.value.trim() === "") advance();
  else notice("You answered this one in another tab. If you send this too, it takes the place of that answer.");
});

// ---- Small things --------------------------------------------------------------------------------------------------

// The answer on the page waits for the connection; the next execution is there already.
$("go-on-next").addEventListener("click", () => {
  if (sending || !next) return;
  before = box.value;
  advance();
});

$("unsent-take").addEventListener("click", () => {
  const text = $("unsent-text").textContent;
  drafts.drop($("unsent").dataset.execution);
  fill(box.value.trim() === "" ? text : `${box.value}\n${text}`);
  if (current) drafts.set(current.execution, box.value);
  unsent();
  box.focus();
});
$("unsent-drop").addEventListener("click", () => {
  drafts.drop($("unsent").dataset.execution);
  unsent();
  box.focus();
});

if (/Mac|iPhone|iPad/.test(navigator.platform)) $("modifier").textContent = "⌘";
// The keys work only with this script, so the hint is not there without it.
$("hint").hidden = $("send").hidden;

// ---- Begin ---------------------------------------------------------------------------------------------------------

history.replaceState(null, "", location.pathname);
watchScreen();
setUpSkipMenu();
if (!$("undo-form").hidden) offerUndo(Number($("undo-form").getAttribute("action").match(/(\d+)\/undo$/)[1]));
if (current) {
  const rendered = box.value;
  const fulfilling = $("fulfilling").hidden ? null : $("fulfilling-words").textContent;
  const [told, doubtful] = [$("problem").textContent, !$("doubt").hidden];
  // As the server drew it, before the family's script makes a walk of it: it may have to be put back.
  const drawn = { html: $("execution").innerHTML, request: $("asked").hidden ? null : $("asked-words").textContent };
  show(current, { announce: null });
  Object.assign(current, drawn);
  if (told) problem(told);
  $("doubt").hidden = !doubtful;
  if (fulfilling) $("fulfilling").hidden = false;
  // Typed before this script was there, or handed back by the server.
  if (rendered.trim() !== "") {
    fill(rendered);
    drafts.set(current.execution, rendered);
  }
  prefetch();
} else if ($("stage").hidden) {
  rest({ ended });
  poll();
}
drafts.fetch().then(unsent, () => { /* They come with the next visit. */ });
if (queue.length > 0) tryAgain();
$("teach").dataset.ready = "";
