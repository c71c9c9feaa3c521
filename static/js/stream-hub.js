// One event stream for everybody who wants events: a browser opens six connections a host at most, and every dashboard
// that kept one to itself would leave none for other pages. Runs in the shared worker, or in the page that was chosen.

const SETTLE = 150; // Wishes that come together make one stream.
const AGAIN = 3_000;
const FORGOTTEN = 16_000; // A client that is silent for so long is gone; it speaks every 5 seconds.
const NAMES = ["status", "point", "episode", "checkpoint", "comprehension", "evaluating", "log", "resync", "absent"];

export class Hub {
  #clients = new Map();
  #source = null;
  #covered = new Set();
  #settling = 0;
  #retrying = 0;

  // `tell(client, message)` brings a message to a client: { type: "open" | "lost" } or { type: "event", run, name, data }.
  constructor(url, tell) {
    Object.assign(this, { url, tell });
    this.sweeping = setInterval(() => this.#sweep(), 5_000);
  }

  // The client wants the events of these runs from now on, and of no others.
  want(client, runs) {
    this.#clients.set(client, { runs: new Set(runs), heard: Date.now() });
    // The stream may be older than the client, who then must catch up just the same.
    if (this.#source?.readyState === EventSource.OPEN && runs.every((run) => this.#covered.has(run))) this.tell(client, { type: "open" });
    this.#settle();
  }

  // The client is still there.
  here(client, runs) {
    const known = this.#clients.get(client);
    if (known) known.heard = Date.now();
    else this.want(client, runs);
  }

  leave(client) {
    if (this.#clients.delete(client)) this.#settle();
  }

  close() {
    clearInterval(this.sweeping);
    this.#clients.clear();
    this.#shut();
  }

  #sweep() {
    const oldest = Date.now() - FORGOTTEN;
    for (const [client, { heard }] of this.#clients) if (heard < oldest) this.leave(client);
  }

  #settle() {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#open(), SETTLE);
  }

  #shut() {
    clearTimeout(this.#settling);
    clearTimeout(this.#retrying);
    this.#source?.close();
    this.#source = null;
  }

  #open() {
    const wanted = new Set([...this.#clients.values()].flatMap(({ runs }) => [...runs]));
    const enough = this.#source && this.#source.readyState !== EventSource.CLOSED && [...wanted].every((run) => this.#covered.has(run));
    if (wanted.size > 0 && enough) return;
    this.#shut();
    if (wanted.size === 0) return;
    this.#covered = wanted;
    const source = new EventSource(`${this.url}?runs=${[...wanted].map(encodeURIComponent).join(",")}`);
    this.#source = source;
    source.addEventListener("open", () => this.#tellAll({ type: "open" }));
    source.addEventListener("error", () => {
      this.#tellAll({ type: "lost" });
      // The browser tries again by itself, unless the server refused.
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(this.#retrying);
      this.#retrying = setTimeout(() => this.#open(), AGAIN);
    });
    for (const name of NAMES) {
      source.addEventListener(name, (event) => {
        const { run, data } = JSON.parse(event.data);
        for (const [client, { runs }] of this.#clients) {
          if (runs.has(run)) this.tell(client, { type: "event", run, name, data });
        }
      });
    }
  }

  #tellAll(message) {
    for (const client of this.#clients.keys()) this.tell(client, message);
  }
}
