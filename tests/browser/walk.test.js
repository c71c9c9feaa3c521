// A walk through a house, on the researcher's page of the house: the same markup and script as the teacher's page.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { DRAWN, PATIENCE, person, post, startBrowser, startServer, until } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// A walk up the stairs of a house with three storeys, and one on a single floor.
const STAIRS = "nav/houses/house-7?from=house-7-172";
const FLAT = "nav/houses/house-2?walk=1";

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser(DRAWN)]);
  // The processor draws here; a run that trains would slow every picture down.
  await post(`${server.api}/pause`);
});
after(async () => { await browser?.close(); await server?.stop(); });

async function open(address, options = {}, from = browser) {
  const visit = await person(from, { reducedMotion: "reduce", ...options });
  await visit.page.goto(server.address + address);
  await visit.page.locator(".walk[data-first], .walk.flat").waitFor({ timeout: PATIENCE });
  return visit;
}

const count = (page) => page.locator(".walk-count").innerText();
const at = (page, text) => until(`stop ${text}`, async () => (await count(page)).startsWith(text));
const time = async (page) => Number(await page.locator(".walk-track input").inputValue());
const here = (page) => page.locator(".plan-here").getAttribute("transform");
const picture = async (page) => (await page.locator(".walk-stage").screenshot()).toString("base64");
const stops = (page) => page.locator(".walk-marks i").count();

test("the first picture comes, with the plan beside it", async (t) => {
  const { page, context, errors } = await open(STAIRS);
  t.diagnostic(`first picture after ${await page.locator(".walk").getAttribute("data-first")} ms (drawn by the processor, not by a graphics card)`);
  const n = await stops(page);
  assert.ok(n >= 3);
  assert.equal(await page.locator(".plan-stop").count() <= n, true);
  assert.equal(await page.locator(".plan-start").count(), 1);
  assert.equal(await page.locator(".plan-end").count(), 1);
  assert.ok((await page.locator(".plan-wall").count()) > 20);
  assert.deepEqual(errors, []);
  await context.close();
});

test("it plays, pauses and ends", async () => {
  const { page, context, errors } = await open(FLAT, { reducedMotion: "no-preference" });
  await until("it begins by itself", async () => (await time(page)) > 0);
  const first = await here(page);
  await until("the plan follows", async () => (await here(page)) !== first);
  await page.getByRole("button", { name: "Pause" }).click();
  // The frame that was being drawn may take a while without a graphics card.
  await page.waitForTimeout(800);
  const paused = await time(page);
  await page.waitForTimeout(400);
  assert.equal(await time(page), paused, "a pause is a pause");
  await page.locator(".walk canvas").focus();
  await page.keyboard.press("Space");
  await until("it goes on", async () => (await time(page)) > paused);
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Play" }).waitFor();
  await page.locator(".walk-track input").evaluate((input) => { input.value = input.max; input.dispatchEvent(new Event("input")); });
  await page.getByRole("button", { name: "Watch again" }).click();
  await until("it begins anew", async () => { const now = await time(page); return now > 0 && now < Number(await page.locator(".walk-track input").getAttribute("max")) / 2; });
  assert.deepEqual(errors, []);
  await context.close();
});

test("who wants less motion gets no walk that plays by itself, and whole steps", async () => {
  const { page, context } = await open(FLAT);
  await page.waitForTimeout(1500);
  assert.equal(await time(page), 0);
  const before = await picture(page);
  await page.getByRole("button", { name: "Next stop" }).click();
  await at(page, "2 of");
  assert.notEqual(await picture(page), before);
  await context.close();
});

