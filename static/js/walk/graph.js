// A real house, of which only viewpoints, ways and labelled objects are known: the ground that can be walked, and things
// in their places, turned towards those who pass.

import * as THREE from "../../vendor/three.module.min.js";
import { Brush, chance, paint, shade } from "./brush.js";
import { FIXTURES } from "./fixtures.js";
import { FURNITURE } from "./furniture.js";
import { sky } from "./house.js";
import { outdoors } from "./light.js";
import { EYE } from "./player.js";

const AIR = 0xe3e8ea;
const SKY = 0xb9cede;
const FLOOR = 0xdcc8a6;
const GROUND = 0xcdd0c8;

// Names of objects that have a shape of their own here.
const SHAPES = [
  [/sofa|couch|loveseat/, "couch"], [/armchair|recliner/, "armchair"], [/office chair|swivel/, "office chair"], [/stool/, "stool"], [/chair|seat/, "chair"], [/bench/, "bench"], [/ottoman|pouf/, "ottoman"],
  [/coffee table/, "coffee table"], [/nightstand|bedside/, "nightstand"], [/desk/, "desk"], [/table/, "table"], [/bunk/, "bunk bed"], [/bed$/, "bed"], [/pillow|cushion/, "pillow"],
  [/bookshelf|bookcase/, "bookshelf"], [/shelf|shelves|shelving/, "shelf"], [/wardrobe|closet/, "wardrobe"], [/dresser|chest of/, "dresser"], [/cabinet|cupboard|drawer|sideboard/, "cabinet"],
  [/plant|flower|tree/, "plant"], [/vase|urn|pot$/, "vase"], [/chandelier/, "chandelier"], [/fan/, "ceiling fan"], [/floor lamp/, "floor lamp"], [/lamp|light|sconce/, "lamp"],
  [/painting|artwork/, "painting"], [/picture|photo|poster|frame/, "picture"], [/mirror/, "mirror"], [/clock/, "clock"], [/tv|television|monitor|screen/, "tv"],
  [/toilet/, "toilet"], [/bathtub|tub$|bath$/, "bathtub"], [/shower/, "shower"], [/sink|basin/, "sink"], [/towel/, "towel"], [/stove|oven|range/, "stove"], [/fridge|refrigerator/, "refrigerator"],
  [/microwave/, "microwave"], [/dishwasher/, "dishwasher"], [/washing|washer/, "washing machine"], [/counter/, "counter"], [/island/, "island"], [/fireplace/, "fireplace"], [/piano/, "piano"],
  [/statue|sculpture|bust/, "statue"], [/bowl|plate/, "bowl"], [/book/, "books"], [/bin|trash/, "trash can"], [/basket|hamper/, "laundry basket"], [/box/, "boxes"], [/railing|banister/, "railing"], [/treadmill/, "treadmill"],
];
// Nobody knows the things' colours, so they have none: all are of one clay, a little lighter or darker.
const CLAY = 0xd3cbbf;

function thing(brush, [name, x, y, z, width, height], nearest) {
  const w = Math.min(Math.max(width, 0.12), 3), h = Math.min(Math.max(height, 0.1), 2.4);
  const towards = Math.atan2(nearest[1] - x, nearest[2] - y) / (Math.PI / 2);
  brush.at(x, y, z - h / 2, towards);
  const c = shade(paint(CLAY), 0.86 + 0.2 * chance(x, y));
  const kind = SHAPES.find(([pattern]) => pattern.test(name))?.[1];
  const draw = FURNITURE[kind] ?? FIXTURES[kind];
  const depth = Math.min(w * 0.7, 0.9);
  if (draw) draw(brush, { w, d: depth, h, c, material: "wood", at: [x, y] }, () => {});
  else if (/door/.test(name)) brush.box(-w / 2, w / 2, -0.04, 0.04, 0, h, shade(c, 0.8), 0.02);
  else if (/window|curtain|blind/.test(name)) brush.box(-w / 2, w / 2, -0.03, 0.03, 0, h, paint("clear"), 0.02);
  else if (/rug|carpet|mat$/.test(name)) brush.box(-w / 2, w / 2, -w / 3, w / 3, h / 2, h / 2 + 0.02, c, 0.01);
  else if (/wall|ceiling|floor/.test(name)) return;
  else brush.box(-w / 2, w / 2, -Math.min(depth, 0.3) / 2, Math.min(depth, 0.3) / 2, 0, h, c, 0.04);
}

