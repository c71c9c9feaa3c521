// Builds meshes out of simple solids, each corner with its colour and light worked out once. House coordinates: metres,
// x to the east, y to the north, z up.

import * as THREE from "../../vendor/three.module.min.js";

const PAINTS = {
  white: 0xf1eee7, black: 0x2e2f33, gray: 0x9aa0a6, silver: 0xc3c9cf, brown: 0x8f5f38, dark: 0x553a27, light: 0xd3ac78,
  beige: 0xdfcaa2, red: 0xb8453b, blue: 0x4d7cba, green: 0x5f9560, yellow: 0xe4bf4a, orange: 0xd98a3d, purple: 0x8463a8,
  gold: 0xc9a24a, clear: 0xdcecf2,
};

const known = new Map();

// A colour as three linear numbers: an everyday name, or a number as in 0xf1eee7.
export function paint(colour) {
  let found = known.get(colour);
  if (!found) {
    const { r, g, b } = new THREE.Color(typeof colour === "number" ? colour : (PAINTS[colour] ?? 0xbdb8ae));
    found = [r, g, b];
    known.set(colour, found);
  }
  return found;
}

export const shade = (colour, by) => colour.map((part) => part * by);
export const blend = (a, b, share) => a.map((part, i) => part + (b[i] - part) * share);

// The same small difference for the same thing every time.
export function chance(...parts) {
  let hash = 2166136261;
  for (const part of parts) hash = Math.imul(hash ^ Math.round(part * 1000), 16777619);
  hash ^= hash >>> 15;
  return (Math.imul(hash, 2246822519) >>> 8) / 2 ** 24;
}

const lit = [1, 1, 1];

export class Brush {
  positions = [];
  colours = [];
  uvs = [];
  indices = [];
  // Light that falls on a point with a normal: writes red, green and blue into its last argument.
  light = null;
  // Where solids are put: their own x, y and z from there. The front of a thing looks along y.
  #x = 0; #y = 0; #z = 0; #right = [1, 0]; #front = [0, 1];

