// Showing the way through a house: one clicks the next place in the plan, or chooses it in the list beside it. Only places that the
// agent could go to next can be chosen.

const SVG = "http://www.w3.org/2000/svg";
const TURNS = ["Straight on", "Slightly right", "Right", "Sharp right", "Back", "Sharp left", "Left", "Slightly left"];
const AROUND = 2.6;   // metres of the plan around what matters
const LEAST = 8;      // metres of the plan each way, at least

function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function begin(host) {
  if (host.dataset.begun !== undefined) return;
  host.dataset.begun = "";
  const { places, start, heading, moves } = JSON.parse(host.dataset.way);
  const by = new Map(places.map((place) => [place.id, place]));
  const field = host.querySelector("[name='show-path']");
  const [plan, said, list, undo, tools] = ["svg", ".way-said", ".way-next", ".way-undo", ".way-tools"].map((q) => host.querySelector(q));
  const layer = svg("g", {});
  plan.append(layer);
  const path = readPath();
  tools.hidden = false;

  function readPath() {
    const ids = field.value.split(" ").filter((id) => by.has(id));
    return ids[0] === start ? ids : [start];
  }

  const bearing = (from, to) => Math.atan2(to.x - from.x, to.y - from.y);
  const facing = () => (path.length < 2 ? heading : bearing(by.get(path.at(-2)), by.get(path.at(-1))));

  function words(here, place) {
    const by = (((bearing(here, place) - facing()) / (2 * Math.PI)) * 8 + 16.5) % 8;
    const far = Math.hypot(place.x - here.x, place.y - here.y);
    const rise = place.z - here.z;
    const stairs = rise > 0.3 ? ", up the stairs" : rise < -0.3 ? ", down the stairs" : "";
    const room = place.room && place.room !== here.room ? `, to the ${place.room}` : "";
    const near = place.near.length ? `, near ${place.near.join(" and ")}` : "";
    return `${TURNS[Math.floor(by)]}, ${far.toFixed(1)} m${stairs}${room}${near}`;
  }

  function nextPlaces() {
    const here = by.get(path.at(-1));
    const turn = (place) => Math.abs(Math.atan2(Math.sin(bearing(here, place) - facing()), Math.cos(bearing(here, place) - facing())));
    return here.next.map((id) => by.get(id)).filter(Boolean).sort((a, b) => turn(a) - turn(b));
  }

  function go(id) {
    if (path.length > moves || !by.get(path.at(-1)).next.includes(id)) return;
    path.push(id);
    changed();
  }

  function back() {
    if (path.length < 2) return;
    path.pop();
    changed();
  }

  function changed() {
    field.value = path.length > 1 ? path.join(" ") : "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
    draw();
  }

  function draw() {
    const here = by.get(path.at(-1));
    const open = path.length > moves ? [] : nextPlaces();
    const walked = path.map((id) => by.get(id));
    for (const storey of plan.querySelectorAll(".way-storey")) storey.toggleAttribute("hidden", Number(storey.dataset.storey) !== here.storey);
    // The last parts of the way and everything that comes next are in sight.
    const seen = [...walked.filter((place) => place.storey === here.storey).slice(-4), ...open];
    const span = (values) => {
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const grow = Math.max(AROUND, (LEAST - (high - low)) / 2);
      return [low - grow, high - low + 2 * grow];
    };
    const [[x, width], [y, height]] = [span(seen.map((place) => place.x)), span(seen.map((place) => -place.y))];
    plan.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
    const unit = Math.max(width / (plan.clientWidth || 600), height / (plan.clientHeight || 300));
    plan.style.setProperty("--way-unit", unit);
    name(here, open, unit);
    layer.replaceChildren();
    layer.append(svg("polyline", { class: "way-line", points: walked.map((place) => `${place.x},${-place.y}`).join(" ") }));
    const first = walked[0];
    if (first.storey === here.storey) layer.append(svg("rect", { class: "way-start", x: first.x - 0.28, y: -first.y - 0.28, width: 0.56, height: 0.56 }));
    const turned = (facing() * 180) / Math.PI;
    layer.append(svg("path", { class: "way-facing", d: "M0 0L-.9 -1.6A1.84 1.84 0 0 1 .9 -1.6Z", transform: `translate(${here.x} ${-here.y}) rotate(${turned})` }));
    layer.append(svg("circle", { class: "way-here", cx: here.x, cy: -here.y, r: 0.26 }));
    open.forEach((place, i) => {
      const spot = svg("g", { "data-place": place.id },
        svg("circle", { class: "way-hit", cx: place.x, cy: -place.y, r: 0.6 }),
        svg("circle", { class: "way-place next", cx: place.x, cy: -place.y, r: 0.32 }),
        Object.assign(svg("text", { class: "way-number", x: place.x, y: -place.y }), { textContent: String(i + 1) }));
      layer.append(spot);
    });
    const held = list.contains(document.activeElement) || document.activeElement === undo;
    list.replaceChildren(...open.map((place, i) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "button" });
      button.dataset.place = place.id;
      if (i === 0) button.dataset.first = "";
      const number = Object.assign(document.createElement("b"), { textContent: String(i + 1) });
      number.setAttribute("aria-hidden", "true");
      button.append(number, words(here, place));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
    const steps = path.length - 1;
    const room = here.room ? ` in the ${here.room}` : "";
    const left = steps >= moves ? " That is as far as the agent can walk." : "";
    said.textContent = steps === 0 ? `It starts${room}. Where should it go first?` : `${steps} ${steps === 1 ? "step" : "steps"}, now${room}. Send it when this is where it should stop.${left}`;
    undo.disabled = steps === 0;
    if (held) (list.querySelector("button") ?? undo).focus({ preventScroll: true });
  }

  // Names keep their size on the screen, and of those that would lie over each other the nearest one is shown.
  function name(here, open, unit) {
    const taken = open.map((place) => ({ x: place.x, y: -place.y, w: 1, h: 1 }));
    taken.push({ x: here.x, y: -here.y, w: 1, h: 1 });
    const box = (text, size) => {
      const [x, y] = [Number(text.getAttribute("x")), Number(text.getAttribute("y"))];
      return { x, y, w: text.textContent.length * size * 0.56 * unit, h: size * 1.25 * unit };
    };
    const free = (a) => taken.every((b) => Math.abs(a.x - b.x) > (a.w + b.w) / 2 || Math.abs(a.y - b.y) > (a.h + b.h) / 2);
    const far = ({ x, y }) => Math.hypot(x - here.x, y + here.y);
    for (const [kind, size] of [[".way-name", 14], [".way-thing", 11]]) {
      const texts = [...plan.querySelectorAll(`.way-storey[data-storey="${here.storey}"] ${kind}`)];
      const boxes = texts.map((text) => [text, box(text, size)]).sort((a, b) => far(a[1]) - far(b[1]));
      for (const [text, place] of boxes) {
        const shown = free(place);
        text.toggleAttribute("hidden", !shown);
        if (shown) taken.push(place);
      }
    }
  }

  host.addEventListener("click", (event) => {
    const place = event.target.closest("[data-place]");
    if (place) go(place.dataset.place);
  });
  undo.addEventListener("click", back);
  host.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Backspace") { event.preventDefault(); back(); }
    const number = Number(event.key);
    if (number >= 1 && number <= 9) {
      const button = list.querySelectorAll("button")[number - 1];
      if (button) { event.preventDefault(); go(button.dataset.place); }
    }
  });
  draw();
}
