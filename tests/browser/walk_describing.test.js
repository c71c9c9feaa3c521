// A walk on the page where it is described: it fits one screen with the box and Send, its plan shows the walk with names that can
// be read, the view ends at walls and faces what the walk stopped at, and words, label and slider name the same room. Looked at
// over twenty generated walks.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { DRAWN, openTeaching, PATIENCE, person, PHONE, post, startBrowser, startServer, until } from "./support.js";

const HOUSES = Array.from({ length: 20 }, (_, i) => `nav/houses/house-${i + 1}?walk=${i}`);

let server;
let browser;   // draws in 3D
let plain;     // shows plan and words alone, and is quicker
before(async () => {
  const flags = ["--disable-gpu", "--disable-3d-apis", "--disable-software-rasterizer"];
  [server, browser, plain] = await Promise.all([startServer("--preset", "nav/tiny"), startBrowser(DRAWN), startBrowser(flags)]);
  await post(`${server.api}/teacher`, { mode: "human" });
});
after(async () => { await Promise.all([browser?.close(), plain?.close()]); await server?.stop(); });

// Puts the walk of a house's page onto the page where one describes.
async function bring(page, house, ready = "data-plan") {
  await page.evaluate(async (address) => {
    const text = await (await fetch(address)).text();
    const walk = new DOMParser().parseFromString(text, "text/html").querySelector(".walk");
    document.getElementById("execution").replaceChildren(walk);
  }, server.address + house);
  await page.locator(`#execution .walk[${ready}]`).waitFor({ timeout: PATIENCE });
}

const boxes = (page) => page.evaluate(() => Object.fromEntries(["#execution .walk-stage", "#execution .walk-plan", "#execution .walk-bar", "#text", "#send"].map((selector) => {
  const { left, top, right, bottom, width, height } = document.querySelector(selector).getBoundingClientRect();
  return [selector.split(" ").at(-1), { left, top, right, bottom, width, height }];
})));

