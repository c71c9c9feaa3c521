// What seats, tables, beds and cupboards look like: a few rounded boxes each. A thing stands on its own ground, its middle
// at 0, 0, its front along y; `w`, `d` and `h` are its width, depth and height, `c` its colour.

import { blend, paint, shade } from "./brush.js";

const METAL = () => paint(0x8b9096);
const WHITE = () => paint(0xf4f1ea);
const BLACK = () => paint(0x26272b);

// Colour of the frame under something soft.
const feet = (c) => blend(paint("dark"), c, 0.15);

function seat(b, { w, d, h, c }, places) {
  const arm = Math.min(0.17, w * 0.16), back = Math.min(0.22, d * 0.25), sit = 0.43;
  b.box(-w / 2 + 0.02, w / 2 - 0.02, -d / 2 + 0.02, d / 2 - 0.04, 0.09, 0.26, shade(c, 0.92), 0.02);
  b.box(-w / 2 + arm, w / 2 - arm, -d / 2, -d / 2 + back, 0.2, h, c, 0.06);
  for (const s of [-1, 1]) {
    b.box(s < 0 ? -w / 2 : w / 2 - arm, s < 0 ? -w / 2 + arm : w / 2, -d / 2, d / 2 - 0.02, 0.09, 0.6, shade(c, 0.96), 0.055);
    for (const y of [-d / 2 + 0.08, d / 2 - 0.1]) b.post(s * (w / 2 - 0.08), y, 0.02, 0, 0.1, feet(c));
  }
  const step = (w - 2 * arm) / places;
  for (let i = 0; i < places; i++) {
    const x = -w / 2 + arm + i * step;
    b.box(x + 0.006, x + step - 0.006, -d / 2 + back * 0.8, d / 2, 0.25, sit, shade(c, 1.05), 0.05);
    b.box(x + 0.012, x + step - 0.012, -d / 2 + back * 0.55, -d / 2 + back + 0.13, sit - 0.02, h - 0.04, shade(c, 1.03), 0.06);
  }
}

function chair(b, { w, d, h, c, material }) {
  const sit = 0.45, t = 0.035;
  for (const s of [-1, 1]) {
    b.bar([s * (w / 2 - 0.03), d / 2 - 0.03, 0], [s * (w / 2 - 0.04), d / 2 - 0.05, sit], 0.018, c);
    b.bar([s * (w / 2 - 0.03), -d / 2 + 0.02, 0], [s * (w / 2 - 0.04), -d / 2 + 0.06, sit], 0.018, c);
    b.bar([s * (w / 2 - 0.04), -d / 2 + 0.06, sit], [s * (w / 2 - 0.045), -d / 2 + 0.015, h], 0.017, c);
  }
  b.box(-w / 2 + 0.01, w / 2 - 0.01, -d / 2 + 0.04, d / 2, sit - t, sit + 0.012, material === "fabric" ? shade(c, 1.1) : c, 0.014);
  for (const z of [h - 0.09, h - 0.24]) b.box(-w / 2 + 0.03, w / 2 - 0.03, -d / 2 + 0.012, -d / 2 + 0.045, z, z + 0.085, c, 0.012);
}

function table(b, { w, d, h, c, material }) {
  const glass = material === "glass";
  const top = glass ? paint(0xbfd6da) : c;
  b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.04, h, top, 0.012);
  if (!glass) b.box(-w / 2 + 0.08, w / 2 - 0.08, -d / 2 + 0.08, d / 2 - 0.08, h - 0.12, h - 0.035, shade(c, 0.9));
  b.legs(w, d, h - 0.035, Math.min(0.07, w * 0.09), glass ? METAL() : shade(c, 0.94), 0.04);
}

function lowTable(b, t) {
  table(b, t);
  if (t.h < 0.5 && t.d > 0.4) b.box(-t.w / 2 + 0.08, t.w / 2 - 0.08, -t.d / 2 + 0.08, t.d / 2 - 0.08, 0.12, 0.145, shade(t.c, 0.9));
}

