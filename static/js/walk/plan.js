// The house from above: the storey that is walked on, the others faint, the path in order, and where the agent is. It shows the
// rooms that the walk comes through, or the whole house; marks and names keep their size on the screen.

import { EYE } from "./player.js";
import { wedge } from "./sightline.js";

const NS = "http://www.w3.org/2000/svg";
const STOREY = 2.9;
const REACH = 5;          // metres: how far the wedge of the view goes
const NAME = 12;          // pixels: size of a room's name
const LETTER = 0.58;      // width of a letter, as a share of that
const AROUND = 3.2;       // metres around the path that are shown of its rooms at most
const SMALL = 170;        // pixels: a plan that is no wider shows no names and no numbers

function part(parent, name, attributes = {}, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const cm = (x) => Math.round(x * 100) / 100;
const union = (boxes) => [Math.min(...boxes.map((b) => b[0])), Math.min(...boxes.map((b) => b[1])), Math.max(...boxes.map((b) => b[2])), Math.max(...boxes.map((b) => b[3]))];
const grown = ([x0, y0, x1, y1], by) => [x0 - by, y0 - by, x1 + by, y1 + by];

export class Plan {
  #what = "walk";
  #scale = 0;

  // `storeys`: for each storey what draws it into a group, its rooms, and the walls that end a view. Positions are metres, north up.
  constructor(svg, { box, storeys, storeyOf }, path) {
    Object.assign(this, { svg, storeys, storeyOf, path, shown: null });
    this.house = grown(box, 0.5);
    this.floors = storeys.map(({ draw }, storey) => {
      const group = part(svg, "g", { class: "plan-storey" });
      draw(group);
      group.dataset.storey = storey;
      return group;
    });
    this.cone = part(svg, "path", { class: "plan-cone" });
    this.lines = storeys.map(() => part(svg, "g", { class: "plan-path" }));
    this.here = part(svg, "g", { class: "plan-here" });
    part(this.here, "circle", { r: 12 });
    part(this.here, "path", { d: "M0 -21L6.5 -11H-6.5Z" });
    this.stops = storeys.map(() => part(svg, "g", { class: "plan-path" }));
    this.names = part(svg, "g", { class: "plan-names" });
    this.#draw();
  }

  #draw() {
    const { path } = this;
    path.forEach(({ position: [x, y, z] }, i) => {
      if (i === 0) return;
      const [px, py, pz] = path[i - 1].position;
      const [a, b] = [this.storeyOf(pz), this.storeyOf(z)];
      for (const storey of new Set([a, b])) part(this.lines[storey], "line", { x1: cm(px), y1: cm(-py), x2: cm(x), y2: cm(-y) });
    });
    // Stops at one place share a mark with all their numbers.
    const places = new Map();
    path.forEach(({ position: [x, y, z] }, i) => {
      const key = `${x} ${y} ${z}`;
      places.set(key, [...(places.get(key) ?? []), i]);
    });
    this.marks = [];
    this.spots = [];
    for (const numbers of places.values()) {
      const [x, y, z] = path[numbers[0]].position;
      const storey = this.storeyOf(z);
      const group = part(this.stops[storey], "g", { class: "plan-stop" });
      const [first, last] = [numbers[0] === 0, numbers.at(-1) === path.length - 1];
      if (last) part(group, "circle", { class: "plan-end", r: 13.5 });
      part(group, first ? "rect" : "circle", first ? { class: "plan-start", x: -9, y: -9, width: 18, height: 18, rx: 4 } : { r: 9 });
      part(group, "text", { "font-size": numbers.length > 1 ? 8 : 12, dy: numbers.length > 1 ? 3 : 4.2 }, numbers.map((i) => i + 1).join("·"));
      this.spots.push({ group, x, y, storey });
      for (const i of numbers) this.marks[i] = group;
    }
  }

  // Shows "walk", the rooms that the walk comes through, or "house", all of it; in a corner "path", what is around the path.
  frame(what) {
    this.#what = what;
    this.fit();
  }

  // The visible part of a storey, in metres: west, south, east, north.
  #box(storey) {
    if (this.#what === "house") return this.house;
    const on = this.path.filter(({ position }) => this.storeyOf(position[2]) === storey).map(({ position }) => position);
    const stops = (on.length > 0 ? on : this.path.map(({ position }) => position)).map(([x, y]) => [x, y, x, y]);
    if (this.#what === "path") return grown(union(stops), 2.4);
    const inside = ({ x0, y0, x1, y1 }) => stops.some(([x, y]) => x >= x0 - 0.01 && x <= x1 + 0.01 && y >= y0 - 0.01 && y <= y1 + 0.01);
    // Of a long hallway, the part about the path.
    const [west, south, east, north] = grown(union(stops), AROUND);
    const rooms = this.storeys[storey].rooms.filter(({ rect }) => inside(rect)).map(({ rect }) => [Math.max(rect.x0, west), Math.max(rect.y0, south), Math.min(rect.x1, east), Math.min(rect.y1, north)]);
    return rooms.length > 0 ? grown(union([...rooms, ...stops.map((s) => grown(s, 0.6))]), 0.25) : grown(union(stops), 2.6);
  }

  // Fits the drawing to its place on the page.
  fit() {
    const storey = this.shown ?? this.storeyOf(this.path[0].position[2]);
    const style = getComputedStyle(this.svg);
    const width = this.svg.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const height = this.svg.clientHeight - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
    if (width <= 0 || height <= 0) return;
    const [x0, y0, x1, y1] = this.#box(storey);
    const small = width < SMALL;
    // Marks at the edge are seen whole, and none lies under the button at the bottom.
    const [edge, foot] = small ? [4, 4] : [12, 40];
    const scale = Math.min((width - 2 * edge) / (x1 - x0), (height - edge - foot) / (y1 - y0));
    // The frame has the form of its place, so that nothing of the place is left empty.
    const [w, h] = [width / scale, height / scale];
    const [left, top] = [(x0 + x1 - w) / 2, -(y0 + y1 + h) / 2 + (foot - edge) / 2 / scale];
    this.svg.setAttribute("viewBox", [left, top, w, h].map(cm).join(" "));
    this.#scale = scale;
    this.svg.classList.toggle("small", small);
    const size = (small ? 0.55 : 1) / scale;
    this.size = size;
    for (const { group, x, y } of this.spots) group.setAttribute("transform", `translate(${cm(x)} ${cm(-y)}) scale(${size})`);
    this.#name(storey, { left, top, right: left + w, bottom: top + h }, small);
    if (this.last) this.show(...this.last);
  }

  // Writes the names of rooms where they cover neither a mark nor each other. One that does not fit into its room is written only
  // where the walk comes through.
  #name(storey, seen, small) {
    this.names.replaceChildren();
    if (small) return;
    const scale = this.#scale;
    const px = (x, y) => [(x - seen.left) * scale, (y - seen.top) * scale];
    const taken = this.spots.filter((spot) => spot.storey === storey).map(({ x, y }) => { const [a, b] = px(x, -y); return [a - 14, b - 14, a + 14, b + 14]; });
    // The controls lie on the plan: the storey at its bottom on the left, the button on the right.
    const { clientWidth, clientHeight } = this.svg;
    taken.push([0, clientHeight - 36, 110, clientHeight], [clientWidth - 125, clientHeight - 42, clientWidth, clientHeight]);
    this.path.forEach(({ position: [x, y, z] }, i) => {
      const before = this.path[i - 1]?.position;
      if (!before || this.storeyOf(z) !== storey) return;
      const [[a, b], [c, d]] = [px(before[0], -before[1]), px(x, -y)];
      const n = Math.ceil(Math.hypot(c - a, d - b) / 10);
      for (let k = 1; k < n; k++) { const [u, v] = [a + ((c - a) * k) / n, b + ((d - b) * k) / n]; taken.push([u - 4, v - 4, u + 4, v + 4]); }
    });
    const walked = (rect) => this.path.some(({ position: [x, y, z] }) => this.storeyOf(z) === storey && x >= rect.x0 && x <= rect.x1 && y >= rect.y0 && y <= rect.y1);
    const named = this.storeys[storey].rooms.filter(({ kind }) => kind !== "stairs").map((room) => ({ ...room, walked: walked(room.rect) }));
    named.sort((a, b) => b.walked - a.walked);
    for (const { kind, rect, walked } of named) {
      const [west, north] = px(Math.max(rect.x0, seen.left), Math.max(-rect.y1, seen.top));
      const [east, south] = px(Math.min(rect.x1, seen.right), Math.min(-rect.y0, seen.bottom));
      const [w, d] = [east - west, south - north];
      if (w < NAME || d < NAME) continue;
      const length = kind.length * NAME * LETTER + 6;
      const upright = length > w && length <= d;
      if (!upright && !walked && (length > w || d < NAME * 1.5)) continue;
      const [tw, th] = upright ? [NAME * 1.3, length] : [length, NAME * 1.3];
      const spot = place(taken, { west, north, w, d, tw, th });
      if (!walked && spot.cost > 0) continue;
      // Labels at the edge stay in the picture.
      const x = Math.min(Math.max(spot.x, tw / 2 + 2), (seen.right - seen.left) * scale - tw / 2 - 2);
      const y = Math.min(Math.max(spot.y, th / 2 + 2), (seen.bottom - seen.top) * scale - th / 2 - 2);
      taken.push([x - tw / 2, y - th / 2, x + tw / 2, y + th / 2]);
      const turn = upright ? " rotate(-90)" : "";
      part(this.names, "text", { class: `plan-room${walked ? " walked" : ""}`, "font-size": NAME, dy: 4.2, transform: `translate(${cm(seen.left + x / scale)} ${cm(seen.top + y / scale)}) scale(${1 / scale})${turn}` }, kind);
    }
  }

  // Where the agent is, which way it looks, and how wide.
  show(pose, heading, width) {
    const { x, y, z, stop } = pose;
    this.last = [pose, heading, width];
    const storey = this.storeyOf(z);
    if (storey !== this.shown) {
      this.shown = storey;
      for (const groups of [this.floors, this.lines, this.stops]) groups.forEach((group, i) => group.classList.toggle("faint", i !== storey));
      // The storey that is walked on lies on top.
      this.svg.insertBefore(this.floors[storey], this.cone);
      return this.fit();
    }
    if (stop !== this.stop) {
      this.marks[this.stop]?.classList.remove("now");
      this.marks[stop]?.classList.add("now");
      this.stop = stop;
    }
    const corners = wedge(x, y, heading, width, this.storeys[storey].walls, REACH);
    this.cone.setAttribute("d", `M${corners.map(([a, b]) => `${cm(a)} ${cm(-b)}`).join("L")}Z`);
    this.here.setAttribute("transform", `translate(${cm(x)} ${cm(-y)}) scale(${this.size ?? 1}) rotate(${Math.round((heading * 180) / Math.PI)})`);
  }
}

