// Time spent on an execution, with idle time left out: a gap without any sign of the person counts for a few seconds
// of thinking at most, and nothing counts while the page is hidden. The rest is idle time.

const THOUGHT = 15_000;

export class Activity {
  #total = 0;
  #begun = performance.now();
  #last = performance.now();
  #listeners = [];

  constructor() {
    const sign = () => this.#sign();
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "touchmove"]) {
      addEventListener(kind, sign, { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.#sign();
      else { this.#last = performance.now(); this.#sign(); }
    });
  }

  // Called on a sign of life after `idle` milliseconds without one.
  onReturn(listener) {
    this.#listeners.push(listener);
  }

  reset() {
    this.#total = 0;
    this.#begun = performance.now();
    this.#last = performance.now();
  }

  get milliseconds() {
    return Math.round(this.#total + (document.hidden ? 0 : Math.min(performance.now() - this.#last, THOUGHT)));
  }

  get idleMilliseconds() {
    return Math.max(0, Math.round(performance.now() - this.#begun) - this.milliseconds);
  }

  get idle() {
    return performance.now() - this.#last;
  }

  #sign() {
    const gap = this.idle;
    this.#total += Math.min(gap, THOUGHT);
    this.#last = performance.now();
    this.#listeners.forEach((listener) => listener(gap));
  }
}