test("it is scrubbed and stepped, by mouse and by keys, and says where it is", async () => {
  const { page, context } = await open(STAIRS);
  const n = await stops(page);
  const slider = page.locator(".walk-track input");
  await page.locator("main").click({ position: { x: 5, y: 5 } });
  await page.keyboard.press("ArrowRight");
  await at(page, `2 of ${n}`);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  await at(page, `2 of ${n}`);
  assert.match(await page.locator(".walk [role=status]").innerText(), new RegExp(`^Stop 2 of ${n}\\. \\S`));
  await page.keyboard.press("End");
  await at(page, `${n} of ${n}`);
  await page.keyboard.press("ArrowRight");
  await at(page, `${n} of ${n}`);
  await page.keyboard.press("Home");
  await at(page, `1 of ${n}`);
  await slider.focus();
  await page.keyboard.press("ArrowRight");
  await at(page, `2 of ${n}`);
  assert.match(await slider.getAttribute("aria-valuetext"), new RegExp(`^Stop 2 of ${n}, `));
  const box = await slider.boundingBox();
  await page.mouse.click(box.x + box.width * 0.75, box.y + box.height / 2);
  await until("the walk goes there", async () => (await time(page)) > 0.5 * Number(await slider.getAttribute("max")));
  const share = (await time(page)) / Number(await slider.getAttribute("max"));
  assert.ok(Math.abs(share - 0.75) < 0.03, `${share}`);
  await context.close();
});

test("the storey that is walked on is shown, the others faint", async () => {
  const { page, context } = await open(STAIRS);
  const faint = () => page.locator(".plan-storey").evaluateAll((all) => Object.fromEntries(all.map((group) => [group.dataset.storey, group.classList.contains("faint")])));
  assert.equal((await faint())[0], false);
  assert.match(await page.locator(".walk-storey").innerText(), /^Storey 1 of /);
  await page.locator(".walk canvas").focus();
  await page.keyboard.press("End");
  await until("the next storey takes its place", async () => (await faint())[0] && !(await faint())[1]);
  assert.match(await page.locator(".walk-storey").innerText(), /^Storey 2 of /);
  await context.close();
});

test("one looks around by dragging, by keys and by buttons, and the plan shows where to", async () => {
  const { page, context } = await open(FLAT);
  const degrees = async () => Number((await here(page)).match(/rotate\((-?\d+)\)/)[1]);
  const cone = () => page.locator(".plan-cone").getAttribute("d");
  const [angle, before, wedge] = [await degrees(), await picture(page), await cone()];
  await page.getByRole("button", { name: "Look right" }).click();
  await until("the view turns", async () => (await degrees()) - angle === 30);
  assert.notEqual(await cone(), wedge);
  assert.notEqual(await picture(page), before);
  await page.locator(".walk canvas").focus();
  await page.keyboard.press("a");
  await until("and back", async () => (await degrees()) === angle);
  const box = await page.locator(".walk canvas").boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 120, y, { steps: 4 });
  await page.mouse.up();
  await until("dragged to the left, one looks to the right", async () => (await degrees()) > angle + 5);
  assert.equal(await time(page), 0, "looking is no step");
  await context.close();
});

test("no key is taken from somebody who types, nor from an input method or the browser", async () => {
  const { page, context } = await open(FLAT);
  const field = page.locator("#from");
  await field.fill("");
  await field.pressSequentially("a d w s");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type("X");
  assert.equal(await field.inputValue(), "aX d w s");
  assert.equal(await time(page), 0);
  const angle = await here(page);
  const untouched = await page.evaluate(() => [{ isComposing: true }, { keyCode: 229 }, { ctrlKey: true }, { metaKey: true }, { altKey: true }].map((more) => {
    const event = new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true, cancelable: true, ...more });
    return document.querySelector(".walk canvas").dispatchEvent(event);
  }));
  assert.deepEqual(untouched, [true, true, true, true, true]);
  assert.equal(await time(page), 0);
  assert.equal(await here(page), angle);
  // A button does what it says, and nothing else.
  await page.getByRole("button", { name: "In words" }).focus();
  await page.keyboard.press("Space");
  assert.equal(await page.locator(".walk-words").isVisible(), true);
  await page.getByRole("button", { name: "Play" }).waitFor();
  await context.close();
});