  // From now on coordinates are those of a thing at a place, turned to the right by so many quarters (or parts of one).
  at(x = 0, y = 0, z = 0, turn = 0) {
    [this.#x, this.#y, this.#z] = [x, y, z];
    const [sin, cos] = [Math.sin((turn * Math.PI) / 2), Math.cos((turn * Math.PI) / 2)];
    this.#right = [cos, -sin];
    this.#front = [sin, cos];
    return this;
  }

  // A corner; its number.
  corner(x, y, z, nx, ny, nz, colour, u = 0, v = 0) {
    const [rx, ry] = this.#right;
    const [fx, fy] = this.#front;
    const px = this.#x + x * rx + y * fx, py = this.#y + x * ry + y * fy, pz = this.#z + z;
    const qx = nx * rx + ny * fx, qy = nx * ry + ny * fy;
    this.positions.push(px, py, pz);
    if (this.light) {
      this.light(px, py, pz, qx, qy, nz, lit);
      this.colours.push(colour[0] * lit[0], colour[1] * lit[1], colour[2] * lit[2]);
    } else {
      this.colours.push(colour[0], colour[1], colour[2]);
    }
    this.uvs.push(u, v);
    return this.positions.length / 3 - 1;
  }

  // Four corners counter-clockwise as seen from the side that the normal is on.
  quad(a, b, c, d, normal, colour, uv = null) {
    const at = (p, i) => this.corner(p[0], p[1], p[2], normal[0], normal[1], normal[2], colour, uv ? uv[i][0] : 0, uv ? uv[i][1] : 0);
    const [i, j, k, l] = [at(a, 0), at(b, 1), at(c, 2), at(d, 3)];
    this.indices.push(i, j, k, i, k, l);
  }

  // A grid of quads over a flat stretch: origin plus us[i] along `across` plus vs[j] along `up`, texture in metres.
  sheet(origin, across, up, us, vs, normal, colour) {
    const flip = (across[1] * up[2] - across[2] * up[1]) * normal[0] + (across[2] * up[0] - across[0] * up[2]) * normal[1] + (across[0] * up[1] - across[1] * up[0]) * normal[2] < 0;
    const first = this.positions.length / 3;
    for (const v of vs) {
      for (const u of us) {
        const p = [0, 1, 2].map((k) => origin[k] + across[k] * u + up[k] * v);
        this.corner(p[0], p[1], p[2], normal[0], normal[1], normal[2], colour, u, v);
      }
    }
    for (let j = 0; j + 1 < vs.length; j++) {
      for (let i = 0; i + 1 < us.length; i++) {
        const a = first + j * us.length + i, b = a + 1, d = a + us.length, c = d + 1;
        if (flip) this.indices.push(a, c, b, a, d, c);
        else this.indices.push(a, b, c, a, c, d);
      }
    }
  }

  // A box whose edges are rounded off by `r`: corners share normals across the edges, which shades them softly.
  box(x0, x1, y0, y1, z0, z1, colour, r = 0.008) {
    r = Math.min(r, (x1 - x0) / 2.5, (y1 - y0) / 2.5, (z1 - z0) / 2.5);
    const n = [];
    for (const sx of [-1, 1]) {
      for (const sy of [-1, 1]) {
        for (const sz of [-1, 1]) {
          const [x, y, z] = [sx < 0 ? x0 : x1, sy < 0 ? y0 : y1, sz < 0 ? z0 : z1];
          n.push([
            this.corner(x, y - sy * r, z - sz * r, sx, 0, 0, colour),
            this.corner(x - sx * r, y, z - sz * r, 0, sy, 0, colour),
            this.corner(x - sx * r, y - sy * r, z, 0, 0, sz, colour),
          ]);
        }
      }
    }
    for (const face of BOX) this.indices.push(n[face[0] >> 2][face[0] & 3], n[face[1] >> 2][face[1] & 3], n[face[2] >> 2][face[2] & 3]);
  }

  // An upright round body: a cylinder, a cone, a vase of several rings [height, radius].
  lathe(x, y, rings, colour, { segments = 14, cap = true, squash = 1 } = {}) {
    const first = this.positions.length / 3;
    rings.forEach(([z, r], j) => {
      const [before, after] = [rings[Math.max(j - 1, 0)], rings[Math.min(j + 1, rings.length - 1)]];
      const [dz, dr] = [after[0] - before[0], after[1] - before[1]];
      const size = Math.hypot(dz, dr) || 1;
      for (let i = 0; i <= segments; i++) {
        const angle = (i / segments) * 2 * Math.PI;
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        this.corner(x + c * r, y + s * r * squash, z, (c * dz) / size, (s * dz) / size, -dr / size, colour);
      }
    });
    for (let j = 0; j + 1 < rings.length; j++) {
      for (let i = 0; i < segments; i++) {
        const a = first + j * (segments + 1) + i, b = a + 1, d = a + segments + 1, c = d + 1;
        this.indices.push(a, b, c, a, c, d);
      }
    }
    if (!cap) return;
    for (const [[z, r], up] of [[rings[0], -1], [rings[rings.length - 1], 1]]) {
      if (r < 0.004) continue;
      const centre = this.corner(x, y, z, 0, 0, up, colour);
      const ring = [];
      for (let i = 0; i <= segments; i++) {
        const angle = (i / segments) * 2 * Math.PI;
        ring.push(this.corner(x + Math.cos(angle) * r, y + Math.sin(angle) * r * squash, z, 0, 0, up, colour));
      }
      for (let i = 0; i < segments; i++) {
        if (up > 0) this.indices.push(centre, ring[i], ring[i + 1]);
        else this.indices.push(centre, ring[i + 1], ring[i]);
      }
    }
  }

  post(x, y, r, z0, z1, colour, top = r, segments = 12) {
    this.lathe(x, y, [[z0, r], [z1, top]], colour, { segments });
  }

  ball(x, y, z, r, colour, { flat = 1, segments = 12, rings = 7, squash = 1 } = {}) {
    const steps = Array.from({ length: rings + 1 }, (_, i) => (i / rings - 0.5) * Math.PI);
    this.lathe(x, y, steps.map((t) => [z + Math.sin(t) * r * flat, Math.max(Math.cos(t) * r, 0.001)]), colour, { segments, cap: false, squash });
  }

  // A straight round bar between two points.
  bar(a, b, r, colour, segments = 8) {
    const d = [0, 1, 2].map((k) => b[k] - a[k]);
    const length = Math.hypot(...d) || 1;
    const t = d.map((part) => part / length);
    const side = Math.abs(t[2]) < 0.9 ? [t[1], -t[0], 0] : [1, 0, 0];
    const p = side.map((part) => part / Math.hypot(...side));
    const q = [t[1] * p[2] - t[2] * p[1], t[2] * p[0] - t[0] * p[2], t[0] * p[1] - t[1] * p[0]];
    const first = this.positions.length / 3;
    for (const end of [a, b]) {
      for (let i = 0; i <= segments; i++) {
        const angle = (i / segments) * 2 * Math.PI;
        const n = [0, 1, 2].map((k) => p[k] * Math.cos(angle) + q[k] * Math.sin(angle));
        this.corner(end[0] + n[0] * r, end[1] + n[1] * r, end[2] + n[2] * r, n[0], n[1], n[2], colour);
      }
    }
    for (let i = 0; i < segments; i++) {
      const c = first + i, e = c + segments + 1;
      this.indices.push(c, e, c + 1, c + 1, e, e + 1);
    }
  }

  // Four legs under a top.
  legs(w, d, h, t, colour, inset = 0.03) {
    for (const x of [-1, 1]) {
      for (const y of [-1, 1]) {
        const [cx, cy] = [x * (w / 2 - inset - t / 2), y * (d / 2 - inset - t / 2)];
        this.box(cx - t / 2, cx + t / 2, cy - t / 2, cy + t / 2, 0, h, colour);
      }
    }
  }

  mesh(material) {
    if (this.indices.length === 0) return null;
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(this.positions, 3));
    geometry.setAttribute("color", new THREE.Float32BufferAttribute(this.colours, 3));
    if (material.map) geometry.setAttribute("uv", new THREE.Float32BufferAttribute(this.uvs, 2));
    geometry.setIndex(this.indices);
    const mesh = new THREE.Mesh(geometry, material);
    mesh.matrixAutoUpdate = false;
    return mesh;
  }
}

