// Estimates of what is left, without a browser.

import assert from "node:assert/strict";
import { test } from "node:test";
import { remaining } from "../../static/js/estimate.js";

test("an estimate claims no more than two digits, and nothing where nobody knows", () => {
  assert.equal(remaining(null), "");
  assert.equal(remaining(Infinity), "");
  assert.equal(remaining(0.2), "");
  assert.equal(remaining(0.7), ", about 1 s left");
  assert.equal(remaining(11.7), ", about 12 s left");
  assert.equal(remaining(127), ", about 2 min 10 s left");
  assert.equal(remaining(7214), ", about 2 h 00 min left");
});
