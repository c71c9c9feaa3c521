// The arithmetic of curves, without a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { at, csv, differing, flatten, logTimeTicks, merge, pairs, smooth, spread, timeTick, timeTicks } from "../../static/js/aggregate.js";

const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-9, `${found} is ${wanted}`);

test("points without a value are left out, and of one place the last stands", () => {
  const points = [{ e: 2, v: 0.2 }, { e: 1, v: 0.1 }, { e: 3 }, { e: 2, v: 0.3 }];
  assert.deepEqual(pairs(points, (p) => p.e, (p) => p.v), [[1, 0.1], [2, 0.3]]);
});

test("smoothing keeps a constant, begins at the first value, and without weight changes nothing", () => {
  const flat = [[1, 5], [2, 5], [3, 5]];
  smooth(flat, 0.9).forEach(([, y]) => near(y, 5));
  const step = smooth([[0, 0], [1, 1], [2, 1]], 0.5);
  near(step[0][1], 0);
  near(step[1][1], 0.5 / 0.75);
  near(step[2][1], 0.75 / 0.875);
  assert.equal(smooth(flat, 0), flat);
});

test("values between points lie on the line, and there are none outside", () => {
  const curve = [[0, 0], [10, 1], [20, 0]];
  near(at(curve, 5), 0.5);
  near(at(curve, 10), 1);
  near(at(curve, 12.5), 0.75);
  assert.equal(at(curve, -1), undefined);
  assert.equal(at(curve, 21), undefined);
  assert.equal(at([], 0), undefined);
});

test("spreads are what a textbook says", () => {
  const values = [2, 4, 4, 4, 5, 5, 7, 9];
  const sd = spread(values, "sd");
  near(sd.y, 5);
  near(sd.high - sd.y, Math.sqrt(32 / 7));
  near(spread([1, 3], "ci").high, 2 + 12.706);
  assert.deepEqual([spread(values, "range").low, spread(values, "range").high], [2, 9]);
  assert.deepEqual(spread([3], "sd"), { y: 3, low: null, high: null, n: 1 });
});

test("a group goes as far as all of its runs", () => {
  const rows = merge([[[0, 0], [10, 1]], [[5, 0], [20, 1]], []], "range");
  assert.deepEqual(rows.map((row) => row.x), [5, 10]);
  assert.equal(rows[0].n, 2);
  near(rows[0].low, 0);
  near(rows[0].high, 0.5);
  assert.deepEqual(merge([[], []], "sd"), []);
  assert.deepEqual(merge([[[0, 0], [1, 1]], [[5, 0], [6, 1]]], "sd"), [], "they have no place in common");
});

test("settings that differ are found at any depth", () => {
  const [a, b] = [{ algorithm: { name: "adel", mix: [1, 2] }, seed: 1 }, { algorithm: { name: "dagger", mix: [1, 2] }, seed: 1, extra: null }].map((one) => flatten(one));
  assert.deepEqual(a, { "algorithm.name": "adel", "algorithm.mix": "[1,2]", seed: "1" });
  assert.deepEqual(differing([a, b]), ["algorithm.name", "extra"]);
});

test("time has round ticks", () => {
  assert.deepEqual(timeTicks(0, 540, 6), [0, 120, 240, 360, 480]);
  assert.deepEqual(timeTicks(100, 7300, 5), [1800, 3600, 5400, 7200]);
  assert.ok(timeTicks(0, 1e7, 8).length <= 9);
  assert.deepEqual(timeTicks(0, 160, 8).map(timeTick), ["0 s", "30 s", "1 min", "1 min 30 s", "2 min", "2 min 30 s"]);
  assert.deepEqual([0.5, 7200, 5400, 3690].map(timeTick), ["0.5 s", "2 h", "1 h 30 min", "1 h 1 min 30 s"]);
  assert.deepEqual(logTimeTicks(3, 700, 8).map(timeTick), ["5 s", "10 s", "30 s", "1 min", "2 min", "5 min", "10 min"]);
  assert.deepEqual(logTimeTicks(3, 700, 4), [5, 30, 120, 600]);
});

test("a name in CSV is no formula and stays in its cell", () => {
  assert.equal(csv([["a", 1, null], ['=1+"1"', -2, 0.5]]), 'a,1,\r\n"\'=1+""1""",-2,0.5\r\n');
});
