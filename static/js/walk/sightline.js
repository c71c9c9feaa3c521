// The field of view from a place in a plan is the wedge of the view, which ends at walls.

const EVERY = Math.PI / 60;   // between two points of the wedge's rim
const BESIDE = 1e-4;          // radians to both sides of a corner: one ray meets the wall, the other passes it

// How far a ray gets before it meets a wall, at most `reach`.
function far(x, y, dx, dy, walls, reach) {
  let least = reach;
  for (const { x0, y0, x1, y1 } of walls) {
    let enter = 0, leave = least;
    for (const [low, high, at, d] of [[x0, x1, x, dx], [y0, y1, y, dy]]) {
      if (Math.abs(d) < 1e-12) {
        if (at <= low || at >= high) { enter = Infinity; break; }
      } else {
        const [a, b] = [(low - at) / d, (high - at) / d];
        enter = Math.max(enter, Math.min(a, b));
        leave = Math.min(leave, Math.max(a, b));
      }
    }
    if (enter < leave && enter > 0) least = enter;
  }
  return least;
}

// The wedge's corners in the order of its rim, the eye first. `walls`: rectangles; angles go from north to the east.
export function wedge(x, y, heading, width, walls, reach) {
  const near = walls.filter(({ x0, y0, x1, y1 }) => Math.hypot(Math.max(x0 - x, 0, x - x1), Math.max(y0 - y, 0, y - y1)) < reach);
  const half = width / 2;
  const turns = [-half, half];
  for (let turn = -half + EVERY; turn < half; turn += EVERY) turns.push(turn);
  for (const { x0, y0, x1, y1 } of near) {
    for (const [cx, cy] of [[x0, y0], [x0, y1], [x1, y0], [x1, y1]]) {
      const away = Math.atan2(cx - x, cy - y) - heading;
      const turn = Math.atan2(Math.sin(away), Math.cos(away));
      if (Math.abs(turn) < half) turns.push(turn - BESIDE, turn + BESIDE);
    }
  }
  turns.sort((a, b) => a - b);
  const rim = turns.map((turn) => {
    const [dx, dy] = [Math.sin(heading + turn), Math.cos(heading + turn)];
    const t = far(x, y, dx, dy, near, reach);
    return [x + dx * t, y + dy * t];
  });
  return [[x, y], ...rim];
}
