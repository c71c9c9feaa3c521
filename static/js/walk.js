// A walk through a house, to be watched, stepped through and looked around in. Takes the list of words that the server
// wrote (templates/nav/execution.html) and builds view, plan and controls around it. The plan needs no WebGL; where there
// is none the words stay on the page.

import { Plan, ofGraph, ofHouse } from "./walk/plan.js";
import { Player, Timeline, wrapped } from "./walk/player.js";
import "./walk/small-map.js";

const BASE = new URL("../../../", import.meta.url);
const LOOK = Math.PI / 6;
const AWAY = 30_000;  // milliseconds: how long a page may be hidden before its pictures make room for others
const AGAIN = 1_500;  // milliseconds until a picture that was taken away is drawn anew
const LOSSES = 3;     // so often in a minute; then a person has to ask for it
const ICONS = {
  play: "M7 4.5v15l13-7.5z", pause: "M6 4.5h4.2v15H6zM13.8 4.5H18v15h-4.2z", again: "M12 5V1.5L6.5 6 12 10.5V7a5.5 5.5 0 1 1-5.5 5.5H4A8 8 0 1 0 12 5z",
  back: "M17.5 5v14L8 12zM5 5h2.4v14H5z", next: "M6.5 5v14L16 12zM16.6 5H19v14h-2.4z", left: "M15 4.5 7.5 12l7.5 7.5", right: "M9 4.5 16.5 12 9 19.5",
};
const still = matchMedia("(prefers-reduced-motion: reduce)");

