// The time that something still takes, in words that claim no more than is known.

import { duration } from "./format.js";

// ", about 12 s left"; nothing before there is a pace, and nothing at the end.
export function remaining(seconds) {
  if (seconds == null || !Number.isFinite(seconds) || seconds < 0.5) return "";
  // Two digits are all that a pace tells.
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(seconds)) - 1);
  return `, about ${duration(Math.round(seconds / unit) * unit)} left`;
}

// The pace at which the share of a piece of work grows, since the page has seen it.
export class Pace {
  #what = null;
  #begun = 0;
  #from = 0;

  // Seconds until `share` is 1; null before there is a pace.
  left(what, share, now = performance.now()) {
    if (what !== this.#what || share < this.#from) {
      this.#what = what;
      this.#begun = now;
      this.#from = share;
    }
    const gained = share - this.#from;
    return gained > 0 ? ((now - this.#begun) / 1000) * ((1 - share) / gained) : null;
  }
}
