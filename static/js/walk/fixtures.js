// What kitchens, bathrooms, lamps, plants, pictures and playthings look like. Conventions as in furniture.js.

import { blend, chance, paint, shade } from "./brush.js";

const METAL = () => paint(0x9aa0a6);
const WHITE = () => paint(0xf4f3ef);
const BLACK = () => paint(0x232428);
const LEAF = [0x3f7a3c, 0x4f8f45, 0x356b39];

function tap(b, y, z) {
  b.bar([0, y, z], [0, y, z + 0.2], 0.014, METAL());
  b.bar([0, y, z + 0.2], [0, y + 0.14, z + 0.17], 0.012, METAL());
}

// A kitchen or laundry machine: body, and a panel with knobs at the top.
function machine(b, { w, d, h, c }, round) {
  b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.02, 0.02, h, c, 0.015);
  b.box(-w / 2 + 0.01, w / 2 - 0.01, d / 2 - 0.03, d / 2, 0.06, h - 0.14, shade(c, 1.03), 0.012);
  b.box(-w / 2 + 0.01, w / 2 - 0.01, d / 2 - 0.03, d / 2 - 0.004, h - 0.13, h - 0.01, shade(c, 0.93), 0.01);
  b.box(-w * 0.1, w * 0.1, d / 2 - 0.006, d / 2, h - 0.1, h - 0.05, BLACK(), 0.003);
  if (round) {
    // The round door: rings seen from the front.
    for (const [r, y, colour] of [[w * 0.33, d / 2 + 0.012, METAL()], [w * 0.26, d / 2 + 0.02, paint(0x46525c)]]) disc(b, 0, y, h * 0.44, r, colour);
  } else {
    b.box(-w * 0.4, w * 0.4, d / 2, d / 2 + 0.025, h - 0.19, h - 0.165, METAL(), 0.01);
  }
}

// A flat disc that looks along y.
function disc(b, x, y, z, r, colour, segments = 22) {
  const centre = b.corner(x, y, z, 0, 1, 0, colour);
  let before = null;
  for (let i = 0; i <= segments; i++) {
    const a = (i / segments) * 2 * Math.PI;
    const at = b.corner(x + Math.cos(a) * r, y, z + Math.sin(a) * r, 0, 1, 0, colour);
    if (before !== null) b.indices.push(centre, at, before);
    before = at;
  }
}

function basin(b, w, d, h, c, deep) {
  const t = 0.045;
  b.box(-w / 2, w / 2, -d / 2, -d / 2 + t, h - deep, h, c, 0.015);
  b.box(-w / 2, w / 2, d / 2 - t, d / 2, h - deep, h, c, 0.015);
  for (const s of [-1, 1]) b.box(s < 0 ? -w / 2 : w / 2 - t, s < 0 ? -w / 2 + t : w / 2, -d / 2, d / 2, h - deep, h, c, 0.015);
  b.box(-w / 2 + 0.01, w / 2 - 0.01, -d / 2 + 0.01, d / 2 - 0.01, h - deep, h - deep + 0.02, shade(c, 0.86));
}

function frame(b, { w, h, c }, inside) {
  const t = Math.min(0.05, w * 0.09);
  b.box(-w / 2 + 0.003, w / 2 - 0.003, -0.017, 0.008, 0.003, h - 0.003, shade(c, 0.5), 0.004);
  for (const s of [-1, 1]) {
    b.box(s < 0 ? -w / 2 : w / 2 - t, s < 0 ? -w / 2 + t : w / 2, -0.02, 0.022, 0, h, inside.frame, 0.006);
    b.box(-w / 2, w / 2, -0.02, 0.022, s < 0 ? 0 : h - t, s < 0 ? t : h, inside.frame, 0.006);
  }
  inside.fill(-w / 2 + t, w / 2 - t, t, h - t);
}

function canvas(b, t) {
  const seed = chance(t.at[0], t.at[1]);
  const ground = blend(paint(0xf2ede0), t.c, 0.35);
  frame(b, t, {
    frame: seed > 0.5 ? paint("dark") : paint(0xd8cdb8),
    fill(x0, x1, z0, z1) {
      const [w, h] = [x1 - x0, z1 - z0];
      b.box(x0, x1, 0, 0.011, z0, z1, ground, 0.001);
      if (seed < 0.45) {
        // A landscape: hills, and a sun.
        b.box(x0, x1, 0, 0.013, z0, z0 + h * 0.34, shade(t.c, 0.75), 0.001);
        b.box(x0 + w * 0.35, x1, 0, 0.015, z0, z0 + h * 0.22, shade(t.c, 0.5), 0.001);
        disc(b, x0 + w * 0.28, 0.0135, z0 + h * 0.68, h * 0.13, paint(0xf0d9a0));
      } else {
        b.box(x0 + w * 0.12, x0 + w * 0.5, 0, 0.013, z0 + h * 0.15, z0 + h * 0.8, t.c, 0.001);
        b.box(x0 + w * 0.42, x0 + w * 0.88, 0, 0.015, z0 + h * 0.3, z0 + h * 0.6, shade(t.c, 0.55), 0.001);
        disc(b, x0 + w * 0.66, 0.017, z0 + h * 0.62, h * 0.16, paint(0xe9dcc3));
      }
    },
  });
}

