// "In your words": what the agent makes of a person's sentences, before it learns them and after.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { execution, lively, openTeaching, PATIENCE, person, post, startBrowser, startServer, until } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
  await post(`${server.api}/teacher`, { mode: "human" });
});
after(async () => { await browser?.close(); await server?.stop(); });

async function check(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).join(", ")})`), [], what);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} does not scroll sideways`);
}

async function send(page, text) {
  const from = await execution(page);
  await page.fill("#text", text);
  await page.keyboard.press("Control+Enter");
  await until("the next execution", async () => (await execution(page)) !== from);
}

const shown = (page, text) => until(`“${text}” was learned`, async () =>
  (await page.locator("#latest-text").textContent()) === text && /right|wrong/.test(await page.locator("#attempt-after .verdict").textContent()));

test("a sentence is seen before and after it is learned, and nothing of the work moves", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  await openTeaching(server, page);
  assert.match(await page.locator("#words-none").innerText(), /send a sentence/);
  assert.equal(await page.locator("#latest").isVisible(), false);
  const place = () => page.locator("#text").evaluate((box) => JSON.stringify(box.getBoundingClientRect()));
  await send(page, "my first sentence");
  await page.locator("#waiting, #latest").first().waitFor({ state: "attached" });
  await page.keyboard.type("the next one");
  const before = await place();
  await shown(page, "my first sentence");
  assert.equal(await place(), before, "the box stays where it is");
  assert.equal(await page.locator("#text").inputValue(), "the next one");
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "and keeps the focus");
  for (const id of ["attempt-before", "attempt-after"]) {
    assert.ok(await page.locator(`#${id} .edit-pair`).count() > 0, "drawn as the family draws it");
    assert.match(await page.locator(`#${id} .verdict`).innerText(), /^(✓ right|✗ wrong)$/);
  }
  assert.match(await page.locator("#strip-20").innerText(), /% [01] of your 1 sentence$/);
  assert.equal(await page.locator("#squares i").count(), 1);
  assert.match(await page.locator("#words-said").textContent(), /has learned your sentence/);
  // A page that is opened anew has it, too.
  await page.reload();
  await shown(page, "my first sentence");
  assert.deepEqual(errors, [], "no errors in the console");
  await context.close();
});

test("a moment at 25 sentences stands beside the work, can be tried, and is closed for good", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  await openTeaching(server, page);
  for (let n = 1; n <= 24; n += 1) await send(page, `sentence ${n}`);
  await shown(page, "sentence 24");
  assert.equal(await page.locator("#moment").isVisible(), false);
  assert.match(await page.locator("#strip-50").innerText(), /of your last 24$/);
  await send(page, "sentence 25");
  await page.locator("#moment").waitFor({ timeout: PATIENCE });
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "the box keeps the focus");
  assert.match(await page.locator("#moment-title").innerText(), /25 sentences/);
  assert.match(await page.locator("#moment-about").innerText(), /[0-3] of 3 right/);
  const items = page.locator("#moment-list > li");
  assert.equal(await items.count(), 3);
  for (const item of await items.all()) assert.match(await item.locator(".verdict").innerText(), /right|wrong/);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const viewport of [{ width: 1280, height: 900 }, { width: 390, height: 844 }]) {
      await page.setViewportSize(viewport);
      await check(page, `the moment in ${colorScheme} at ${viewport.width} px`);
      const top = async (id) => (await page.locator(id).boundingBox()).y;
      assert.equal(await top("#moment") < await top("#words-title"), viewport.width > 1000, "on small screens it moves nothing down");
    }
  }
  // The next execution is there all the while.
  await send(page, "sentence 26");
  assert.equal(await page.locator("#moment").isVisible(), true);
  const asked = await items.first().locator("q").innerText();
  await items.first().getByRole("button", { name: "Try it" }).click();
  assert.equal(await page.locator("#request").inputValue(), asked);
  assert.notEqual(await page.locator("#try-start input").first().inputValue(), "");
  await check(page, "the box in which the agent is tried");
  await page.locator("#try-go").click();
  await page.locator("#tried .drawing").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("#moment-close").click();
  assert.equal(await page.locator("#moment").isVisible(), false);
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "back in the box");
  await page.reload();
  await shown(page, "sentence 26");
  assert.equal(await page.locator("#moment").isVisible(), false, "it does not come again");
  assert.deepEqual(errors, [], "no errors in the console");
  await context.close();
});

test("the dashboard draws what was understood before it was told", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  await page.goto(`${server.address}runs/${server.run}`);
  await page.locator("#readings canvas").waitFor();
  assert.match(await page.locator("#readings .legend").innerText(), /teacher \d+\s+\d+% of 20/);
  await page.locator("#readings-view summary").click();
  assert.equal(await page.locator("#readings-table tbody tr").count(), 2);
  await page.selectOption("#axis", "descriptions");
  await page.locator("#readings canvas").waitFor();
  await check(page, "the dashboard");
  assert.deepEqual(errors, [], "no errors in the console");
  await context.close();
});
