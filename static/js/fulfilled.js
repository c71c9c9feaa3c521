// "It did what was asked": the request is shown when somebody says so, and they say whether it was that.

import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);

export class Fulfilled {
  // `current` gives the execution on the page, `yes` is told the request that was fulfilled, `no` that it was not.
  constructor(config, { current, yes, no }) {
    this.api = config.api;
    this.current = current;
    this.yes = yes;
    $("not-fulfilled").hidden = false;
    $("not-fulfilled").addEventListener("click", () => { this.close(); no(); });
    $("fulfilling").addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.isComposing) return;
      this.close();
      no();
    });
  }

  // Reveals the request and asks. Fails where the server cannot be asked.
  async ask() {
    const shown = this.current();
    if (!shown) return;
    shown.request ??= (await ask(`${this.api}/executions/${shown.execution}/reveal`, { body: {} })).request;
    if (this.current() !== shown) return;
    $("fulfilling-words").textContent = shown.request;
    $("fulfilling").hidden = false;
    $("fulfilling").scrollIntoView({ block: "nearest", behavior: "instant" });
    $("fulfilled").focus({ preventScroll: true });
  }

  confirm() {
    const request = this.current()?.request;
    this.close();
    if (request) this.yes(request);
  }

  close() {
    $("fulfilling").hidden = true;
  }
}