for (const viewport of [{ width: 1366, height: 650 }, { width: 1280, height: 800 }, { width: 390, height: 844 }]) {
  test(`view, plan, box and Send are on one screen at ${viewport.width}×${viewport.height}`, async () => {
    const { page, context, errors } = await person(browser, { ...(viewport.width < 500 ? PHONE : {}), viewport, reducedMotion: "reduce" });
    await openTeaching(server, page);
    await page.locator("#execution .walk[data-first]").waitFor({ timeout: PATIENCE });
    for (const house of HOUSES.slice(0, 3)) {
      await bring(page, house, "data-first");
      const found = await boxes(page);
      for (const [what, box] of Object.entries(found)) {
        assert.ok(box.top >= 0 && box.bottom <= viewport.height && box.left >= 0 && box.right <= viewport.width, `${what}: ${JSON.stringify(box)}`);
      }
      assert.ok(found[".walk-stage"].height >= 200, "the view is not given up for it");
      assert.equal(await page.evaluate(() => scrollY), 0);
      // Nothing lies over what is pressed.
      const covered = await page.evaluate(() => [...document.querySelectorAll("#stage button, #stage input[type=range], #stage textarea, #stage a")].filter((control) => {
        const { left, top, width, height } = control.getBoundingClientRect();
        if (width === 0 || top + height > innerHeight || control.closest("[hidden], details:not([open])")) return false;
        const found = document.elementFromPoint(left + width / 2, top + height / 2);
        return !control.contains(found);
      }).map((control) => control.outerHTML.slice(0, 80)));
      assert.deepEqual(covered, []);
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it does not scroll sideways");
    assert.deepEqual(errors, []);
    await context.close();
  });
}

// Reads what the plan shows at shares of the walk, and which solid walls the view would go through.
async function alongTheWalk(page) {
  return page.evaluate(async () => {
    const root = document.querySelector("#execution .walk");
    const { house, version } = JSON.parse(root.dataset.walk);
    const { house: geometry } = await (await fetch(new URL(`nav/houses/${house}/house.json?v=${version}`, location.href.replace(/teach\/.*/, "")))).json();
    const solid = geometry.walls.flatMap((wall, index) => {
      const alongX = wall.from[1] === wall.to[1], axis = alongX ? 0 : 1, t = wall.thickness / 2 - 0.03, line = wall.from[1 - axis];
      const holes = geometry.openings.filter((o) => o.wall === index && (o.kind === "door" || o.kind === "archway")).sort((p, q) => p.at[axis] - q.at[axis]);
      const parts = [];
      let at = wall.from[axis];
      for (const hole of [...holes, null]) {
        const to = hole ? hole.at[axis] - hole.width / 2 : wall.to[axis];
        if (to - at > 0.06) parts.push({ storey: wall.storey, box: alongX ? [at + 0.03, line - t, to - 0.03, line + t] : [line - t, at + 0.03, line + t, to - 0.03] });
        if (hole) at = hole.at[axis] + hole.width / 2;
      }
      return parts;
    });
    const crosses = ([x0, y0, x1, y1], [ax, ay], [bx, by]) => {
      let enter = 0, leave = 1;
      for (const [low, high, a, b] of [[x0, x1, ax, bx], [y0, y1, ay, by]]) {
        if (a === b) { if (a <= low || a >= high) return false; continue; }
        const [p, q] = [(low - a) / (b - a), (high - a) / (b - a)];
        [enter, leave] = [Math.max(enter, Math.min(p, q)), Math.min(leave, Math.max(p, q))];
      }
      return enter < leave;
    };
    const slider = root.querySelector("input[type=range]");
    const seen = [];
    for (let i = 0; i <= 16; i++) {
      slider.value = (slider.max * i) / 16;
      slider.dispatchEvent(new Event("input"));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      const points = root.querySelector(".plan-cone").getAttribute("d").slice(1, -1).split("L").map((pair) => { const [x, y] = pair.split(" ").map(Number); return [x, -y]; });
      const storey = Number(root.querySelector(".plan-storey:not(.faint)").dataset.storey);
      const through = solid.filter((part) => part.storey === storey && points.slice(1).some((point) => crosses(part.box, points[0], point))).length;
      const names = [...root.querySelectorAll(".plan-room")].map((name) => {
        const matrix = name.getScreenCTM();
        return { name: name.textContent, size: Math.hypot(matrix.a, matrix.b) * parseFloat(name.getAttribute("font-size")), under: Boolean(name.compareDocumentPosition(root.querySelector(".plan-cone")) & Node.DOCUMENT_POSITION_FOLLOWING) };
      });
      const frame = root.querySelector(".walk-plan").getBoundingClientRect();
      const outside = [...root.querySelectorAll(".plan-path:not(.faint) .plan-stop")].filter((mark) => { const { left, right, top, bottom } = mark.getBoundingClientRect(); return left < frame.left || right > frame.right || top < frame.top || bottom > frame.bottom; }).length;
      seen.push({
        share: i / 16, points: points.length, through, names, outside,
        label: root.querySelector(".walk-place").textContent, slider: slider.getAttribute("aria-valuetext"),
        line: root.querySelector(".walk-words [aria-current]").textContent.trim(),
        lines: [...root.querySelectorAll(".walk-words li")].map((line) => line.textContent.trim()),
      });
    }
    return seen;
  });
}

test("over twenty walks: names can be read, the view ends at walls, and words, label and slider name one room", async () => {
  const { page, context } = await person(plain, { viewport: { width: 1366, height: 650 }, reducedMotion: "reduce" });
  await openTeaching(server, page);
  for (const house of HOUSES) {
    await bring(page, house);
    const seen = await alongTheWalk(page);
    for (const { share, points, through, names, outside, label, slider } of seen) {
      const where = `${house} at ${share}`;
      assert.ok(points >= 3, where);
      assert.equal(through, 0, `${where}: the view goes through a wall`);
      assert.ok(names.length > 0, where);
      for (const { name, size, under } of names) {
        assert.ok(size >= 11, `${where}: ${name} has ${size} px`);
        assert.equal(under, false, `${where}: the view lies over ${name}`);
      }
      assert.equal(outside, 0, `${where}: a stop lies outside the plan`);
      assert.match(slider, new RegExp(`, ${label}$`, "i"), where);
    }
    const [first, last] = [seen[0], seen.at(-1)];
    assert.match(first.line, new RegExp(` the ${first.label}\\.$`, "i"), house);
    assert.match(last.line, new RegExp(`^It stopped .*(in|on|in another|back in) (the )?${last.label}[.,]`, "i"), house);
    // A room that the label comes to is one that a sentence leads into, or that is passed on a longer way.
    const told = last.lines.join(" ");
    for (const { label } of seen) {
      if (label !== "Stairs" && label !== first.label && label === last.label) assert.match(told, new RegExp(`(into|another|the) ${label}`, "i"), house);
    }
  }
  await context.close();
});

test("the whole house is one press away, with names that can be read", async () => {
  const { page, context } = await person(plain, { viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
  await openTeaching(server, page);
  await bring(page, HOUSES[1]);
  const width = () => page.locator("#execution .walk-plan svg").evaluate((svg) => svg.viewBox.baseVal.width);
  const near = await width();
  const whole = page.getByRole("button", { name: "Whole house" });
  await whole.click();
  assert.equal(await whole.getAttribute("aria-pressed"), "true");
  assert.ok((await width()) > near);
  const sizes = await page.locator("#execution .plan-room").evaluateAll((names) => names.map((name) => { const matrix = name.getScreenCTM(); return Math.hypot(matrix.a, matrix.b) * parseFloat(name.getAttribute("font-size")); }));
  assert.ok(sizes.length > 0 && sizes.every((size) => size >= 11), `${sizes}`);
  await whole.click();
  assert.equal(await width(), near);
  await context.close();
});

test("the last view faces what the walk stopped at, and one turns there by buttons, keys and dragging", async () => {
  const { page, context, errors } = await person(browser, { viewport: { width: 1366, height: 650 }, reducedMotion: "reduce" });
  await openTeaching(server, page);
  await page.locator("#execution .walk[data-first]").waitFor({ timeout: PATIENCE });
  const degrees = async () => Number((await page.locator("#execution .plan-here").getAttribute("transform")).match(/rotate\((-?\d+)\)/)[1]);
  const apart = (a, b) => Math.abs(((a - b + 540) % 360) - 180);
  let looked = 0;
  for (const house of HOUSES.slice(0, 6)) {
    await bring(page, house, "data-first");
    const { look, path } = JSON.parse(await page.locator("#execution .walk").getAttribute("data-walk"));
    if (!look || path.length < 2) continue;
    looked += 1;
    await page.locator("#execution canvas").focus();
    await page.keyboard.press("End");
    await until("the last view", async () => apart(await degrees(), (look[0] * 180) / Math.PI) <= 1);
  }
  assert.ok(looked >= 4, `${looked} walks end with a look`);
  const turned = async (what, by, act) => {
    const from = await degrees();
    await act();
    await until(what, async () => { const now = await degrees(); return by === null ? apart(now, from) > 4 : apart(now, from + by) <= 1; });
  };
  await turned("the right arrow turns right", 15, () => page.keyboard.press("ArrowRight"));
  await turned("the left arrow turns left", -15, () => page.keyboard.press("ArrowLeft"));
  await turned("the button turns", 30, () => page.getByRole("button", { name: "Look right" }).click());
  const box = await page.locator("#execution canvas").boundingBox();
  await turned("dragging turns", null, async () => {
    await page.mouse.move(box.x + 200, box.y + 150);
    await page.mouse.down();
    await page.mouse.move(box.x + 120, box.y + 150, { steps: 3 });
    await page.mouse.up();
  });
  // Whoever types moves the cursor, and neither the walk nor the view.
  await page.locator("#text").fill("go left");
  const before = await degrees();
  for (const key of ["ArrowLeft", "ArrowUp", "End", "a", " "]) await page.keyboard.press(key);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.equal(await degrees(), before);
  // Up and down step, with the focus in the picture.
  await page.locator("#execution canvas").focus();
  const count = () => page.locator("#execution .walk-count").innerText();
  const last = await count();
  await page.keyboard.press("ArrowDown");
  await until("a step back", async () => (await count()) !== last);
  await page.keyboard.press("ArrowUp");
  await until("a step forth", async () => (await count()) === last);
  assert.deepEqual(errors, []);
  await context.close();
});

for (const viewport of [{ width: 1366, height: 650 }, { width: 1280, height: 800 }, { width: 390, height: 844 }]) {
  test(`the guide's button covers no control at ${viewport.width}×${viewport.height}`, async () => {
    const { page, context } = await person(plain, { viewport, reducedMotion: "reduce" });
    await page.goto(`${server.address}teach/${server.run}`);
    await page.locator(".walk[data-plan]").waitFor({ timeout: PATIENCE });
    const start = page.getByRole("button", { name: "Start teaching" }).first();
    const { y, height } = await start.boundingBox();
    assert.ok(y + height <= viewport.height, "it is on the first screen");
    const covered = await page.evaluate(async () => {
      const wrong = [];
      const step = Math.round(innerHeight / 3);
      for (let top = 0; top < document.documentElement.scrollHeight; top += step) {
        scrollTo({ top, behavior: "instant" });
        for (const control of document.querySelectorAll("main button, main a, main input")) {
          const box = control.getBoundingClientRect();
          if (box.width === 0 || box.top < 0 || box.bottom > innerHeight || control.matches(".walk-larger")) continue;
          if (!control.contains(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2))) wrong.push(`${control.className} at ${top}`);
        }
      }
      return wrong;
    });
    assert.deepEqual(covered, []);
    await context.close();
  });
}

test("walks of less than a metre are not offered", async () => {
  const { page, context } = await person(plain, { reducedMotion: "reduce" });
  await openTeaching(server, page);
  const lengths = [];
  for (let i = 0; i < 20; i++) {
    const { path } = JSON.parse(await page.locator("#execution .walk").getAttribute("data-walk"));
    lengths.push(path.slice(1).reduce((sum, { position }, k) => sum + Math.hypot(...position.map((at, axis) => at - path[k].position[axis])), 0));
    const from = await page.locator("#describe input[name=execution]").inputValue();
    await page.getByRole("button", { name: "I can’t describe this" }).click();
    await until("the next walk", async () => (await page.locator("#describe input[name=execution]").inputValue().catch(() => from)) !== from);
    await page.locator("#execution .walk").waitFor({ timeout: PATIENCE });
  }
  assert.ok(lengths.every((length) => length >= 0.99), `${lengths}`);
  await context.close();
});
