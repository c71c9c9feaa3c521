// How numbers and times are written, the same as on the server (src/web/page.rs).

export const count = (n) => Math.round(n).toLocaleString("en");
export const percent = (x, digits = 1) => `${(x * 100).toFixed(digits)}%`;

export function duration(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
}

export function bytes(n) {
  if (n < 1000) return `${n} B`;
  const units = ["kB", "MB", "GB"];
  let i = -1;
  do { n /= 1000; i += 1; } while (n >= 1000 && i < units.length - 1);
  return `${n.toFixed(n < 10 ? 1 : 0)} ${units[i]}`;
}

export function ago(then, now = Date.now()) {
  const s = Math.floor((now - new Date(then)) / 1000);
  if (s < 60) return "just now";
  const [n, unit] = s < 3600 ? [s / 60, "minute"] : s < 86_400 ? [s / 3600, "hour"] : [s / 86_400, "day"];
  return `${Math.floor(n)} ${unit}${Math.floor(n) === 1 ? "" : "s"} ago`;
}

// An element with attributes and children; text is always text.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

// Words of the agent or of a person: no translation by the browser may change them, and they run in their own direction.
export const quoted = (name, attributes, text) => el(name, { translate: "no", dir: "auto", ...attributes }, text);

export function time(at) {
  return el("time", { datetime: at, title: at }, ago(at));
}