// Where a name of a size goes in the seen part of its room: as near to the middle as it covers nothing.
function place(taken, { west, north, w, d, tw, th }) {
  const [cx, cy] = [west + w / 2, north + d / 2];
  const [roomX, roomY] = [Math.max(0, (w - tw) / 2 - 3), Math.max(0, (d - th) / 2 - 3)];
  let best = null;
  for (const v of [0, -0.4, 0.4, -0.7, 0.7, -1, 1]) {
    for (const u of [0, -0.25, 0.25, -0.5, 0.5, -0.75, 0.75, -1, 1]) {
      const [x, y] = [cx + u * roomX, cy + v * roomY];
      const box = [x - tw / 2, y - th / 2, x + tw / 2, y + th / 2];
      const cost = taken.reduce((sum, [a, b, c, e]) => sum + Math.max(0, Math.min(box[2], c) - Math.max(box[0], a)) * Math.max(0, Math.min(box[3], e) - Math.max(box[1], b)), 0);
      if (cost === 0) return { x, y, cost };
      if (!best || cost < best.cost) best = { x, y, cost };
    }
  }
  return best;
}

const rect = (parent, { x0, y0, x1, y1 }, attributes) => part(parent, "rect", { x: cm(x0), y: cm(-y1), width: cm(x1 - x0), height: cm(y1 - y0), ...attributes });

