// The time that something still takes, in words that claim no more than is known; the server says it in the same ones (src/run.rs).

import { duration } from "./format.js";

// ", about 12 s left"; nothing before there is a pace, and nothing at the end.
export function remaining(seconds) {
  if (seconds == null || !Number.isFinite(seconds) || seconds < 0.5) return "";
  // Two digits are all that a pace tells.
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(seconds)) - 1);
  return `, about ${duration(Math.round(seconds / unit) * unit)} left`;
}
