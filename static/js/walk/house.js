// A generated house as a three.js scene: built once, then only drawn.

import * as THREE from "../../vendor/three.module.min.js";
import { Brush, chance, paint, shade } from "./brush.js";
import { FIXTURES } from "./fixtures.js";
import { FURNITURE } from "./furniture.js";
import { Rooms, outdoors } from "./light.js";
import { CEILING, STOREY, Shell } from "./shell.js";
import { materials } from "./textures.js";

const SKY = [0x8fb8de, 0xdfeaf1];
const GRASS = 0x7c9a5c;

function things(house, rooms, brushes) {
  for (const item of house.items) {
    const draw = FURNITURE[item.kind] ?? FIXTURES[item.kind];
    const [w, d, h] = item.size;
    const base = house.rooms[item.room].storey * STOREY + item.bottom;
    const brush = brushes("plain").at(item.at[0], item.at[1], base, item.turn);
    brush.light = rooms.of(item.room);
    // Two pieces of one colour are never quite alike.
    const c = shade(paint(item.finish.colour), 0.94 + 0.12 * chance(item.at[0], item.at[1]));
    const glass = (...box) => {
      const pane = brushes("glass").at(item.at[0], item.at[1], base, item.turn);
      pane.light = null;
      pane.box(...box, paint(0xcfe6ee), 0.001);
    };
    if (draw) draw(brush, { w, d, h, c, material: item.finish.material, at: item.at, bottom: item.bottom }, glass);
    else brush.box(-w / 2, w / 2, -d / 2, d / 2, 0, h, c, 0.03);
    if (item.bottom < 0.05 && h > 0.05 && item.kind !== "railing") shadow(brushes("shadow"), item, base);
  }
}

// The soft dark patch under what stands on the floor.
function shadow(brush, { size: [w, d], at, turn }, base) {
  const grow = 0.34;
  const [x, y] = [w / 2 + grow / 2, d / 2 + grow / 2];
  brush.at(at[0], at[1], base + 0.021, turn);
  brush.quad([-x, -y, 0], [x, -y, 0], [x, y, 0], [-x, y, 0], [0, 0, 1], [1, 1, 1], [[0, 0], [1, 0], [1, 1], [0, 1]]);
}

// Lawn, hedge and trees, so that windows have something to show.
function garden(house, brush) {
  brush.light = outdoors;
  brush.at();
  const east = Math.max(...house.rooms.map((room) => room.rect.x1)), north = Math.max(...house.rooms.map((room) => room.rect.y1));
  const [cx, cy] = [east / 2, north / 2];
  const near = paint(GRASS), far = paint(0xb9cdb0);
  const rings = [[0, near], [Math.max(east, north) * 0.9 + 6, near], [45, far], [120, paint(SKY[1])]];
  for (let i = 0; i + 1 < rings.length; i++) {
    const n = 32;
    for (let k = 0; k < n; k++) {
      const at = ([r], j) => [cx + r * Math.cos((j * 2 * Math.PI) / n), cy + r * Math.sin((j * 2 * Math.PI) / n), -0.12];
      const corner = (ring, j) => { const p = at(ring, j); return brush.corner(p[0], p[1], p[2], 0, 0, 1, ring[1]); };
      const [a, b, c, d] = [corner(rings[i], k), corner(rings[i + 1], k), corner(rings[i + 1], k + 1), corner(rings[i], k + 1)];
      brush.indices.push(a, b, c, a, c, d);
    }
  }
  for (let i = 0; i < 22; i++) {
    const angle = (i + chance(house.seed, i)) * ((2 * Math.PI) / 22), out = 5 + 15 * chance(i, house.seed, 1);
    // From the edge of the house outwards, in this direction.
    const edge = Math.min(cx / Math.max(Math.abs(Math.cos(angle)), 0.01), cy / Math.max(Math.abs(Math.sin(angle)), 0.01));
    const [x, y] = [cx + Math.cos(angle) * (edge + out), cy + Math.sin(angle) * (edge + out)];
    const size = 1.1 + 1.3 * chance(house.seed, i, 2);
    const leaf = shade(paint([0x5f8a4a, 0x6f9a50, 0x527c4d][i % 3]), 0.9 + 0.2 * chance(i, 9));
    brush.post(x, y, 0.14 * size, -0.15, 1.7 * size, paint(0x75583f), 0.09 * size, 8);
    for (let k = 0; k < 3; k++) brush.ball(x + (k - 1) * 0.5 * size, y + (chance(i, k) - 0.5) * size, (1.9 + 0.55 * (k % 2)) * size, (0.85 + 0.25 * (k % 2)) * size, leaf, { segments: 9, rings: 6 });
  }
}

// What is behind everything: a dome from one colour at the horizon to another above.
export function sky(low, high) {
  const geometry = new THREE.SphereGeometry(300, 24, 12);
  const at = geometry.attributes.position;
  const [from, to] = [new THREE.Color(low), new THREE.Color(high)];
  const colours = new Float32Array(at.count * 3);
  for (let i = 0; i < at.count; i++) {
    const mixed = from.clone().lerp(to, Math.min(1, Math.max(0, at.getZ(i) / 160)));
    colours.set([mixed.r, mixed.g, mixed.b], i * 3);
  }
  geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3));
  return new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.BackSide, depthWrite: false, fog: false }));
}

// The scene of a house.
export function buildHouse(house) {
  const all = materials();
  const brushes = new Map();
  const brush = (kind) => {
    if (!brushes.has(kind)) brushes.set(kind, new Brush());
    return brushes.get(kind);
  };
  const rooms = new Rooms(house, { storeyHeight: STOREY, roomHeight: CEILING });
  new Shell(house, rooms, brush);
  things(house, rooms, brush);
  garden(house, brush("plain"));
  const scene = new THREE.Scene();
  scene.add(sky(SKY[1], SKY[0]));
  for (const [kind, made] of brushes) {
    const mesh = made.mesh(all[kind]);
    if (!mesh) continue;
    // What is seen through comes last, shadows before sunlight before panes.
    mesh.renderOrder = ["shadow", "sun", "glass"].indexOf(kind) + 1;
    scene.add(mesh);
  }
  return scene;
}

// Frees what belongs to one house; materials stay for the next.
export function dispose(scene) {
  scene.traverse((part) => part.geometry?.dispose());
}
