// Corrections without leaving the page, so that a failure cannot take the words with it.

import { ask, newKey, Problem, whole } from "./net.js";

for (const form of document.querySelectorAll("form[data-correct]")) {
  const box = form.elements.text;
  const told = form.querySelector(".problem");
  // Under the name by which versions before /api/v1 have kept it.
  const kept = `iliad.correction.${form.dataset.correct.replace("/api/v1/", "/api/")}`;
  let sending = false;
  let asked = null;   // the text of which the server asked whether it is meant

  const tell = (text) => { told.textContent = text; told.hidden = !text; };
  const details = form.closest("details");
  // Box and button on the screen, and the focus in the box: not on what opened it.
  const begin = () => {
    form.scrollIntoView({ block: "nearest", behavior: "instant" });
    box.focus({ preventScroll: true });
    box.setSelectionRange(box.value.length, box.value.length);
  };
  let pressed = false;
  details.querySelector("summary").addEventListener("click", () => { pressed = true; });
  details.addEventListener("toggle", () => {
    if (pressed && details.open) begin();
    pressed = false;
  });
  // The answer that was corrected just now has its box open still: what is typed next goes there.
  if (document.querySelector(".answers").dataset.corrected === form.dataset.correct.match(/\/(\d+)\/correct$/)[1]) {
    details.open = true;
    begin();
  }
  const store = (change) => { try { change(localStorage); } catch { /* the box itself has it */ } };

  store((storage) => {
    const draft = storage.getItem(kept);
    if (draft === null || draft === box.value) return;
    box.value = draft;
    details.open = true;
  });

  box.addEventListener("input", () => { store((storage) => storage.setItem(kept, box.value)); tell(""); });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.repeat) return;
    if (event.ctrlKey || event.metaKey) { event.preventDefault(); form.requestSubmit(); }
  });

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (sending) return;
    box.focus({ preventScroll: true });
    if (box.value.trim() === "") { tell("Write a sentence first."); return; }
    sending = true;
    try {
      const body = { client_key: form.elements.client_key.value, execution: Number(form.elements.execution.value), kind: "described", text: whole(box.value), confirmed: asked === box.value };
      const stored = await ask(form.dataset.correct, { body }).catch((error) => {
        if (error.code !== "key-reused") throw error;
        // An earlier try arrived though its reply was lost, and the words were changed since: these replace those.
        const answers = form.dataset.correct.replace(/\/\d+\/correct$/, "");
        return ask(answers, { body: { ...body, client_key: newKey() } });
      });
      store((storage) => storage.removeItem(kept));
      location.assign(`${location.pathname}?corrected=${stored.answer}`);
    } catch (error) {
      if (error.code === "unconfirmed") {
        asked = box.value;
        form.querySelector("[type=submit]").textContent = "Yes, send it";
      }
      const again = error instanceof Problem && error.passing ? " Your words are kept here; send them again in a moment." : "";
      tell(`${error.detail ?? "Something went wrong on this page. Your words are kept; reload and send them again."}${again}`);
      sending = false;
    }
  });
}
