// Every page with the keyboard alone: Tab reaches each control, in order, and what has the focus shows it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { begin, describe, given, join, openStudy } from "./studies.js";
import { openTeaching, person, startBrowser, startMadeUpServer } from "./support.js";

let server;
let browser;
let page;
let errors;
let study;
before(async () => {
  [server, browser] = await Promise.all([startMadeUpServer(), startBrowser()]);
  study = await openStudy(server, { overlap: "2", goal: "5" });
  ({ page, errors } = await person(browser));
  // Somebody has taught, so that all parts of the pages are there.
  await page.goto(`${server.address}study/${study}`);
  await join(page);
  await begin(page);
  await describe(page, "put an e at the end of all of them");
  await given(page, 1);
});
after(async () => { await browser?.close(); await server?.stop(); });

// Everything on the page that takes the focus: of a group of radio buttons one, of a closed fold only its heading.
const wanted = () => page.evaluate(() => {
  const seen = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0 && !element.closest("[inert]");
  const groups = new Set();
  return [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter((element) => {
    if (element.disabled || element.tabIndex < 0 || !seen(element) || element.type === "hidden") return false;
    if (element.type !== "radio") return true;
    const group = `${element.form?.id} ${element.name}`;
    return !groups.has(group) && groups.add(group);
  }).map((element) => {
    element.dataset.audit = String(groups.size) + Math.random();
    return { key: element.dataset.audit, what: element.outerHTML.slice(0, 160), radio: element.type === "radio" ? element.name : "" };
  });
});

// The element that has the focus, and whether one sees that it has.
const focused = () => page.evaluate(() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const lines = (style) => `${style.outlineStyle === "none" || style.outlineWidth === "0px" ? "" : style.outline} ${style.boxShadow} ${style.borderColor} ${style.backgroundColor} ${style.textDecoration}`;
  // A switch or a choice may show it on what stands for it.
  const around = [element, element.closest("label"), element.nextElementSibling].filter(Boolean);
  const look = () => around.map((one) => lines(getComputedStyle(one))).join("|");
  const now = look();
  element.blur();
  const before = look();
  element.focus({ preventScroll: true, focusVisible: true });
  return { key: element.dataset.audit ?? "", radio: element.type === "radio" ? element.name : "", marked: now !== before, what: element.outerHTML.slice(0, 160) };
});

async function audit(path) {
  await page.goto(server.address + path);
  // Scripts show more once the page is there.
  await page.waitForTimeout(700);
  const all = await wanted();
  const reached = new Set();
  const dull = new Set();
  let last = "";
  // Some pages begin in a field; the way through all of them begins at the top.
  await page.locator(".skip-link").first().focus();
  for (let step = 0; step < all.length + 40; step += 1) {
    if (step > 0) await page.keyboard.press("Tab");
    const at = await focused();
    if (!at) { if (step > 0) break; continue; }
    assert.notEqual(at.key + at.what, last, `${path}: the focus is stuck at ${at.what}`);
    last = at.key + at.what;
    reached.add(at.radio ? `radio ${at.radio}` : at.key);
    if (!at.marked) dull.add(at.what);
  }
  const missed = all.filter((one) => !reached.has(one.radio ? `radio ${one.radio}` : one.key)).map((one) => one.what);
  assert.deepEqual({ missed, dull: [...dull] }, { missed: [], dull: [] }, `${path}: ${all.length} controls`);
}

for (const [name, path] of Object.entries({
  "the start page": () => "", "runs": () => "runs", "a run": () => `runs/${server.run}`, "studies": () => "studies", "the editor of a study": () => "studies/new",
  "a study": () => `studies/${study}`, "a participant": () => `studies/${study}/participants/1`, "the comparison": () => `studies/${study}/comparison`,
  "review": () => `studies/${study}/review?show=all`, "people": () => "people", "signing in": () => "sign-in", "documentation": () => "docs/studies",
  "a teacher's answers": () => `study/${study}/answers`, "a participant's page": () => `study/${study}`,
})) {
  test(`${name}: Tab reaches everything and shows where it is`, () => audit(path()));
}

test("the teaching page is left and entered again by Tab", async () => {
  await openTeaching(server, page);
  await audit(`teach/${server.run}`);
});

test("no error was told in the console", () => assert.deepEqual(errors, []));
