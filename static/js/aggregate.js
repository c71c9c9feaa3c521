// Curves of runs and of groups of runs, from their points. Nothing here knows a page, so that it is tested without one.

// Sorted [x, y] pairs of a run's points, without those that lack either; of one x the last stands.
export function pairs(points, x, y) {
  const found = new Map();
  for (const point of points) {
    const at = x(point);
    const value = y(point);
    if (Number.isFinite(at) && Number.isFinite(value)) found.set(at, value);
  }
  return [...found].sort((a, b) => a[0] - b[0]);
}

// An exponential moving average. `weight` (0 to below 1) is what the past keeps at each point; the start is not drawn towards zero,
// since each mean is divided by the weights that it has.
export function smooth(curve, weight) {
  if (!(weight > 0)) return curve;
  let sum = 0;
  let weights = 0;
  return curve.map(([x, y]) => {
    sum = weight * sum + (1 - weight) * y;
    weights = weight * weights + (1 - weight);
    return [x, sum / weights];
  });
}

// The value of a curve at x, on the line between its neighbours; nothing outside of it.
export function at(curve, x) {
  if (curve.length === 0 || x < curve[0][0] || x > curve[curve.length - 1][0]) return undefined;
  let low = 0;
  let high = curve.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve[middle][0] < x) low = middle + 1; else high = middle;
  }
  const [x1, y1] = curve[low];
  if (x1 === x || low === 0) return y1;
  const [x0, y0] = curve[low - 1];
  return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
}

const T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086];
// The 97.5% quantile of Student's t; beyond 20 degrees of freedom the normal distribution's is near enough.
const quantile = (degrees) => T95[degrees - 1] ?? 1.96 + 2.4 / degrees;

// Mean and spread of several numbers: by "sd" one standard deviation, by "ci" Student's 95% interval of the mean, by "range" the
// smallest and the largest.
export function spread(values, kind) {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2 || kind === "none") return { y: mean, low: null, high: null, n };
  if (kind === "range") return { y: mean, low: Math.min(...values), high: Math.max(...values), n };
  const sd = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
  const half = kind === "ci" ? (quantile(n - 1) * sd) / Math.sqrt(n) : sd;
  return { y: mean, low: mean - half, high: mean + half, n };
}

// One curve of several runs: at every x that any of them has, as far as all of them go.
export function merge(curves, kind) {
  const all = curves.filter((curve) => curve.length > 0);
  if (all.length === 0) return [];
  if (all.length === 1) return all[0].map(([x, y]) => ({ x, y, low: null, high: null, n: 1 }));
  const from = Math.max(...all.map((curve) => curve[0][0]));
  const to = Math.min(...all.map((curve) => curve[curve.length - 1][0]));
  const grid = [...new Set(all.flatMap((curve) => curve.map(([x]) => x)))].filter((x) => x >= from && x <= to).sort((a, b) => a - b);
  return grid.map((x) => ({ x, ...spread(all.map((curve) => at(curve, x)), kind) }));
}

// A tree of settings as one level: { "algorithm.name": "adel" }.
export function flatten(tree, prefix = "", into = {}) {
  for (const [key, value] of Object.entries(tree ?? {})) {
    if (value !== null && typeof value === "object" && !Array.isArray(value)) flatten(value, `${prefix}${key}.`, into);
    else into[prefix + key] = Array.isArray(value) ? JSON.stringify(value) : String(value);
  }
  return into;
}

// Settings in which some of the runs differ, by name.
export function differing(settings) {
  const names = [...new Set(settings.flatMap((one) => Object.keys(one)))].sort();
  return names.filter((name) => new Set(settings.map((one) => one[name] ?? "")).size > 1);
}

const MINUTE = 60;
const HOUR = 3600;
// Steps of a time axis, in seconds.
export const TIMES = [1, 2, 5, 10, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 5 * HOUR, 10 * HOUR, 24 * HOUR, 48 * HOUR, 120 * HOUR, 240 * HOUR];

// A time on an axis, in units that need no fraction.
export function timeTick(seconds) {
  if (seconds < MINUTE || !Number.isInteger(seconds)) return `${+seconds.toFixed(1)} s`;
  if (seconds % MINUTE !== 0) return `${timeTick(seconds - (seconds % MINUTE))} ${seconds % MINUTE} s`;
  return seconds % HOUR === 0 ? `${seconds / HOUR} h` : seconds < HOUR ? `${seconds / MINUTE} min` : `${Math.floor(seconds / HOUR)} h ${(seconds % HOUR) / MINUTE} min`;
}

// Round times between two, at most `most` of them.
export function timeTicks(from, to, most) {
  let step = TIMES.find((one) => (to - from) / one <= most) ?? 24 * HOUR;
  while ((to - from) / step > most) step *= 2;
  const ticks = [];
  for (let x = Math.ceil(from / step) * step; x <= to; x += step) ticks.push(x);
  return ticks;
}

// The same for a logarithmic axis: the steps themselves, evenly thinned.
export function logTimeTicks(from, to, most) {
  const all = [0.1, 0.2, 0.5, ...TIMES].filter((one) => one >= from && one <= to);
  const every = Math.ceil(all.length / most);
  return all.filter((_, i) => i % every === 0);
}

// RFC 4180, for numbers and for names that a person gave; a spreadsheet takes no name for a formula.
export function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}