// What a plan needs to know of a generated house.
export function ofHouse(house) {
  const rooms = house.rooms;
  const of = (key, pick) => pick(...rooms.map((room) => room.rect[key]));
  // Walls of a storey, and the openings in them: where each is, and whether one can go through.
  const stretches = (storey) => house.walls.flatMap((wall, index) => {
    if (wall.storey !== storey) return [];
    const alongX = wall.from[1] === wall.to[1], axis = alongX ? 0 : 1, t = wall.thickness / 2, line = wall.from[1 - axis];
    const stretch = (a, b, inset = 0) => (alongX ? { x0: a, x1: b, y0: line - t + inset, y1: line + t - inset } : { x0: line - t + inset, x1: line + t - inset, y0: a, y1: b });
    const holes = house.openings.filter((o) => o.wall === index).sort((p, q) => p.at[axis] - q.at[axis]);
    const list = [];
    let at = wall.from[axis] - t;
    for (const hole of holes) {
      const [a, b] = [hole.at[axis] - hole.width / 2, hole.at[axis] + hole.width / 2];
      if (a > at) list.push({ at: stretch(at, a) });
      list.push({ at: stretch(a, b), inset: (share) => stretch(a, b, t * share), hole, open: hole.kind === "door" || hole.kind === "archway" });
      at = b;
    }
    if (wall.to[axis] + t > at) list.push({ at: stretch(at, wall.to[axis] + t) });
    return list;
  });
  const draw = (storey) => (group) => {
    for (const room of rooms.filter((r) => r.storey === storey)) rect(group, room.rect, { class: `plan-floor ${room.floor.material}` });
    for (const stairs of house.stairs.filter((s) => s.storey === storey || s.storey + 1 === storey)) {
      for (const tread of stairs.treads) rect(group, tread.rect, { class: "plan-tread", "stroke-width": 0.03 });
    }
    const items = house.items.filter((item) => rooms[item.room].storey === storey && item.bottom < 1.2);
    items.sort((a, b) => a.bottom + a.size[2] - b.bottom - b.size[2]);
    for (const { at, size, turn, finish, kind } of items) {
      const [w, d] = turn % 2 ? [size[1], size[0]] : size;
      const round = ["plant", "stool", "floor lamp", "lamp", "vase", "bowl", "globe", "exercise ball", "trash can", "statue", "coat rack"].includes(kind);
      rect(group, { x0: at[0] - w / 2, y0: at[1] - d / 2, x1: at[0] + w / 2, y1: at[1] + d / 2 }, { class: `plan-thing tint-${finish.colour}`, rx: round ? cm(w / 2) : 0.06, "stroke-width": size[2] < 0.05 ? 0 : 0.025 });
    }
    for (const { at, inset, hole } of stretches(storey)) {
      if (!hole) rect(group, at, { class: "plan-wall" });
      else if (hole.kind === "window" || hole.kind === "glass-door") rect(group, inset(0.35), { class: "plan-window" });
      else if (hole.kind === "front-door") rect(group, inset(0.2), { class: `plan-door tint-${hole.finish.colour}` });
    }
  };
  return {
    box: [of("x0", Math.min), of("y0", Math.min), of("x1", Math.max), of("y1", Math.max)],
    storeys: Array.from({ length: house.storeys }, (_, storey) => ({ draw: draw(storey), rooms: rooms.filter((r) => r.storey === storey), walls: stretches(storey).filter(({ open }) => !open).map(({ at }) => at) })),
    storeyOf: (z) => Math.min(house.storeys - 1, Math.max(0, Math.floor((z - EYE + 0.3) / STOREY))),
  };
}

