// A moment at 25, 50 and every hundred sentences: three of the person's own requests, done by the agent now. It stands beside the
// work and waits for nobody; once closed it does not come again.

import { draw, verdict } from "./attempt.js";
import { count, el, quoted } from "./format.js";
import { ask } from "./net.js";
import { fillTry, setUpTry } from "./try.js";

const $ = (id) => document.getElementById(id);

// The last number of sentences at which there is a moment.
const milestone = (described) => (described >= 100 ? Math.floor(described / 100) * 100 : [50, 25].find((n) => described >= n) ?? 0);

export class Moment {
  #shown = 0;
  #asking = false;

  // `back` brings the person back to the box.
  constructor(config, back) {
    this.api = config.api;
    this.key = `iliad.moment.${config.run}`;
    this.back = back;
    try { this.#shown = Number(localStorage.getItem(this.key)) || 0; } catch { /* Without storage it may come once more. */ }
    setUpTry(config.api);
    $("moment-close").addEventListener("click", () => this.close());
    // A press beside the dialog closes it.
    $("try-dialog").addEventListener("click", (event) => { if (event.target === $("try-dialog")) $("try-dialog").close(); });
  }

  async reached({ described, used }) {
    const at = milestone(described);
    if (at === 0 || at <= this.#shown || used === 0 || this.#asking) return;
    this.#asking = true;
    try {
      this.#show(await ask(`${this.api}/review`, { body: {} }));
      this.#shown = at;
    } catch { /* The next sentence asks again. */ } finally {
      this.#asking = false;
    }
  }

  close() {
    try { localStorage.setItem(this.key, String(this.#shown)); } catch { /* It may come once more. */ }
    $("moment").hidden = $("moment-there").hidden = true;
    this.back();
  }

  #show({ described, requests }) {
    if (requests.length === 0) return;
    const right = requests.filter(({ attempt }) => attempt.understood).length;
    $("moment-title").textContent = `${count(described)} sentences from you`;
    $("moment-about").textContent = `Drawn from your own, and asked again just now: the agent does ${right} of ${requests.length} right.`;
    $("moment-list").replaceChildren(...requests.map((request) => this.#item(request)));
    $("moment").hidden = $("moment-there").hidden = false;
    $("words-said").textContent = `${count(described)} sentences. ${$("moment-about").textContent} They are listed at the end of “In your words”.`;
  }

  #item({ text, elsewhere, attempt, start }) {
    const drawing = el("div", { class: "drawing", translate: "no" });
    draw(drawing, attempt);
    const go = el("button", { class: "button small", type: "button" }, "Try it", el("span", { class: "visually-hidden" }, `: ${text}`));
    go.addEventListener("click", () => {
      fillTry(text, start);
      $("try-dialog").showModal();
      $("try-go").focus();
    });
    const where = el("span", { class: "muted small" }, elsewhere ? "from a new start" : "from the same start");
    return el("li", {}, el("p", { class: "said" }, quoted("q", {}, text)), el("p", { class: "outcome" }, el("span", { class: "verdict" }, verdict(attempt.understood)), " ", where), drawing, go);
  }
}
