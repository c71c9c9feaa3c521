// The form of all settings: what differs from the preset is marked, what is wrong is said while it is typed, and settings are found by words.

import { count } from "./format.js";

const $ = (id) => document.getElementById(id);
const form = $("new-run-form");
const settings = [...form.querySelectorAll(".setting")];
// How long typing pauses before the settings are checked.
const PAUSE = 400;

const field = (row) => row.querySelector("[type=checkbox], select, input:not([type=hidden])");
const value = (row) => { const f = field(row); return f.type === "checkbox" ? String(f.checked) : f.value.trim(); };
const same = (one, other) => one === other || (one !== "" && other !== "" && Number(one) === Number(other));

function mark() {
  let different = 0;
  for (const row of settings) {
    const differs = !same(value(row), row.dataset.preset);
    row.classList.toggle("differs", differs);
    different += differs;
  }
  $("setting-count").textContent = different === 0 ? "Everything is as the preset has it." : `${count(different)} setting${different === 1 ? "" : "s"} differ${different === 1 ? "s" : ""} from the preset.`;
  $("share-field").hidden = form.elements.mode.value !== "mixed";
}

function find() {
  const words = $("setting-words").value.toLowerCase().split(/\s+/).filter(Boolean);
  const only = $("only-different").checked;
  for (const row of settings) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word)) || (only && !row.classList.contains("differs"));
  }
  for (const group of form.querySelectorAll(".setting-group")) {
    const some = [...group.querySelectorAll(".setting")].some((row) => !row.hidden);
    group.hidden = !some;
    if (some && (words.length > 0 || only)) group.open = true;
  }
}

// ---- Checking ----

let timer = 0;
let turn = 0;

async function check() {
  const mine = ++turn;
  let found;
  try {
    const reply = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { accept: "application/json" } });
    if (!reply.ok) return;
    found = (await reply.json()).problems;
  } catch {
    return; // Starting says what is the matter.
  }
  if (mine !== turn) return;
  const of = new Map();
  for (const { keys, sentence } of found) for (const key of keys) of.set(key, [...(of.get(key) ?? []), sentence.replaceAll("`", "")]);
  for (const row of settings) {
    const sentences = of.get(row.dataset.key) ?? [];
    row.classList.toggle("wrong", sentences.length > 0);
    const said = row.querySelector(".setting-problem");
    said.textContent = sentences.join(" ");
    said.hidden = sentences.length === 0;
    field(row).setAttribute("aria-invalid", sentences.length > 0);
    if (sentences.length > 0) row.closest("details").open = true;
  }
  const shown = new Set(settings.map((row) => row.dataset.key));
  const others = found.filter(({ keys }) => !keys.some((key) => shown.has(key))).map(({ sentence }) => sentence.replaceAll("`", ""));
  $("start-state").textContent = found.length === 0 ? "It can start." : others.length > 0 ? others.join(" ") : "Something has to be changed first; it is marked above.";
}

form.addEventListener("input", () => {
  mark();
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
});
let sent = false;
form.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener("pageshow", () => { sent = false; mark(); });

$("setting-search").hidden = false;
$("setting-words").addEventListener("input", find);
$("only-different").addEventListener("change", find);

// ---- Presets and files ----

$("preset")?.addEventListener("change", () => $("preset-form").requestSubmit());
if ($("preset-go")) $("preset-go").hidden = true;
const file = $("settings-file");
if (file) {
  $("file-line").hidden = false;
  file.addEventListener("change", async () => {
    if (file.files.length > 0) $("settings-text").value = await file.files[0].text();
  });
}

// ---- Corpora ----

for (const link of form.querySelectorAll("[data-corpus]")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    for (const [key, text] of [["task.path", link.dataset.corpus], ["task.world", "corpus"]]) {
      const typed = form.elements[`s.${key}`];
      if (typed) { typed.value = text; typed.dispatchEvent(new Event("input", { bubbles: true })); }
    }
  });
}
mark();
check();
