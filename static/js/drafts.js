// What was typed and not yet stored, per execution, in the browser's own storage. It outlives reloads, crashes, other
// tabs and the loss of the execution; it goes only when the server has said "stored" or the person says "forget it".

const KEEP = 40;

export class Drafts {
  constructor(run) {
    this.prefix = `iliad.draft.${run}.`;
  }

  set(execution, text) {
    const key = this.prefix + execution;
    try {
      if (text.trim() === "") localStorage.removeItem(key);
      else localStorage.setItem(key, JSON.stringify({ text, at: Date.now() }));
    } catch {
      // Storage is off or full: the text box itself still has it.
    }
  }

  get(execution) {
    return this.#read(this.prefix + execution)?.text ?? "";
  }

  drop(execution) {
    this.set(execution, "");
  }

  // Drafts of other executions, newest first.
  others(execution) {
    const found = [];
    try {
      for (const key of Object.keys(localStorage)) {
        if (!key.startsWith(this.prefix)) continue;
        const draft = this.#read(key);
        const of = key.slice(this.prefix.length);
        if (draft && of !== String(execution)) found.push({ ...draft, execution: of });
      }
    } catch {
      return [];
    }
    found.sort((a, b) => b.at - a.at);
    found.splice(KEEP).forEach((old) => this.drop(old.execution));
    return found;
  }

  #read(key) {
    try { return JSON.parse(localStorage.getItem(key)); } catch { return null; }
  }
}
