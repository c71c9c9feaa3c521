// Drafts keep the texts that were typed and not yet stored, per execution: in the browser's own storage, and on the server, so that it comes back on
// any device. It outlives reloads, crashes, other tabs and the loss of the execution; it goes only when the server has said
// "stored" or the person says "forget it".

import { ask, askItems, newKey, whole } from "./net.js";

const KEEP = 40;
const PAUSE = 2000;      // between two saves on the server
const AGAIN = 8000;      // until the next try when it cannot be reached
const APART = ".other";  // ending of the name of a text that was typed about the same execution elsewhere

export class Drafts {
  #unsaved = new Map();  // execution: text that the server has not
  #keys = new Map();     // execution: the key that came with it
  #version = Date.now();
  #timer = null;
  #saving = null;

  constructor(config) {
    this.prefix = `iliad.draft.${config.run}.`;
    this.api = config.api;
    // Newest first even when the computer's clock was set back: a draft is always later than those before it.
    this.latest = Math.max(0, ...this.others([]).map(({ at }) => at || 0));
    addEventListener("pagehide", () => this.#leave());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.#leave(); });
    addEventListener("online", () => this.#later(0));
  }

  // An execution is on the page. Its text: what was typed here, or elsewhere and later.
  restore({ execution, client_key, draft }) {
    this.#keys.set(String(execution), client_key);
    const mine = this.#read(execution);
    const there = draft?.text ?? "";
    if (!mine) {
      if (there) this.#write(execution, there, true);
      return there;
    }
    if (!there || there === mine.text) {
      if (!mine.saved && !there) this.#save(execution, mine.text);
      return mine.text;
    }
    if (mine.saved) {
      this.#write(execution, there, true);
      return there;
    }
    // Both were changed. None is lost.
    if (!mine.text.includes(there)) this.#write(execution + APART, there, true);
    this.#save(execution, mine.text);
    return mine.text;
  }

  set(execution, text) {
    this.#write(execution, text, false);
    this.#save(execution, text);
  }

  get(execution) {
    return this.#read(execution)?.text ?? "";
  }

  // Forgets a draft here and on the server.
  drop(execution) {
    this.#write(execution, "", true);
    if (!String(execution).endsWith(APART)) this.#save(execution, "");
  }

  // Its text was stored as an answer: the server has no draft of it any more.
  stored(execution) {
    this.#write(execution, "", true);
    this.#unsaved.delete(String(execution));
  }

  // Waits for a save that is under way, so that it does not arrive after the answer.
  async settled() {
    await Promise.race([this.#saving, new Promise((done) => setTimeout(done, 1500))]);
  }

  // Takes up the drafts that the server has and this browser does not.
  async fetch() {
    for (const { execution, text } of await askItems(`${this.api}/drafts?limit=500`)) {
      if (!this.#read(execution) && !this.#unsaved.has(String(execution))) this.#write(execution, text, true);
    }
  }

  // Drafts that are not about the given executions, newest first.
  others(executions) {
    const found = [];
    const here = new Set(executions.map(String));
    try {
      for (const key of Object.keys(localStorage)) {
        if (!key.startsWith(this.prefix)) continue;
        const execution = key.slice(this.prefix.length);
        const draft = this.#read(execution);
        if (!draft || here.has(execution)) continue;
        found.push({ ...draft, execution, same: execution.endsWith(APART) && here.has(execution.slice(0, -APART.length)) });
      }
    } catch {
      return [];
    }
    found.sort((a, b) => b.at - a.at);
    found.splice(KEEP).forEach((old) => this.#write(old.execution, "", true));
    return found;
  }

  #read(execution) {
    try { return JSON.parse(localStorage.getItem(this.prefix + execution)); } catch { return null; }
  }

  #write(execution, text, saved) {
    const key = this.prefix + execution;
    try {
      if (text.trim() === "") localStorage.removeItem(key);
      else {
        this.latest = Math.max(Date.now(), this.latest + 1);
        localStorage.setItem(key, JSON.stringify({ text, at: this.latest, saved }));
      }
    } catch {
      // Storage is off or full: the text box itself still has it.
    }
  }

  #save(execution, text) {
    this.#unsaved.set(String(execution), text);
    if (this.#timer === null) this.#later(PAUSE);
  }

  #later(wait) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#saving = this.#saveAll().finally(() => { this.#saving = null; });
    }, wait);
  }

  #request(execution, text) {
    const key = this.#keys.get(execution) ?? newKey();
    return { url: `${this.api}/executions/${execution}/draft`, body: { client_key: key, version: this.#version++, text: whole(text) } };
  }

  async #saveAll() {
    for (const [execution, text] of [...this.#unsaved]) {
      const { url, body } = this.#request(execution, text);
      try {
        await ask(url, { method: "PUT", body });
        const mine = this.#read(execution);
        if (mine?.text === text) this.#write(execution, text, true);
      } catch (error) {
        if (error.passing) { this.#later(AGAIN); return; }
        // The server does not want it; this browser has it.
      }
      if (this.#unsaved.get(execution) === text) this.#unsaved.delete(execution);
    }
    if (this.#unsaved.size > 0) this.#later(PAUSE);
  }

  // The page may be gone in a moment.
  #leave() {
    for (const [execution, text] of this.#unsaved) {
      const { url, body } = this.#request(execution, text);
      navigator.sendBeacon(url, new Blob([JSON.stringify(body)], { type: "application/json" }));
    }
  }
}
