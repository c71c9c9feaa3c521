// How attempts of the agent are shown: the family's drawing, and whether they are right.

import { el } from "./format.js";

// A sign and a word beside the colour.
export const verdict = (right) => el("span", { class: right ? "right" : "wrong" }, el("span", { "aria-hidden": "true" }, right ? "✓ " : "✗ "), right ? "right" : "wrong");

// Draws anew only where the drawing changes: a person may be looking at it.
export function draw(host, { html, text }) {
  if (host.drawn === html + text) return;
  host.drawn = html + text;
  if (html) host.innerHTML = html;
  else host.replaceChildren(el("p", {}, text));
}
