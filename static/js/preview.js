// A preview shows what the agent would do if it were asked in the words that are about to be sent. The person may improve them, or send them.

import { draw } from "./attempt.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);
const PATIENCE = 8000;   // nobody waits longer for a preview: the words are sent without one

export class Preview {
  first = null;      // the words of which the first preview of this execution was shown
  #last = null;      // the words of the preview that is seen
  #given_up = false;

  // `again` asks for another preview of the words in the box.
  constructor(config, again) {
    this.api = config.api;
    this.on = $("teach").hasAttribute("data-previews");
    $("preview-again").addEventListener("click", again);
  }

  reset() {
    this.first = this.#last = null;
    this.#given_up = false;
    $("preview").hidden = true;
  }

  // Whether a preview comes before these words are sent.
  wanted() {
    return this.on && this.first === null && !this.#given_up;
  }

  typed(text) {
    $("preview-again-line").hidden = text === this.#last || text.trim() === "";
  }

  // Shows a preview; whether there is one to see.
  async show(execution, text) {
    try {
      const late = new Promise((_, fail) => setTimeout(() => fail(new Error("late")), PATIENCE));
      const tried = await Promise.race([ask(`${this.api}/executions/${execution}/preview`, { body: { text } }), late]);
      this.first ??= text;
      this.#last = text;
      draw($("preview-drawing"), tried);
      $("preview").hidden = false;
      $("preview-again-line").hidden = true;
      $("state").textContent = `If you asked me that, I would do this: ${tried.text}. Change your words, or send them as they are.`;
      return true;
    } catch {
      this.#given_up = true;
      return false;
    }
  }
}
