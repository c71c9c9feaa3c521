// Walls, floors, ceilings, doors, windows and stairs of a generated house.

import { blend, chance, paint, shade } from "./brush.js";
import { SUN, outdoors } from "./light.js";

export const STOREY = 2.9;
export const CEILING = 2.6;

const WALLS = { white: 0xf2efe8, beige: 0xe8dcc2, gray: 0xc3c7ca, yellow: 0xefdc9f, blue: 0xb4c9df, green: 0xbfd3b6, red: 0xcf8f80 };
const FLOORS = {
  wood: { brown: 0xa87548, light: 0xd7b484, dark: 0x6b4a31, gray: 0x9b958c },
  tile: { white: 0xeeece6, gray: 0xb3b7b9, beige: 0xddcfb4, black: 0x4a4c50 },
  carpet: { beige: 0xd4c4a5, gray: 0xa9a9aa, blue: 0x7f93b0 },
};
const PLASTER = paint(0xe4dccb);
const WHITE = paint(0xf6f4ef);
const PANE = paint(0xd6e9f2);

export const wallPaint = (finish) => paint(WALLS[finish.colour] ?? finish.colour);
export const floorPaint = (finish) => paint(FLOORS[finish.material]?.[finish.colour] ?? finish.colour);

// Where a stretch is cut, so that light can change along it: at its ends and the places given, close to the ends, then
// about every 0.8 m.
function cuts(from, to, places = []) {
  const marks = [0.06, 0.16, 0.34, 0.7].flatMap((step) => [from + step, to - step]);
  const n = Math.ceil((to - from) / 0.8);
  for (let i = 1; i < n; i++) marks.push(from + (i * (to - from)) / n);
  const fixed = [from, ...places, to];
  const apart = (mark, i) => fixed.every((place) => Math.abs(place - mark) > 0.03) && marks.slice(0, i).every((other) => Math.abs(other - mark) > 0.05);
  const kept = marks.filter((mark, i) => mark > from && mark < to && apart(mark, i));
  return [...new Set([...fixed, ...kept])].sort((p, q) => p - q);
}

// Heights at which walls are cut, all alike: edges of openings, the ceiling, and where light changes.
const LEVELS = cuts(0, STOREY, [0.9, 2.05, 2.1, 2.3, CEILING]);

const between = (marks, low, high) => marks.filter((mark) => mark >= low && mark <= high);

// Convex polygon cut to a rectangle.
function clipped(points, { x0, y0, x1, y1 }) {
  const sides = [[0, x0, 1], [0, x1, -1], [1, y0, 1], [1, y1, -1]];
  for (const [axis, at, sign] of sides) {
    const inside = (p) => (p[axis] - at) * sign >= 0;
    points = points.flatMap((p, i) => {
      const q = points[(i + 1) % points.length];
      const t = (at - p[axis]) / (q[axis] - p[axis]);
      const cross = [p[0] + (q[0] - p[0]) * t, p[1] + (q[1] - p[1]) * t];
      if (inside(p)) return inside(q) ? [p] : [p, cross];
      return inside(q) ? [cross] : [];
    });
    if (points.length < 3) return [];
  }
  return points;
}

