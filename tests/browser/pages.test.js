// Every page, in light and dark, wide and narrow: reachable by assistive technology, and nothing wrong in the console.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { openTeaching, person, post, startBrowser, startServer } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  await post(`${server.api}/teacher`, { mode: "human" });
});
after(async () => { await browser?.close(); await server?.stop(); });

async function check(page, what) {
  // The policy of our own pages forbids injected script elements, so axe runs through the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  const told = violations.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).join(", ")})`);
  assert.deepEqual(told, [], what);
}

for (const colorScheme of ["light", "dark"]) {
  for (const viewport of [{ width: 1280, height: 900 }, { width: 390, height: 844 }]) {
    test(`pages in ${colorScheme} at ${viewport.width} px`, async () => {
      const { page, context, errors } = await person(browser, { colorScheme, viewport, reducedMotion: "reduce" });
      const wide = async (what) => assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} does not scroll sideways`);
      const { address, run } = server;
      await page.goto(address);
      await check(page, "start page");
      await page.goto(`${address}teach/${run}`);
      await check(page, "guide");
      await wide("guide");
      await openTeaching(server, page);
      await check(page, "teaching");
      await page.locator("#skip summary").click();
      await check(page, "the skip menu");
      await page.keyboard.press("Escape");
      await page.locator("#look").click();
      await page.locator("#fulfilling").waitFor();
      await check(page, "the question whether it did what was asked");
      await wide("the question whether it did what was asked");
      await page.keyboard.press("Escape");
      await page.fill("#text", `a description in ${colorScheme} at ${viewport.width}`);
      await page.keyboard.press("Control+Enter");
      await page.waitForFunction(() => document.getElementById("notice").textContent.startsWith("Thank"));
      await page.goto(`${address}teach/${run}/answers`);
      await page.getByText("Correct it").first().click();
      await check(page, "last answers");
      await wide("last answers");
      await page.goto(`${address}runs/${run}`);
      await page.waitForFunction(() => document.getElementById("link-state").textContent === "Live");
      const first = page.locator("#episodes summary").first();
      await first.waitFor();
      await first.click();
      await check(page, "run page");
      await wide("run page");
      await page.locator("h1").click();
      await page.keyboard.press("?");
      await check(page, "shortcuts");
      await page.goto(`${address}runs`);
      await check(page, "runs");
      await page.goto(`${address}export?run=${run}`);
      await check(page, "export");
      await wide("export");
      for (const path of ["import", "corpora"]) {
        await page.goto(`${address}${path}`);
        await check(page, path);
        await wide(path);
      }
      // Each width and each choice of colours once: the texts are long, and look alike.
      const texts = (colorScheme === "light") === (viewport.width > 1000) ? ["docs", "docs/export", "licence"] : [];
      for (const path of texts) {
        await page.goto(`${address}${path}`);
        await check(page, path);
      }
      await page.goto(`${address}access?next=/runs`);
      assert.ok(page.url().endsWith("/runs"), "who may steer needs no form");
      assert.deepEqual(errors, []);
      await page.goto(`${address}nothing`);
      await check(page, "no such page");
      await context.close();
    });
  }
}

test("the choice of colours is remembered", async () => {
  const { page, context } = await person(browser, { colorScheme: "light" });
  await page.goto(server.address);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.getByRole("button", { name: "Dark colours" }).click();
  const dark = await paper();
  assert.notEqual(light, dark);
  await page.goto(`${server.address}runs`);
  assert.equal(await paper(), dark);
  await context.close();
});
