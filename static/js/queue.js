// Answers on their way to the server, oldest first, in the browser's own storage: a closed laptop, a restarted server or a
// tunnel holds them up and loses none. Each has a key, so that sending it again stores it once.

import { ask, newKey, whole } from "./net.js";

const LONGEST = 20_000;   // between two tries

export class Queue {
  #items = [];
  #waiting = new Map();   // key: the caller who waits for the outcome
  #running = null;
  #timer = null;
  #failures = 0;

  // `stored(item, reply)` and `refused(item, error)` tell of items that nobody waits for; `again()` is asked to try again.
  constructor(config, { stored, refused, again }) {
    this.name = `iliad.queue.${config.run}`;
    this.api = `${config.api}/answers`;
    Object.assign(this, { stored, refused, again });
    try { this.#items = JSON.parse(localStorage.getItem(this.name)) ?? []; } catch { /* It is empty. */ }
    addEventListener("online", () => this.#retry(0));
  }

  get length() {
    return this.#items.length;
  }

  of(execution) {
    return this.#items.find((item) => item.execution === execution) ?? null;
  }

  get executions() {
    return this.#items.map((item) => item.execution);
  }

  // Takes an answer back that has not been sent: its words are being changed.
  remove(execution) {
    this.#keep(this.#items.filter((item) => item.execution !== execution || this.#waiting.has(item.key)));
  }

  // Sends an answer after those before it. The server's reply; fails with the reason, and keeps what may be sent again.
  async deliver(item) {
    this.#keep([...this.#items.filter((other) => other.execution !== item.execution), item]);
    const outcome = new Promise((resolve, reject) => this.#waiting.set(item.key, { resolve, reject }));
    outcome.catch(() => {});
    do await this.flush(); while (this.#waiting.has(item.key));
    return outcome;
  }

  flush() {
    clearTimeout(this.#timer);
    this.#running ??= this.#run().finally(() => { this.#running = null; });
    return this.#running;
  }

  async #run() {
    while (this.#items.length > 0) {
      const [item] = this.#items;
      const caller = this.#waiting.get(item.key);
      try {
        const reply = await this.#post(item);
        this.#failures = 0;
        this.#forget(item);
        if (caller) caller.resolve(reply);
        else await this.stored(item, reply);
      } catch (error) {
        if (error.passing) {
          this.#retry(Math.min(2000 * 1.7 ** this.#failures, LONGEST));
          this.#failures += 1;
          for (const { reject } of this.#waiting.values()) reject(error);
          this.#waiting.clear();
          return;
        }
        this.#forget(item);
        if (caller) caller.reject(error);
        else this.refused(item, error);
      }
    }
  }

  #forget(item) {
    this.#waiting.delete(item.key);
    this.#keep(this.#items.filter((other) => other.key !== item.key));
  }

  async #post(item) {
    const { key, corrects, ...body } = item;
    const url = corrects ? `${this.api}/${corrects}/correct` : this.api;
    const send = (client_key) => ask(url, { body: { ...body, text: whole(body.text), client_key } });
    try {
      return await send(key);
    } catch (error) {
      if (error.code !== "key-reused") throw error;
      return send(newKey());
    }
  }

  #retry(wait) {
    clearTimeout(this.#timer);
    if (this.#items.length > 0) this.#timer = setTimeout(() => this.again(), wait);
  }

  #keep(items) {
    this.#items = items;
    try {
      if (items.length > 0) localStorage.setItem(this.name, JSON.stringify(items));
      else localStorage.removeItem(this.name);
    } catch {
      // Storage is off or full: this page still has them.
    }
  }
}