export function buildGraph({ viewpoints, edges, objects }) {
  const scene = new THREE.Scene();
  scene.add(sky(AIR, SKY));
  scene.fog = new THREE.Fog(AIR, 9, 30);
  const ground = new Brush(), colour = paint(FLOOR), edge = shade(colour, 0.8);
  const foot = (i) => [viewpoints[i][1], viewpoints[i][2], viewpoints[i][3] - EYE];
  const disc = ([x, y, z], r, tint) => ground.lathe(x, y, [[z, r], [z + 0.001, r - 0.01]], tint, { segments: 26 });
  const strip = (a, b, half, up, tint) => {
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
    const length = Math.hypot(dx, dy) || 1;
    const [sx, sy] = [(-dy / length) * half, (dx / length) * half];
    ground.quad([a[0] - sx, a[1] - sy, a[2] + up], [b[0] - sx, b[1] - sy, b[2] + up], [b[0] + sx, b[1] + sy, b[2] + up], [a[0] + sx, a[1] + sy, a[2] + up], [0, 0, 1], tint);
  };
  viewpoints.forEach((_, i) => {
    const [x, y, z] = foot(i);
    disc([x, y, z - 0.03], 1.46, edge);
    disc([x, y, z - 0.012], 1.4, colour);
    disc([x, y, z], 0.1, shade(colour, 0.7));
  });
  for (const [a, b] of edges) {
    strip(foot(a), foot(b), 0.86, -0.024, edge);
    strip(foot(a), foot(b), 0.8, -0.008, colour);
  }
  // The ground under the lowest storey, in squares of two metres, so that one sees how one moves.
  const [west, south, low] = [1, 2, 3].map((k) => Math.min(...viewpoints.map((v) => v[k])));
  const [east, north] = [1, 2].map((k) => Math.max(...viewpoints.map((v) => v[k])));
  for (let x = Math.floor(west / 2) * 2 - 16; x < east + 16; x += 2) {
    for (let y = Math.floor(south / 2) * 2 - 16; y < north + 16; y += 2) {
      const z = low - EYE - 0.12;
      ground.quad([x, y, z], [x + 2, y, z], [x + 2, y + 2, z], [x, y + 2, z], [0, 0, 1], shade(paint(GROUND), (x + y) % 4 === 0 ? 1 : 0.955));
    }
  }
  const plain = new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.DoubleSide });
  scene.add(ground.mesh(plain));
  const things = new Brush();
  things.light = outdoors;
  for (const object of objects) {
    const apart = (v) => Math.hypot(v[1] - object[1], v[2] - object[2]) + 2 * Math.abs(v[3] - object[3]);
    const nearest = viewpoints.reduce((best, v) => (apart(v) < apart(best) ? v : best));
    if (apart(nearest) > 0.35) thing(things, object, nearest);
  }
  const mesh = things.mesh(plain);
  if (mesh) scene.add(mesh);
  return scene;
}

// ---- What is shown at a stop beside the scene: names of the things seen there, or a photograph ---------------------

function label(name) {
  const pen = document.createElement("canvas").getContext("2d");
  const font = "600 34px system-ui, sans-serif";
  pen.font = font;
  const width = Math.ceil(pen.measureText(name).width) + 36;
  [pen.canvas.width, pen.canvas.height] = [width, 56];
  pen.font = font;
  pen.fillStyle = "rgb(20 26 34 / 82%)";
  pen.beginPath();
  pen.roundRect(0, 0, width, 56, 18);
  pen.fill();
  pen.fillStyle = "#ffffff";
  pen.textBaseline = "middle";
  pen.fillText(name, 18, 29);
  const map = new THREE.CanvasTexture(pen.canvas);
  map.colorSpace = THREE.SRGBColorSpace;
  const sprite = new THREE.Sprite(new THREE.SpriteMaterial({ map, depthTest: false, transparent: true }));
  sprite.userData.wide = width / 56;
  return sprite;
}

function sphere() {
  const positions = [], uvs = [], indices = [], [n, m] = [48, 24];
  for (let j = 0; j <= m; j++) {
    for (let i = 0; i <= n; i++) {
      // The middle of the picture looks north, its right half east.
      const [lon, lat] = [(i / n - 0.5) * 2 * Math.PI, (j / m - 0.5) * Math.PI];
      positions.push(50 * Math.sin(lon) * Math.cos(lat), 50 * Math.cos(lon) * Math.cos(lat), 50 * Math.sin(lat));
      uvs.push(i / n, j / m);
      if (i < n && j < m) { const a = j * (n + 1) + i; indices.push(a, a + 1, a + n + 2, a, a + n + 2, a + n + 1); }
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setAttribute("uv", new THREE.Float32BufferAttribute(uvs, 2));
  geometry.setIndex(indices);
  return geometry;
}

export class Overlay {
  // `path`: stops with what is seen; `photographs`: names of viewpoints that have one; `address` of each; `changed` is
  // called when one has arrived.
  constructor(path, photographs, address, changed) {
    Object.assign(this, { path, photographs: new Set(photographs), address, changed });
    this.named = new Map();
    this.pictures = new Map();
    this.room = new THREE.Scene();
    this.ball = new THREE.Mesh(sphere(), new THREE.MeshBasicMaterial({ side: THREE.DoubleSide, depthWrite: false }));
    this.room.add(this.ball);
  }

  #picture(stop) {
    const id = this.path[stop]?.viewpoint;
    if (!this.photographs.has(id)) return null;
    if (!this.pictures.has(id)) {
      const texture = new THREE.TextureLoader().load(this.address(id), () => { texture.userData.there = true; this.changed(); }, undefined, () => this.photographs.delete(id));
      texture.colorSpace = THREE.SRGBColorSpace;
      this.pictures.set(id, texture);
    }
    return this.pictures.get(id);
  }

  // The photograph of a stop as a scene, once it is there; `null` before, and between stops without one.
  scene(stop, walking, at) {
    const texture = this.#picture(stop);
    if (stop + 1 < this.path.length) this.#picture(stop + 1);
    if (!texture?.userData.there) return null;
    if (this.ball.material.map !== texture) {
      this.ball.material.map = texture;
      this.ball.material.needsUpdate = true;
    }
    this.ball.position.copy(at);
    return this.room;
  }

  labels(stop) {
    if (!this.named.has(stop)) {
      const scene = new THREE.Scene();
      for (const { name, position, distance } of this.path[stop]?.things ?? []) {
        if (distance > 9 || distance < 0.5) continue;
        const sprite = label(name);
        const size = 0.05 + distance * 0.038;
        sprite.scale.set(size * sprite.userData.wide, size, 1);
        sprite.position.set(position[0], position[1], position[2] + 0.12);
        scene.add(sprite);
      }
      this.named.set(stop, scene);
    }
    return this.named.get(stop);
  }

  close() {
    for (const scene of this.named.values()) for (const sprite of scene.children) { sprite.material.map.dispose(); sprite.material.dispose(); }
    for (const texture of this.pictures.values()) texture.dispose();
    this.ball.geometry.dispose();
    this.ball.material.dispose();
  }
}
