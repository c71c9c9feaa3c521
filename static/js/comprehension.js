// "In your words": how the agent took the sentence that was sent last, before it learned it and after, and what it understood
// before it was told. News come by an event stream that is open while something waits and the page is seen.

import { draw, verdict } from "./attempt.js";
import { count, el, percent } from "./format.js";
import { Moment } from "./moment.js";
import { ask } from "./net.js";

const $ = (id) => document.getElementById(id);
const LINGER = 30_000;   // how long the stream stays open when nothing waits any more
const ROW = 20;          // squares in a row: the last row is the last 20

function showAttempt(figure, attempt, missing) {
  figure.querySelector(".verdict").replaceChildren(attempt ? verdict(attempt.understood) : "");
  const host = figure.querySelector(".drawing");
  host.classList.toggle("pending", !attempt);
  draw(host, attempt ?? { html: "", text: missing ?? "" });
}

function showSquares(readings) {
  const squares = readings.map(({ understood }) => el("i", { class: understood ? "yes" : "no" }));
  // The last row is full, so that it is the last twenty.
  if (squares.length > ROW && squares.length % ROW > 0) squares[0].style.gridColumnStart = ROW - (squares.length % ROW) + 1;
  squares.slice(0, -ROW).forEach((square) => square.classList.add("older"));
  $("squares").replaceChildren(...squares);
  const of = (last, words) => {
    const right = last.filter((reading) => reading.understood).length;
    return [el("b", {}, percent(right / last.length, 0)), ` ${count(right)} of ${words}`];
  };
  const n = readings.length;
  const sentences = (k) => (k === 1 ? "your 1 sentence" : `your ${count(k)} sentences`);
  $("strip-20").replaceChildren(...of(readings.slice(-ROW), n < ROW ? sentences(n) : `your last ${ROW} sentences`));
  $("strip-50").hidden = n <= ROW;
  if (n > ROW) $("strip-50").replaceChildren(...of(readings, `your last ${count(n)}`));
  $("strip").hidden = n === 0;
}

export class Comprehension {
  #stream = null;
  #waits = false;      // whether something is on its way that the page will show
  #lingering = 0;
  #said = null;        // what was announced last
  #first = true;

  // `learned` is told the number of an answer once the agent has learned from it.
  constructor(config, back, learned) {
    this.api = `${config.api}/comprehension`;
    this.learned = learned;
    this.noun = config.noun;
    this.moment = new Moment(config, back);
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.#waits && this.#open()));
    addEventListener("pagehide", () => this.#close());
    this.refresh();
  }

  // A sentence was stored.
  sent(text) {
    this.#show({ waiting: { text, when: "Sent. The agent has not learned it yet." } });
    this.#waits = true;
    this.#open();
  }

  // Asks the server for the latest state.
  async refresh() {
    try {
      const own = await ask(this.api);
      if (own) this.#take(own);
    } catch { /* It is no part of the work; the next sentence brings it. */ }
    this.#first = false;
  }

  #open() {
    clearTimeout(this.#lingering);
    if (this.#stream || document.hidden) return;
    const stream = new EventSource(`${this.api}/events`);
    this.#stream = stream;
    stream.addEventListener("comprehension", ({ data }) => this.#take(JSON.parse(data)));
    stream.addEventListener("error", () => {
      // The browser comes back by itself, unless there is nothing to tell: the run has ended.
      if (stream.readyState !== EventSource.CLOSED) return;
      this.#close();
      this.refresh();
    });
  }

  #close() {
    clearTimeout(this.#lingering);
    this.#stream?.close();
    this.#stream = null;
  }

  #take(own) {
    const learning = Boolean(own.latest) && !own.latest.after && own.latest.missing?.startsWith("It is");
    this.#waits = Boolean(own.waiting) || learning;
    clearTimeout(this.#lingering);
    if (!this.#waits) this.#lingering = setTimeout(() => this.#close(), LINGER);
    this.#show(own);
    if (own.latest) showSquares(own.readings);
    this.#announce(own.latest);
    if (!this.#waits) this.moment.reached(own.counts);
  }

  #show({ waiting, latest }) {
    $("waiting").hidden = !waiting;
    if (waiting) {
      $("waiting-text").textContent = waiting.text;
      $("waiting-when").textContent = waiting.when;
    }
    if (latest) {
      $("latest").hidden = false;
      $("latest-text").textContent = latest.text;
      showAttempt($("attempt-before"), latest.before);
      showAttempt($("attempt-after"), latest.after, latest.missing);
    }
    $("words-none").hidden = !$("waiting").hidden || !$("latest").hidden;
  }

  // Once for each sentence; what was there when the page came is read, not announced.
  #announce(latest) {
    if (!latest?.after || this.#said === latest.answer) return;
    this.#said = latest.answer;
    if (this.#first) return;
    this.learned(latest.answer);
    const word = (attempt) => (attempt.understood ? "right" : "wrong");
    $("words-said").textContent = `The agent has learned your ${this.noun}. Before, it would have been ${word(latest.before)}; now it is ${word(latest.after)}.`;
  }
}
