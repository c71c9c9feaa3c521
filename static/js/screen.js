// How much of the page can be seen. A phone's keyboard takes half of the screen; some browsers make the page smaller then,
// others only cover it. The style sheet keeps the box and Send in what is left (teach.css).

const LOW = 480;   // pixels: as in teach.css

const view = window.visualViewport;
const root = document.documentElement;

function fit() {
  // Whoever has zoomed in moves about the page by themselves.
  if (view && view.scale > 1.01) return;
  const height = view ? view.height : innerHeight;
  const above = view ? Math.max(0, view.offsetTop) : 0;
  root.style.setProperty("--seen", `${Math.round(height)}px`);
  root.style.setProperty("--above", `${Math.round(above)}px`);
  root.style.setProperty("--covered", `${Math.round(Math.max(0, root.clientHeight - above - height))}px`);
  root.classList.toggle("low", height < LOW);
}

export function watchScreen() {
  fit();
  const target = view ?? window;
  target.addEventListener("resize", fit);
  target.addEventListener("scroll", fit);
}
