// A browser gives few pictures in 3D to all its pages together: what becomes of one that it takes away, and when a page
// gives its own back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DRAWN, PATIENCE, person, post, startBrowser, startServer, until } from "./support.js";

const HOUSE = "nav/houses/house-2?walk=1";

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser(DRAWN)]);
  await post(`${server.api}/pause`);
});
after(async () => { await browser?.close(); await server?.stop(); });

async function open() {
  const visit = await person(browser, { reducedMotion: "reduce", viewport: { width: 640, height: 640 } });
  await visit.page.goto(server.address + HOUSE);
  await visit.page.locator(".walk[data-first]").waitFor({ timeout: PATIENCE });
  return visit;
}

const picture = async (page) => (await page.locator(".walk-stage").screenshot()).toString("base64");
const lose = (page) => page.locator(".walk canvas").evaluate((canvas) => canvas.getContext("webgl2").getExtension("WEBGL_lose_context").loseContext());
const live = (page) => page.locator(".walk canvas").evaluate((canvas) => canvas.getContext("webgl2")?.isContextLost() === false && canvas.width > 0);

test("a picture that the browser takes away is told of and drawn anew", async () => {
  const { page, context, errors } = await open();
  const before = await picture(page);
  for (let i = 0; i < 3; i++) {
    await lose(page);
    await page.getByText("The browser took this picture away").first().waitFor({ timeout: PATIENCE });
    assert.match(await page.locator(".walk [role=status]").innerText(), /took this picture away/);
    await page.locator(".walk-note").waitFor({ state: "hidden", timeout: PATIENCE });
    assert.ok(await live(page));
  }
  await until("the same picture is there", async () => (await picture(page)) === before);
  // Taken away over and over it is not fought for, but can be had.
  await lose(page);
  const again = page.getByRole("button", { name: "Show the picture again" });
  await again.waitFor({ timeout: PATIENCE });
  await page.waitForTimeout(2_000);
  assert.equal(await again.isVisible(), true);
  await again.click();
  await page.locator(".walk-note").waitFor({ state: "hidden", timeout: PATIENCE });
  await until("the same picture is there", async () => (await picture(page)) === before);
  await page.getByRole("button", { name: "Next stop" }).click();
  await until("it steps", async () => (await page.locator(".walk-count").innerText()).startsWith("2 of"));
  assert.deepEqual(errors, []);
  await context.close();
});

test("a page that is hidden for long holds no picture, and has it again when it is looked at", async () => {
  const { page, context, errors } = await open();
  const hide = (hidden) => page.evaluate((now) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => now });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
  const drawn = async () => (await page.locator(".walk[data-live]").count()) === 1;
  assert.equal(await drawn(), true);
  await page.clock.install();
  await hide(true);
  await page.clock.fastForward(10_000);
  assert.equal(await drawn(), true, "a glance at another tab costs nothing");
  await page.clock.fastForward(25_000);
  await until("the picture is given back", async () => !(await drawn()));
  await hide(false);
  await until("it is there again", drawn);
  assert.ok(await live(page));
  assert.equal(await page.locator(".walk-note").isVisible(), false);
  assert.deepEqual(errors, []);
  await context.close();
});