// Real houses have no walls to draw: the ways that can be walked stand for them. Storeys are where viewpoints lie close
// to each other in height.
export function ofGraph({ viewpoints, edges, objects }) {
  const heights = viewpoints.map((v) => v[3]).sort((a, b) => a - b);
  const levels = [];
  for (const z of heights) {
    const last = levels.at(-1);
    if (last && z - last.top < 1.1) { last.top = z; last.n += 1; } else levels.push({ low: z, top: z, n: 1 });
  }
  const storeyOf = (z) => levels.reduce((best, level, i) => (Math.abs((level.low + level.top) / 2 - z) < Math.abs((levels[best].low + levels[best].top) / 2 - z) ? i : best), 0);
  const draw = (storey) => (group) => {
    for (const [a, b] of edges) {
      if (storeyOf(viewpoints[a][3]) !== storey && storeyOf(viewpoints[b][3]) !== storey) continue;
      part(group, "line", { class: "plan-way", x1: cm(viewpoints[a][1]), y1: cm(-viewpoints[a][2]), x2: cm(viewpoints[b][1]), y2: cm(-viewpoints[b][2]), "stroke-width": 0.1 });
    }
    for (const [, x, y, z] of viewpoints) if (storeyOf(z) === storey) part(group, "circle", { class: "plan-view", cx: cm(x), cy: cm(-y), r: 0.14 });
    for (const [, x, y, z] of objects) if (storeyOf(z + 0.4) === storey) part(group, "circle", { class: "plan-object", cx: cm(x), cy: cm(-y), r: 0.09 });
  };
  const [xs, ys] = [1, 2].map((k) => viewpoints.map((v) => v[k]));
  return { box: [Math.min(...xs) - 0.8, Math.min(...ys) - 0.8, Math.max(...xs) + 0.8, Math.max(...ys) + 0.8], storeys: levels.map((_, storey) => ({ draw: draw(storey), rooms: [], walls: [] })), storeyOf };
}
