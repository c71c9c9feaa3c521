// The house from above: the storey that is walked on, the others faint, the path in order, and where the agent is.

import { EYE } from "./player.js";

const NS = "http://www.w3.org/2000/svg";
const STOREY = 2.9;

function part(parent, name, attributes = {}, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const cm = (x) => Math.round(x * 100) / 100;

export class Plan {
  // `floors`: one function for each storey, that draws it into a group. Positions are metres, north up.
  constructor(svg, { box, storeys, storeyOf }, path) {
    const [x0, y0, x1, y1] = box;
    const margin = 0.6;
    Object.assign(this, { svg, storeyOf, shown: null });
    this.size = Math.max(x1 - x0, y1 - y0);
    // The whole house, and what is around the path.
    const [xs, ys] = [0, 1].map((k) => path.map((stop) => stop.position[k]));
    const around = (east, north) => [Math.min(...xs) - east, Math.min(...ys) - north, Math.max(...xs) + east, Math.max(...ys) + north];
    this.frames = [box.map((side, i) => side + (i < 2 ? -margin : margin)), around(2.6, 2.2), around(4.2, 4.2)].map(([w, s, e, n]) => [w, -n, e - w, n - s].map(cm).join(" "));
    this.frame("house");
    this.unit = Math.min(0.55, Math.max(0.24, this.size / 36));
    this.floors = storeys.map((draw, storey) => {
      const group = part(svg, "g", { class: "plan-storey" });
      draw(group);
      group.dataset.storey = storey;
      return group;
    });
    this.lines = this.floors.map(() => part(svg, "g", { class: "plan-path" }));
    this.#draw(path);
    this.cone = part(svg, "path", { class: "plan-cone" });
    this.here = part(svg, "g", { class: "plan-here" });
    part(this.here, "circle", { r: cm(this.unit * 0.75) });
    part(this.here, "path", { d: `M0 ${cm(-this.unit * 1.25)}L${cm(this.unit * 0.5)} ${cm(-this.unit * 0.55)}H${cm(-this.unit * 0.5)}Z` });
  }

  #draw(path) {
    const u = this.unit;
    path.forEach(({ position: [x, y, z] }, i) => {
      if (i === 0) return;
      const [px, py, pz] = path[i - 1].position;
      const [a, b] = [this.storeyOf(pz), this.storeyOf(z)];
      for (const storey of new Set([a, b])) part(this.lines[storey], "line", { x1: cm(px), y1: cm(-py), x2: cm(x), y2: cm(-y), "stroke-width": cm(u * 0.36) });
    });
    // Stops at one place share a mark with all their numbers.
    const places = new Map();
    path.forEach(({ position: [x, y, z] }, i) => {
      const key = `${x} ${y} ${z}`;
      places.set(key, [...(places.get(key) ?? []), i]);
    });
    this.marks = [];
    for (const numbers of places.values()) {
      const [x, y, z] = path[numbers[0]].position;
      const group = part(this.lines[this.storeyOf(z)], "g", { class: "plan-stop", transform: `translate(${cm(x)} ${cm(-y)})` });
      const [first, last] = [numbers[0] === 0, numbers.at(-1) === path.length - 1];
      if (last) part(group, "circle", { class: "plan-end", r: cm(u * 1.2), "stroke-width": cm(u * 0.22) });
      part(group, first ? "rect" : "circle", first ? { class: "plan-start", x: cm(-u * 0.8), y: cm(-u * 0.8), width: cm(u * 1.6), height: cm(u * 1.6), rx: cm(u * 0.3) } : { r: cm(u * 0.8) });
      part(group, "text", { "font-size": cm(u * (numbers.length > 1 ? 0.75 : 1.15)), dy: cm(u * 0.4) }, numbers.map((i) => i + 1).join("·"));
      for (const i of numbers) this.marks[i] = group;
    }
  }

  // Shows the whole house; where there is little room, what is around the path: closely in a corner, with the rooms about it
  // on all of a small screen.
  frame(what) {
    this.svg.setAttribute("viewBox", this.frames[["house", "path", "rooms"].indexOf(what)]);
  }

  // Where the agent is, which way it looks, and how wide.
  show({ x, y, z, stop }, heading, width) {
    const storey = this.storeyOf(z);
    if (storey !== this.shown) {
      this.shown = storey;
      this.floors.forEach((group, i) => group.classList.toggle("faint", i !== storey));
      this.lines.forEach((group, i) => group.classList.toggle("faint", i !== storey));
      // The storey that is walked on lies on top.
      this.svg.insertBefore(this.floors[storey], this.lines[0]);
    }
    if (stop !== this.stop) {
      this.marks[this.stop]?.classList.remove("now");
      this.marks[stop]?.classList.add("now");
      this.stop = stop;
    }
    const r = this.unit * 9, u = this.unit;
    const edge = (angle) => `${cm(x + Math.sin(angle) * r)} ${cm(-y - Math.cos(angle) * r)}`;
    this.cone.setAttribute("d", `M${cm(x)} ${cm(-y)}L${edge(heading - width / 2)}A${cm(r)} ${cm(r)} 0 0 1 ${edge(heading + width / 2)}Z`);
    this.here.setAttribute("transform", `translate(${cm(x)} ${cm(-y)}) rotate(${Math.round((heading * 180) / Math.PI)})`);
    this.here.setAttribute("stroke-width", cm(u * 0.2));
  }
}