export class Shell {
  constructor(house, rooms, brushes) {
    Object.assign(this, { house, rooms, brushes });
    house.rooms.forEach((room, index) => this.#room(room, index));
    house.walls.forEach((wall, index) => this.#wall(wall, house.openings.filter((o) => o.wall === index)));
    house.stairs.forEach((stairs) => this.#stairs(stairs));
  }

  #lit(kind, room) {
    const brush = this.brushes(kind);
    brush.light = room === null ? outdoors : this.rooms.of(room);
    return brush.at();
  }

  #room(room, index) {
    const { x0, y0, x1, y1 } = room.rect;
    const base = room.storey * STOREY;
    const [us, vs] = [cuts(x0, x1), cuts(y0, y1)];
    const stairs = (storey) => room.kind === "stairs" && this.house.stairs.find((s) => s.storey === storey);
    const [below, above] = [stairs(room.storey - 1), stairs(room.storey)];
    const floor = this.#lit(room.floor.material, index);
    if (!below) floor.sheet([0, 0, base], [1, 0, 0], [0, 1, 0], us, vs, [0, 0, 1], floorPaint(room.floor));
    else this.#strip(below, base, index, room);
    if (!above) this.#lit("plain", index).sheet([0, 0, base + CEILING], [1, 0, 0], [0, 1, 0], us, vs, [0, 0, -1], WHITE);
    if (room.kind !== "stairs") {
      for (const [x, y] of this.rooms.lamps(index)) {
        if (this.house.items.some((item) => item.room === index && item.bottom > 1.9 && Math.hypot(item.at[0] - x, item.at[1] - y) < 0.9)) continue;
        const brush = this.#lit("plain", index);
        brush.lathe(x, y, [[base + CEILING - 0.03, 0.2], [base + CEILING, 0.2]], WHITE, { segments: 22 });
        brush.light = null;
        brush.lathe(x, y, [[base + CEILING - 0.075, 0.1], [base + CEILING - 0.06, 0.155], [base + CEILING - 0.03, 0.175]], paint(0xfff4de), { segments: 22 });
      }
    }
  }

  // The step between the hallway and the stairwell, where the flight from below arrives.
  #strip(stairs, base, index, room) {
    const { rect, treads } = stairs;
    const first = treads[0].rect;
    const south = first.y0 + first.y1 < rect.y0 + rect.y1;
    const [y0, y1] = south ? [rect.y0, first.y0] : [first.y1, rect.y1];
    this.#lit("plain", index).box(rect.x0, rect.x1, y0, y1, base - 0.3, base, floorPaint(room.floor), 0.004);
  }

