// The teacher's page: one execution, one sentence, next. Without this script the page works as a plain form; with it the
// next execution is there already, and text survives whatever happens to the connection.

import { Activity } from "./activity.js";
import { Comprehension } from "./comprehension.js";
import { Drafts } from "./drafts.js";
import { ask, newKey, whole } from "./net.js";
import { watchScreen } from "./screen.js";
import { stands } from "./study.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("teach").dataset.config);
const [box, form, skip, skipForm] = [$("text"), $("describe"), $("skip"), $("skip-form")];
const drafts = new Drafts(config.run);
const activity = new Activity();
const comprehension = new Comprehension(config, () => box.focus({ preventScroll: true }), learned);
const tabs = "BroadcastChannel" in window ? new BroadcastChannel(`iliad.${config.run}`) : null;
const LEASE = config.lease_seconds * 1000;
const UNDO = 10_000;          // how long the last answer can be taken back with one press

let current = config.shown;   // the execution on the page
let next = null;              // the one after it, fetched ahead
let fetching = null;          // a fetch under way
let attempt = null;           // { execution, kind, text, key } of the last send
let sending = false;
let before = null;            // what the box held when the last answer was sent: what came after is for the next execution
let moving = null;            // the way to the next execution, while it is under way
let offered = null;           // the answer that Undo takes back
let offering = null;          // timer of the offer
let retry = null;             // timer of the next automatic try
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
  box.toggleAttribute("aria-invalid", Boolean(text));
}

// Asks whether nothing changed, where the server knows that something did.
function doubt(question) {
  problem(question);
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
    $("asked").hidden = !shown.request;
    $("asked-words").textContent = shown.request ?? "";
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
  fill(drafts.get(shown.execution) + ahead);
  if (ahead) drafts.set(shown.execution, box.value);
  problem(null);
  skip.open = false;
  $("reason").value = "";
  activity.reset();
  if (announce) {
    const did = Object.assign(document.createElement("span"), { translate: false, textContent: shown.text });
    $("state").replaceChildren(`${announce}. The agent did this: `, did);
  }
  box.focus({ preventScroll: true });
  if (announce) scrollTo({ top: 0, behavior: "instant" });
  unsent();
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
  const [draft] = drafts.others(current?.execution);
  $("unsent").hidden = !draft;
  if (!draft) return;
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
    if (offer.execution) {
      pause = 1500;
      show(offer);
      prefetch();
    } else {
      rest(offer);
    }
  } catch (error) {
    rest({ message: `${error.detail ?? error.message} This page tries again by itself; what you sent is stored.` });
  }
  poll();
}

// ---- Sending -------------------------------------------------------------------------------------------------------

function lock(on) {
  sending = on;
  box.classList.toggle("sending", on);
  for (const button of document.querySelectorAll("#stage button")) button.setAttribute("aria-disabled", String(on));
}

function stopRetry() {
  clearTimeout(retry?.timer);
  retry = null;
}

function retryLater(kind, text, { times = 0, confirmed = false }) {
  const wait = Math.min(2000 * 1.7 ** times, 20_000);
  retry = { kind, text, times, confirmed, timer: setTimeout(() => tryAgain(), wait) };
}

function tryAgain() {
  if (!retry) return;
  const { kind, text, times, confirmed } = retry;
  stopRetry();
  send(kind, text, { times: times + 1, confirmed });
}

async function post(kind, text, confirmed) {
  const same = attempt && attempt.execution === current.execution && attempt.kind === kind && attempt.text === text;
  if (!same) {
    // Other words need another key: an earlier try may have arrived after all, and these words then replace it.
    const key = attempt ? newKey() : current.client_key;
    attempt = { execution: current.execution, kind, text, key, active_ms: activity.milliseconds };
  }
  const body = { client_key: attempt.key, execution: attempt.execution, kind, text: whole(text), shown_at: current.shown_at, active_ms: attempt.active_ms, confirmed };
  const answers = `${config.api}/answers`;
  try {
    return await ask(current.corrects ? `${answers}/${current.corrects}/correct` : answers, { body });
  } catch (error) {
    if (error.code !== "key-reused") throw error;
    attempt.key = newKey();
    return ask(answers, { body: { ...body, client_key: attempt.key } });
  }
}