test("the words are one press away and follow the walk", async () => {
  const { page, context } = await open(STAIRS);
  const words = page.locator(".walk-words");
  assert.equal(await words.isVisible(), false);
  const toggle = page.getByRole("button", { name: "In words" });
  assert.equal(await toggle.getAttribute("aria-expanded"), "false");
  await toggle.click();
  assert.equal(await toggle.getAttribute("aria-expanded"), "true");
  assert.match(await words.locator("li").first().innerText(), /^It started/);
  assert.match(await words.locator("li").last().innerText(), /^It stopped/);
  await page.getByRole("button", { name: "Next stop" }).click();
  await until("the second line is marked", async () => (await words.locator("li").nth(1).getAttribute("aria-current")) !== null);
  assert.equal(await words.locator("li[aria-current]").count(), 1);
  await context.close();
});

test("without WebGL there are plan and words, and everything steps", async () => {
  const plain = await startBrowser(["--disable-gpu", "--disable-3d-apis", "--disable-software-rasterizer"]);
  try {
    const { page, context, errors } = await open(STAIRS, {}, plain);
    await page.locator(".walk.flat").waitFor();
    assert.match(await page.locator(".walk-note").innerText(), /cannot draw in 3D/);
    assert.match(await page.locator(".walk-hint").innerText(), /^With the keyboard, go to the buttons with/);
    assert.equal(await page.locator(".walk-words").isVisible(), true);
    assert.equal(await page.locator(".walk canvas").isVisible(), false);
    assert.ok((await page.locator(".walk-plan svg").boundingBox()).height > 150);
    const before = await here(page);
    await page.getByRole("button", { name: "Next stop" }).click();
    await at(page, "2 of");
    assert.notEqual(await here(page), before);
    assert.deepEqual(errors.filter((error) => !/WebGL/.test(error)), []);
    await context.close();
  } finally {
    await plain.close();
  }
});

test("without a script there are the words and the map", async () => {
  const { page, context } = await person(browser, { javaScriptEnabled: false });
  await page.goto(server.address + FLAT);
  assert.equal(await page.locator(".walk-words").isVisible(), true);
  assert.equal(await page.locator("svg.map").isVisible(), true);
  await context.close();
});

test("a house that is no more as it was leaves the walk itself", async () => {
  const { page, context } = await person(browser, { reducedMotion: "reduce" });
  await page.route(/house\.json/, (route) => route.fulfill({ status: 404, body: "{}" }));
  await page.goto(server.address + FLAT);
  await page.locator(".walk[data-first]").waitFor({ timeout: PATIENCE });
  await page.getByRole("button", { name: "Next stop" }).click();
  await at(page, "2 of");
  assert.ok((await page.locator(".plan-way").count()) > 0);
  await context.close();
});

