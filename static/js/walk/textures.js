// Floors and walls as small pictures drawn here: no image is fetched. They are grey; the colour comes from the geometry.

import * as THREE from "../../vendor/three.module.min.js";
import { chance } from "./brush.js";

function texture(width, height, metres, draw) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const pen = canvas.getContext("2d");
  draw(pen, width, height);
  const made = new THREE.CanvasTexture(canvas);
  made.wrapS = made.wrapT = THREE.RepeatWrapping;
  made.repeat.set(1 / metres, width / height / metres);
  made.anisotropy = 8;
  made.colorSpace = THREE.SRGBColorSpace;
  return made;
}

const grey = (value) => `rgb(${value} ${value} ${value})`;

function planks(pen, w, h) {
  const rows = 8, height = h / rows;
  for (let row = 0; row < rows; row++) {
    let x = -Math.floor(chance(row, 7) * w * 0.4);
    while (x < w) {
      const length = w * (0.28 + 0.25 * chance(row, x));
      // The picture repeats: what leaves on the right comes in on the left.
      const value = 212 + Math.floor(chance(x < 0 ? row : x, row, 3) * 36);
      pen.fillStyle = grey(value);
      pen.fillRect(x, row * height, length, height);
      for (let k = 0; k < 9; k++) {
        pen.fillStyle = `rgb(60 40 20 / ${0.03 + 0.05 * chance(k, x, row)})`;
        pen.fillRect(x, row * height + chance(k, row, x + 1) * height, length, 1 + chance(k, x) * 1.5);
      }
      pen.fillStyle = "rgb(30 20 10 / 32%)";
      pen.fillRect(x, row * height, 1.5, height);
      x += length;
    }
    pen.fillStyle = "rgb(30 20 10 / 30%)";
    pen.fillRect(0, row * height, w, 1.5);
  }
}

const tiles = (across, joint) => (pen, w, h) => {
  const size = w / across;
  pen.fillStyle = grey(206);
  pen.fillRect(0, 0, w, h);
  for (let i = 0; i < across; i++) {
    for (let j = 0; j < h / size; j++) {
      pen.fillStyle = grey(236 + Math.floor(chance(i, j, 5) * 18));
      pen.fillRect(i * size + joint, j * size + joint, size - 2 * joint, size - 2 * joint);
    }
  }
};

function pile(pen, w, h) {
  const picture = pen.createImageData(w, h);
  for (let i = 0; i < w * h; i++) {
    const value = 216 + chance(i % w, Math.floor(i / w)) * 34;
    picture.data.set([value, value, value, 255], i * 4);
  }
  pen.putImageData(picture, 0, 0);
}

function blot(pen, w, h) {
  const picture = pen.createImageData(w, h);
  const fall = (t) => { const s = Math.min(1, Math.max(0, (0.5 - Math.abs(t - 0.5)) / 0.3)); return s * s * (3 - 2 * s); };
  for (let y = 0; y < h; y++) {
    for (let x = 0; x < w; x++) picture.data.set([0, 0, 0, 255 * 0.5 * fall((x + 0.5) / w) * fall((y + 0.5) / h)], (y * w + x) * 4);
  }
  pen.putImageData(picture, 0, 0);
}

let made = null;

// One material for each kind of surface, shared by all houses.
export function materials() {
  if (made) return made;
  const surface = (map) => new THREE.MeshBasicMaterial({ vertexColors: true, map });
  const shadow = texture(64, 64, 1, blot);
  shadow.wrapS = shadow.wrapT = THREE.ClampToEdgeWrapping;
  made = {
    plain: surface(null),
    wood: surface(texture(1024, 512, 2.4, planks)),
    tile: surface(texture(256, 256, 1.6, tiles(4, 1.5))),
    "small tile": surface(texture(256, 256, 0.8, tiles(4, 2))),
    carpet: surface(texture(128, 128, 0.9, pile)),
    glass: new THREE.MeshBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.14, depthWrite: false }),
    shadow: new THREE.MeshBasicMaterial({ map: shadow, transparent: true, depthWrite: false, polygonOffset: true, polygonOffsetFactor: -1, polygonOffsetUnits: -1 }),
    sun: new THREE.MeshBasicMaterial({ vertexColors: true, transparent: true, blending: THREE.AdditiveBlending, depthWrite: false, polygonOffset: true, polygonOffsetFactor: -2, polygonOffsetUnits: -2 }),
  };
  return made;
}
