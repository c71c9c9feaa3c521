// The export page: says how many rows the chosen filters leave while they are chosen.

import { remaining } from "./estimate.js";
import { count, el } from "./format.js";
import { ask, newKey } from "./net.js";

const form = document.getElementById("choose");
const output = document.getElementById("count");
const problem = document.getElementById("choose-problem");
const FILTERS = ["run", "study", "source", "kind", "valid", "review", "from", "to", "standing"];
const PAUSE = 150;

let timer = 0;
let asked = 0;

function query() {
  const chosen = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (FILTERS.includes(name) && value) chosen.set(name, value);
  }
  return chosen;
}

async function recount() {
  const turn = ++asked;
  const chosen = query();
  try {
    const { descriptions } = await ask(`${form.dataset.count}?${chosen}`);
    if (turn !== asked) return;
    output.value = `${count(descriptions)} ${descriptions === 1 ? "row" : "rows"}`;
    problem.hidden = true;
    // The address leads back to what was chosen.
    history.replaceState(null, "", chosen.size > 0 ? `?${chosen}` : location.pathname);
  } catch (error) {
    if (turn !== asked) return;
    output.value = "–";
    problem.textContent = error.message;
    problem.hidden = false;
  }
  output.classList.remove("waiting");
}

form.addEventListener("input", (event) => {
  if (!FILTERS.includes(event.target.name)) return;
  output.classList.add("waiting");
  clearTimeout(timer);
  timer = setTimeout(recount, PAUSE);
});

// Enter in a field would press the first button of the form: it asks for the count, and downloads nothing.
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.matches("button, summary, a")) return;
  event.preventDefault();
  if (!event.isComposing) recount();
});

// ---- How far downloads have come ----
//
// A browser shows how much of a stream has come, and not how much is to come. Each download gets a ticket, by which the page asks.

const downloads = document.getElementById("downloads");
const BEAT = 500;
// A download that the server has not begun after so many questions was refused, or given up by the person.
const UNKNOWN = 20;

async function follow(ticket, name) {
  // Each step is not read out; the end is.
  const item = el("li", { "aria-live": "off" }, `${name}: beginning…`);
  downloads.prepend(item);
  while (downloads.children.length > 6) downloads.lastElementChild.remove();
  for (let missing = 0; missing < UNKNOWN;) {
    await new Promise((done) => setTimeout(done, BEAT));
    let at;
    try {
      at = await ask(`${form.dataset.progress}?ticket=${ticket}`);
    } catch {
      missing += 1;
      continue;
    }
    missing = 0;
    if (at.stage !== "going") item.removeAttribute("aria-live");
    if (at.stage === "whole") {
      item.replaceChildren(`${name}: ${count(at.all)} ${at.all === 1 ? "row" : "rows"}, handed over`);
      return;
    }
    if (at.stage === "broken") {
      item.replaceChildren(`${name}: it broke off after ${count(at.done)} of ${count(at.all)} rows. What was saved of it is not whole; download it again.`);
      return;
    }
    const bar = el("progress", { max: at.all || null, value: at.all ? at.done : null, "aria-label": name });
    item.replaceChildren(`${name}: ${count(at.done)} of ${count(at.all)} rows${remaining(at.seconds_left)}`, bar);
  }
  item.remove();
}

// The address is changed when it is used: the link itself stays as it is, and can be copied.
document.getElementById("parts").addEventListener("click", (event) => {
  const link = event.target.closest("a[download]");
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const ticket = newKey();
  el("a", { href: `${link.href}&ticket=${ticket}`, download: true }).click();
  follow(ticket, link.textContent);
});

form.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.hasAttribute("formaction")) return;
  const ticket = newKey();
  form.elements.ticket.value = ticket;
  follow(ticket, button.textContent);
  setTimeout(() => { form.elements.ticket.value = ""; });
});
