// Events of runs for a page, over one stream that all pages of the browser share. A page that nobody sees wants none, and
// a stream that nobody wants is closed.
//
// The stream lives in a shared worker. Where there is none (Chrome on Android), the pages choose one of themselves by a
// lock; where there are no locks either (without https), each page that is seen has its own, and seldom are two seen.

import { Hub } from "./stream-hub.js";
import { newKey } from "./net.js";

const BEAT = 5_000;

class Worked {
  constructor({ events, worker }, hear, failed) {
    const address = `${worker}?events=${encodeURIComponent(events)}`;
    const shared = new SharedWorker(address, { type: "module", name: "iliad-events" });
    shared.addEventListener("error", failed);
    this.port = shared.port;
    this.port.addEventListener("message", ({ data }) => { if (data.type === "unable") failed(); else hear(data); });
    this.port.start();
  }

  want(runs) { this.port.postMessage(runs.length > 0 ? { type: "want", runs } : { type: "leave" }); }
  here(runs) { this.port.postMessage({ type: "here", runs }); }
}

class Elected {
  #id = newKey();
  #runs = [];
  #hub = null;
  #standing = null;

  constructor({ events }, hear) {
    Object.assign(this, { events, hear });
    this.channel = new BroadcastChannel(`iliad-events ${events}`);
    this.channel.addEventListener("message", ({ data }) => {
      if (data.to === this.#id) hear(data.message);
      else if (data.type === "elected" && this.#runs.length > 0) this.#ask("want");
      else if (this.#hub && data.type === "want") this.#hub.want(data.from, data.runs);
      else if (this.#hub && data.type === "here") this.#hub.here(data.from, data.runs);
      else if (this.#hub && data.type === "leave") this.#hub.leave(data.from);
    });
  }

  want(runs) {
    this.#runs = runs;
    if (runs.length > 0) {
      this.#ask("want");
      this.#stand();
    } else {
      this.#ask("leave");
      this.#standing?.();
    }
  }

  here() { this.#ask("here"); }

  #ask(type) {
    if (this.#hub) {
      if (type !== "leave") this.#hub[type](this.#id, this.#runs);
    } else {
      this.channel.postMessage({ type, from: this.#id, runs: this.#runs });
    }
  }

  // Waits for the lock, and has the stream while it holds it: until this page is hidden.
  #stand() {
    if (this.#standing) return;
    const given = new AbortController();
    let release = null;
    this.#standing = () => { given.abort(); release?.(); };
    const hold = () => new Promise((resolve) => {
      release = resolve;
      this.#hub = new Hub(this.events, (to, message) => {
        if (to === this.#id) this.hear(message);
        else this.channel.postMessage({ to, message });
      });
      this.#hub.want(this.#id, this.#runs);
      this.channel.postMessage({ type: "elected" });
    });
    navigator.locks.request(this.channel.name, { signal: given.signal }, hold).catch(() => {}).finally(() => {
      this.#hub?.close();
      this.#hub = null;
      this.#standing = null;
      // Hidden and seen again before the lock was let go.
      if (this.#runs.length > 0) this.#stand();
    });
  }
}

class Alone {
  constructor({ events }, hear) { this.hub = new Hub(events, (_, message) => hear(message)); }
  want(runs) { if (runs.length > 0) this.hub.want("page", runs); else this.hub.leave("page"); }
  here(runs) { this.hub.here("page", runs); }
}

export class Stream {
  #runs = [];
  #way = null;

  // `addresses`: { events, worker }. `hear` gets { type: "open" | "lost" } and { type: "event", run, name, data }. "open" is
  // told whenever events flow anew: what happened before has to be fetched.
  constructor(addresses, hear) {
    const heard = (message) => { if (!document.hidden) hear(message); };
    const without = () => ("locks" in navigator && "BroadcastChannel" in window ? new Elected(addresses, heard) : new Alone(addresses, heard));
    try {
      this.#way = new Worked(addresses, heard, () => {
        this.#way = without();
        this.#tell();
      });
    } catch {
      this.#way = without();
    }
    document.addEventListener("visibilitychange", () => this.#tell());
    addEventListener("pagehide", () => this.#way.want([]));
    addEventListener("pageshow", ({ persisted }) => { if (persisted) this.#tell(); });
    setInterval(() => { if (!document.hidden && this.#runs.length > 0) this.#way.here(this.#runs); }, BEAT);
  }

  // From now on the page wants the events of these runs.
  watch(runs) {
    this.#runs = runs;
    this.#tell();
  }

  #tell() {
    this.#way.want(document.hidden ? [] : this.#runs);
  }
}
