// Reviewing with the keyboard: j and k walk through the answers, a accepts, r rejects, c chooses. Forms are sent without leaving
// the page; without this script they work as they are.

const cards = [...document.querySelectorAll(".review-card")];
const status = document.getElementById("review-status");
const keys = document.getElementById("keys");
const keysButton = document.getElementById("keys-button");
const query = (card, selector) => card.querySelector(selector);

let at = Math.max(0, cards.findIndex((card) => `#${card.id}` === location.hash));

function show(index) {
  const card = cards[index];
  if (!card) return false;
  at = index;
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
  return true;
}

// Behind the last card comes the next page.
function next() {
  if (!show(at + 1)) document.querySelector(".pages [rel=next]")?.click();
}

function previous() {
  if (!show(at - 1)) document.querySelector(".pages [rel=prev]")?.click();
}

async function send(form) {
  const reply = await fetch(form.action, {
    method: "POST",
    headers: { accept: "application/json" },
    body: new URLSearchParams(new FormData(form)),
  });
  const body = await reply.json().catch(() => null);
  if (!reply.ok) throw new Error(body?.detail ?? "The server could not do that. Try again.");
  return body;
}

function say(card, text) {
  const problem = query(card, ".problem");
  problem.textContent = text;
  problem.hidden = text === "";
}

function words(tag, text, name = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (name) element.className = name;
  return element;
}

function showDecision(card, decided) {
  card.dataset.state = decided.state ?? "";
  const line = query(card, "[data-review]");
  line.replaceChildren();
  if (decided.state) {
    line.append(words("b", decided.state, decided.state), " by ", words("bdi", decided.reviewer));
    if (decided.reason) line.append(": ", words("span", decided.reason));
  }
  query(card, "[data-take-back]").hidden = !decided.state;
  query(card, ".reject").open = false;
  status.textContent = decided.state ? `${card.getAttribute("aria-label")}: ${decided.state}` : "Taken back";
}

// All answers about the execution show what was decided.
function showAdjudication(execution, decided) {
  for (const card of cards.filter((card) => card.dataset.execution === execution)) {
    const line = query(card, "[data-adjudicated]");
    if (!line) continue;
    line.hidden = decided === null;
    query(line, "q").textContent = decided?.text ?? "";
    query(line, "bdi").textContent = decided?.reviewer ?? "";
    query(card, "[data-undecide]").hidden = decided === null;
    query(card, ".own-words").open = false;
    for (const button of card.querySelectorAll("[data-choose]")) {
      button.setAttribute("aria-pressed", String(decided !== null && button.dataset.choose === String(decided.answer)));
    }
  }
  status.textContent = decided ? `Decided: ${decided.text}` : "Decided on nothing";
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("[data-decide], [data-adjudicate]");
  if (!form) return;
  event.preventDefault();
  const card = form.closest(".review-card");
  const index = cards.indexOf(card);
  if (card.dataset.busy) return;
  card.dataset.busy = "yes";
  try {
    const decided = await send(form);
    say(card, "");
    if (form.matches("[data-decide]")) {
      showDecision(card, decided);
      at = index;
      // Whoever decides goes on; who is at the last one stays, so that they see what they did.
      if (!decided.state || !show(index + 1)) show(index);
    } else {
      showAdjudication(card.dataset.execution, decided);
      show(index);
    }
  } catch (error) {
    say(card, error.message);
  } finally {
    delete card.dataset.busy;
  }
});

for (const [index, card] of cards.entries()) {
  card.addEventListener("focusin", () => { at = index; });
}

function open(card, selector, field) {
  const details = query(card, selector);
  if (!details) return;
  details.open = true;
  query(details, field).focus();
}

function showKeys(visible) {
  keys.hidden = !visible;
  keysButton.setAttribute("aria-expanded", String(visible));
}

keysButton.hidden = false;
keysButton.addEventListener("click", () => showKeys(keys.hidden));

const ACTIONS = {
  j: next,
  k: previous,
  a: (card) => query(card, "[data-accept]")?.click(),
  r: (card) => open(card, ".reject", "input[name=reason]"),
  u: (card) => { const form = query(card, "[data-take-back]"); if (form && !form.hidden) form.requestSubmit(); },
  c: (card) => query(card, "[data-own]")?.click(),
  w: (card) => open(card, ".own-words", "textarea"),
  "?": () => showKeys(keys.hidden),
};

document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input:not([type=checkbox]), textarea, select");
  if (event.isComposing) return;
  if (field) {
    const card = field.closest(".review-card");
    if (card && event.key === "Escape") {
      field.closest("details")?.removeAttribute("open");
      show(cards.indexOf(card));
    } else if (card && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      field.form.requestSubmit();
    }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const card = cards[at];
  if (/^[1-9]$/.test(event.key) && card) {
    card.querySelectorAll(".others [data-choose]")[Number(event.key) - 1]?.click();
    return;
  }
  const action = ACTIONS[event.key];
  if (!action || (!card && event.key !== "?")) return;
  event.preventDefault();
  // The first key only shows where one is.
  if ((event.key === "j" || event.key === "k") && !document.activeElement?.closest(".review-card")) show(at);
  else action(card);
});

if (location.hash !== "") show(at);
