// Everything that needs three.js, loaded after the plan is on the page. Keeps the scenes of the houses shown last.

import { buildGraph } from "./graph.js";
import { buildHouse, dispose } from "./house.js";

export { Overlay } from "./graph.js";
export { Stage } from "./stage.js";

const KEPT = 2;
const scenes = new Map();

export function sceneOf(name, sheet) {
  const key = `${name} ${sheet.version ?? ""}`;
  let scene = scenes.get(key);
  scenes.delete(key);
  scene ??= sheet.house ? buildHouse(sheet.house) : buildGraph(sheet);
  scenes.set(key, scene);
  for (const [old, other] of scenes) {
    if (scenes.size <= KEPT) break;
    scenes.delete(old);
    dispose(other);
  }
  return scene;
}
