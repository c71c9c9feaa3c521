// The page on which runs are laid over each other.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { lively, person, post, startBrowser, startServer, until } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let server;
let browser;
let page;
let context;
let errors;
before(async () => {
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
  ({ page, context, errors } = await person(browser, { reducedMotion: "reduce" }));
  await post(`${server.api}/teacher`, { mode: "simulated" });
  await until("there are points", async () => (await (await fetch(`${server.api}/points`)).json()).filter((point) => point.validation).length >= 3);
  await page.goto(`${server.address}charts`);
});
after(async () => { await browser?.close(); await server?.stop(); });

const query = () => new URL(page.url()).searchParams;

test("a run is chosen by its checkbox, and its curve has a name", async () => {
  assert.ok(await page.locator("#empty").isVisible());
  await page.locator("#runs input").first().check();
  await page.locator("#plot path.curve").waitFor({ state: "attached" });
  assert.match(await page.locator("#plot text.name").textContent(), /^Word editing: tiny/);
  assert.deepEqual(query().getAll("run"), [server.run]);
  await page.getByText("As a table").click();
  assert.ok(await page.locator("#table-body tr").count() >= 3);
});

test("everything chosen is in the address, and comes back from it", async () => {
  await page.locator("#y").selectOption("loss");
  await page.locator("#x").selectOption("seconds");
  await page.locator("#ylog").check();
  await page.locator("#smooth").fill("0.5");
  assert.match(await page.locator("#about").innerText(), /nats/);
  await page.reload();
  await page.locator("#plot path.curve").first().waitFor({ state: "attached" });
  assert.deepEqual([await page.locator("#y").inputValue(), await page.locator("#x").inputValue(), await page.locator("#ylog").isChecked(), await page.locator("#smooth-out").innerText()], ["loss", "seconds", true, "0.50"]);
  assert.equal(await page.locator("#plot path.curve, #plot path[stroke-opacity]").count(), 2, "the smoothed curve and the points behind it");
});

test("dragging looks closer, by numbers too, and the whole range comes back", async () => {
  await page.locator("#x").selectOption("episodes");
  const box = await page.locator("#plot svg").boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + 200, { steps: 5 });
  await page.mouse.up();
  await until("a range is in the address", async () => query().has("from") && query().has("to"));
  assert.ok(Number(await page.locator("#from").inputValue()) > 0);
  await page.locator("#whole").click();
  assert.ok(!query().has("from"));
  assert.ok(await page.locator("#whole").isDisabled());
});

test("the reader's ruler tells the values at a place", async () => {
  const box = await page.locator("#plot svg").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 150);
  await until("values are told", async () => (await page.locator("#readout").innerText()).includes("Word editing"));
});

test("a click leads to the words that were learned there", async () => {
  const box = await page.locator("#plot svg").boundingBox();
  await page.mouse.click(box.x + box.width * 0.7, box.y + 150);
  const link = page.locator("#pinned a").first();
  await link.waitFor();
  const [learned] = await Promise.all([context.waitForEvent("page"), link.click({ modifiers: ["Control"] })]);
  await learned.locator("h1").waitFor();
  assert.match(await learned.locator("h1").innerText(), /^Learned in updates? \d/);
  await learned.close();
});

test("a chart is saved as SVG, PNG and CSV", async () => {
  const save = async (button) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(button).click()]);
    return [download.suggestedFilename(), await readFile(await download.path())];
  };
  const [svgName, svg] = await save("#svg");
  assert.equal(svgName, "loss-by-episodes.svg");
  assert.match(svg.toString(), /^<\?xml.*\n<svg .*class="curve"/s);
  assert.ok(!svg.toString().includes("page-only"));
  const [, png] = await save("#png");
  assert.deepEqual([...png.subarray(1, 4)], [..."PNG"].map((letter) => letter.charCodeAt(0)));
  const [, csv] = await save("#csv");
  assert.match(csv.toString(), /^curve,episodes,loss,low,high,runs\r\n/);
});

test("the page has no barrier that a machine finds, in both colours, and fits a phone", async () => {
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`), []);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  await until("it fits", () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await context.close();
  assert.deepEqual(errors, []);
});