  // A side of a wall: of the room there, or outdoors. `s` is -1 on the south or west side.
  #wall(wall, openings) {
    const alongX = wall.from[1] === wall.to[1];
    const axis = alongX ? 0 : 1;
    const [from, to, line] = [wall.from[axis], wall.to[axis], wall.from[1 - axis]];
    const t = wall.thickness / 2, base = wall.storey * STOREY;
    const holes = openings.map((o) => ({ ...o, a: o.at[axis] - o.width / 2, b: o.at[axis] + o.width / 2 })).sort((p, q) => p.a - q.a);
    // All parts of all walls are cut at the same places: nothing shines through between them.
    const us = cuts(from, to, holes.flatMap(({ a, b }) => [a, b]));
    wall.rooms.forEach((index, side) => {
      const s = side === 0 ? -1 : 1;
      const room = index === null ? null : this.house.rooms[index];
      const colour = room ? wallPaint(room.walls) : PLASTER;
      const brush = this.#lit(room?.walls.material === "tile" ? "small tile" : "plain", index);
      const at = line + s * t;
      const normal = alongX ? [0, s, 0] : [s, 0, 0];
      const face = (a, b, low, high) => {
        if (b - a < 0.001 || high - low < 0.001) return;
        brush.sheet(alongX ? [0, at, base] : [at, 0, base], alongX ? [1, 0, 0] : [0, 1, 0], [0, 0, 1], between(us, a, b), between(LEVELS, low, high), normal, colour);
      };
      let u = from;
      for (const hole of holes) {
        face(u, hole.a, 0, STOREY);
        face(hole.a, hole.b, hole.top, STOREY);
        face(hole.a, hole.b, 0, hole.bottom);
        u = hole.b;
      }
      face(u, to, 0, STOREY);
      // Its ends: a thicker wall may go on where this one stops.
      for (const [end, out] of [[from, -1], [to, 1]]) {
        const [p, q] = [line, at].sort((m, n) => m - n);
        if (alongX) brush.sheet([end, p, base], [0, 1, 0], [0, 0, 1], [0, q - p], LEVELS, [out, 0, 0], colour);
        else brush.sheet([p, end, base], [1, 0, 0], [0, 0, 1], [0, q - p], LEVELS, [0, out, 0], colour);
      }
      // In a stairwell one sees the walls of several storeys, not all as thick: their edges, too.
      if (room?.kind === "stairs") {
        const [p, q] = [line, at].sort((m, n) => m - n);
        for (const [z, up] of [[base + 0.004, -1], [base + STOREY - 0.004, 1]]) {
          if (alongX) brush.sheet([from, p, z], [1, 0, 0], [0, 1, 0], [0, to - from], [0, q - p], [0, 0, up], colour);
          else brush.sheet([p, from, z], [1, 0, 0], [0, 1, 0], [0, q - p], [0, to - from], [0, 0, up], colour);
        }
      }
      if (room && room.kind !== "stairs") this.#skirting(alongX, line, s, t, base, from, to, holes.filter((hole) => hole.bottom === 0), index);
    });
    for (const hole of holes) this.#opening(hole, wall, { alongX, line, t, base });
  }

  #skirting(alongX, line, s, t, base, from, to, holes, index) {
    const brush = this.#lit("plain", index);
    const [near, far] = [line + s * (t - 0.005), line + s * (t + 0.014)].sort((p, q) => p - q);
    const strip = (a, b) => {
      if (b - a < 0.02) return;
      if (alongX) brush.box(a, b, near, far, base, base + 0.09, WHITE, 0.006);
      else brush.box(near, far, a, b, base, base + 0.09, WHITE, 0.006);
    };
    let u = from;
    for (const hole of holes) {
      const trim = hole.kind === "archway" ? 0 : 0.06;
      strip(u, hole.a - trim);
      u = hole.b + trim;
    }
    strip(u, to);
  }

  #opening(hole, wall, frame) {
    const { alongX, line, t, base } = frame;
    const inside = wall.rooms[1] ?? wall.rooms[0];
    const brush = this.#lit("plain", inside);
    // A box by its stretch along the wall, across it, and its height.
    const put = (to, a, b, p, q, low, high, colour, r = 0.006) => (alongX ? to.box(a, b, line + p, line + q, base + low, base + high, colour, r) : to.box(line + p, line + q, a, b, base + low, base + high, colour, r));
    const box = (...rest) => put(brush, ...rest);
    const { a, b, bottom, top, kind } = hole;
    if (kind === "archway") {
      wall.rooms.forEach((index, side) => {
        const colour = index === null ? PLASTER : wallPaint(this.house.rooms[index].walls);
        const [p, q] = side === 0 ? [-t, 0] : [0, t];
        this.#lit("plain", index);
        box(a - 0.02, a + 0.002, p, q, 0, top, colour, 0.001);
        box(b - 0.002, b + 0.02, p, q, 0, top, colour, 0.001);
        box(a - 0.02, b + 0.02, p, q, top - 0.002, top + 0.02, colour, 0.001);
      });
      return;
    }
    const trim = kind === "window" || kind === "glass-door" ? WHITE : blend(WHITE, paint(hole.finish.colour), kind === "door" && hole.finish.colour !== "white" ? 0.85 : 0);
    const w = 0.065, out = t + 0.016;
    box(a - w, a + 0.02, -out, out, bottom, top + w, trim);
    box(b - 0.02, b + w, -out, out, bottom, top + w, trim);
    box(a - w, b + w, -out, out, top - 0.02, top + w, trim);
    if (kind === "door") return this.#leaf(hole, wall, frame, paint(hole.finish.colour));
    if (kind === "front-door") {
      const colour = paint(hole.finish.colour);
      box(a + 0.02, b - 0.02, -0.03, 0.03, 0, top - 0.02, colour);
      const middle = (a + b) / 2;
      for (const [low, high] of [[0.15, 0.85], [0.98, 1.85]]) for (const [u, v] of [[a + 0.12, middle - 0.05], [middle + 0.05, b - 0.12]]) for (const s of [-1, 1]) box(u, v, s > 0 ? 0.028 : -0.038, s > 0 ? 0.038 : -0.028, low, high, shade(colour, 1.12));
      for (const s of [-1, 1]) box(b - 0.13, b - 0.07, s > 0 ? 0.03 : -0.09, s > 0 ? 0.09 : -0.03, 0.98, 1.04, paint("gold"), 0.02);
      return;
    }
    const glass = this.brushes("glass").at();
    glass.light = null;
    put(glass, a, b, -0.004, 0.004, bottom, top, PANE, 0.001);
    const bar = (u, v, low, high) => box(u, v, -0.028, 0.028, low, high, WHITE);
    bar(a + 0.01, a + 0.06, bottom, top);
    bar(b - 0.06, b - 0.01, bottom, top);
    bar(a + 0.01, b - 0.01, top - 0.07, top - 0.01);
    bar(a + 0.01, b - 0.01, bottom, bottom + 0.06);
    const middle = (a + b) / 2;
    if (b - a > 0.8) bar(middle - 0.03, middle + 0.03, bottom, top);
    if (kind === "window") {
      const side = wall.rooms[0] === null ? 1 : -1;
      const [p, q] = side > 0 ? [-t - 0.02, t + 0.11] : [-t - 0.11, t + 0.02];
      box(a - 0.09, b + 0.09, p, q, bottom - 0.035, bottom, WHITE, 0.01);
      const room = this.house.rooms[inside];
      if (["bedroom", "living room", "dining room", "family room", "library", "playroom", "music room"].includes(room.kind)) this.#curtains(put, brush, hole, side, t, room, inside);
    }
    this.#sunlight(hole, wall, frame);
  }

  #curtains(put, brush, { a, b, bottom, top }, side, t, room, index) {
    const colours = [0xe2ddd0, 0x8fa3b8, 0xcdb99a, 0xa8b59a, 0xd9cfc0];
    const colour = paint(colours[Math.floor(chance(index, this.house.seed) * colours.length)]);
    const near = side * (t + 0.05);
    put(brush, a - 0.3, b + 0.3, near - 0.012, near + 0.012, top + 0.1, top + 0.124, paint(0x6b5a45), 0.01);
    for (const [u, v] of [[a - 0.26, a + 0.06], [b - 0.06, b + 0.26]]) {
      for (let i = 0; i < 6; i++) {
        const [p, q] = [u + ((v - u) * i) / 6, u + ((v - u) * (i + 1.2)) / 6];
        const depth = near + side * (i % 2 ? 0.012 : -0.008);
        put(brush, p, Math.min(q, v + 0.02), depth - 0.022, depth + 0.022, bottom - 0.25, top + 0.11, shade(colour, i % 2 ? 1 : 0.93), 0.02);
      }
    }
  }

  // The open leaf of a door: on the side and at the hinge where it is least in the way of those who walk.
  #leaf(hole, wall, { alongX, line, base }, colour) {
    const { a, b, top } = hole;
    const width = b - a - 0.05;
    const flat = (i) => this.house.stands[i].position;
    const near = this.house.edges.map(([i, j]) => [flat(i), flat(j)]).filter(([p]) => Math.abs(p[2] - base - 1.5) < 0.3 && Math.hypot(p[0] - hole.at[0], p[1] - hole.at[1]) < 6.5);
    const crossed = (p, q) => near.some(([c, d]) => {
      const turn = (u, v, w) => (v[0] - u[0]) * (w[1] - u[1]) - (v[1] - u[1]) * (w[0] - u[0]);
      return turn(p, q, c) * turn(p, q, d) < 0 && turn(c, d, p) * turn(c, d, q) < 0;
    });
    let best = null;
    for (const [hinge, along] of [[a + 0.01, -1], [b - 0.01, 1]]) {
      for (const s of [1, -1]) {
        const start = alongX ? [hinge, line] : [line, hinge];
        const end = alongX ? [hinge, line + s * width] : [line + s * width, hinge];
        const place = wall.rooms[s > 0 ? 1 : 0];
        const cost = (crossed(start, end) ? 10 : 0) + (this.house.rooms[place]?.kind === "hallway" ? 1 : 0);
        if (!best || cost < best.cost) best = { cost, hinge, along, s, place };
      }
    }
    if (best.cost >= 10) return;
    const { hinge, along, s, place } = best;
    const brush = this.#lit("plain", place);
    const put = (p, q, low, high, thick, r, tint) => {
      const [u0, u1] = [hinge - thick, hinge + thick].map((u) => u + along * 0.012);
      const [v0, v1] = [line + s * p, line + s * q].sort((m, n) => m - n);
      if (alongX) brush.box(u0, u1, v0, v1, base + low, base + high, tint, r);
      else brush.box(v0, v1, u0, u1, base + low, base + high, tint, r);
    };
    put(0.02, width, 0.015, top - 0.03, 0.02, 0.006, colour);
    for (const [low, high] of [[0.16, 0.82], [0.96, top - 0.18]]) put(0.14, width - 0.12, low, high, 0.026, 0.008, shade(colour, 1.06));
    put(width - 0.1, width - 0.045, 0.99, 1.03, 0.06, 0.012, paint(0x9aa0a6));
  }

  // Where the sun falls on the floor.
  #sunlight(hole, wall, { alongX, line, base }) {
    const side = wall.rooms[0] === null ? 1 : -1;
    const index = side > 0 ? wall.rooms[1] : wall.rooms[0];
    if (index === null || (alongX ? SUN[1] : SUN[0]) * side <= 0) return;
    const room = this.house.rooms[index];
    const { a, b, bottom, top } = hole;
    const middle = (a + b) / 2;
    const panes = b - a > 0.8 ? [[a + 0.07, middle - 0.04], [middle + 0.04, b - 0.07]] : [[a + 0.07, b - 0.07]];
    const rect = { x0: room.rect.x0 + 0.12, y0: room.rect.y0 + 0.12, x1: room.rect.x1 - 0.12, y1: room.rect.y1 - 0.12 };
    const brush = this.brushes("sun").at();
    brush.light = null;
    for (const [u, v] of panes) {
      const corners = [[u, bottom + 0.08], [v, bottom + 0.08], [v, top - 0.09], [u, top - 0.09]].map(([along, z]) => {
        const fall = z / -SUN[2];
        const [x, y] = alongX ? [along, line] : [line, along];
        return [x + SUN[0] * fall, y + SUN[1] * fall];
      });
      const shape = clipped(corners, rect);
      const numbers = shape.map(([x, y]) => brush.corner(x, y, base + 0.027, 0, 0, 1, [0.2, 0.165, 0.11]));
      const area = shape.reduce((sum, p, i) => { const q = shape[(i + 1) % shape.length]; return sum + p[0] * q[1] - q[0] * p[1]; }, 0);
      for (let i = 1; i + 1 < numbers.length; i++) brush.indices.push(...(area > 0 ? [numbers[0], numbers[i], numbers[i + 1]] : [numbers[0], numbers[i + 1], numbers[i]]));
    }
  }

  #stairs({ storey, rect, treads, finish }) {
    const base = storey * STOREY;
    const lower = this.house.rooms.findIndex((room) => room.storey === storey && room.kind === "stairs" && room.rect.x0 === rect.x0 && room.rect.y0 === rect.y0);
    const upper = this.house.rooms.findIndex((room) => room.storey === storey + 1 && room.kind === "stairs" && room.rect.x0 === rect.x0 && room.rect.y0 === rect.y0);
    const colour = paint(finish.colour);
    const landing = treads.reduce((best, tread, i) => (tread.rect.x1 - tread.rect.x0 > treads[best].rect.x1 - treads[best].rect.x0 ? i : best), 0);
    const south = treads[0].rect.y0 < treads[landing].rect.y0;
    treads.forEach(({ rect: r, top }, i) => {
      const brush = this.#lit("plain", i > landing ? upper : lower);
      const z = base + top;
      const body = blend(colour, WHITE, finish.material === "carpet" ? 0.1 : 0.75);
      const nose = i === landing ? 0 : 0.02;
      const low = i < landing ? base : z - (i === landing ? 0.22 : 0.36);
      brush.box(r.x0, r.x1, r.y0, r.y1, low, z - 0.035, body, 0.003);
      const up = (i < landing) === south ? -nose : 0, down = (i < landing) === south ? 0 : nose;
      brush.box(r.x0, r.x1, r.y0 + up, r.y1 + down, z - 0.04, z, colour, 0.012);
    });
    // Handrails between the flights.
    const middle = (rect.x0 + rect.x1) / 2;
    const rail = (flight, place, x) => {
      const brush = this.#lit("plain", place);
      const ends = [flight[0], flight[flight.length - 1]].map(({ rect: r, top }) => [x, (r.y0 + r.y1) / 2, base + top + 0.9]);
      brush.bar(ends[0], ends[1], 0.028, shade(colour, 0.85), 10);
      for (const { rect: r, top } of flight) brush.bar([x, (r.y0 + r.y1) / 2, base + top], [x, (r.y0 + r.y1) / 2, base + top + 0.9], 0.012, WHITE, 6);
    };
    rail(treads.slice(0, landing), lower, middle - 0.09);
    rail(treads.slice(landing + 1), upper, middle + 0.09);
  }
}
