// A panel is the part of the teacher's page that one medium has: sentences, demonstrations or ratings. The box holds what is to be sent in each of
// them, so that drafts, undo and sending again treat all alike: a demonstration as the JSON of its fields, a rating as its number.

const $ = (id) => document.getElementById(id);

// The panel of the run's medium. `send` sends the kind "described" with the box's text.
export function panelOf({ panel }, box, send) {
  if (panel.medium === "demonstration") return new Demonstrations(box, send);
  if (panel.medium === "rating") return new Ratings(panel, box, send);
  return new Sentences();
}

// Sentences: the box is all there is.
class Sentences {
  writes = true;

  // The kind of answer that a pressed button stands for.
  pressed(submitter) { return submitter?.value || "described"; }

  // Why this cannot be sent yet; null when it can.
  missing(text, nothing) {
    return text.trim() === "" ? `Write a sentence first. If there is nothing to say, choose “${nothing}” or “I can’t describe this”.` : null;
  }

  // Further members of an answer.
  answer() { return {}; }

  // Returns the text of the box after an answer was taken back.
  said(back) { return back.kind === "described" ? back.said : null; }

  // An execution came onto the page, and the box holds its draft.
  show() {}

  // The sentence that waits to be learned, where one is shown.
  waiting(text) { return text; }
}

class Demonstrations {
  writes = false;

  constructor(box, send) {
    this.box = box;
    box.focus = (options) => this.#first()?.focus(options);
    $("execution").addEventListener("input", (event) => { if (this.#fields().includes(event.target)) this.#keep(); });
    $("execution").addEventListener("keydown", (event) => this.#key(event, send));
  }

  #fields() { return [...$("execution").querySelectorAll("[name^='show-']")]; }

  #first() { return $("execution").querySelector("[data-first], [name^='show-']:not([type='hidden'])"); }

  // Writes the fields into the box where they differ from their first values.
  #keep() {
    const fields = this.#fields();
    for (const field of fields) field.classList.toggle("changed", field.value !== (field.dataset.word ?? ""));
    const changed = fields.some((field) => field.value !== (field.dataset.word ?? ""));
    this.box.value = changed ? JSON.stringify(Object.fromEntries(fields.map((field) => [field.name.slice(5), field.value]))) : "";
    this.box.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // Enter goes to the next field, and sends from the last one.
  #key(event, send) {
    if (event.key !== "Enter" || event.isComposing || event.keyCode === 229 || event.target.tagName !== "INPUT") return;
    event.preventDefault();
    if (event.repeat) return;
    // A field in a closed fold cannot be the next one.
    const fields = this.#fields().filter((field) => field.checkVisibility());
    const next = fields[fields.indexOf(event.target) + 1];
    if (event.ctrlKey || event.metaKey || !next) send();
    else next.select();
  }

  pressed(submitter) { return submitter?.value || "described"; }

  missing(text) { return text === "" ? "Show first how it is done. If you can’t, choose “I can’t show this”." : null; }

  answer(kind, text) {
    const given = kind === "described" ? text : this.box.value;
    return { show: given === "" ? {} : JSON.parse(given) };
  }

  said(back) { return back.response?.demonstration ? "" : null; }

  // The server has drawn the fields with what was given before. A draft is newer.
  async show() {
    let draft = null;
    try { draft = JSON.parse(this.box.value || "null"); } catch { /* no draft of this page */ }
    for (const field of this.#fields()) {
      const value = draft?.[field.name.slice(5)];
      if (typeof value === "string") field.value = value;
    }
    const language = $("execution").querySelector("details");
    if (language && draft?.expression) language.open = true;
    const way = $("execution").querySelector("[data-demonstration='way']");
    if (way) (await import("./way.js")).begin(way);
    this.#keep();
  }

  waiting() {
    const words = this.#fields().filter((field) => field.dataset.word !== undefined);
    return words.map((field) => `${field.dataset.word} → ${field.value || "(nothing)"}`).join(", ") || "The way that you showed";
  }
}

class Ratings {
  writes = false;

  constructor({ stars }, box, send) {
    this.box = box;
    box.focus = (options) => $("rate").querySelector("button")?.focus(options);
    $("rate-keys").hidden = false;
    const buttons = [...$("rate").querySelectorAll("button")];
    const byKey = stars
      ? Object.fromEntries(buttons.map((button, i) => [String(i + 1), button]))
      : { y: buttons[0], n: buttons[1], 1: buttons[0], 0: buttons[1] };
    document.addEventListener("keydown", (event) => {
      const free = !event.ctrlKey && !event.metaKey && !event.altKey && !event.repeat && !event.isComposing;
      const button = free ? byKey[event.key.toLowerCase()] : undefined;
      if (!button || event.target.closest("input, textarea, select, dialog, details[open]") || $("stage").hidden) return;
      event.preventDefault();
      box.value = button.value;
      send();
    });
  }

  pressed(submitter) {
    if (submitter?.name !== "rating") return submitter?.value || "described";
    this.box.value = submitter.value;
    return "described";
  }

  missing(text) { return text === "" ? "Choose a rating first." : null; }

  answer(kind, text) { return kind === "described" ? { rating: Number(text) } : {}; }

  said() { return ""; }

  // A rating is sent by the press that gives it: nothing of it waits in the box.
  show() { this.box.value = ""; }

  waiting() { return null; }
}
