// The last episodes as rows that open. While one is open, new ones wait behind a button: nothing moves under a reader.

import { count, el } from "./format.js";

const KEEP = 40;
const SOURCE = { human: "a person", simulated: "the simulated teacher" };

function said({ description, source }) {
  if (description) return `${description} (${SOURCE[source]})`;
  if (source === "simulated") return "None: no candidate of the simulated teacher leads to what the agent did.";
  return source ? "None." : "The teacher was not asked: nothing to see, or not valid.";
}

function row(episode) {
  const described = episode.description || (episode.source ? "no description" : "not asked");
  const summary = el("summary", {},
    el("span", { class: "n" }, `#${count(episode.episode)}`),
    el("span", { class: "line" }, episode.request),
    el("span", { class: `line d ${episode.description ? episode.source : "muted"}` }, described),
    el("span", { class: `mark ${episode.success ? "success" : ""}`, title: episode.success ? "The agent did what was asked" : "The agent did something else" }, episode.success ? "✓ yes" : "no"),
  );
  const facts = el("dl", {},
    el("dt", {}, "Request"), el("dd", {}, episode.request),
    el("dt", {}, "What the agent wrote"), el("dd", {}, el("code", {}, episode.summary)),
    el("dt", {}, "Description"), el("dd", {}, said(episode)),
    el("dt", {}, "Used"), el("dd", {}, episode.update == null ? "in no update" : `in update ${count(episode.update)}`),
  );
  if (episode.candidates.length > 0) {
    const list = el("ul", { class: "candidates" }, ...episode.candidates.map(([text, ok]) =>
      el("li", { class: ok ? "ok" : null }, text, el("span", { class: "visually-hidden" }, ok ? " (qualified)" : " (did not qualify)"))));
    facts.append(el("dt", {}, "Candidates of the simulated teacher"), el("dd", {}, list));
  }
  const drawing = el("div", { class: "drawing" });
  drawing.innerHTML = episode.html;
  const item = el("li", { "data-episode": episode.episode }, el("details", {}, summary, el("div", { class: "body" }, drawing, facts)));
  return item;
}

export class Episodes {
  #waiting = [];

  constructor(list, empty, button) {
    Object.assign(this, { list, empty, button });
    button.addEventListener("click", () => this.#letIn());
    list.addEventListener("toggle", () => { if (!this.#reading()) this.#letIn(); }, true);
  }

  // A whole list, newest first. Rows that are there already stay as they are, open ones too.
  fill(episodes) {
    this.#waiting = [];
    for (const episode of [...episodes].reverse()) this.#insert(episode, false);
    this.#tell();
  }

  add(episode) {
    if (this.#reading()) {
      this.#waiting.push(episode);
      if (this.#waiting.length > KEEP) this.#waiting.shift();
    } else {
      this.#insert(episode, true);
    }
    this.#tell();
  }

  #reading() {
    return this.list.querySelector("details[open]") !== null;
  }

  #insert(episode, fresh) {
    const item = row(episode);
    const there = this.list.querySelector(`[data-episode="${episode.episode}"]`);
    if (there) {
      if (!there.querySelector("details[open]")) there.replaceWith(item);
      return;
    }
    const older = [...this.list.children].find((other) => Number(other.dataset.episode) < episode.episode);
    if (fresh) item.classList.add("arrived");
    this.list.insertBefore(item, older ?? null);
    while (this.list.children.length > KEEP) this.list.lastElementChild.remove();
  }

  #letIn() {
    this.list.querySelectorAll("details[open]").forEach((details) => { details.open = false; });
    this.#waiting.splice(0).forEach((episode) => this.#insert(episode, true));
    this.#tell();
  }

  #tell() {
    this.empty.hidden = this.list.children.length > 0;
    this.button.hidden = this.#waiting.length === 0;
    this.button.textContent = `Show ${this.#waiting.length} newer`;
  }
}
