// The teacher's page: one execution, one sentence, next. Without this script the page works as a plain form; with it the
// next execution is there already, and text survives whatever happens to the connection.

import { Activity } from "./activity.js";
import { Drafts } from "./drafts.js";
import { ask, newKey, whole } from "./net.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("teach").dataset.config);
const [box, form, skip, skipForm] = [$("text"), $("describe"), $("skip"), $("skip-form")];
const drafts = new Drafts(config.run);
const activity = new Activity();
const tabs = "BroadcastChannel" in window ? new BroadcastChannel(`iliad.${config.run}`) : null;
const LEASE = config.lease_seconds * 1000;

let current = config.shown;   // the execution on the page
let next = null;              // the one after it, fetched ahead
let fetching = null;          // a fetch under way
let attempt = null;           // { execution, kind, text, key } of the last send
let sending = false;
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
  box.toggleAttribute("aria-invalid", Boolean(text));
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

function show(shown, { focus = true, announce = true } = {}) {
  current = shown;
  lost = false;
  attempt = null;
  $("stage").hidden = false;
  $("idle").hidden = true;
  if (shown.html !== undefined) {
    $("asked").hidden = !shown.request;
    $("request").textContent = shown.request ?? "";
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
  fill(drafts.get(shown.execution));
  skip.open = false;
  $("reason").value = "";
  activity.reset();
  if (announce) $("state").textContent = `Next. The agent did this: ${shown.text}`;
  if (focus) box.focus({ preventScroll: true });
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
async function advance(options) {
  if (next) {
    const shown = next;
    next = null;
    show(shown, options);
    prefetch();
    return;
  }
  const before = current;
  current = null;
  try {
    let offer = await lease();
    // A fetch that was under way may bring the one that was just answered.
    if (before && offer.execution === before.execution) offer = await lease();
    // The page's own fetch ahead may have brought the same one.
    if (next?.execution === offer.execution) next = null;
    if (offer.execution) {
      pause = 1500;
      show(offer, options);
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
  box.readOnly = on;
  for (const button of document.querySelectorAll("#stage button")) button.setAttribute("aria-disabled", String(on));
}

function stopRetry() {
  clearTimeout(retry?.timer);
  retry = null;
}

function retryLater(kind, text, times) {
  const wait = Math.min(2000 * 1.7 ** times, 20_000);
  retry = { kind, text, times, timer: setTimeout(() => tryAgain(), wait) };
}

function tryAgain() {
  if (!retry) return;
  const { kind, text, times } = retry;
  stopRetry();
  send(kind, text, times + 1);
}

async function post(kind, text) {
  const same = attempt && attempt.execution === current.execution && attempt.kind === kind && attempt.text === text;
  if (!same) {
    // Other words need another key: an earlier try may have arrived after all, and these words then replace it.
    const key = attempt ? newKey() : current.client_key;
    attempt = { execution: current.execution, kind, text, key, active_ms: activity.milliseconds };
  }
  const body = { client_key: attempt.key, execution: attempt.execution, kind, text: whole(text), shown_at: current.shown_at, active_ms: attempt.active_ms };
  try {
    return await ask(`${config.api}/answers`, { body });
  } catch (error) {
    if (error.code !== "key-reused") throw error;
    attempt.key = newKey();
    return ask(`${config.api}/answers`, { body: { ...body, client_key: attempt.key } });
  }
}

async function send(kind, text, times = 0) {
  if (sending || !current) return;
  if (kind === "described" && text.trim() === "") {
    problem("Write a sentence first. If there is nothing to say, choose “Nothing changed” or “I can’t describe this”.");
    box.focus();
    return;
  }
  if (Array.from(text).length > config.limit) {
    problem(`This is longer than ${config.limit.toLocaleString("en")} characters. Shorten it and send it again; nothing is lost.`);
    box.focus();
    return;
  }
  stopRetry();
  lock(true);
  const slow = setTimeout(() => { $("send").textContent = "Sending…"; }, 300);
  const execution = current.execution;
  try {
    const stored = await post(kind, text);
    problem(null);
    if (kind === "described") drafts.drop(execution);
    tabs?.postMessage({ answered: execution });
    notice(stored.thanks);
    lock(false);
    await advance({ focus: kind === "described" || matchMedia("(pointer: fine)").matches });
  } catch (error) {
    lock(false);
    failed(error, kind, text, times);
  } finally {
    clearTimeout(slow);
    $("send").textContent = "Send";
  }
}

function failed(error, kind, text, times) {
  if (error.passing) {
    const what = kind === "described" ? "Your words are kept on this page and are sent" : "Your choice is sent";
    problem(`${error.detail} ${what} as soon as it is back; you need not do anything.`);
    retryLater(kind, text, times);
  } else {
    problem(error.detail ?? "Something went wrong on this page. Your words are kept; reload the page and send them again.");
  }
  if (kind === "described") box.focus({ preventScroll: true });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send(event.submitter?.value || "described", event.submitter?.value === "described" || !event.submitter ? box.value : "");
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
  if (!shown || lost || (await renew(shown)) || shown !== current || sending) return;
  if (box.value.trim() === "") {
    notice("That one went to somebody else while you were away. Here is another.");
    await advance();
  } else {
    lost = true;
    notice("While you were away this one was given to somebody else. You can still send your words; they are stored all the same.");
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
  if (box.value.trim() === "") advance({ focus: false });
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

skip.addEventListener("toggle", () => { if (skip.open && matchMedia("(pointer: fine)").matches) skip.querySelector(".menu-item").focus(); });
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

// ---- Begin ---------------------------------------------------------------------------------------------------------

history.replaceState(null, "", location.pathname);
if (current) {
  const rendered = box.value;
  show(current, { focus: true, announce: false });
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