// A body with fronts: rows of drawers or doors, each [from, to] as shares of the height, in so many columns.
function cupboard(b, { w, d, h, c }, { rows, columns, plinth = 0.06, knobs = true, legs = false, top = true }) {
  const low = legs ? 0.14 : plinth;
  if (legs) b.legs(w, d, low + 0.01, 0.04, shade(c, 0.8));
  else b.box(-w / 2 + 0.02, w / 2 - 0.02, -d / 2, d / 2 - 0.05, 0, plinth, shade(c, 0.55));
  b.box(-w / 2, w / 2, -d / 2, d / 2 - 0.02, low, h - 0.02, shade(c, 0.9));
  if (top) b.box(-w / 2 - 0.01, w / 2 + 0.01, -d / 2, d / 2, h - 0.03, h, c);
  const [height, width] = [h - 0.03 - low, w / columns];
  for (const [from, to, kind] of rows) {
    for (let i = 0; i < columns; i++) {
      const x = -w / 2 + i * width;
      const [z0, z1] = [low + from * height + 0.006, low + to * height - 0.006];
      b.box(x + 0.006, x + width - 0.006, d / 2 - 0.025, d / 2 - 0.002, z0, z1, shade(c, 1.04), 0.006);
      if (!knobs) continue;
      if (kind === "door") {
        const inner = columns === 1 || i % 2 === 0 ? x + width - 0.05 : x + 0.05;
        b.box(inner - 0.008, inner + 0.008, d / 2 - 0.004, d / 2 + 0.016, (z0 + z1) / 2 - 0.06, (z0 + z1) / 2 + 0.06, METAL(), 0.005);
      } else {
        const middle = x + width / 2;
        b.box(middle - 0.06, middle + 0.06, d / 2 - 0.004, d / 2 + 0.016, z1 - 0.055, z1 - 0.04, METAL(), 0.005);
      }
    }
  }
}

const drawers = (n, from = 0, to = 1) => Array.from({ length: n }, (_, i) => [from + ((to - from) * i) / n, from + ((to - from) * (i + 1)) / n, "drawer"]);
const doors = (from = 0, to = 1) => [[from, to, "door"]];

// Spines of all colours in a row.
function spines(b, x0, x1, y, z, height, depth, seed) {
  const colours = [0x7c2f2a, 0x2f4b6e, 0x3d6044, 0xc9b184, 0x59406b, 0x8a5a2f, 0xd9d2c2, 0x37393f, 0xa8873a].map(paint);
  let x = x0, i = seed;
  while (x < x1 - 0.05) {
    i = (i * 7 + 3) % 97;
    const width = 0.05 + (i % 5) * 0.012;
    if (i % 11 !== 0) b.box(x, Math.min(x + width - 0.003, x1), y, y + depth, z, z + height * (0.72 + (i % 7) * 0.04), colours[i % colours.length], 0.004);
    x += width;
  }
}

function shelves(b, { w, d, h, c }, n, filled) {
  for (const s of [-1, 1]) b.box(s < 0 ? -w / 2 : w / 2 - 0.025, s < 0 ? -w / 2 + 0.025 : w / 2, -d / 2, d / 2, 0, h, c);
  b.box(-w / 2, w / 2, -d / 2, -d / 2 + 0.012, 0, h, shade(c, 0.75));
  for (let i = 0; i <= n; i++) {
    const z = 0.05 + (i * (h - 0.08)) / n;
    b.box(-w / 2 + 0.02, w / 2 - 0.02, -d / 2, d / 2 - 0.005, z, z + 0.025, c);
    if (filled && i < n) spines(b, -w / 2 + 0.04, w / 2 - 0.04, -d / 2 + 0.03, z + 0.026, (h - 0.08) / n - 0.04, d * 0.62, i * 13 + 5 + Math.round(w * 100));
  }
}