for (const colorScheme of ["light", "dark"]) {
  for (const viewport of [{ width: 1280, height: 860 }, { width: 360, height: 740 }]) {
    test(`nothing stands in the way in ${colorScheme} at ${viewport.width} px`, async () => {
      const { page, context, errors } = await open(STAIRS, { colorScheme, viewport, hasTouch: viewport.width < 500 });
      await page.getByRole("button", { name: "In words" }).click();
      await page.getByRole("button", { name: "Next stop" }).click();
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).join(", ")})`), []);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it does not scroll sideways");
      if (viewport.width < 500) {
        const small = await page.locator(".walk-plan").boundingBox();
        const mark = async () => (await page.locator(".plan-start").first().boundingBox()).width;
        const before = await mark();
        await page.getByRole("button", { name: "Larger plan" }).tap();
        await until("the plan grows", async () => (await page.locator(".walk-plan").boundingBox()).width > small.width * 2);
        const large = await page.locator(".walk-plan").boundingBox();
        assert.ok(large.height > small.height * 2.5, `it takes much of the screen: ${large.height} px`);
        assert.ok((await mark()) > before * 1.5, "and what is on it is larger, too");
        const { colour, over } = await page.locator(".walk-plan").evaluate((plan) => {
          const { left, top } = document.querySelector(".walk-place").getBoundingClientRect();
          return { colour: getComputedStyle(plan).backgroundColor, over: plan.contains(document.elementFromPoint(left + 4, top + 4)) };
        });
        assert.match(colour, /^rgb\(/, "nothing shines through");
        assert.ok(over, "the label of the picture lies under it");
      }
      assert.deepEqual(errors, []);
      await context.close();
    });
  }
}

test("many houses one after the other leave no canvas behind", async () => {
  const { page, context, errors } = await open(FLAT, { viewport: { width: 640, height: 480 } });
  const warnings = [];
  page.on("console", (message) => { if (/context/i.test(message.text())) warnings.push(message.text()); });
  // As the teacher's page does it: the next execution takes the place of the one before.
  for (let i = 0; i < 20; i++) {
    await page.evaluate(() => {
      const root = document.querySelector(".walk");
      const fresh = document.createElement("div");
      fresh.className = "walk";
      fresh.dataset.walk = root.dataset.walk;
      fresh.append(Object.assign(document.createElement("ol"), { className: "walk-words" }));
      root.replaceWith(fresh);
    });
    await page.locator(".walk[data-first]").waitFor({ timeout: PATIENCE });
  }
  assert.equal(await page.locator(".walk canvas").count(), 1);
  assert.deepEqual(warnings.filter((text) => /Too many active/.test(text)), []);
  assert.deepEqual(errors, []);
  await context.close();
});

test("photographs take the place of the drawing, the right way round", async () => {
  const { page, context, errors } = await open(FLAT);
  // Red ahead (north), green to the right (east), blue elsewhere.
  const photograph = await page.evaluate(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 256, height: 128 });
    const pen = canvas.getContext("2d");
    for (const [colour, x, width] of [["#00f", 0, 256], ["#f00", 104, 48], ["#0f0", 168, 48]]) { pen.fillStyle = colour; pen.fillRect(x, 0, width, 128); }
    return canvas.toDataURL("image/png").split(",")[1];
  });
  const json = (body) => (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(body) });
  await page.route("**/nav/houses/real/house.json", json({ name: "real", viewpoints: [["a", 0, 0, 1.5], ["b", 0, 2, 1.5]], edges: [[0, 1]], objects: [["sofa", 1, 2, 0.5, 1.6, 0.8]] }));
  await page.route("**/nav/panoramas/real", json(["a"]));
  await page.route("**/nav/panoramas/real/a", (route) => route.fulfill({ contentType: "image/png", body: Buffer.from(photograph, "base64") }));
  await page.evaluate(() => {
    const things = [{ name: "sofa", position: [1, 2, 0.5], distance: 2.4 }];
    const fresh = document.createElement("div");
    fresh.className = "walk";
    fresh.dataset.walk = JSON.stringify({ house: "real", version: null, path: [{ viewpoint: "a", position: [0, 0, 1.5], heading: 0, things }, { viewpoint: "b", position: [0, 2, 1.5], heading: 0, things }] });
    fresh.append(Object.assign(document.createElement("ol"), { className: "walk-words" }));
    document.querySelector(".walk").replaceWith(fresh);
  });
  await page.locator(".walk[data-first]").waitFor({ timeout: PATIENCE });
  // The colour a little above the middle of the view, as text.
  const ahead = async () => page.evaluate(async (shot) => {
    const picture = await createImageBitmap(new Blob([Uint8Array.from(atob(shot), (letter) => letter.charCodeAt(0))]));
    const pen = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
    pen.drawImage(picture, 0, 0);
    const [r, g, b] = pen.getImageData(picture.width / 2, picture.height * 0.4, 1, 1).data;
    return r > 200 && g < 60 ? "red" : g > 200 && r < 60 ? "green" : b > 200 && r < 60 ? "blue" : "drawn";
  }, await picture(page));
  await until("north is ahead", async () => (await ahead()) === "red", 20_000);
  for (let i = 0; i < 3; i++) await page.getByRole("button", { name: "Look right" }).click();
  await until("east is to the right", async () => (await ahead()) === "green", 20_000);
  await page.getByRole("button", { name: "Next stop" }).click();
  await until("a stop without a photograph is drawn", async () => (await ahead()) === "drawn", 20_000);
  assert.deepEqual(errors, []);
  await context.close();
});
