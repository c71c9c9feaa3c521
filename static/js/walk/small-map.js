// Small maps of walks play: a dot goes the way when the row around a map opens, and at every click on it. The map itself is drawn by
// the server and needs none of this.

const PACE = 2.2;      // metres in a second
const LONGEST = 6_000; // milliseconds that a walk may take at most
const still = matchMedia("(prefers-reduced-motion: reduce)");

export function play(map) {
  const path = map.querySelector(".map-path");
  if (!path || path.points.numberOfItems < 2) return;
  map.querySelector(".map-walker")?.remove();
  const walker = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  walker.setAttribute("class", "map-walker");
  walker.setAttribute("r", "0.42");
  map.append(walker);
  const length = path.getTotalLength();
  const time = Math.min((length / PACE) * 1000, LONGEST);
  let begun = 0;
  const step = (now) => {
    // Another play of the same map has taken over, or the map is gone.
    if (!walker.isConnected) return;
    begun ||= now;
    const share = Math.min((now - begun) / time, 1);
    const { x, y } = path.getPointAtLength(share * length);
    walker.setAttribute("cx", x);
    walker.setAttribute("cy", y);
    if (share < 1) requestAnimationFrame(step);
    else setTimeout(() => walker.remove(), 500);
  };
  requestAnimationFrame(step);
}

document.addEventListener("click", ({ target }) => {
  const map = target instanceof Element ? target.closest("svg.map") : null;
  if (map) play(map);
});
// Who asked for less motion sees it move only when they press it.
document.addEventListener("toggle", ({ target }) => {
  if (target.open && !still.matches) target.querySelectorAll?.("svg.map").forEach(play);
}, true);