function bedding(b, w, d, low, c) {
  const head = -d / 2;
  const white = WHITE();
  b.box(-w / 2 + 0.03, w / 2 - 0.03, head + 0.06, d / 2 - 0.02, low, low + 0.2, white, 0.05);
  // The cover hangs over the sides and is turned down at the head.
  b.box(-w / 2 + 0.005, w / 2 - 0.005, head + 0.62, d / 2, low - 0.08, low + 0.235, c, 0.05);
  b.box(-w / 2 + 0.015, w / 2 - 0.015, head + 0.52, head + 0.68, low + 0.1, low + 0.25, blend(white, c, 0.25), 0.03);
  const pillows = w > 1.3 ? 2 : 1;
  for (let i = 0; i < pillows; i++) {
    const x = (i - (pillows - 1) / 2) * (w * 0.48);
    b.box(x - w * 0.21 - (pillows === 1 ? 0.1 : 0), x + w * 0.21 + (pillows === 1 ? 0.1 : 0), head + 0.1, head + 0.46, low + 0.17, low + 0.31, shade(white, 1.02), 0.06);
  }
}

export const FURNITURE = {
  couch: (b, t) => seat(b, t, t.w > 1.8 ? 3 : 2),
  armchair: (b, t) => seat(b, t, 1),
  chair,
  table,
  "coffee table": lowTable,
  "side table": lowTable,
  "console table": (b, t) => { table(b, { ...t, material: t.material }); b.box(-t.w / 2 + 0.06, t.w / 2 - 0.06, -t.d / 2 + 0.04, t.d / 2 - 0.04, 0.16, 0.185, shade(t.c, 0.9)); },
  desk(b, t) {
    table(b, t);
    if (t.material !== "glass") {
      b.box(-t.w / 2 + 0.05, -t.w / 2 + 0.42, -t.d / 2 + 0.05, t.d / 2 - 0.08, 0.1, t.h - 0.04, shade(t.c, 0.95));
      for (let i = 0; i < 3; i++) b.box(-t.w / 2 + 0.07, -t.w / 2 + 0.4, -t.d / 2 + 0.035, -t.d / 2 + 0.055, 0.13 + i * 0.18, 0.29 + i * 0.18, shade(t.c, 1.08));
    }
  },
  ottoman(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0.08, h, c, 0.07);
    b.legs(w, d, 0.1, 0.04, feet(c), 0.04);
  },
  bench(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.05, h, c, 0.012);
    for (const s of [-1, 1]) b.box(s * (w / 2 - 0.12) - 0.03, s * (w / 2 - 0.12) + 0.03, -d / 2 + 0.03, d / 2 - 0.03, 0, h - 0.04, shade(c, 0.9));
    b.box(-w / 2 + 0.12, w / 2 - 0.12, -0.03, 0.03, 0.12, 0.18, shade(c, 0.85));
  },
  stool(b, { w, h, c, material }) {
    const metal = material === "metal";
    b.lathe(0, 0, [[h - 0.05, w / 2 - 0.02], [h - 0.04, w / 2], [h - 0.01, w / 2], [h, w / 2 - 0.02]], c, { segments: 18 });
    for (let i = 0; i < 4; i++) {
      const a = ((i + 0.5) * Math.PI) / 2;
      b.bar([Math.cos(a) * w * 0.46, Math.sin(a) * w * 0.46, 0], [Math.cos(a) * w * 0.3, Math.sin(a) * w * 0.3, h - 0.04], 0.015, metal ? METAL() : shade(c, 0.9));
    }
    b.lathe(0, 0, [[h * 0.32, w * 0.4], [h * 0.32 + 0.02, w * 0.4]], metal ? METAL() : shade(c, 0.85), { cap: false });
  },
  "office chair"(b, { w, d, h, c }) {
    const dark = BLACK();
    for (let i = 0; i < 5; i++) {
      const a = (i * 2 * Math.PI) / 5;
      b.bar([0, 0, 0.09], [Math.cos(a) * w * 0.45, Math.sin(a) * w * 0.45, 0.06], 0.02, dark);
      b.ball(Math.cos(a) * w * 0.45, Math.sin(a) * w * 0.45, 0.035, 0.035, dark, { segments: 8, rings: 4 });
    }
    b.post(0, 0, 0.03, 0.08, 0.42, METAL());
    b.box(-w * 0.42, w * 0.42, -d * 0.4, d * 0.42, 0.42, 0.51, c, 0.04);
    b.box(-w * 0.38, w * 0.38, -d * 0.47, -d * 0.34, 0.55, h, c, 0.05);
    for (const s of [-1, 1]) { b.box(s * w * 0.44 - 0.025, s * w * 0.44 + 0.025, -d * 0.25, d * 0.25, 0.66, 0.7, dark); b.box(s * w * 0.44 - 0.015, s * w * 0.44 + 0.015, -0.03, 0.03, 0.46, 0.67, dark); }
  },
  "wicker chair"(b, { w, d, h, c }) {
    b.lathe(0, 0, [[0.02, w * 0.34], [0.2, w * 0.28], [0.38, w * 0.44]], shade(c, 0.85), { segments: 18 });
    b.box(-w * 0.42, w * 0.42, -d * 0.36, d * 0.46, 0.36, 0.46, WHITE(), 0.04);
    for (let i = -4; i <= 4; i++) {
      const a = (i / 4) * 1.9 - Math.PI / 2;
      const [x, y] = [Math.cos(a) * w * 0.45, Math.sin(a) * d * 0.42];
      const top = 0.62 + (h - 0.62) * Math.cos((i / 4) * 1.35);
      b.bar([x * 0.92, y * 0.92, 0.36], [x, y, top], 0.035, i % 2 ? c : shade(c, 0.9));
    }
  },
  "tv stand": (b, t) => cupboard(b, t, { rows: doors(0, 1), columns: 3, legs: true }),
  tv(b, { w, h }) {
    b.box(-w * 0.2, w * 0.2, -0.09, 0.09, 0, 0.02, BLACK());
    b.box(-0.04, 0.04, -0.02, 0.02, 0.01, 0.1, BLACK());
    b.box(-w / 2, w / 2, -0.025, 0.02, 0.07, h, paint(0x1b1c1f), 0.01);
    b.box(-w / 2 + 0.02, w / 2 - 0.02, 0.018, 0.024, 0.09, h - 0.02, paint(0x30363f), 0.002);
  },
  buffet: (b, t) => cupboard(b, t, { rows: [...doors(0, 0.66), ...drawers(1, 0.66, 1)], columns: 3, legs: true }),
  cabinet: (b, t) => cupboard(b, t, { rows: [...doors(0, 0.72), ...drawers(1, 0.72, 1)], columns: 2, legs: true }),
  dresser: (b, t) => cupboard(b, t, { rows: drawers(3), columns: 2, legs: true }),
  nightstand: (b, t) => cupboard(b, t, { rows: drawers(2), columns: 1, legs: true }),
  wardrobe: (b, t) => cupboard(b, t, { rows: doors(), columns: t.w > 1.25 ? 3 : 2 }),
  "filing cabinet": (b, t) => cupboard(b, t, { rows: drawers(3), columns: 1, plinth: 0.03 }),
  bookshelf: (b, t) => shelves(b, t, 5, true),
  shelf(b, t) {
    shelves(b, t, 4, false);
    const boxes = [0xb58a55, 0xd6d0c4, 0x6f8aa5, 0x9a6a4a].map(paint);
    for (let i = 0; i < 4; i++) {
      const z = 0.076 + (i * (t.h - 0.08)) / 4;
      for (let k = 0; k < 2 + (i % 2); k++) {
        const x = -t.w * 0.36 + k * t.w * 0.3 + (i % 2) * 0.03;
        b.box(x - 0.1, x + 0.1, -t.d * 0.35, t.d * 0.3, z, z + 0.16 + ((i * 3 + k * 5) % 4) * 0.03, boxes[(i + k * 3) % 4], 0.01);
      }
    }
  },
  bed(b, { w, d, h, c }) {
    const wood = paint(c[0] > c[2] * 2.5 && c[0] < 0.4 ? "dark" : "brown");
    b.box(-w / 2, w / 2, -d / 2, -d / 2 + 0.07, 0, 1.02, wood, 0.02);
    b.box(-w / 2 + 0.1, w / 2 - 0.1, -d / 2 + 0.06, -d / 2 + 0.09, 0.5, 0.94, shade(wood, 1.1), 0.02);
    b.box(-w / 2, w / 2, -d / 2 + 0.04, d / 2, 0.14, h - 0.2, wood, 0.015);
    b.legs(w, d, 0.16, 0.07, shade(wood, 0.8), 0.02);
    bedding(b, w, d, h - 0.235, c);
  },
  "bunk bed"(b, { w, d, h, c }) {
    for (const x of [-1, 1]) for (const y of [-1, 1]) b.box(x * (w / 2 - 0.035) - 0.035, x * (w / 2 - 0.035) + 0.035, y * (d / 2 - 0.035) - 0.035, y * (d / 2 - 0.035) + 0.035, 0, h + 0.12, c);
    for (const low of [0.3, 1.2]) {
      b.box(-w / 2 + 0.02, w / 2 - 0.02, -d / 2 + 0.02, d / 2 - 0.02, low - 0.12, low, shade(c, 0.95));
      bedding(b, w - 0.1, d - 0.1, low, paint(low < 1 ? "blue" : "red"));
    }
    b.box(-w / 2, w / 2, d / 2 - 0.05, d / 2, 1.45, 1.52, c);
    for (let i = 0; i < 5; i++) b.bar([w / 2 - 0.02, -d * 0.12, 0.25 + i * 0.28], [w / 2 - 0.02, d * 0.12, 0.25 + i * 0.28], 0.018, shade(c, 0.9));
    for (const y of [-0.12, 0.12]) b.bar([w / 2 - 0.02, d * y, 0], [w / 2 - 0.02, d * y, 1.6], 0.02, c);
  },
  trunk(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0.02, h * 0.68, c, 0.02);
    b.box(-w / 2 - 0.005, w / 2 + 0.005, -d / 2 - 0.005, d / 2 + 0.005, h * 0.7, h, shade(c, 1.06), 0.07);
    for (const x of [-w * 0.3, w * 0.3]) b.box(x - 0.03, x + 0.03, -d / 2 - 0.01, d / 2 + 0.01, 0.02, h * 0.97, shade(paint("gold"), 0.7), 0.03);
  },
  "toy chest"(b, { w, d, h, c }) {
    b.box(-w / 2, w / 2, -d / 2, d / 2, 0, h * 0.85, c, 0.02);
    b.box(-w / 2 - 0.02, w / 2 + 0.02, -d / 2 - 0.01, d / 2 + 0.02, h * 0.86, h, WHITE(), 0.02);
    for (const [x, colour] of [[-0.25, "yellow"], [0, "red"], [0.25, "green"]]) b.lathe(x * w, d / 2 + 0.004, [[h * 0.4 - 0.07, 0.001], [h * 0.4, 0.07], [h * 0.4 + 0.07, 0.001]], paint(colour), { squash: 0.12, cap: false });
  },
  "shoe rack"(b, { w, d, h, c }) {
    for (const s of [-1, 1]) b.box(s < 0 ? -w / 2 : w / 2 - 0.03, s < 0 ? -w / 2 + 0.03 : w / 2, -d / 2, d / 2, 0, h, c);
    for (const z of [0.1, 0.3]) {
      b.box(-w / 2, w / 2, -d / 2, d / 2, z, z + 0.02, c);
      for (let i = 0; i < 4; i++) b.box(-w * 0.4 + i * w * 0.23, -w * 0.4 + i * w * 0.23 + 0.09, -d * 0.35, d * 0.4, z + 0.02, z + 0.09, paint([0x3a3330, 0x8a4a33, 0xe5e1d8, 0x2f4b6e][(i + (z > 0.2 ? 2 : 0)) % 4]), 0.03);
    }
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.03, h, c);
  },
  "pool table"(b, { w, d, h, c }) {
    const wood = paint("dark");
    b.legs(w, d, h * 0.7, 0.14, wood, 0.08);
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.24, h - 0.05, wood, 0.02);
    b.box(-w / 2 + 0.09, w / 2 - 0.09, -d / 2 + 0.09, d / 2 - 0.09, h - 0.1, h - 0.04, c, 0.002);
    for (const s of [-1, 1]) {
      b.box(-w / 2, w / 2, s < 0 ? -d / 2 : d / 2 - 0.1, s < 0 ? -d / 2 + 0.1 : d / 2, h - 0.08, h, shade(wood, 1.3), 0.02);
      b.box(s < 0 ? -w / 2 : w / 2 - 0.1, s < 0 ? -w / 2 + 0.1 : w / 2, -d / 2, d / 2, h - 0.08, h, shade(wood, 1.3), 0.02);
      for (const x of [-1, 0, 1]) b.lathe(x * (w / 2 - 0.11), s * (d / 2 - 0.11), [[h - 0.02, 0.055], [h + 0.002, 0.055]], BLACK());
    }
    ["white", "red", "yellow", "blue", "orange", "purple"].forEach((name, i) => b.ball(-w * 0.25 + (i === 0 ? 0 : w * 0.4 + (i % 3) * 0.06), (i === 0 ? 0 : ((i % 2) - 0.5) * 0.09 + 0.02 * i), h - 0.012, 0.028, paint(name), { segments: 8, rings: 5 }));
  },
  "foosball table"(b, { w, d, h, c }) {
    b.legs(w, d, h * 0.75, 0.1, shade(c, 0.85), 0.02);
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.28, h - 0.08, c, 0.015);
    b.box(-w / 2 + 0.06, w / 2 - 0.06, -d / 2 + 0.06, d / 2 - 0.06, h - 0.1, h - 0.075, paint(0x3f8a4d), 0.002);
    for (const s of [-1, 1]) b.box(-w / 2, w / 2, s < 0 ? -d / 2 : d / 2 - 0.05, s < 0 ? -d / 2 + 0.05 : d / 2, h - 0.1, h, c, 0.01);
    for (let i = 0; i < 6; i++) {
      const x = -w * 0.38 + i * w * 0.152;
      b.bar([x, -d / 2 - 0.12, h - 0.02], [x, d / 2 + 0.12, h - 0.02], 0.012, METAL());
      for (const y of [-0.18, 0, 0.18]) b.box(x - 0.02, x + 0.02, y * d - 0.02, y * d + 0.02, h - 0.09, h + 0.01, paint(i % 2 ? "red" : "blue"), 0.01);
    }
  },
  bar(b, { w, d, h, c }) {
    b.box(-w / 2 + 0.05, w / 2 - 0.05, -d / 2 + 0.05, d / 2 - 0.1, 0, h - 0.05, shade(c, 0.9));
    b.box(-w / 2, w / 2, -d / 2, d / 2, h - 0.05, h, shade(c, 1.15), 0.02);
    for (let i = 0; i < 4; i++) b.box(-w / 2 + 0.1 + (i * (w - 0.2)) / 4, -w / 2 + 0.04 + ((i + 1) * (w - 0.2)) / 4, d / 2 - 0.11, d / 2 - 0.085, 0.15, h - 0.15, shade(c, 1.1), 0.01);
    [0x3d6044, 0x8a5a2f, 0xb9c7c2, 0x7c2f2a].forEach((colour, i) => b.lathe(-w * 0.32 + i * 0.12, -d * 0.18, [[h, 0.035], [h + 0.17, 0.035], [h + 0.22, 0.014], [h + 0.29, 0.014]], paint(colour), { segments: 10 }));
  },
};
