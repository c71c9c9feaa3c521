// Estimates of what is left, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace, remaining } from "../../static/js/estimate.js";

test("an estimate claims no more than two digits, and nothing before there is a pace", () => {
  assert.equal(remaining(null), "");
  assert.equal(remaining(Infinity), "");
  assert.equal(remaining(0.2), "");
  assert.equal(remaining(11.7), ", about 12 s left");
  assert.equal(remaining(127), ", about 2 min 10 s left");
  assert.equal(remaining(7214), ", about 2 h 00 min left");
});

test("the pace is that of the present piece of work, since it was seen first", () => {
  const pace = new Pace();
  assert.equal(pace.left("Loading", 0.2, 1000), null);
  assert.ok(Math.abs(pace.left("Loading", 0.4, 3000) - 6) < 1e-9);
  assert.equal(pace.left("Warming up", 0.1, 4000), null, "another piece begins anew");
  assert.equal(pace.left("Warming up", 0.1, 5000), null);
  assert.ok(Math.abs(pace.left("Warming up", 0.55, 6000) - 2) < 1e-9);
  assert.equal(pace.left("Warming up", 0.05, 7000), null, "it began again");
});