// Triangles of a rounded box: corner * 4 + side, where corner counts the signs of x, y, z and side is the face's axis.
const BOX = (() => {
  const triangles = [];
  const sign = (corner, axis) => ((corner >> (2 - axis)) & 1 ? 1 : -1);
  const place = (id) => [0, 1, 2].map((axis) => sign(id >> 2, axis) * ((id & 3) === axis ? 1 : 0.9));
  const add = (a, b, c) => {
    const [p, q, r] = [a, b, c].map(place);
    const u = q.map((part, i) => part - p[i]), v = r.map((part, i) => part - p[i]);
    const out = p.map((part, i) => part + q[i] + r[i]);
    const facing = (u[1] * v[2] - u[2] * v[1]) * out[0] + (u[2] * v[0] - u[0] * v[2]) * out[1] + (u[0] * v[1] - u[1] * v[0]) * out[2];
    triangles.push(facing > 0 ? [a, b, c] : [a, c, b]);
  };
  for (let axis = 0; axis < 3; axis++) {
    const [j, k] = [0, 1, 2].filter((other) => other !== axis).map((other) => 1 << (2 - other));
    for (const side of [0, 1 << (2 - axis)]) {
      // A face, and with its neighbours the strips along the edges.
      const [a, b, c, d] = [side, side | j, side | j | k, side | k].map((corner) => corner * 4 + axis);
      add(a, b, c);
      add(a, c, d);
    }
    const [n, m] = [0, 1, 2].filter((other) => other !== axis);
    for (const s of [0, 1 << (2 - n)]) {
      for (const t of [0, 1 << (2 - m)]) {
        const [low, high] = [s | t, s | t | (1 << (2 - axis))];
        add(low * 4 + n, low * 4 + m, high * 4 + m);
        add(low * 4 + n, high * 4 + m, high * 4 + n);
      }
    }
  }
  for (let corner = 0; corner < 8; corner++) add(corner * 4, corner * 4 + 1, corner * 4 + 2);
  return triangles;
})();
