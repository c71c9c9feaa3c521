// People teach an agent that walks through houses: a whole run, from the first visit to the dashboard.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answers, DRAWN, execution, openTeaching, PATIENCE, person, PHONE, post, seenWhileTyping, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer("--preset", "nav/tiny"), startBrowser(DRAWN)]);
  await post(`${server.api}/teacher`, { mode: "human" });
});
after(async () => { await browser?.close(); await server?.stop(); });

const SENTENCE = "walk to the door, turn left “ü” 🙂 and stop at the window";

test("a walk is watched, described and learnt from", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  await page.goto(`${server.address}teach/${server.run}`);
  await page.locator(".walk[data-first]").waitFor({ timeout: PATIENCE });
  await openTeaching(server, page);
  await page.locator("#execution .walk[data-first]").waitFor({ timeout: PATIENCE });
  const first = await execution(page);
  const count = () => page.locator("#execution .walk-count").innerText();
  const before = await count();
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "the box has the focus");
  await page.keyboard.type(SENTENCE);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Space");
  assert.equal(await count(), before, "keys are the box's while somebody types");
  await page.locator("#text").fill(SENTENCE);
  await page.reload();
  await page.locator("#execution .walk[data-first]").waitFor({ timeout: PATIENCE });
  assert.equal(await page.locator("#text").inputValue(), SENTENCE, "the draft is kept");
  await page.locator("#text").press("Control+Enter");
  await until("the next walk", async () => (await execution(page)) !== first);
  await page.locator("#execution .walk[data-first]").waitFor({ timeout: PATIENCE });
  const rows = (await answers(server)).filter((row) => row.text === SENTENCE);
  assert.equal(rows.length, 1, "it is in the dataset as typed, once");
  await until("it is learnt from", async () => (await answers(server)).some((row) => row.text === SENTENCE && row.used_in_update > 0));
  assert.deepEqual(errors, []);
  await context.close();
});

test("on a phone with its keyboard open the box and Send are seen together", async () => {
  const { page, context, errors } = await person(browser, { ...PHONE, reducedMotion: "reduce" });
  await openTeaching(server, page);
  await page.locator("#execution .walk[data-plan]").waitFor({ timeout: PATIENCE });
  assert.deepEqual(await seenWhileTyping(page), []);
  assert.deepEqual(errors, []);
  await context.close();
});

test("that it stayed where it was is asked about, and the walk's controls leave the focus in the box", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  await openTeaching(server, page);
  await page.locator("#execution .walk[data-first]").waitFor({ timeout: PATIENCE });
  const from = await execution(page);
  const walk = page.locator("#execution .walk");
  const presses = [
    () => walk.getByRole("button", { name: "Next stop" }).click(),
    () => walk.getByRole("button", { name: "Look left" }).click(),
    () => walk.getByRole("button", { name: "In words" }).click(),
    () => walk.locator("canvas").click({ position: { x: 200, y: 100 } }),
    () => walk.locator("input[type=range]").click(),
    () => page.locator("#theme").click(),
  ];
  for (const press of presses) {
    await press();
    await until("the focus is in the box", () => page.evaluate(() => document.activeElement.id === "text"));
    await page.keyboard.type("a ");
  }
  assert.equal(await page.locator("#text").inputValue(), "a ".repeat(presses.length));
  await page.getByRole("button", { name: "It stayed where it was" }).click();
  await page.locator("#confirm").waitFor();
  assert.match(await page.locator("#problem").innerText(), /^The agent walked .* Do you still mean “It stayed where it was”\?/);
  assert.equal(await execution(page), from);
  assert.deepEqual(errors, []);
  await context.close();
});

test("a small map plays when its row opens, and at a click", async () => {
  const { page, errors, context } = await person(browser);
  await page.goto(`${server.address}runs/${server.run}`);
  await page.evaluate(() => {
    document.querySelector("main").insertAdjacentHTML("afterbegin", `<details id="row"><summary>A walk</summary><svg class="map" viewBox="0 0 10 4" width="400"><polyline class="map-path" points="1,2 5,2 5,3 9,3"/></svg></details>`);
  });
  const walker = page.locator("#row .map-walker");
  const place = async () => Number(await walker.getAttribute("cx"));
  await page.locator("#row summary").click();
  await walker.waitFor({ state: "attached" });
  await until("it goes on", async () => (await place()) > 4);
  await until("it arrives and goes", async () => (await walker.count()) === 0);
  await page.locator("#row svg").click();
  await walker.waitFor({ state: "attached" });
  assert.deepEqual(errors, []);
  await context.close();
});

test("the dashboard shows the walk as a map, and a request can be tried", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  await page.goto(`${server.address}runs/${server.run}`);
  await page.locator("#request").fill("walk to the door");
  await page.locator("#try-go").click();
  await page.locator("#tried .walk, #tried svg").first().waitFor({ timeout: PATIENCE });
  await page.locator("#try-viewpoint").fill("hallway");
  await page.locator("#try-go").click();
  await until("it starts in such a room", async () => /(left the hallway|in the hallway)/.test(await page.locator("#tried code").textContent().catch(() => "")));
  const would = await page.locator("#tried .would").innerText();
  assert.match(would, /^It would (leave the hallway|turn around, leave the hallway|stay where it is, in the hallway|.*walk .* metres).*\.$/);
  assert.equal(await page.locator("#tried .steps").isVisible(), false, "the moves are behind a fold");
  await page.locator("#tried summary", { hasText: "Step by step" }).click();
  assert.match(await page.locator("#tried .steps li").first().innerText(), /^It starts in the hallway\.$/);
  assert.match(await page.locator("#tried .steps li").last().innerText(), /^It stops /);
  await page.locator("#request").fill("walk to the frobnicator");
  await page.locator("#try-go").click();
  await page.locator("#tried .never-met", { hasText: "frobnicator is a word that it has never met." }).waitFor();
  await page.locator("#request").fill("walk to the door");
  await page.locator("#try-viewpoint").fill("house-100002-9999");
  await page.locator("#try-go").click();
  await until("it is told", async () => /no viewpoint house-100002-9999/.test(await page.locator("#try-problem").innerText()));
  assert.equal(await page.locator("#request").inputValue(), "walk to the door", "what was typed is kept");
  assert.deepEqual(errors.filter((error) => !/status of 4\d\d/.test(error)), []);
  await context.close();
});
