// What was typed and not yet stored, per execution, in the browser's own storage. It outlives reloads, crashes, other
// tabs and the loss of the execution; it goes only when the server has said "stored" or the person says "forget it".

const KEEP = 40;

export class Drafts {
  constructor(run) {
    this.prefix = `iliad.draft.${run}.`;
    // Newest first even when the computer's clock was set back: a draft is always later than those before it.
    this.latest = Math.max(0, ...this.others().map(({ at }) => at || 0));
  }

  set(execution, text) {
    const key = this.prefix + execution;
    try {
      if (text.trim() === "") localStorage.removeItem(key);
      else {
        this.latest = Math.max(Date.now(), this.latest + 1);
        localStorage.setItem(key, JSON.stringify({ text, at: this.latest }));
      }
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
