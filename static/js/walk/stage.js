// Draws one walk into a canvas: the scene of its house, the path on the floor, and at real houses photographs or labels.

import * as THREE from "../../vendor/three.module.min.js";
import { EYE } from "./player.js";

const SIDEWAYS = (88 * Math.PI) / 180;   // how wide the agent's view is, where the canvas allows it
const MARK = 0x2f74e0;

// A renderer, or null where the browser has no WebGL.
function renderer(canvas) {
  try {
    const made = new THREE.WebGLRenderer({ canvas, antialias: true, powerPreference: "high-performance" });
    made.autoClear = false;
    return made;
  } catch {
    return null;
  }
}

// The path on the floor: dots in the order of walking, a ring at every stop, a larger one where it ends.
function trail(stops) {
  const positions = [], indices = [];
  const ring = ([x, y, z], inner, outer, n = 28) => {
    const first = positions.length / 3;
    for (let i = 0; i <= n; i++) {
      const [c, s] = [Math.cos((i * 2 * Math.PI) / n), Math.sin((i * 2 * Math.PI) / n)];
      positions.push(x + c * inner, y + s * inner, z, x + c * outer, y + s * outer, z);
    }
    for (let i = 0; i < n; i++) {
      const a = first + 2 * i;
      indices.push(a, a + 1, a + 3, a, a + 3, a + 2);
    }
  };
  const ground = ([x, y, z]) => [x, y, z - EYE + 0.035];
  stops.forEach((stop, i) => {
    const here = ground(stop);
    const last = i === stops.length - 1;
    ring(here, 0.13, 0.17);
    if (last) ring(here, 0.25, 0.33);
    if (last) return;
    const next = ground(stops[i + 1]);
    const length = Math.hypot(next[0] - here[0], next[1] - here[1], next[2] - here[2]);
    for (let way = 0.34; way < length - 0.26; way += 0.24) ring(here.map((part, k) => part + ((next[k] - part) * way) / length), 0, 0.035, 10);
  });
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
  geometry.setIndex(indices);
  const material = new THREE.MeshBasicMaterial({ color: MARK, transparent: true, opacity: 0.8, depthWrite: false, polygonOffset: true, polygonOffsetFactor: -4, polygonOffsetUnits: -4 });
  return new THREE.Mesh(geometry, material);
}

export class Stage {
  #last = 0;
  #slow = 0;

  // `overlay`: what a real house shows at a stop beside its scene; see scene.js.
  static open(canvas, scene, stops, overlay = null) {
    const drawer = renderer(canvas);
    return drawer && new Stage(canvas, drawer, scene, stops, overlay);
  }

  constructor(canvas, drawer, scene, stops, overlay) {
    Object.assign(this, { canvas, drawer, scene, overlay });
    this.camera = new THREE.PerspectiveCamera(60, 1, 0.06, 400);
    this.camera.up.set(0, 0, 1);
    this.above = new THREE.Scene();
    this.above.add(trail(stops));
    this.target = new THREE.Vector3();
    this.ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.resize();
  }

  // Fits the drawing to the canvas's place on the page; the width of the view in radians.
  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return this.wide ?? SIDEWAYS;
    this.drawer.setPixelRatio(this.ratio);
    this.drawer.setSize(width, height, false);
    this.camera.aspect = width / height;
    const upright = 2 * Math.atan(Math.tan(SIDEWAYS / 2) / this.camera.aspect);
    this.camera.fov = Math.min(74, Math.max(52, (upright * 180) / Math.PI));
    this.camera.updateProjectionMatrix();
    this.wide = 2 * Math.atan(Math.tan((this.camera.fov * Math.PI) / 360) * this.camera.aspect);
    return this.wide;
  }

  // The view from a place along a heading and a pitch, at a stop.
  draw({ x, y, z, stop, walking }, heading, pitch) {
    const { camera, target, drawer } = this;
    camera.position.set(x, y, z);
    target.set(x + Math.sin(heading) * Math.cos(pitch), y + Math.cos(heading) * Math.cos(pitch), z + Math.sin(pitch));
    camera.lookAt(target);
    const scene = this.overlay?.scene(stop, walking, camera.position) ?? this.scene;
    drawer.clear();
    drawer.render(scene, camera);
    if (scene !== this.scene) drawer.clearDepth();
    drawer.render(this.above, camera);
    const labels = scene === this.scene && this.overlay?.labels(stop);
    if (labels) drawer.render(labels, camera);
  }

  // Told of every frame while something moves: where frames take too long, fewer pixels are drawn.
  pace(now) {
    const took = now - this.#last;
    this.#last = now;
    if (took > 200 || this.ratio <= 1) return;
    this.#slow = took > 26 ? this.#slow + 1 : Math.max(0, this.#slow - 1);
    if (this.#slow < 24) return;
    this.#slow = 0;
    this.ratio = Math.max(1, this.ratio * 0.75);
    this.resize();
  }

  close() {
    this.overlay?.close();
    for (const part of this.above.children) { part.geometry.dispose(); part.material.dispose(); }
    this.drawer.dispose();
    if (!this.drawer.getContext().isContextLost()) this.drawer.forceContextLoss();
  }
}
