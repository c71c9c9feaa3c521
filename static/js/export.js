// The export page: says how many rows the chosen filters leave while they are chosen.

import { count } from "./format.js";
import { ask } from "./net.js";

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
