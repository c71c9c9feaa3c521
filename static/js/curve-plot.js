// Draws curves as one SVG picture, which is what the page shows and what is downloaded.

import { count, duration, percent } from "./format.js";

const NS = "http://www.w3.org/2000/svg";
const MARGIN = { left: 62, right: 18, top: 12, bottom: 44 };
// Steps of a time axis in seconds: 1-2-5-10-30 seconds, minutes and hours.
export const TIMES = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18_000, 36_000, 86_400, 172_800, 432_000, 864_000];

// The step of about `wanted` ticks over a range: 1, 2 or 5 times a power of ten.
function decimalStep(range, wanted) {
  const raw = range / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw * 0.999);
}

// The places of ticks.
export function ticks(low, high, { log = false, time = false, whole = false, wanted = 6 } = {}) {
  if (!(high > low)) return [low];
  if (log) {
    const decades = Math.log10(high / low);
    const steps = decades < 1.2 ? [1, 2, 3, 5, 7] : decades < 3 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / wanted));
    const all = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += every) {
      for (const step of steps) {
        const at = step * 10 ** power;
        if (at >= low * 0.9999 && at <= high * 1.0001) all.push(at);
      }
    }
    return all;
  }
  let step = time ? TIMES.find((one) => (high - low) / one <= wanted) ?? decimalStep(high - low, wanted) : decimalStep(high - low, wanted);
  if (whole) step = Math.max(1, step);
  const all = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-9) + 1e-12; i += 1) all.push(Number((i * step).toPrecision(12)));
  return all;
}

// A time on an axis, in the largest unit that gives a whole number.
export function timeTick(seconds) {
  if (seconds === 0) return "0";
  for (const [unit, size] of [["d", 86_400], ["h", 3600], ["min", 60]]) if (seconds >= size && seconds % size === 0) return `${seconds / size} ${unit}`;
  return duration(seconds);
}

// An exponential moving average of [x, y] pairs; 0 leaves them as they are. Its beginning is not pulled towards zero.
export function smoothed(points, weight) {
  if (weight <= 0) return points;
  let sum = 0;
  let norm = 0;
  return points.map(([x, y]) => {
    sum = weight * sum + (1 - weight) * y;
    norm = weight * norm + (1 - weight);
    return [x, sum / norm];
  });
}

// The value of a curve at x, between its points; null outside of them.
export function at(points, x) {
  if (points.length === 0 || x < points[0][0] || x > points.at(-1)[0]) return null;
  let [low, high] = [0, points.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= x) low = middle; else high = middle;
  }
  const [[x0, y0], [x1, y1]] = [points[low], points[high]];
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

// Mean, lowest and highest of curves, at every x of any of them at which at least half are there.
export function together(curves) {
  const xs = [...new Set(curves.flatMap((points) => points.map(([x]) => x)))].sort((a, b) => a - b);
  const rows = [];
  for (const x of xs) {
    const there = curves.map((points) => at(points, x)).filter((y) => y !== null);
    if (there.length * 2 >= curves.length && there.length > 0) rows.push([x, there.reduce((a, b) => a + b) / there.length, Math.min(...there), Math.max(...there)]);
  }
  return rows;
}