const rect = (parent, { x0, y0, x1, y1 }, attributes) => part(parent, "rect", { x: cm(x0), y: cm(-y1), width: cm(x1 - x0), height: cm(y1 - y0), ...attributes });

// What a plan needs to know of a generated house.
export function ofHouse(house) {
  const rooms = house.rooms;
  const of = (key, pick) => pick(...rooms.map((room) => room.rect[key]));
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
    const walls = house.walls.map((wall, index) => ({ wall, index })).filter(({ wall }) => wall.storey === storey);
    for (const { wall, index } of walls) {
      const alongX = wall.from[1] === wall.to[1], axis = alongX ? 0 : 1, t = wall.thickness / 2, line = wall.from[1 - axis];
      const stretch = (a, b, inset = 0) => (alongX ? { x0: a, x1: b, y0: line - t + inset, y1: line + t - inset } : { x0: line - t + inset, x1: line + t - inset, y0: a, y1: b });
      let at = wall.from[axis] - t;
      const holes = house.openings.filter((o) => o.wall === index).sort((p, q) => p.at[axis] - q.at[axis]);
      for (const hole of holes) {
        const [a, b] = [hole.at[axis] - hole.width / 2, hole.at[axis] + hole.width / 2];
        if (a > at) rect(group, stretch(at, a), { class: "plan-wall" });
        if (hole.kind === "window" || hole.kind === "glass-door") rect(group, stretch(a, b, t * 0.35), { class: "plan-window" });
        if (hole.kind === "front-door") rect(group, stretch(a, b, t * 0.2), { class: `plan-door tint-${hole.finish.colour}` });
        at = b;
      }
      if (wall.to[axis] + t > at) rect(group, stretch(at, wall.to[axis] + t), { class: "plan-wall" });
    }
    for (const room of rooms.filter((r) => r.storey === storey && r.kind !== "stairs")) {
      const { x0, y0, x1, y1 } = room.rect;
      const [w, d] = [x1 - x0, y1 - y0];
      const upright = d > w * 1.6 && w < 2.4;
      const size = Math.min(0.55, (upright ? d : w) / (room.kind.length * 0.62), (upright ? w : d) * 0.4);
      const [x, y] = [cm((x0 + x1) / 2), cm(-(y0 + y1) / 2)];
      part(group, "text", { class: "plan-room", x, y, dy: cm(size * 0.35), "font-size": cm(size), ...(upright ? { transform: `rotate(-90 ${x} ${y})` } : {}) }, room.kind);
    }
  };
  return {
    box: [of("x0", Math.min), of("y0", Math.min), of("x1", Math.max), of("y1", Math.max)],
    storeys: Array.from({ length: house.storeys }, (_, storey) => draw(storey)),
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
  return { box: [Math.min(...xs) - 0.8, Math.min(...ys) - 0.8, Math.max(...xs) + 0.8, Math.max(...ys) + 0.8], storeys: levels.map((_, storey) => draw(storey)), storeyOf };
}
