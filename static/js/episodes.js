// The last episodes as rows that open. While one is open, new ones wait behind a button: nothing moves under a reader.

import { count, el, quoted } from "./format.js";

const KEEP = 40;
const SOURCE = { human: "a person", simulated: "the simulated teacher" };

// What was said of an episode, and if nothing was, why: as far as the episode and the run's settings tell.
// `run`: { algorithm, feedback, asks, shuffled }.
export function said({ description, source, candidates }, run) {
  if (run.feedback !== "descriptions" && source === "human") return description ? `${description} (${SOURCE.human})` : "None: the person could not say.";
  if (run.feedback !== "descriptions") return `Not needed: ${run.algorithm} learns from ${run.feedback}.`;
  const dealt = "for an experiment, descriptions are dealt out to the wrong executions (algorithm.shuffle_descriptions)";
  if (description && source === "simulated" && run.shuffled) return `${description} (of another execution: ${dealt})`;
  if (description && source === "simulated" && candidates.length === 0) {
    return `${description} (a request of the task: the execution is as good as the gold one, so ${SOURCE.simulated} looked for no other words)`;
  }
  if (description) return `${description} (${SOURCE[source]})`;
  if (source === "human") return "None: the person said that nothing changed, or that it cannot be described.";
  if (source !== "simulated") {
    return `The teacher was not asked: there was nothing to see, the execution was not valid${run.asks > 1 ? ", or others of its batch promised to teach more" : ""}.`;
  }
  if (run.shuffled) return `None: ${dealt}, and this one got none.`;
  const fit = new Set(candidates.filter(([, ok]) => ok).map(([text]) => text)).size;
  if (fit > 0) {
    return `None: ${SOURCE.simulated} draws among ${fit === 1 ? "the one candidate that leads" : `the ${fit} candidates that lead`} to what the agent did and saying nothing, and drew saying nothing.`;
  }
  if (candidates.length > 0) return `None: no candidate of ${SOURCE.simulated} leads to what the agent did.`;
  return `None: ${SOURCE.simulated} found no whole sentence for it.`;
}

// In which update an episode was used, if in any.
export function used({ description, source, update }) {
  if (update == null) return "in no update";
  return source === "human" && !description ? `in update ${count(update)}, which had nothing to learn from it` : `in update ${count(update)}`;
}

// The same in two words, for the row that is closed.
function short(episode, run) {
  if (run.feedback !== "descriptions" && episode.source !== "human") return "not needed";
  return episode.description || (episode.source ? "no description" : "not asked");
}

// The sentence of `said`, with the description in it as it was typed.
function words(episode, run) {
  const { description } = episode;
  const sentence = said(episode, run);
  return description && sentence.startsWith(description) ? [quoted("span", {}, description), sentence.slice(description.length)] : [sentence];
}

// The way from an answer that was learned from to what it changed.
function changed({ description, episode, update }, learned) {
  if (!description || update == null || !learned) return [];
  return [" · ", el("a", { href: `${learned}?from=${update}&to=${update}#episode-${episode}` }, "What it changed")];
}

function row(episode, run, learned) {
  const described = short(episode, run);
  // One row is reached by Tab, the others from it by arrow keys.
  const summary = el("summary", { tabindex: -1 },
    el("span", { class: "n" }, `#${count(episode.episode)}`),
    quoted("span", { class: "line" }, episode.request),
    (described === episode.description ? quoted : el)("span", { class: `line d ${episode.description ? episode.source : "muted"}` }, described),
    el("span", { class: `mark ${episode.success ? "success" : ""}`, title: episode.success ? "The execution does what was asked, as the gold one does" : "The execution does not do what was asked" }, episode.success ? "✓ yes" : "no"),
  );
  const facts = el("dl", {},
    el("dt", {}, "Request"), quoted("dd", {}, episode.request),
    el("dt", {}, "The execution in a line"), el("dd", {}, quoted("code", {}, episode.summary)),
    el("dt", {}, "Description"), el("dd", {}, ...words(episode, run)),
    el("dt", {}, "Used"), el("dd", {}, used(episode), ...changed(episode, learned)),
  );
  if (episode.candidates.length > 0) {
    const list = el("ul", { class: "candidates" }, ...episode.candidates.map(([text, ok]) =>
      el("li", { class: ok ? "ok" : null }, quoted("span", {}, text), el("span", { class: "visually-hidden" }, ok ? " (qualified)" : " (did not qualify)"))));
    const whose = run.shuffled ? "Candidates for the execution that the description is of" : "Candidates of the simulated teacher";
    facts.append(el("dt", {}, whose), el("dd", {}, list));
  }
  const drawing = el("div", { class: "drawing", translate: "no" });
  drawing.innerHTML = episode.html;
  const item = el("li", { "data-episode": episode.episode }, el("details", {}, summary, el("div", { class: "body" }, drawing, facts)));
  return item;
}

export class Episodes {
  #waiting = [];
  #shown = new WeakMap();

  constructor(list, empty, button, run, learned) {
    Object.assign(this, { list, empty, button, run, learned });
    button.addEventListener("click", () => this.#letIn());
    list.addEventListener("toggle", () => { if (!this.#reading()) this.#letIn(); }, true);
    list.addEventListener("focusin", ({ target }) => { if (this.#rows().includes(target)) this.#stop(target); });
    list.addEventListener("keydown", (event) => {
      const rows = this.#rows();
      const at = rows.indexOf(event.target);
      if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
      const to = rows[{ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key]];
      if (!to) return;
      event.preventDefault();
      to.focus();
    });
  }

  // Where Tab goes: the row that had the focus last, or the newest.
  focus() {
    this.#rows().find((row) => row.tabIndex === 0)?.focus();
  }

  #rows() {
    return [...this.list.querySelectorAll(":scope > li > details > summary")];
  }

  #stop(row) {
    for (const other of this.#rows()) other.tabIndex = other === row ? 0 : -1;
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
    const there = this.list.querySelector(`[data-episode="${episode.episode}"]`);
    const written = JSON.stringify(episode);
    // A row that somebody reads, or stands at with the keyboard, stays.
    if (there && (this.#shown.get(there) === written || there.querySelector("details[open]") || there.contains(document.activeElement))) return;
    const item = row(episode, this.run, this.learned);
    this.#shown.set(item, written);
    if (there) {
      there.replaceWith(item);
      return;
    }
    const older = [...this.list.children].find((other) => Number(other.dataset.episode) < episode.episode);
    if (fresh) item.classList.add("arrived");
    this.list.insertBefore(item, older ?? null);
    while (this.list.children.length > KEEP && !this.list.lastElementChild.contains(document.activeElement)) this.list.lastElementChild.remove();
  }

  #letIn() {
    this.list.querySelectorAll("details[open]").forEach((details) => { details.open = false; });
    this.#waiting.splice(0).forEach((episode) => this.#insert(episode, true));
    this.#tell();
  }

  #tell() {
    const rows = this.#rows();
    if (rows.length > 0 && !rows.some((row) => row.tabIndex === 0)) this.#stop(rows[0]);
    this.empty.hidden = rows.length > 0;
    this.button.hidden = this.#waiting.length === 0;
    this.button.textContent = `Show ${this.#waiting.length} newer`;
  }
}
