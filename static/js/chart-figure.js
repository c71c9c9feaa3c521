// One chart as a drawing of its own: axes, bands, lines, their names below, a reader's ruler, and a range that is chosen by dragging.
// The file that one downloads is the drawing that one sees.

import { logTimeTicks, timeTick, timeTicks } from "./aggregate.js";
import { duration } from "./format.js";

const d3 = window.d3;
const STYLES = [["agent", ""], ["you", "9 5"], ["good", "2 4"], ["ink", "12 4 2 4"], ["bad", "5 3"], ["muted", "1 3"], ["agent", "14 4"], ["you", "3 3"], ["good", "10 3 2 3"], ["ink", ""]];
const LEFT = 62;
const ROW = 19;

export const MOST = STYLES.length;

const colours = () => {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
};

// Draws a chart of { series: [{ name, rows: [{ x, y, low, high, n }], faint: [[[x, y]]] }], x: { label, log, time, range }, y: { label,
// log, percent }, title }. `zoomed` is told the range that was dragged, or null.
export function draw(host, what, zoomed) {
  const colour = colours();
  const width = Math.max(300, host.clientWidth);
  const plotHeight = document.fullscreenElement ? Math.max(260, window.innerHeight - 220 - ROW * what.series.length) : width < 600 ? 250 : 400;
  const bottom = 46 + ROW * what.series.length;
  const [top, right] = [34, 16];
  const height = top + plotHeight + bottom;
  const svg = d3.create("svg").attr("xmlns", "http://www.w3.org/2000/svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height)
    .attr("role", "img").attr("aria-label", `${what.title}: ${what.series.map((one) => one.name).join(", ")}`).attr("font-family", "system-ui, sans-serif").attr("font-size", 12);
  svg.append("rect").attr("width", width).attr("height", height).attr("fill", colour("surface"));
  svg.append("text").attr("x", LEFT).attr("y", 18).attr("fill", colour("ink")).attr("font-weight", 600).attr("font-size", 14).text(what.title);

  const positive = (log) => (value) => !log || value > 0;
  const xs = what.series.flatMap((one) => one.rows.map((row) => row.x)).filter(positive(what.x.log));
  const range = what.x.range ?? d3.extent(xs);
  const inside = (x) => x >= range[0] && x <= range[1];
  const ys = what.series.flatMap((one) => one.rows.filter((row) => inside(row.x)).flatMap((row) => [row.y, row.low, row.high])).filter((y) => y !== null && positive(what.y.log)(y));
  if (xs.length === 0 || ys.length === 0) { host.replaceChildren(); return null; }
  let [low, high] = d3.extent(ys);
  if (what.y.percent) [low, high] = [what.y.log ? low : 0, Math.min(1, high)];
  if (low === high) [low, high] = what.y.log ? [low / 2, high * 2] : [low - Math.abs(low || 1) * 0.1, high + Math.abs(high || 1) * 0.1];
  const x = (what.x.log ? d3.scaleLog() : d3.scaleLinear()).domain(range[0] === range[1] ? [range[0] * 0.9, range[1] * 1.1 + 1] : range).range([LEFT, width - right]);
  const y = (what.y.log ? d3.scaleLog() : d3.scaleLinear()).domain([low, high]).nice().range([top + plotHeight, top]);

  const writeY = what.y.percent ? (value) => `${+(value * 100).toPrecision(4)}%` : (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(4)));
  const writeX = what.x.time ? timeTick : x.tickFormat(8, "~s");
  const most = Math.max(3, Math.floor(width / 90));
  const xTicks = what.x.time ? (what.x.log ? logTimeTicks : timeTicks)(...x.domain(), most) : x.ticks(most);
  const yAxis = svg.append("g");
  for (const tick of y.ticks(what.y.log ? 4 : 6)) {
    yAxis.append("line").attr("x1", LEFT).attr("x2", width - right).attr("y1", y(tick)).attr("y2", y(tick)).attr("stroke", colour("line"));
    yAxis.append("text").attr("x", LEFT - 8).attr("y", y(tick)).attr("dy", "0.32em").attr("text-anchor", "end").attr("fill", colour("muted")).text(writeY(tick));
  }
  const xAxis = svg.append("g");
  xAxis.append("line").attr("x1", LEFT).attr("x2", width - right).attr("y1", top + plotHeight).attr("y2", top + plotHeight).attr("stroke", colour("line-strong"));
  for (const tick of xTicks) {
    const text = writeX(tick);
    if (text === "") continue;
    xAxis.append("line").attr("x1", x(tick)).attr("x2", x(tick)).attr("y1", top + plotHeight).attr("y2", top + plotHeight + 5).attr("stroke", colour("line-strong"));
    xAxis.append("text").attr("x", x(tick)).attr("y", top + plotHeight + 18).attr("text-anchor", "middle").attr("fill", colour("muted")).text(text);
  }
  svg.append("text").attr("x", width - right).attr("y", top + plotHeight + 36).attr("text-anchor", "end").attr("fill", colour("muted")).text(what.x.label);

  const clip = `clip-${Math.random().toString(36).slice(2)}`;
  svg.append("clipPath").attr("id", clip).append("rect").attr("x", LEFT).attr("y", top).attr("width", width - right - LEFT).attr("height", plotHeight);
  const body = svg.append("g").attr("clip-path", `url(#${clip})`);
  const drawn = (row) => positive(what.x.log)(row.x) && positive(what.y.log)(row.y);
  what.series.forEach((one, index) => {
    const [name, dashes] = STYLES[index];
    const banded = one.rows.filter((row) => row.low !== null && drawn(row));
    const floor = (value) => (what.y.log ? Math.max(value, y.domain()[0]) : value);
    if (banded.length > 1) {
      body.append("path").attr("fill", colour(name)).attr("fill-opacity", 0.14)
        .attr("d", d3.area().x((row) => x(row.x)).y0((row) => y(floor(row.low))).y1((row) => y(row.high))(banded));
    }
    const line = d3.line().x((row) => x(row.x)).y((row) => y(row.y));
    for (const faint of one.faint ?? []) {
      body.append("path").attr("fill", "none").attr("stroke", colour(name)).attr("stroke-opacity", 0.3).attr("stroke-width", 1).attr("d", line(faint.map(([px, py]) => ({ x: px, y: py })).filter(drawn)));
    }
    const rows = one.rows.filter(drawn);
    body.append("path").attr("class", "curve").attr("fill", "none").attr("stroke", colour(name)).attr("stroke-width", 2).attr("stroke-dasharray", dashes || null).attr("stroke-linejoin", "round").attr("d", line(rows));
    if (rows.length < 40) for (const row of rows) body.append("circle").attr("cx", x(row.x)).attr("cy", y(row.y)).attr("r", 2.4).attr("fill", colour(name));
    const at = top + plotHeight + 54 + ROW * index;
    svg.append("line").attr("x1", LEFT).attr("x2", LEFT + 30).attr("y1", at - 4).attr("y2", at - 4).attr("stroke", colour(name)).attr("stroke-width", 2).attr("stroke-dasharray", dashes || null);
    svg.append("text").attr("class", "name").attr("x", LEFT + 38).attr("y", at).attr("fill", colour("ink")).text(one.name);
  });

  // The ruler and the range belong to the page alone.
  const brush = d3.brushX().extent([[LEFT, top], [width - right, top + plotHeight]]).on("end", (event) => {
    if (!event.sourceEvent) return;
    zoomed(event.selection ? event.selection.map(x.invert) : null);
  });
  const pointer = svg.append("g").attr("class", "page-only").call(brush);
  pointer.select(".overlay").on("dblclick", () => zoomed(null));
  const ruler = svg.append("line").attr("class", "page-only").attr("y1", top).attr("y2", top + plotHeight).attr("stroke", colour("line-strong")).attr("stroke-dasharray", "3 3").attr("visibility", "hidden");
  host.replaceChildren(svg.node());
  return {
    node: svg.node(),
    // The rows nearest to a place on the screen, one of each series, with the ruler at it; nothing outside.
    read(clientX) {
      const box = svg.node().getBoundingClientRect();
      const px = ((clientX - box.left) * width) / box.width;
      if (px < LEFT || px > width - right) { ruler.attr("visibility", "hidden"); return null; }
      const place = x.invert(px);
      ruler.attr("visibility", "visible").attr("x1", px).attr("x2", px);
      const near = (rows) => rows.reduce((best, row) => (!best || Math.abs(row.x - place) < Math.abs(best.x - place) ? row : best), null);
      return what.series.map((one) => ({ name: one.name, row: near(one.rows.filter((row) => inside(row.x))) })).filter((one) => one.row)
        .map((one) => ({ ...one, x: what.x.time ? duration(one.row.x) : Math.round(one.row.x).toLocaleString("en"), y: what.y.percent ? `${(one.row.y * 100).toFixed(1)}%` : one.row.y.toPrecision(4) }));
    },
    hide() { ruler.attr("visibility", "hidden"); },
  };
}

// The drawing as a file, without what only a page needs.
export function asSvg(node) {
  const copy = node.cloneNode(true);
  copy.querySelectorAll(".page-only").forEach((part) => part.remove());
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(copy)}\n`;
}

// The drawing as a picture of twice as many dots.
export async function asPng(node) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(asSvg(node))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = node.viewBox.baseVal.width * 2;
  canvas.height = node.viewBox.baseVal.height * 2;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}