function leaves(b, seed, z, r, h, n) {
  for (let i = 0; i < n; i++) {
    const a = (i / n) * 2 * Math.PI + seed * 6, out = r * (0.55 + 0.45 * chance(seed, i));
    const top = z + h * (0.45 + 0.55 * chance(i, seed, 3));
    const colour = paint(LEAF[i % 3]);
    const tip = [Math.cos(a) * out, Math.sin(a) * out, top];
    b.bar([0, 0, z], [tip[0] * 0.6, tip[1] * 0.6, z + (top - z) * 0.75], 0.008, paint(0x4a6b35), 5);
    b.ball(tip[0] * 0.8, tip[1] * 0.8, top - 0.06, 0.13 * Math.max(r / 0.25, 0.7), colour, { flat: 1.1, segments: 8, rings: 5 });
  }
}

// What gives light by itself, without shading.
const glow = (b, draw) => { const light = b.light; b.light = null; draw(); b.light = light; };

export const FIXTURES = {
  counter(b, { w, d, h, c, material }) {
    const front = material === "wood" ? c : WHITE();
    b.box(-w / 2 + 0.02, w / 2 - 0.02, -d / 2, d / 2 - 0.08, 0, 0.1, shade(c, 0.4));
    b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.04, 0.09, h - 0.035, shade(front, 0.94));
    const n = Math.max(2, Math.round(w / 0.5));
    for (let i = 0; i < n; i++) {
      const [x0, x1] = [-w / 2 + (i * w) / n + 0.006, -w / 2 + ((i + 1) * w) / n - 0.006];
      b.box(x0, x1, d / 2 - 0.045, d / 2 - 0.025, 0.11, h - 0.22, front, 0.006);
      b.box(x0, x1, d / 2 - 0.045, d / 2 - 0.025, h - 0.205, h - 0.05, front, 0.006);
      b.box((x0 + x1) / 2 - 0.06, (x0 + x1) / 2 + 0.06, d / 2 - 0.028, d / 2 - 0.01, h - 0.12, h - 0.105, METAL(), 0.005);
    }
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.04, h, material === "wood" ? shade(c, 1.2) : c, 0.008);
    b.box(-w / 2, w / 2, -d / 2, -d / 2 + 0.015, h, h + 0.1, c, 0.005);
  },
  island(b, { w, d, h, c, material }) {
    const body = material === "wood" ? c : WHITE();
    b.box(-w / 2 + 0.08, w / 2 - 0.08, -d / 2 + 0.08, d / 2 - 0.16, 0, h - 0.04, body, 0.01);
    for (let i = 0; i < 3; i++) b.box(-w / 2 + 0.11 + (i * (w - 0.2)) / 3, -w / 2 + 0.07 + ((i + 1) * (w - 0.2)) / 3, -d / 2 + 0.065, -d / 2 + 0.085, 0.12, h - 0.1, shade(body, 1.03), 0.008);
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.05, h, c, 0.012);
  },
  vanity(b, { w, d, h, c, material }) {
    const front = material === "marble" ? WHITE() : c;
    b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.03, 0.12, h - 0.04, shade(front, 0.95));
    for (const s of [-1, 1]) {
      b.box(s < 0 ? -w / 2 + 0.01 : 0.006, s < 0 ? -0.006 : w / 2 - 0.01, d / 2 - 0.035, d / 2 - 0.015, 0.14, h - 0.06, front, 0.006);
      b.box(s * 0.05 - 0.008, s * 0.05 + 0.008, d / 2 - 0.018, d / 2, h * 0.55, h * 0.72, METAL(), 0.005);
    }
    b.legs(w, d, 0.13, 0.05, shade(front, 0.8), 0.02);
    b.box(-w / 2 - 0.01, w / 2 + 0.01, -d / 2, d / 2, h - 0.04, h, material === "marble" ? c : WHITE(), 0.01);
  },
  sink(b, { w, d, h, c }) {
    basin(b, w, d, h + 0.06, c, h);
    tap(b, -d / 2 + 0.04, h + 0.05);
  },
  stove(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.03, 0.03, h - 0.02, c, 0.01);
    b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.02, h - 0.025, h, BLACK(), 0.008);
    for (const [x, y, r] of [[-0.22, -0.2, 0.09], [0.22, -0.2, 0.11], [-0.22, 0.17, 0.11], [0.22, 0.17, 0.09]]) b.lathe(x * w, y * d, [[h - 0.002, r], [h + 0.008, r]], paint(0x4a4d52), { segments: 18 });
    b.box(-w / 2 + 0.03, w / 2 - 0.03, d / 2 - 0.035, d / 2 - 0.01, 0.16, h - 0.18, paint(0x35383d), 0.01);
    b.box(-w * 0.4, w * 0.4, d / 2 - 0.01, d / 2 + 0.02, h - 0.21, h - 0.185, METAL(), 0.01);
    for (let i = 0; i < 4; i++) b.ball(-w * 0.33 + i * w * 0.22, d / 2 - 0.025, h - 0.085, 0.022, shade(METAL(), 0.7), { segments: 8, rings: 4 });
  },
  refrigerator(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.05, 0.02, h, shade(c, 0.92), 0.012);
    b.box(-w / 2 + 0.004, w / 2 - 0.004, d / 2 - 0.055, d / 2, 0.05, h * 0.34, c, 0.02);
    b.box(-w / 2 + 0.004, w / 2 - 0.004, d / 2 - 0.055, d / 2, h * 0.345, h - 0.004, c, 0.02);
    b.bar([-w / 2 + 0.07, d / 2 + 0.025, h * 0.4], [-w / 2 + 0.07, d / 2 + 0.025, h * 0.72], 0.012, METAL());
    b.bar([-w / 2 + 0.07, d / 2 + 0.025, h * 0.16], [-w / 2 + 0.07, d / 2 + 0.025, h * 0.3], 0.012, METAL());
  },
  dishwasher: (b, t) => machine(b, t, false),
  "washing machine": (b, t) => machine(b, t, true),
  dryer: (b, t) => machine(b, t, true),
  microwave(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0.01, h, c, 0.01);
    b.box(-w / 2 + 0.03, w * 0.2, d / 2 - 0.005, d / 2 + 0.006, 0.05, h - 0.04, BLACK(), 0.004);
    b.box(w * 0.26, w / 2 - 0.03, d / 2 - 0.005, d / 2 + 0.005, h * 0.6, h - 0.05, paint(0x3a4a46), 0.003);
  },
  toaster(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0.01, h, c, 0.04);
    for (const y of [-0.18, 0.18]) b.box(-w * 0.36, w * 0.36, y * d - 0.015, y * d + 0.015, h - 0.01, h + 0.002, BLACK(), 0.001);
  },
  bowl(b, { w, h, c }) {
    b.lathe(0, 0, [[0, w * 0.2], [0.02, w * 0.22], [h * 0.6, w * 0.43], [h, w * 0.5]], c, { segments: 20 });
    [[0, 0, "red"], [0.09, 0.03, "orange"], [-0.07, 0.07, "green"], [0.01, -0.09, "yellow"]].forEach(([x, y, name]) => b.ball(x, y, h + 0.01, 0.055, paint(name), { segments: 10, rings: 6 }));
  },
  toilet(b, { w, d, h, c }) {
    b.box(-w * 0.46, w * 0.46, -d / 2, -d / 2 + 0.17, 0.36, h, c, 0.03);
    b.box(-w * 0.48, w * 0.48, -d / 2, -d / 2 + 0.18, h - 0.04, h, shade(c, 1.02), 0.015);
    b.lathe(0, d * 0.12, [[0, w * 0.28], [0.12, w * 0.26], [0.3, w * 0.44], [0.4, w * 0.46]], c, { segments: 20, squash: 1.25 });
    b.lathe(0, d * 0.12, [[0.4, w * 0.47], [0.43, w * 0.47], [0.44, w * 0.44]], shade(c, 1.03), { segments: 20, squash: 1.25 });
    b.box(-w * 0.2, w * 0.2, -d / 2 + 0.05, 0, 0, 0.38, c, 0.04);
  },
  bathtub(b, { w, d, h, c }) {
    basin(b, w, d, h, c, h - 0.08);
    b.box(-w / 2 + 0.01, w / 2 - 0.01, -d / 2 + 0.01, d / 2 - 0.01, 0, 0.1, shade(c, 0.9));
    b.box(-w / 2 + 0.05, w / 2 - 0.05, -d / 2 + 0.05, d / 2 - 0.05, h - 0.2, h - 0.19, paint(0xbfdde6), 0.002);
    b.bar([w / 2 - 0.03, 0, h], [w / 2 - 0.03, 0, h + 0.14], 0.015, METAL());
    b.bar([w / 2 - 0.03, 0, h + 0.14], [w / 2 - 0.16, 0, h + 0.1], 0.013, METAL());
  },
  shower(b, { w, d, h }, glass) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0, 0.07, WHITE(), 0.02);
    b.bar([-w / 2 + 0.1, -d / 2 + 0.05, 0.9], [-w / 2 + 0.1, -d / 2 + 0.05, h + 0.05], 0.014, METAL());
    b.bar([-w / 2 + 0.1, -d / 2 + 0.05, h + 0.05], [-w / 2 + 0.34, -d / 2 + 0.25, h + 0.04], 0.012, METAL());
    b.lathe(-w / 2 + 0.36, -d / 2 + 0.27, [[h, 0.09], [h + 0.02, 0.08]], METAL());
    for (const x of [-1, 1]) b.box(x * (w / 2 - 0.015) - 0.015, x * (w / 2 - 0.015) + 0.015, d / 2 - 0.03, d / 2, 0.06, h, METAL(), 0.006);
    b.box(-w / 2, w / 2, d / 2 - 0.03, d / 2, h - 0.03, h, METAL(), 0.006);
    glass(-w / 2 + 0.03, w / 2 - 0.03, d / 2 - 0.02, d / 2 - 0.012, 0.08, h - 0.03);
    glass(w / 2 - 0.02, w / 2 - 0.012, -d / 2 + 0.03, d / 2 - 0.03, 0.08, h - 0.03);
  },
  "trash can"(b, { w, h, c }) {
    b.lathe(0, 0, [[0, w * 0.4], [h * 0.9, w * 0.48]], c, { segments: 18 });
    b.lathe(0, 0, [[h * 0.9, w * 0.5], [h * 0.96, w * 0.48], [h, w * 0.2]], shade(c, 0.75), { segments: 18 });
  },
  "laundry basket"(b, { w, d, h, c }) {
    b.lathe(0, 0, [[0, w * 0.4], [h, w * 0.5]], c, { segments: 16, squash: d / w });
    for (const z of [0.2, 0.5, 0.8]) b.lathe(0, 0, [[h * z, w * (0.415 + 0.1 * z)], [h * z + 0.03, w * (0.42 + 0.1 * z)]], shade(c, 0.8), { segments: 16, cap: false, squash: d / w });
    b.ball(0, 0, h - 0.02, w * 0.4, paint(0xdfe4ea), { flat: 0.35, squash: d / w });
  },
  towel(b, { w, h, c }) {
    b.bar([-w / 2, 0.02, h], [w / 2, 0.02, h], 0.012, METAL());
    b.box(-w * 0.42, w * 0.42, 0.004, 0.045, h * 0.08, h + 0.015, c, 0.018);
    b.box(-w * 0.42, w * 0.42, 0.046, 0.05, h * 0.16, h * 0.22, WHITE(), 0.001);
  },
  "ironing board"(b, { w, d, h, c }) {
    b.bar([-w * 0.3, 0, 0], [w * 0.25, 0, h - 0.03], 0.016, METAL());
    b.bar([w * 0.3, 0, 0], [-w * 0.25, 0, h - 0.03], 0.016, METAL());
    b.box(-w / 2, w / 2, -d * 0.45, d * 0.45, h - 0.04, h, c, 0.02);
    b.box(w * 0.2, w * 0.34, -0.05, 0.05, h, h + 0.11, paint(0x6d7d8c), 0.03);
  },
  "floor lamp"(b, { h, c }) {
    b.lathe(0, 0, [[0, 0.15], [0.02, 0.15], [0.03, 0.03]], shade(c, 0.8), { segments: 18 });
    b.post(0, 0, 0.014, 0.02, h - 0.2, shade(c, 0.8));
    glow(b, () => b.lathe(0, 0, [[h - 0.32, 0.19], [h, 0.13]], paint(0xfff0cf), { segments: 18 }));
  },
  lamp(b, { w, h, c }) {
    b.lathe(0, 0, [[0, w * 0.28], [0.02, w * 0.28], [h * 0.2, w * 0.24], [h * 0.38, w * 0.07], [h * 0.52, w * 0.06]], c);
    glow(b, () => b.lathe(0, 0, [[h * 0.48, w * 0.5], [h, w * 0.32]], paint(0xfff0cf), { segments: 16 }));
  },
  chandelier(b, { w, h, c }) {
    b.post(0, 0, 0.012, h * 0.4, h, c);
    b.ball(0, 0, h * 0.4, 0.07, c);
    for (let i = 0; i < 6; i++) {
      const a = (i * Math.PI) / 3, [x, y] = [Math.cos(a) * w * 0.42, Math.sin(a) * w * 0.42];
      b.bar([0, 0, h * 0.36], [x, y, h * 0.3], 0.012, c);
      b.post(x, y, 0.022, h * 0.28, h * 0.42, WHITE());
      glow(b, () => b.ball(x, y, h * 0.5, 0.045, paint(0xfff2d4), { flat: 1.4, segments: 8, rings: 6 }));
    }
  },
  "ceiling fan"(b, { w, h, c }) {
    b.post(0, 0, 0.02, h * 0.4, h, METAL());
    b.lathe(0, 0, [[h * 0.25, 0.05], [h * 0.3, 0.11], [h * 0.5, 0.11], [h * 0.55, 0.04]], METAL());
    for (let i = 0; i < 4; i++) {
      const a = (i * Math.PI) / 2 + 0.4, [x, y] = [Math.cos(a), Math.sin(a)];
      const [p, q] = [0.1, w * 0.5].map((r) => [x * r, y * r]);
      const side = [-y * 0.075, x * 0.075], z = h * 0.42;
      const points = [[p[0] - side[0] * 0.6, p[1] - side[1] * 0.6], [q[0] - side[0], q[1] - side[1]], [q[0] + side[0], q[1] + side[1]], [p[0] + side[0] * 0.6, p[1] + side[1] * 0.6]];
      b.quad(...points.map(([u, v]) => [u, v, z + 0.008]), [0, 0, 1], c);
      b.quad(...points.reverse().map(([u, v]) => [u, v, z - 0.008]), [0, 0, -1], shade(c, 0.9));
    }
    glow(b, () => b.ball(0, 0, h * 0.18, 0.09, paint(0xfff2d4), { flat: 0.7 }));
  },
  plant(b, { w, h, at }) {
    const pot = paint([0xb5653f, 0xe8e3d8, 0x55606b, 0x9c7b53][Math.floor(chance(at[0], at[1], 2) * 4)]);
    const z = Math.min(0.34, h * 0.34);
    b.lathe(0, 0, [[0, w * 0.26], [z * 0.92, w * 0.36], [z, w * 0.36], [z, w * 0.3]], pot, { segments: 16, cap: false });
    b.lathe(0, 0, [[z - 0.03, 0.001], [z - 0.03, w * 0.33]].reverse(), paint(0x3c2c22), { cap: false });
    leaves(b, chance(at[0], at[1]), z - 0.03, w * 0.55, h - z, 9);
  },
  vase(b, { w, h, c, at }) {
    b.lathe(0, 0, [[0, w * 0.28], [h * 0.3, w * 0.5], [h * 0.62, w * 0.3], [h * 0.75, w * 0.22], [h * 0.82, w * 0.27]], c, { segments: 16, cap: false });
    for (let i = 0; i < 5; i++) {
      const a = i * 1.3 + at[0], r = 0.03 + 0.06 * chance(i, at[1]);
      const top = h + 0.06 * chance(at[0], i);
      b.bar([0, 0, h * 0.7], [Math.cos(a) * r, Math.sin(a) * r, top], 0.005, paint(0x4a6b35), 5);
      b.ball(Math.cos(a) * r, Math.sin(a) * r, top, 0.035, paint([0xe7b7c8, 0xf0e3b2, 0xd06a6a][i % 3]), { segments: 8, rings: 5 });
    }
  },
  statue(b, { w, h, c }) {
    b.box(-w * 0.42, w * 0.42, -w * 0.42, w * 0.42, 0, h * 0.36, shade(c, 0.85), 0.015);
    b.lathe(0, 0, [[h * 0.36, 0.14], [h * 0.5, 0.1], [h * 0.62, 0.13], [h * 0.74, 0.17], [h * 0.8, 0.12], [h * 0.83, 0.05]], c, { segments: 16 });
    b.ball(0, 0, h * 0.92, h * 0.08, c, { flat: 1.25 });
  },
  "grandfather clock"(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0, 0.35, c, 0.015);
    b.box(-w * 0.38, w * 0.38, -d / 2, d * 0.36, 0.34, h - 0.5, shade(c, 0.95), 0.01);
    b.box(-w * 0.24, w * 0.24, d * 0.36 - 0.01, d * 0.36 + 0.004, 0.45, h - 0.6, paint(0x2b211a), 0.003);
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.52, h, c, 0.03);
    disc(b, 0, d / 2 + 0.005, h - 0.26, w * 0.36, paint(0xf3ead2));
    b.bar([0, d / 2 + 0.012, h - 0.26], [0, d / 2 + 0.012, h - 0.15], 0.006, BLACK(), 5);
    b.bar([0, d / 2 + 0.012, h - 0.26], [w * 0.2, d / 2 + 0.012, h - 0.26], 0.006, BLACK(), 5);
    disc(b, 0, d * 0.36 + 0.008, 0.62, 0.06, paint("gold"));
  },
  clock(b, { w, h, c }) {
    disc(b, 0, 0.02, h / 2, w / 2, shade(c, 0.45));
    disc(b, 0, 0.024, h / 2, w * 0.44, blend(paint(0xfaf7f0), c, c[0] < 0.2 ? 0.6 : 0));
    b.bar([0, 0.03, h / 2], [0, 0.03, h * 0.82], 0.006, c[0] < 0.2 ? WHITE() : BLACK(), 5);
    b.bar([0, 0.03, h / 2], [w * 0.24, 0.03, h * 0.6], 0.007, c[0] < 0.2 ? WHITE() : BLACK(), 5);
  },
  picture: canvas,
  painting: canvas,
  mirror(b, t) {
    frame(b, t, {
      frame: t.c,
      fill(x0, x1, z0, z1) {
        const at = (x, z, colour) => b.corner(x, 0.012, z, 0, 1, 0, colour);
        const [low, high] = [paint(0x9fb4bf), paint(0xe3eef2)];
        const [i, j, k, l] = [at(x0, z0, low), at(x1, z0, low), at(x1, z1, high), at(x0, z1, high)];
        b.indices.push(i, k, j, i, l, k);
      },
    });
  },
  rug(b, { w, d, c }) {
    const light = blend(c, WHITE(), 0.55);
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0, 0.012, c, 0.004);
    b.box(-w / 2 + 0.14, w / 2 - 0.14, -d / 2 + 0.14, d / 2 - 0.14, 0.001, 0.015, light, 0.001);
    b.box(-w / 2 + 0.19, w / 2 - 0.19, -d / 2 + 0.19, d / 2 - 0.19, 0.001, 0.018, shade(c, 1.08), 0.001);
  },
  "bath mat"(b, { w, d, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0, 0.025, c, 0.012);
  },
  // On a seat it leans against the back, on a bed it lies in front of the others.
  pillow(b, { w, d, h, c, bottom }) {
    if (bottom < 0.5) b.box(-w * 0.42, w * 0.42, 0.1, 0.27, 0, 0.37, c, 0.08);
    else b.box(-w / 2, w / 2, 0.18 - d / 2, 0.18 + d / 2, 0, h, c, 0.07);
  },
  books(b, { w, d, h, c }) {
    [[0, 0.34, c, 0], [0.34, 0.62, paint(0xd8cdb8), 0.02], [0.62, 1, shade(c, 0.6), -0.015]].forEach(([from, to, colour, x]) => b.box(-w / 2 + 0.02 + x, w / 2 - 0.02 + x, -d / 2, d / 2, h * from, h * to - 0.003, colour, 0.006));
  },
  computer(b, { w, d, h }) {
    b.box(-w * 0.22, w * 0.22, -d * 0.4, d * 0.4, 0, 0.015, METAL());
    b.box(-0.03, 0.03, -0.03, 0, 0, h * 0.4, METAL());
    b.box(-w / 2, w / 2, -0.02, 0.015, h * 0.25, h, BLACK(), 0.01);
    glow(b, () => b.box(-w / 2 + 0.015, w / 2 - 0.015, 0.013, 0.018, h * 0.25 + 0.015, h - 0.015, paint(0x5d8fc4), 0.001));
    b.box(-w * 0.36, w * 0.36, d * 0.6, d * 1.2, 0, 0.02, shade(METAL(), 0.6), 0.006);
  },
  globe(b, { w, h, c }) {
    b.lathe(0, 0, [[0, w * 0.3], [0.03, w * 0.28], [0.05, 0.03], [h * 0.3, 0.02]], paint("dark"));
    b.ball(0, 0, h * 0.62, w * 0.42, c, { segments: 18, rings: 12 });
    [[0.4, 0.2, 0.3], [-0.5, 0.5, 0.1], [0.1, -0.7, 0.3], [-0.3, -0.4, -0.4]].forEach(([x, y, z]) => { const n = Math.hypot(x, y, z) / (w * 0.36); b.ball(x / n, y / n, h * 0.62 + z / n, w * 0.13, paint(0x7fa564), { segments: 8, rings: 5 }); });
  },
  fireplace(b, { w, d, h, c, material }) {
    const hole = w * 0.28;
    for (const s of [-1, 1]) b.box(s < 0 ? -w / 2 : hole, s < 0 ? -hole : w / 2, -d / 2, d / 2, 0, h - 0.08, c, 0.012);
    b.box(-hole, hole, -d / 2, d / 2, h * 0.6, h - 0.08, c, 0.012);
    b.box(-hole, hole, -d / 2, -d / 2 + 0.06, 0, h * 0.6, paint(0x1d1a18));
    b.box(-hole, hole, -d / 2, d / 2 + 0.05, 0, 0.04, shade(c, 0.6));
    b.box(-w / 2 - 0.06, w / 2 + 0.06, -d / 2, d / 2 + 0.06, h - 0.08, h, material === "brick" ? paint("dark") : shade(c, 1.08), 0.015);
    if (material === "brick") for (let z = 0.1; z < h - 0.12; z += 0.12) for (const s of [-1, 1]) b.box(s < 0 ? -w / 2 + 0.02 : hole + 0.02, s < 0 ? -hole - 0.02 : w / 2 - 0.02, d / 2 - 0.005, d / 2 + 0.004, z, z + 0.012, shade(c, 0.7), 0.001);
    for (const [x, z] of [[-0.1, 0.09], [0.1, 0.09], [0, 0.16]]) b.bar([x - 0.18, 0, z], [x + 0.18, 0.02, z], 0.045, paint(0x6b4a32));
    glow(b, () => [[-0.12, 0.2], [0, 0.3], [0.12, 0.22]].forEach(([x, z]) => b.lathe(x, -0.02, [[0.16, 0.07], [0.16 + z * 0.4, 0.05], [0.16 + z, 0.004]], paint(0xffa640), { segments: 8, cap: false })));
  },
  piano(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d * 0.05, 0, h, c, 0.02);
    b.box(-w / 2, w / 2, d * 0.02, d / 2, 0.58, 0.68, c, 0.015);
    keys(b, w, d * 0.16, d / 2 - 0.03, 0.68);
    for (const s of [-1, 1]) b.box(s * (w / 2 - 0.05) - 0.04, s * (w / 2 - 0.05) + 0.04, d * 0.3, d * 0.44, 0, 0.6, c);
    b.box(-w * 0.25, w * 0.25, d * 0.03, d * 0.08, 0.78, 1, WHITE(), 0.003);
  },
  "grand piano"(b, { w, d, h, c }) {
    const z = 0.62;
    b.box(-w / 2, w / 2, d * 0.12, d / 2 - 0.22, z, z + 0.28, c, 0.03);
    b.box(-w / 2, w * 0.3, -d * 0.2, d * 0.14, z, z + 0.28, c, 0.1);
    b.box(-w / 2, w * 0.02, -d / 2, -d * 0.15, z, z + 0.28, c, 0.14);
    b.box(-w / 2, w / 2, d / 2 - 0.24, d / 2, z, z + 0.1, c, 0.015);
    keys(b, w, d / 2 - 0.19, d / 2 - 0.03, z + 0.1);
    for (const [x, y] of [[-0.42, 0.38], [0.42, 0.38], [-0.3, -0.38]]) b.post(x * w, y * d, 0.05, 0, z, c, 0.07);
    const lid = [[-w / 2, d * 0.3, h - 0.1], [-w / 2, -d / 2, h - 0.1], [w * 0.05, -d / 2, h + 0.25], [w * 0.45, d * 0.3, h + 0.5]];
    b.quad(...lid, [-0.6, 0, 0.8], c);
    b.quad(...lid.slice().reverse(), [0.6, 0, -0.8], shade(c, 1.2));
  },
  "coat rack"(b, { h, c }) {
    b.lathe(0, 0, [[0, 0.18], [0.03, 0.17], [0.05, 0.03]], shade(c, 0.85));
    b.post(0, 0, 0.022, 0.03, h, c);
    for (let i = 0; i < 4; i++) { const a = (i * Math.PI) / 2; b.bar([0, 0, h - 0.16], [Math.cos(a) * 0.16, Math.sin(a) * 0.16, h - 0.06], 0.014, c); }
    b.box(-0.14, 0.06, 0.06, 0.2, h - 1.05, h - 0.12, paint(0x4b5a6b), 0.06);
    b.box(0.04, 0.18, -0.16, -0.04, h - 0.9, h - 0.12, paint(0x8a4a3a), 0.05);
  },
  "umbrella stand"(b, { w, h, c }) {
    b.lathe(0, 0, [[0, w * 0.36], [h * 0.8, w * 0.42]], c, { segments: 16, cap: false });
    b.bar([-0.03, 0, 0.05], [0.06, 0.03, h + 0.18], 0.022, paint(0x7c2f2a));
    b.bar([0.04, 0.02, 0.05], [-0.06, -0.04, h + 0.12], 0.022, paint(0x26303c));
  },
  boxes(b, { w, d, h, c }) {
    const card = blend(c, paint(0xb98d56), 0.7);
    b.box(-w / 2, w * 0.12, -d / 2, d / 2, 0, h * 0.52, card, 0.008);
    b.box(w * 0.15, w / 2, -d / 2, d * 0.3, 0, h * 0.42, shade(card, 0.9), 0.008);
    b.box(-w * 0.42, w * 0.04, -d * 0.42, d * 0.3, h * 0.52, h, shade(card, 1.06), 0.008);
    b.box(-w * 0.22, -w * 0.16, -d / 2 - 0.001, d / 2 + 0.001, 0, h * 0.522, shade(card, 1.3), 0.001);
  },
  suitcase(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0.05, h * 0.85, c, 0.06);
    for (const z of [0.3, 0.45, 0.6]) b.box(-w / 2 + 0.05, w / 2 - 0.05, d / 2 - 0.004, d / 2 + 0.008, h * z, h * z + 0.02, shade(c, 0.75), 0.004);
    for (const x of [-0.1, 0.1]) b.bar([x, -d * 0.3, h * 0.84], [x, -d * 0.3, h], 0.01, METAL());
    b.bar([-0.1, -d * 0.3, h], [0.1, -d * 0.3, h], 0.014, BLACK());
    for (const x of [-1, 1]) b.ball(x * w * 0.38, 0, 0.03, 0.03, BLACK(), { segments: 8, rings: 4 });
  },
  treadmill(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0.06, 0.18, c, 0.03);
    b.box(-w * 0.34, w * 0.34, -d * 0.4, d * 0.47, 0.17, 0.19, paint(0x3b3e44), 0.003);
    for (const s of [-1, 1]) {
      b.bar([s * w * 0.42, -d * 0.3, 0.15], [s * w * 0.42, -d * 0.36, h - 0.1], 0.03, METAL());
      b.bar([s * w * 0.42, -d * 0.36, h - 0.25], [s * w * 0.42, d * 0.02, h - 0.3], 0.022, METAL());
    }
    b.box(-w * 0.42, w * 0.42, -d * 0.42, -d * 0.3, h - 0.2, h, c, 0.03);
    glow(b, () => b.box(-w * 0.2, w * 0.2, -d * 0.3, -d * 0.295, h - 0.16, h - 0.04, paint(0x4f8fb0), 0.002));
  },
  "exercise bike"(b, { w, d, h, c }) {
    for (const y of [-0.42, 0.42]) b.bar([-w * 0.4, y * d, 0.03], [w * 0.4, y * d, 0.03], 0.025, METAL());
    b.bar([0, -d * 0.42, 0.04], [0, d * 0.42, 0.04], 0.03, c);
    b.bar([0, d * 0.1, 0.05], [0, d * 0.22, h * 0.66], 0.03, c);
    b.box(-0.09, 0.09, d * 0.14, d * 0.36, h * 0.66, h * 0.72, BLACK(), 0.03);
    b.bar([0, -d * 0.16, 0.05], [0, -d * 0.28, h - 0.06], 0.03, c);
    b.bar([-w * 0.36, -d * 0.24, h - 0.06], [w * 0.36, -d * 0.24, h - 0.06], 0.018, BLACK());
    b.box(-0.05, 0.05, -d * 0.36, d * 0.02, 0.2, 0.56, shade(c, 1.2), 0.1);
  },
  weights(b, { w, d, h, c }) {
    for (const s of [-1, 1]) b.bar([s * w * 0.46, -d * 0.4, 0], [s * w * 0.46, -d * 0.1, h], 0.025, METAL());
    for (const z of [0.25, 0.75]) {
      b.box(-w / 2, w / 2, -d * 0.36, d * 0.2, h * z - 0.03, h * z, shade(METAL(), 0.8), 0.01);
      for (let i = 0; i < 4; i++) {
        const x = -w * 0.36 + i * w * 0.24;
        b.bar([x, -d * 0.3, h * z + 0.06], [x, d * 0.14, h * z + 0.06], 0.018, METAL());
        for (const y of [-0.26, 0.1]) b.bar([x, d * y - 0.05, h * z + 0.06], [x, d * y + 0.03, h * z + 0.06], 0.06, c, 10);
      }
    }
  },
  "exercise ball": (b, { w, c }) => b.ball(0, 0, w / 2, w / 2, c, { segments: 20, rings: 14 }),
  "arcade machine"(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d * 0.2, 0, h, c, 0.02);
    b.box(-w / 2, w / 2, d * 0.1, d / 2, 0, h * 0.52, c, 0.02);
    b.box(-w * 0.42, w * 0.42, d * 0.2, d * 0.46, h * 0.52, h * 0.56, BLACK(), 0.01);
    glow(b, () => { b.box(-w * 0.38, w * 0.38, d * 0.2, d * 0.21, h * 0.6, h * 0.82, paint(0x3d6fb8), 0.002); b.box(-w * 0.44, w * 0.44, d * 0.2, d * 0.215, h * 0.87, h * 0.97, paint(0xf2c84b), 0.002); });
    b.bar([-w * 0.2, d * 0.34, h * 0.55], [-w * 0.2, d * 0.34, h * 0.62], 0.01, METAL());
    b.ball(-w * 0.2, d * 0.34, h * 0.63, 0.03, paint("red"), { segments: 8, rings: 5 });
  },
  "rocking horse"(b, { w, d, h, c }) {
    for (const s of [-1, 1]) {
      b.bar([s * w * 0.36, -d * 0.46, 0.12], [s * w * 0.36, 0, 0.03], 0.025, shade(c, 0.7));
      b.bar([s * w * 0.36, 0, 0.03], [s * w * 0.36, d * 0.46, 0.12], 0.025, shade(c, 0.7));
      for (const y of [-0.24, 0.24]) b.bar([s * w * 0.34, y * d, 0.06], [s * w * 0.2, y * d * 0.8, h * 0.55], 0.025, c);
    }
    b.ball(0, 0, h * 0.58, 0.15, c, { squash: 2.1 });
    b.bar([0, d * 0.26, h * 0.62], [0, d * 0.38, h * 0.9], 0.06, c);
    b.ball(0, d * 0.42, h * 0.92, 0.075, c, { squash: 1.6 });
    b.box(-0.1, 0.1, -d * 0.12, d * 0.1, h * 0.72, h * 0.77, paint("red"), 0.02);
  },
  "teddy bear"(b, { h, c }) {
    b.ball(0, 0, h * 0.34, h * 0.3, c);
    b.ball(0, 0.03, h * 0.74, h * 0.2, c);
    for (const s of [-1, 1]) {
      b.ball(s * h * 0.15, 0, h * 0.92, h * 0.075, c, { segments: 8, rings: 5 });
      b.ball(s * h * 0.26, 0.06, h * 0.44, h * 0.1, c, { segments: 8, rings: 5 });
      b.ball(s * h * 0.17, h * 0.3, h * 0.1, h * 0.11, shade(c, 0.9), { segments: 8, rings: 5 });
      b.ball(s * h * 0.07, h * 0.22, h * 0.78, 0.012, BLACK(), { segments: 6, rings: 4 });
    }
    b.ball(0, h * 0.2, h * 0.68, h * 0.08, blend(c, WHITE(), 0.5), { segments: 8, rings: 5 });
  },
  easel(b, { w, d, h, c }) {
    for (const s of [-1, 1]) b.bar([s * w * 0.42, d * 0.3, 0], [s * w * 0.1, -d * 0.05, h], 0.02, c);
    b.bar([0, -d * 0.45, 0], [0, -d * 0.05, h], 0.02, c);
    b.box(-w * 0.42, w * 0.42, 0.05, 0.075, h * 0.42, h * 0.92, WHITE(), 0.004);
    b.box(-w * 0.3, -w * 0.02, 0.075, 0.078, h * 0.5, h * 0.7, paint("blue"), 0.001);
    b.box(0, w * 0.28, 0.075, 0.079, h * 0.6, h * 0.82, paint("yellow"), 0.001);
    b.box(-w * 0.44, w * 0.44, 0.03, 0.11, h * 0.4, h * 0.42, c, 0.006);
  },
  guitar(b, { w, h, c }) {
    b.lathe(0, 0, [[0.06, 0.02], [0.1, w * 0.36], [0.24, w * 0.45], [0.36, w * 0.34], [0.44, w * 0.26], [0.52, w * 0.33], [0.6, w * 0.24], [0.63, 0.03]], c, { squash: 0.28 });
    disc(b, 0, 0.052, 0.42, 0.05, paint(0x241a14));
    b.box(-0.025, 0.025, 0.015, 0.055, 0.48, h - 0.1, paint("dark"), 0.008);
    b.box(-0.04, 0.04, 0.01, 0.05, h - 0.12, h, shade(c, 0.7), 0.01);
    b.bar([-0.12, -0.12, 0], [0, -0.03, 0.5], 0.012, BLACK());
    b.bar([0.12, -0.12, 0], [0, -0.03, 0.5], 0.012, BLACK());
  },
  drums(b, { w, d, h, c }) {
    b.bar([0, -d * 0.02, 0.3], [0, d * 0.32, 0.3], 0.29, c, 20);
    disc(b, 0, d * 0.325, 0.3, 0.27, WHITE());
    for (const [x, y, z, r] of [[-0.32, -0.1, 0.5, 0.17], [0.3, -0.14, 0.46, 0.2], [-0.12, 0.1, 0.68, 0.14], [0.14, 0.1, 0.68, 0.14]]) {
      b.lathe(x * w, y * d, [[z - 0.18, r], [z, r]], c, { segments: 18 });
      b.lathe(x * w, y * d, [[z, r * 0.97], [z + 0.004, r * 0.97]], WHITE(), { segments: 18 });
      b.post(x * w, y * d, 0.012, 0, z - 0.17, METAL());
    }
    for (const s of [-1, 1]) { b.post(s * w * 0.42, d * 0.22, 0.012, 0, h, METAL()); b.lathe(s * w * 0.42, d * 0.22, [[h - 0.02, 0.2], [h, 0.02]], paint("gold"), { segments: 20 }); }
    b.lathe(0, -d * 0.38, [[0.42, 0.16], [0.5, 0.16]], BLACK()); b.post(0, -d * 0.38, 0.02, 0, 0.43, METAL());
  },
  "music stand"(b, { h, c }) {
    for (let i = 0; i < 3; i++) b.bar([0, 0, 0.22], [Math.cos(i * 2.1) * 0.2, Math.sin(i * 2.1) * 0.2, 0.01], 0.01, c);
    b.post(0, 0, 0.012, 0.1, h - 0.2, c);
    b.box(-0.24, 0.24, -0.02, 0.02, h - 0.32, h, c, 0.008);
    b.box(-0.19, 0.19, 0.02, 0.026, h - 0.28, h - 0.03, WHITE(), 0.002);
  },
  railing(b, { w, h, c }) {
    b.box(-w / 2, w / 2, -0.035, 0.035, h - 0.06, h, c, 0.015);
    b.box(-w / 2, w / 2, -0.02, 0.02, 0.08, 0.12, c, 0.01);
    const n = Math.max(2, Math.round(w / 0.12));
    for (let i = 0; i <= n; i++) b.box(-w / 2 + (i * w) / n - 0.012, -w / 2 + (i * w) / n + 0.012, -0.012, 0.012, i % n ? 0.1 : 0, h - 0.04, WHITE(), 0.005);
  },
};

function keys(b, w, y0, y1, z) {
  b.box(-w / 2 + 0.05, w / 2 - 0.05, y0, y1, z, z + 0.012, WHITE(), 0.003);
  const n = 26;
  for (let i = 0; i < n; i++) {
    if (i % 7 === 2 || i % 7 === 6) continue;
    const x = -w / 2 + 0.05 + ((i + 1) * (w - 0.1)) / n;
    b.box(x - 0.007, x + 0.007, y0, y0 + (y1 - y0) * 0.62, z + 0.01, z + 0.024, BLACK(), 0.002);
  }
}