function el(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
  made.append(...inside.filter((part) => part !== null));
  return made;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  if (name === "left" || name === "right") svg.setAttribute("class", "line");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

// Keys work where the picture has the focus; a title says so.
const titled = (label, keys) => (keys ? `${label} (${keys} while the picture has the focus)` : label);
const button = (name, label, keys, className = "") => el("button", { type: "button", class: `walk-button ${className}`, translate: "yes", "aria-label": label, title: titled(label, keys) }, icon(name));
const upper = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// ---- Houses --------------------------------------------------------------------------------------------------------

const sheets = new Map();

async function fetched(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.json();
}

// The house of a walk. Where the server does not have it (any more), the stops of the walk alone.
function sheetOf({ house, version, path }) {
  const key = `${house} ${version ?? ""}`;
  if (!sheets.has(key)) {
    const name = encodeURIComponent(house);
    const geometry = fetched(new URL(`nav/houses/${name}/house.json${version ? `?v=${version}` : ""}`, BASE));
    const photographs = version ? [] : fetched(new URL(`nav/panoramas/${name}`, BASE)).catch(() => []);
    sheets.set(key, Promise.all([geometry, photographs]).then(([sheet, list]) => ({ ...sheet, version, photographs: list })));
    sheets.get(key).catch(() => sheets.delete(key));
  }
  return sheets.get(key).catch(() => alone(path));
}

function alone(path) {
  const objects = new Map(path.flatMap((stop) => stop.things ?? []).map((thing) => [`${thing.name} ${thing.position}`, [thing.name, ...thing.position, 0.4, 0.4]]));
  return {
    viewpoints: path.map((stop) => [stop.viewpoint, ...stop.position]),
    edges: path.slice(1).map((_, i) => [i, i + 1]),
    objects: [...objects.values()],
    version: "alone", photographs: [],
  };
}

// ---- One walk ------------------------------------------------------------------------------------------------------

class Walk {
  static made = 0;
  #pose = { x: 0, y: 0, z: 0, heading: 0, pitch: 0, stop: 0, walking: false };
  #look = { yaw: 0, pitch: 0 };
  #frame = null;
  #stage = null;
  #wide = 1.36;
  #seen = false;      // whether its place is on the screen
  #losses = [];       // when the browser took the picture away
  #again = null;      // timer of the next try to draw it

  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.dataset.walk);
    this.timeline = new Timeline(this.data.path, this.data.look);
    this.player = new Player(this.timeline, { still: () => still.matches, show: () => this.#changed(), changed: () => this.#controls() });
    this.words = root.querySelector(".walk-words");
    this.#build();
    this.#listen();
    this.#open();
  }

  #build() {
    const { path } = this.data;
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": "What the agent sees. The left and right arrow keys look around, up and down step; the list of words says the same." });
    this.place = el("p", { class: "walk-place" });
    this.note = el("p", { class: "walk-note", translate: "yes" }, "Opening the house…");
    this.lookLeft = button("left", "Look left", "←", "walk-look left");
    this.lookRight = button("right", "Look right", "→", "walk-look right");
    this.view = el("div", { class: "walk-stage" }, this.canvas, this.place, this.note, this.lookLeft, this.lookRight);
    this.svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.svg.setAttribute("role", "img");
    this.svg.setAttribute("aria-label", "The house from above, north up, with the path in order");
    this.storey = el("span", { class: "walk-storey" });
    this.larger = el("button", { type: "button", translate: "yes", class: "walk-larger", "aria-pressed": "false", "aria-label": "Larger plan" }, el("span", { "aria-hidden": "true" }, "⤢"));
    this.whole = el("button", { type: "button", translate: "yes", class: "walk-whole", "aria-pressed": "false" }, "Whole house");
    this.map = el("div", { class: "walk-plan" }, this.svg, this.storey, this.larger, this.whole);
    this.back = button("back", "Stop before", "↓");
    this.go = button("play", "Play", "Space", "walk-go");
    this.next = button("next", "Next stop", "↑");
    this.slider = el("input", { type: "range", min: "0", max: String(this.timeline.duration), step: "any", value: "0", "aria-label": "Place in the walk" });
    const marks = el("span", { class: "walk-marks", "aria-hidden": "true" });
    for (const time of this.timeline.times) {
      const mark = el("i");
      mark.style.setProperty("--at", time / this.timeline.duration);
      marks.append(mark);
    }
    this.count = el("span", { class: "walk-count", translate: "yes" });
    this.inWords = el("button", { type: "button", translate: "yes", class: "walk-text", "aria-expanded": "false" }, "In words");
    this.bar = el("div", { class: "walk-bar", role: "group", "aria-label": "The walk" }, this.back, this.go, this.next, el("span", { class: "walk-track" }, marks, this.slider), this.count, this.inWords);
    this.drags = el("span", { class: "walk-drags" }, "Drag to look around. ");
    this.keys = el("span", { class: "walk-keys" });
    this.hint = el("p", { class: "walk-hint", translate: "yes" }, this.drags, this.keys);
    this.said = el("p", { class: "visually-hidden", role: "status" });
    this.root.prepend(el("div", { class: "walk-view" }, this.view, this.map), this.bar, this.hint, this.said);
    this.words.hidden = true;
    this.words.id = `walk-words-${++Walk.made}`;
    this.inWords.setAttribute("aria-controls", this.words.id);
    const key = (name) => el("kbd", {}, name);
    this.keys.append("Keyboard: ", key("Tab"), " to the picture, ", key("←"), " ", key("→"), " look, ", key("↑"), " ", key("↓"), " step, ", key("Space"), " plays.");
    if (path.length < 2) this.back.disabled = this.next.disabled = this.go.disabled = true;
    this.#controls();
  }

  async #open() {
    const drawing = import("./walk/scene.js");
    drawing.catch(() => {});
    const sheet = await sheetOf(this.data);
    if (this.ended) return;
    const about = sheet.house ? ofHouse(sheet.house) : ofGraph(sheet);
    this.house = sheet.house ?? null;
    this.plan = new Plan(this.svg, about, this.data.path);
    this.storeys = about.storeys.length;
    this.#fit();
    this.#changed();
    // When the walk could be seen from above, in milliseconds since the page was asked for.
    this.root.dataset.plan = Math.round(performance.now());
    try {
      this.drawing = await drawing;
    } catch {
      return this.#flat("The 3D view could not be loaded.");
    }
    if (this.ended) return;
    this.sheet = sheet;
    // A canvas is live only while it is on the screen: browsers allow few at a time.
    this.watcher = new IntersectionObserver((entries) => {
      this.#seen = entries.at(-1).isIntersecting;
      if (this.#seen) this.#enter();
      else this.#leave();
    }, { rootMargin: "200px" });
    this.watcher.observe(this.view);
  }

  #enter() {
    clearTimeout(this.#again);
    if (this.#stage || this.ended || !this.drawing || !this.#seen || document.hidden || this.root.classList.contains("flat")) return;
    const { Overlay, Stage, sceneOf } = this.drawing;
    const { house, path } = this.data;
    const photograph = (id) => new URL(`nav/panoramas/${encodeURIComponent(house)}/${encodeURIComponent(id)}`, BASE).href;
    const overlay = this.house ? null : new Overlay(path, this.sheet.photographs, photograph, () => this.#changed());
    try {
      this.#stage = Stage.open(this.canvas, sceneOf(house, this.sheet), this.timeline.stops, overlay);
    } catch (error) {
      console.warn("The 3D view failed:", error);
      this.#stage = null;
    }
    if (!this.#stage) return this.#losses.length > 0 ? this.#gone() : this.#flat("This browser cannot draw in 3D.");
    if (this.#losses.length > 0 && !this.note.hidden) this.said.textContent = "The picture is back.";
    this.note.hidden = true;
    this.root.dataset.live = "";
    this.resizer = new ResizeObserver(() => {
      this.#wide = this.#stage?.resize() ?? this.#wide;
      this.#paint();
    });
    this.resizer.observe(this.canvas);
    this.#wide = this.#stage.resize();
    this.#paint();
    if (!("first" in this.root.dataset)) {
      // When the first picture was on the page, in milliseconds since it was asked for.
      this.root.dataset.first = Math.round(performance.now());
      if (!still.matches && this.root.closest("[data-quiet]") === null && this.data.path.length > 1) this.autoplay = setTimeout(() => this.player.play(), 900);
    }
  }

  // Frees the canvas. It is replaced by a fresh one, since a lost context does not come back.
  #leave() {
    clearTimeout(this.#again);
    if (!this.#stage) return;
    this.player.pause();
    this.resizer.disconnect();
    this.#stage.close();
    this.#stage = null;
    delete this.root.dataset.live;
    const fresh = this.canvas.cloneNode();
    const focused = document.activeElement === this.canvas;
    this.canvas.replaceWith(fresh);
    this.canvas = fresh;
    this.#drag();
    if (focused) fresh.focus({ preventScroll: true });
  }

  // The browser keeps few pictures in 3D for all its pages and takes the oldest away; a graphics card that stumbles loses
  // them all. It is said, and drawn anew as soon as that may work: but not over and over against other pages.
  #lost(canvas) {
    if (canvas !== this.canvas || !this.#stage || this.ended) return;
    const now = performance.now();
    this.#losses = [...this.#losses.filter((at) => now - at < 60_000), now];
    this.#leave();
    this.#gone();
    if (this.#losses.length <= LOSSES) this.#again = setTimeout(() => this.#enter(), AGAIN);
  }

  #gone() {
    const text = "The browser took this picture away: it draws only a few in 3D at a time. Plan and words show the same.";
    const again = el("button", { type: "button", class: "walk-again", translate: "yes" }, "Show the picture again");
    again.addEventListener("click", () => {
      if (document.activeElement === again) this.canvas.focus({ preventScroll: true });
      this.#enter();
    });
    this.note.replaceChildren(`${text} `, again);
    this.note.hidden = false;
    this.said.textContent = text;
  }

  // While the page is hidden for long its picture makes room for those that are looked at.
  rest() {
    this.#leave();
  }

  wake() {
    this.#enter();
  }

  // Without 3D: plan and words.
  #flat(reason) {
    this.root.classList.add("flat");
    this.note.hidden = false;
    this.note.textContent = `${reason} The plan and the words show the same walk.`;
    this.canvas.hidden = this.lookLeft.hidden = this.lookRight.hidden = true;
    this.drags.hidden = true;
    this.keys.replaceChildren("With the keyboard, go to the buttons with ", el("kbd", {}, "Tab"), ": ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"), " step.");
    this.#showWords(true);
    this.#fit();
    this.#changed();
  }

  // ---- What is shown

  #changed() {
    if (this.#frame !== null) return;
    this.#frame = requestAnimationFrame((now) => {
      this.#frame = null;
      // Looking about ends when the agent goes on.
      if (this.player.playing || this.player.gliding) {
        this.#look.yaw *= 0.86;
        this.#look.pitch *= 0.86;
        this.#stage?.pace(now);
      }
      this.#paint();
    });
  }

  #paint() {
    const pose = this.timeline.at(this.player.time, this.#pose);
    const heading = pose.heading + this.#look.yaw;
    const pitch = Math.min(1.2, Math.max(-1.2, pose.pitch + this.#look.pitch - 0.06));
    this.#stage?.draw(pose, heading, pitch);
    this.plan?.show(pose, heading, this.#wide);
    this.#tell(pose);
  }

  // The room by the server's word, at a stop and on the way to the next: what the words and the slider say, too.
  #room({ stop, walking, way }) {
    const { path } = this.data;
    const [here, next] = [path[stop].room ?? "", path[stop + 1]];
    if (!walking || !next) return here;
    // Older walks do not say where on the way a room begins.
    const rooms = next.way ?? ((next.room ?? "") === here ? [] : [[0.5, next.room ?? ""]]);
    return rooms.findLast(([share]) => share <= way)?.[1] ?? here;
  }

  #tell(pose) {
    const { path } = this.data;
    const { stop, walking } = pose;
    const room = this.#room(pose);
    const set = (element, text) => { if (element.textContent !== text) element.textContent = text; };
    set(this.place, upper(room));
    this.place.hidden = room === "";
    set(this.count, `${stop + 1} of ${path.length}`);
    this.place.dataset.count = this.count.textContent;
    this.slider.value = this.player.time;
    this.slider.style.setProperty("--done", this.player.time / this.timeline.duration);
    this.root.toggleAttribute("data-settled", stop === path.length - 1 && this.player.over);
    // The sentence of the move that is being made, or was made last; at the end the one that says where it stopped.
    const line = stop === path.length - 1 ? path.length : walking ? stop + 1 : stop;
    const shown = `${stop} ${line} ${room}`;
    if (shown === this.shown) return;
    this.shown = shown;
    this.slider.setAttribute("aria-valuetext", `Stop ${stop + 1} of ${path.length}${room ? `, ${room}` : ""}`);
    [...this.words.children].forEach((item, i) => (i === line ? item.setAttribute("aria-current", "step") : item.removeAttribute("aria-current")));
    this.root.querySelectorAll(".walk-marks i").forEach((mark, i) => mark.classList.toggle("past", i <= stop));
    if (this.storeys > 1) set(this.storey, `Storey ${(this.plan.shown ?? 0) + 1} of ${this.storeys}`);
  }

  #controls() {
    const { playing, over } = this.player;
    const name = playing ? "pause" : over ? "again" : "play";
    if (this.go.dataset.name === name) return;
    this.go.dataset.name = name;
    const label = { play: "Play", pause: "Pause", again: "Watch again" }[name];
    this.go.setAttribute("aria-label", label);
    this.go.title = titled(label, "Space");
    this.go.replaceChildren(icon(name));
  }

  #fit() {
    // Where the plan lies in a corner of the view it is pressed to grow.
    const corner = getComputedStyle(this.larger).display !== "none" && !this.root.classList.contains("plan-large");
    this.plan?.frame(this.whole.getAttribute("aria-pressed") === "true" ? "house" : corner ? "path" : "walk");
  }

  #showWords(open) {
    this.words.hidden = !open;
    this.inWords.setAttribute("aria-expanded", String(open));
  }

  // ---- What a person does

  #step(by) {
    this.#hold();
    this.player.step(by);
    const stop = this.timeline.stopAt(this.player.aim);
    const last = stop === this.data.path.length - 1 ? stop + 1 : stop;
    const line = [...this.words.children].slice(stop, last + 1).map((item) => item.textContent.trim()).join(" ");
    this.said.textContent = `Stop ${stop + 1} of ${this.data.path.length}. ${line}`;
  }

  #turn(yaw, pitch = 0) {
    this.#hold();
    this.player.pause();
    this.#look.yaw = wrapped(this.#look.yaw + yaw);
    this.#look.pitch = Math.min(1.1, Math.max(-1.1, this.#look.pitch + pitch));
    this.#changed();
  }

  #toggle() {
    this.#hold();
    if (this.player.playing) this.player.pause();
    else this.player.play();
  }

  // Whoever does something is not overtaken by the walk beginning by itself.
  #hold() {
    clearTimeout(this.autoplay);
  }

  #listen() {
    this.back.addEventListener("click", () => this.#step(-1));
    this.next.addEventListener("click", () => this.#step(1));
    this.go.addEventListener("click", () => this.#toggle());
    this.lookLeft.addEventListener("click", () => this.#turn(-LOOK));
    this.lookRight.addEventListener("click", () => this.#turn(LOOK));
    this.inWords.addEventListener("click", () => this.#showWords(this.words.hidden));
    this.larger.addEventListener("click", () => this.#enlarge(!this.root.classList.contains("plan-large")));
    this.whole.addEventListener("click", () => {
      this.whole.setAttribute("aria-pressed", String(this.whole.getAttribute("aria-pressed") !== "true"));
      this.#fit();
    });
    this.slider.addEventListener("input", () => { this.#hold(); this.#look.yaw = this.#look.pitch = 0; this.player.seek(Number(this.slider.value)); });
    this.room = new ResizeObserver(() => this.#fit());
    this.room.observe(this.map);
    this.#drag();
  }

  #drag() {
    const { canvas } = this;
    let from = null;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!from) return;
      const scale = this.#wide / Math.max(canvas.clientWidth, 1);
      this.#turn((from[0] - event.clientX) * scale, (event.clientY - from[1]) * scale);
      from = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { from = null; });
    canvas.addEventListener("webglcontextlost", (event) => { event.preventDefault(); this.#lost(canvas); });
  }

  #enlarge(on) {
    this.root.classList.toggle("plan-large", on);
    this.larger.setAttribute("aria-pressed", String(on));
    if (!on) this.whole.setAttribute("aria-pressed", "false");
    this.#fit();
    if (on) this.map.scrollIntoView({ block: "nearest", behavior: "instant" });
  }

  // A key that was pressed here, or anywhere where it means nothing else. Whether it was used.
  key(event) {
    const look = { a: [-LOOK, 0], d: [LOOK, 0], w: [0, LOOK / 2], s: [0, -LOOK / 2] }[event.key.toLowerCase()];
    const seeing = event.target === this.canvas;
    const turn = { ArrowLeft: -LOOK / 2, ArrowRight: LOOK / 2 }[event.key];
    if (look) this.#turn(...look);
    else if (seeing && turn) this.#turn(turn);
    else if (seeing && (event.key === "ArrowUp" || event.key === "ArrowDown")) this.#step(event.key === "ArrowUp" ? 1 : -1);
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") this.#step(event.key === "ArrowRight" ? 1 : -1);
    else if (event.key === "Escape" && this.root.classList.contains("plan-large")) this.#enlarge(false);
    else if (event.key === "Home" || event.key === "End") { this.#hold(); this.player.glide(event.key === "Home" ? 0 : this.timeline.settled.at(-1)); }
    else if (event.key === " " && !event.target.closest("button, a, summary")) { if (!event.repeat) this.#toggle(); }
    else return false;
    return true;
  }

  end() {
    this.ended = true;
    this.#hold();
    clearTimeout(this.#again);
    this.player.end();
    this.room.disconnect();
    this.watcher?.disconnect();
    this.resizer?.disconnect();
    this.#stage?.close();
    this.#stage = null;
  }
}

// ---- All walks of a page -------------------------------------------------------------------------------------------

const walks = new Map();

function look() {
  for (const [root, walk] of walks) {
    if (root.isConnected) continue;
    walk.end();
    walks.delete(root);
  }
  for (const root of document.querySelectorAll(".walk[data-walk]")) {
    if (!walks.has(root)) walks.set(root, new Walk(root));
  }
}

let away = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(away);
  if (document.hidden) away = setTimeout(() => walks.forEach((walk) => walk.rest()), AWAY);
  else walks.forEach((walk) => walk.wake());
});
addEventListener("pagehide", () => walks.forEach((walk) => walk.rest()));
addEventListener("pageshow", () => walks.forEach((walk) => walk.wake()));

const writes = (target) => target.closest("input:not([type=range]), textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  // A key that belongs to an input method, to a text, or to the browser.
  if (event.isComposing || event.keyCode === 229 || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!(event.target instanceof Element) || writes(event.target)) return;
  const inside = event.target.closest(".walk");
  // Elsewhere only where nothing has the focus, and only when it is clear which walk is meant.
  const free = event.target === document.body || event.target.id === "main";
  const walk = walks.get(inside) ?? (free && walks.size === 1 ? [...walks.values()][0] : null);
  if (walk?.key(event)) event.preventDefault();
});

look();
new MutationObserver(look).observe(document.body, { childList: true, subtree: true });