async function send(kind, text, { times = 0, confirmed = false } = {}) {
  if (sending || !current) return;
  box.focus({ preventScroll: true });
  if (kind === "described" && text.trim() === "") {
    problem(`Write a sentence first. If there is nothing to say, choose “${config.nothing}” or “I can’t describe this”.`);
    return;
  }
  if (Array.from(text).length > config.limit) {
    problem(`This is longer than ${config.limit.toLocaleString("en")} characters. Shorten it and send it again.`);
    return;
  }
  if (kind === "nothing_changed" && !confirmed && current.doubt) {
    doubt(current.doubt);
    return;
  }
  stopRetry();
  lock(true);
  const slow = setTimeout(() => { $("send").textContent = "Sending…"; }, 300);
  const execution = current.execution;
  before = box.value;
  try {
    const stored = await post(kind, text, confirmed);
    problem(null);
    keepRest(execution, kind);
    tabs?.postMessage({ answered: execution });
    notice(stored.thanks);
    offerUndo(stored.answer);
    if (kind === "described") comprehension.sent(text);
    lock(false);
    if (stands(stored.study)) return;
    await advance();
  } catch (error) {
    lock(false);
    before = null;
    failed(error, kind, text, { times, confirmed });
  } finally {
    clearTimeout(slow);
    $("send").textContent = "Send";
  }
}

// What stays of the box as a draft once an answer is stored: nothing of what was sent, everything that was changed since.
function keepRest(execution, kind) {
  const changed = !box.value.startsWith(before);
  if (changed) drafts.set(execution, box.value);
  else drafts.set(execution, kind === "described" ? "" : before);
}

function failed(error, kind, text, options) {
  if (error.code === "unconfirmed") {
    doubt(error.detail);
  } else if (error.passing) {
    const what = kind === "described" ? "Your words are kept on this page and are sent" : "Your choice is sent";
    problem(`${error.detail} ${what} as soon as it is back; you need not do anything.`);
    retryLater(kind, text, options);
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
  notice("Thank you. The agent has learned your sentence. You can still correct it under Back.", false);
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
  stopRetry();
  if (current && current.execution !== back.execution) {
    if (next) navigator.sendBeacon(`${config.api}/executions/${next.execution}/release`);
    next = current;
  }
  if (back.kind === "described") drafts.set(back.execution, back.said);
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
  const kind = event.submitter?.value || "described";
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
  if (retry) {
    stopRetry();
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
    notice("That one went to somebody else while you were away. Here is another.");
    await advance();
  } else {
    lost = true;
    notice("While you were away this one was given to somebody else. You can still send your words; they will be stored.");
  }
}

setInterval(() => { if (activity.idle < Math.max(LEASE / 2, 60_000)) keep(); }, LEASE / 3);
activity.onReturn((gap) => { if (gap > LEASE * 0.8) keep(); });

addEventListener("online", () => { tryAgain(); poll(true); });
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

// Opened by a key, the menu takes the focus; opened by the mouse, the focus stays where it was: in the box.
let byKey = false;
skip.querySelector("summary").addEventListener("click", (event) => { byKey = event.detail === 0; });
skip.addEventListener("toggle", () => { if (skip.open) skipForm.scrollIntoView({ block: "nearest" }); if (skip.open && byKey) skip.querySelector(".menu-item").focus(); });
// A letter typed in the menu is the beginning of a reason in one's own words. Else its first blank would press the button
// that has the focus.
skipForm.addEventListener("keydown", (event) => {
  if (event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.length === 1 && event.key !== " " && event.target !== $("reason")) $("reason").focus();
});
skip.addEventListener("focusout", ({ relatedTarget }) => { if (document.hasFocus() && !skip.contains(relatedTarget)) skip.open = false; });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || !skip.open) return;
  skip.open = false;
  skip.querySelector("summary").focus();
});
// Enter would press the form's first button, which stands for another reason.
$("reason").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  if (!event.repeat) skipForm.requestSubmit(skipForm.querySelector(".own-reason button"));
});
document.addEventListener("pointerdown", (event) => { if (skip.open && !skip.contains(event.target)) skip.open = false; });

if (/Mac|iPhone|iPad/.test(navigator.platform)) $("modifier").textContent = "⌘";
// The keys work only with this script, so the hint is not there without it.
$("hint").hidden = false;

// ---- Begin ---------------------------------------------------------------------------------------------------------

history.replaceState(null, "", location.pathname);
watchScreen();
if (!$("undo-form").hidden) offerUndo(Number($("undo-form").getAttribute("action").match(/(\d+)\/undo$/)[1]));
if (current) {
  const rendered = box.value;
  const [told, doubtful] = [$("problem").textContent, !$("doubt").hidden];
  // As the server drew it, before the family's script makes a walk of it: it may have to be put back.
  const drawn = { html: $("execution").innerHTML, request: $("asked").hidden ? null : $("asked-words").textContent };
  show(current, { announce: null });
  Object.assign(current, drawn);
  if (told) problem(told);
  $("doubt").hidden = !doubtful;
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
$("teach").dataset.ready = "";
