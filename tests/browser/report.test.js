// The report as a file: accessible, no wider than the screen, nothing fetched, and printable.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { person, startBrowser } from "./support.js";

const BINARY = process.env.ILIAD_BIN ?? fileURLToPath(new URL("../../target/debug/iliad", import.meta.url));
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser;
let folder;
let address;

before(async () => {
  browser = await startBrowser();
  folder = await mkdtemp(join(tmpdir(), "iliad-report-"));
  await mkdir(join(folder, "results"));
  const curve = (top) => Array.from({ length: 11 }, (_, i) => ({
    episodes: 640 * i, descriptions: 400 * i, validation: top * i / 10, training_success_total: top * i / 20,
  }));
  const row = (title, top) => ({
    name: title, title, wanted: 2, complete: 2, feedback: "descriptions", paper: { validation: 88.7, test: 88.1 },
    validation: { n: 2, mean: top, sd: 0.02 }, test: { n: 2, mean: top, sd: 0.03 },
    seeds: [{ seed: 1, complete: true, curve: curve(top) }, { seed: 2, complete: true, curve: curve(top - 0.1) }],
  });
  const table = { name: "table", title: "A table", device: "cpu", date: "2026-11-28", command: "iliad reproduce", rows: [row("ADEL", 0.8), row("REINFORCE, continuous", 0.3)] };
  await writeFile(join(folder, "results", "table.json"), JSON.stringify(table));
  await writeFile(join(folder, "results", "speed.json"), JSON.stringify({ name: "speed", value: 41.7, unit: "million lines/min", n: 3, command: "iliad bench" }));
  const report = join(folder, "report.html");
  await promisify(execFile)(BINARY, ["report", "--results", join(folder, "results"), "-o", report]);
  address = pathToFileURL(report).href;
});
after(async () => { await browser?.close(); if (folder) await rm(folder, { recursive: true }); });

for (const colorScheme of ["light", "dark"]) {
  for (const viewport of [{ width: 1280, height: 900 }, { width: 390, height: 844 }]) {
    test(`report in ${colorScheme} at ${viewport.width} px`, async () => {
      const { page, context } = await person(browser, { colorScheme, viewport });
      const fetched = [];
      page.on("request", (request) => fetched.push(request.url()));
      await page.goto(address);
      assert.deepEqual(fetched, [address], "nothing but the file itself");
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it does not scroll sideways");
      assert.equal(await page.locator("figure svg[role=img]:visible").count(), 3, "each picture is shown once");
      await context.close();
    });
  }
}

test("the report is dark ink on white when printed", async () => {
  const { page, context } = await person(browser, { colorScheme: "dark" });
  await page.goto(address);
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const colours = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, getComputedStyle(document.querySelector("figure .plot-paper")).fill, getComputedStyle(document.querySelector("figure .plot-title")).fill]);
  assert.deepEqual(colours, ["rgb(255, 255, 255)", "rgb(22, 27, 34)", "rgb(255, 255, 255)", "rgb(22, 27, 34)"]);
  await context.close();
});