function node(name, attributes, text) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// A picture of `series`: {name, colour, dash, points: [[x, y]], faint: [[x, y]], band: [[x, low, high]]}. Axes: {label, log, time,
// whole, share}. Returns the picture, and what is needed to say which x a place is.
export function picture({ series, x, y, width, height, colours, font }) {
  const positive = (axis, value) => Number.isFinite(value) && (!axis.log || value > 0);
  const keep = (points) => points.filter(([a, b]) => positive(x, a) && positive(y, b));
  const shown = series.map((one) => ({ ...one, points: keep(one.points), faint: keep(one.faint ?? []), band: (one.band ?? []).filter(([a, low, high]) => positive(x, a) && positive(y, low) && positive(y, high)) }));
  const xs = shown.flatMap((one) => one.points.map(([a]) => a));
  const ys = shown.flatMap((one) => [...one.points, ...one.faint].map(([, b]) => b).concat(one.band.flatMap(([, low, high]) => [low, high])));
  const svg = node("svg", { xmlns: NS, viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "font-family": font, "font-size": 12 });
  svg.append(node("rect", { width, height, fill: colours.surface }));
  if (xs.length === 0) {
    svg.append(node("text", { x: width / 2, y: height / 2, "text-anchor": "middle", fill: colours.muted }, "No points to show."));
    return { svg, place: null };
  }
  const range = (values, axis) => {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (axis.log) return low === high ? [low / 2, high * 2] : [low, high];
    if (axis.zero) low = Math.min(0, low);
    if (axis.share) return [0, [0.1, 0.2, 0.4, 0.6, 0.8].find((end) => high <= end * 0.96) ?? 1];
    if (low === high) [low, high] = [low - 1, high + 1];
    const room = axis.zero ? 0 : (high - low) * 0.05;
    return [low - room, high + room];
  };
  const [xLow, xHigh] = range(xs, { ...x, zero: !x.log });
  const [yLow, yHigh] = range(ys, y);
  const scale = (axis, low, high, from, to) => {
    const read = axis.log ? Math.log10 : (v) => v;
    const [a, b] = [read(low), read(high)];
    return { to: (v) => from + ((read(v) - a) / (b - a)) * (to - from), from: (p) => { const v = a + ((p - from) / (to - from)) * (b - a); return axis.log ? 10 ** v : v; } };
  };
  const [left, right, top, bottom] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
  const [sx, sy] = [scale(x, xLow, xHigh, left, right), scale(y, yLow, yHigh, bottom, top)];
  const xTicks = ticks(xLow, xHigh, { ...x, wanted: Math.max(2, Math.floor((right - left) / 95)) });
  const yTicks = ticks(yLow, yHigh, { log: y.log, wanted: Math.max(2, Math.floor((bottom - top) / 55)) });
  const write = { x: (v) => (x.time ? timeTick(v) : count(v)), y: (v) => (y.share ? percent(v, yHigh - yLow < 0.1 ? 1 : 0) : String(Number(v.toPrecision(3)))) };
  for (const v of yTicks) {
    svg.append(node("line", { x1: left, x2: right, y1: sy.to(v), y2: sy.to(v), stroke: colours.line }));
    svg.append(node("text", { x: left - 8, y: sy.to(v) + 4, "text-anchor": "end", fill: colours.muted }, write.y(v)));
  }
  for (const v of xTicks) {
    svg.append(node("line", { x1: sx.to(v), x2: sx.to(v), y1: bottom, y2: bottom + 5, stroke: colours.muted }));
    svg.append(node("text", { x: sx.to(v), y: bottom + 19, "text-anchor": "middle", fill: colours.muted }, write.x(v)));
  }
  svg.append(node("line", { x1: left, x2: right, y1: bottom, y2: bottom, stroke: colours.muted }));
  svg.append(node("text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", fill: colours.muted }, x.label + (x.log ? ", logarithmic" : "")));
  svg.append(node("text", { x: 14, y: (top + bottom) / 2, "text-anchor": "middle", fill: colours.muted, transform: `rotate(-90 14 ${(top + bottom) / 2})` }, y.label + (y.log ? ", logarithmic" : "")));
  const onto = (points) => points.map(([a, b]) => [sx.to(a), sy.to(b)]);
  for (const one of shown) {
    if (one.band.length > 1) {
      const upper = onto(one.band.map(([a, , high]) => [a, high]));
      const lower = onto(one.band.map(([a, low]) => [a, low])).reverse();
      svg.append(node("path", { d: `${path(upper)}L${path(lower).slice(1)}Z`, fill: one.colour, "fill-opacity": 0.16 }));
    }
  }
  for (const one of shown) {
    if (one.faint.length > 1) svg.append(node("path", { d: path(onto(one.faint)), fill: "none", stroke: one.colour, "stroke-opacity": 0.3, "stroke-width": 1 }));
    if (one.points.length > 1) svg.append(node("path", { d: path(onto(one.points)), fill: "none", stroke: one.colour, "stroke-width": 2, "stroke-linejoin": "round", ...(one.dash ? { "stroke-dasharray": one.dash } : {}) }));
    if (one.points.length === 1) { const [[a, b]] = onto(one.points); svg.append(node("circle", { cx: a, cy: b, r: 3.5, fill: one.colour })); }
  }
  return { svg, place: { left, right, top, bottom, x: sx }, write };
}

// The picture with a legend below it, as a file.
export function withLegend({ svg }, series, { colours, font }) {
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const all = svg.cloneNode(true);
  const tall = height + 12 + 20 * series.length;
  all.setAttribute("height", tall);
  all.setAttribute("viewBox", `0 0 ${width} ${tall}`);
  all.querySelector("rect").setAttribute("height", tall);
  for (const marker of all.querySelectorAll(".pointer")) marker.remove();
  series.forEach((one, i) => {
    const y = height + 14 + 20 * i;
    all.append(node("line", { x1: MARGIN.left, x2: MARGIN.left + 24, y1: y, y2: y, stroke: one.colour, "stroke-width": 2, ...(one.dash ? { "stroke-dasharray": one.dash } : {}) }));
    all.append(node("text", { x: MARGIN.left + 32, y: y + 4, fill: colours.ink, "font-family": font }, one.name));
  });
  return new XMLSerializer().serializeToString(all);
}

// A vertical line in a picture at a place.
export function pointTo(svg, place, at_, colour) {
  svg.querySelector(".pointer")?.remove();
  if (at_ === null) return;
  svg.append(node("line", { class: "pointer", x1: at_, x2: at_, y1: place.top, y2: place.bottom, stroke: colour, "stroke-dasharray": "3 3" }));
}
