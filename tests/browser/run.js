// Runs all browser tests, two files at a time. A file in which something failed is run once more, alone: a browser and a server beside another
// pair of them on two busy processors sometimes miss a deadline. What fails both times has failed, and what passed only the second time is named.

import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { run } from "node:test";
import { tap } from "node:test/reporters";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const TIMEOUT = 600_000;
// The totals that a run ends with; those of all runs together are told at the end.
const TOTAL = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

// Runs some files and gives what passed and failed, by file.
async function carryOut(files, concurrency) {
  const passed = new Map();
  const failed = new Map();
  const note = (into, { file, name, details }) => {
    // A group stands for itself only where it failed by itself, in a hook.
    const own = details?.type !== "suite" || (details.error && details.error.failureType !== "subtestsFailed");
    if (own) into.set(file, [...(into.get(file) ?? []), name]);
  };
  const events = run({ files, concurrency, timeout: TIMEOUT });
  async function* watched() {
    for await (const event of events) {
      if (event.type === "test:pass") note(passed, event.data);
      if (event.type === "test:fail") note(failed, event.data);
      if (event.type !== "test:diagnostic" || event.data.nesting > 0 || !TOTAL.test(event.data.message)) yield event;
    }
  }
  for await (const text of tap(Readable.from(watched()))) process.stdout.write(text);
  return { passed, failed };
}

const named = process.argv.slice(2);
const files = (named.length ? named : readdirSync(here).filter((name) => name.endsWith(".test.js")).sort()).map((name) => join(here, name));
const first = await carryOut(files, 2);
const again = [...first.failed.keys()];
let failures = 0;
let passes = [...first.passed].filter(([file]) => !first.failed.has(file)).reduce((sum, [, names]) => sum + names.length, 0);
if (again.length) {
  for (const [file, names] of first.failed) console.log(`# once more, alone: ${file} (${names.join("; ")})`);
  const second = await carryOut(again, 1);
  const count = (found) => [...found.values()].reduce((sum, names) => sum + names.length, 0);
  passes += count(second.passed);
  failures = count(second.failed);
  for (const [file, names] of first.failed) {
    const now = new Set(second.failed.get(file));
    const mended = names.filter((name) => !now.has(name));
    if (mended.length) console.log(`# passed only the second time: ${mended.join("; ")}`);
  }
}
console.log(`# pass ${passes}\n# fail ${failures}`);
process.exitCode = failures ? 1 : 0;
