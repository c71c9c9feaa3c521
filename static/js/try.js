// The box in which the agent is tried (templates/try_box.html): what it would do now, from the start that the form describes.

import { count, el, quoted } from "./format.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);

// Fields that share a name make a list, others a text: the family's own form decides.
function fields(form) {
  const start = {};
  const data = new FormData(form);
  for (const name of new Set(data.keys())) {
    if (name === "request") continue;
    const values = data.getAll(name);
    start[name] = form.elements[name] instanceof RadioNodeList ? values : values[0];
  }
  return start;
}

const tell = (text) => { $("try-problem").textContent = text; $("try-problem").hidden = !text; };

// The words of a request that the agent has never met, pointed out.
function neverMet(words) {
  if (words.length === 0) return null;
  const list = words.flatMap((word, i) => [i === 0 ? "" : words.length === i + 1 ? " and " : ", ", quoted("q", {}, word)]);
  return el("p", { class: "never-met" }, ...list, words.length === 1 ? " is a word that it has never met." : " are words that it has never met.");
}

// What few people ask for: the steps one by one, and for researchers the agent's output in its own notation.
function fold({ steps, summary }) {
  const notation = summary === "" ? null : quoted("code", {}, summary);
  if (steps.length === 0 && !notation) return null;
  const list = steps.length === 0 ? null : el("ol", { class: "steps", translate: "no" }, ...steps.map((step) => el("li", {}, step)));
  return el("details", { class: "small" }, el("summary", {}, steps.length === 0 ? "In the agent’s own notation" : "Step by step"), list, notation);
}

// Puts a request and a start into the box. What the start leaves open is left open.
export function fillTry(request, start) {
  const form = $("try");
  form.reset();
  $("tried").replaceChildren();
  tell("");
  $("request").value = request;
  if (!start) return;
  for (const control of $("try-start").querySelectorAll("input, select, textarea")) control.value = "";
  for (const [name, value] of Object.entries(start)) {
    const found = form.elements[name];
    if (!found) continue;
    const controls = found instanceof RadioNodeList ? [...found] : [found];
    const values = Array.isArray(value) ? value : [value];
    controls.forEach((control, i) => { control.value = values[i] ?? ""; });
  }
}

// `chosen` gives the checkpoint that is tried; null for the agent as it is now.
export function setUpTry(api, chosen = () => null) {
  const asked = () => { const checkpoint = chosen(); return checkpoint ? { checkpoint } : {}; };
  $("try").addEventListener("submit", async (event) => {
    event.preventDefault();
    const go = $("try-go");
    if (go.getAttribute("aria-disabled") === "true") return;
    go.setAttribute("aria-disabled", "true");
    tell("");
    const slow = setTimeout(() => $("tried").replaceChildren(el("p", { class: "small muted" }, chosen() ? "The agent is loaded as it was at this checkpoint; the first try takes longest…" : "It finishes the update it is at, then it tries…")), 400);
    try {
      const tried = await ask(`${api}/try`, { body: { request: $("request").value, start: fields($("try")), ...asked() } });
      const drawing = el("div", { class: "drawing", translate: "no" });
      drawing.innerHTML = tried.html;
      const updates = `after ${count(tried.update)} update${tried.update === 1 ? "" : "s"}`;
      const line = tried.valid ? `This is what it does ${updates}.` : `What it wants to do ${updates} cannot be carried out.`;
      const sentence = tried.valid && tried.sentence ? quoted("p", { class: "would" }, tried.sentence) : null;
      $("tried").replaceChildren(...[sentence, neverMet(tried.unknown), drawing, el("p", { class: "small muted" }, line), fold(tried)].filter(Boolean));
    } catch (error) {
      $("tried").replaceChildren();
      tell(error.detail ?? "Something went wrong on this page; reload it and try again.");
    } finally {
      clearTimeout(slow);
      go.removeAttribute("aria-disabled");
    }
  });
}
