// What the researchers' page says of an episode, and how it is used by keyboard alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PATIENCE, lively, person, startBrowser, startServer, until } from "./support.js";

const RUN = { algorithm: "adel", feedback: "descriptions", asks: 1, shuffled: false };
const episode = (more) => ({ description: "", source: "simulated", candidates: [], update: null, ...more });

const cases = () => {
  const fit = [["drop the a", true], ["drop the a", true], ["add an e", true], ["do it", false]];
  return [
    [episode({ candidates: fit }), RUN, /2 candidates that lead .* drew saying nothing/, /no candidate/],
    [episode({ candidates: fit.slice(0, 2) }), RUN, /the one candidate that leads/, /no candidate/],
    [episode({ candidates: fit.slice(3) }), RUN, /no candidate of the simulated teacher leads/, /drew/],
    [episode(), RUN, /no whole sentence/, /candidate/],
    [episode({ description: "drop the a", candidates: fit }), RUN, /^drop the a \(the simulated teacher\)$/, /None/],
    [episode({ description: "drop the a" }), RUN, /request of the task/, /None/],
    [episode({ description: "drop it", source: "human" }), RUN, /^drop it \(a person\)$/, /None/],
    [episode({ source: "human" }), RUN, /nothing changed, or that it cannot be described/, /teacher/],
    [episode({ source: null }), RUN, /not asked: there was nothing to see, the execution was not valid\./, /others/],
    [episode({ source: null }), { ...RUN, asks: 4 }, /promised to teach more/, /None/],
    [episode({ source: null }), { ...RUN, algorithm: "dagger", feedback: "demonstrations" }, /dagger learns from demonstrations/, /asked/],
    [episode({ description: "drop it", candidates: fit }), { ...RUN, shuffled: true }, /of another execution/, /None/],
    [episode({ candidates: fit }), { ...RUN, shuffled: true }, /this one got none/, /drew/],
  ];
};

let server;
let browser;
let page;
before(async () => {
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
  ({ page } = await person(browser));
  await page.goto(`${server.address}runs/${server.run}`);
  await until("episodes are there", async () => (await page.locator("#episodes > li").count()) >= 6);
});
after(async () => { await browser?.close(); await server?.stop(); });

test("what was said of an episode follows from the episode", async () => {
  const all = cases();
  const more = [episode(), episode({ update: 12, description: "x" }), episode({ update: 12, source: "human" })];
  const [told, uses] = await page.evaluate(async ([given, others]) => {
    const { said, used } = await import(document.querySelector("link[href$='/js/episodes.js']").href);
    return [given.map(([one, run]) => said(one, run)), others.map(used)];
  }, [all.map(([one, run]) => [one, run]), more]);
  all.forEach(([, , right, wrong], i) => {
    assert.match(told[i], right);
    assert.doesNotMatch(told[i], wrong);
  });
  assert.deepEqual(uses.slice(0, 2), ["in no update", "in update 12"]);
  assert.match(uses[2], /nothing to learn from it/);
});

const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.closest("[data-episode]")?.dataset.episode || "");

test("Tab leads past the episodes in one step, arrows lead through them", async () => {
  await page.evaluate(() => document.querySelector(".table-view summary").focus());
  const seen = [];
  for (let i = 0; i < 4 && (await focused()) !== "request"; i += 1) {
    await page.keyboard.press("Tab");
    seen.push(await focused());
  }
  assert.equal(seen.at(-1), "request", seen.join(", "));
  assert.equal(seen.filter((id) => /^\d+$/.test(id)).length, 1, "one of the rows is on the way");
  await page.locator("h1").click();
  await page.keyboard.press("e");
  assert.match(await focused(), /^\d+$/);
  // The row that Tab reaches can be the oldest one.
  await page.keyboard.press("Home");
  const first = await focused();
  await page.keyboard.press("ArrowDown");
  const next = await focused();
  assert.ok(Number(next) < Number(first), `${next} comes below ${first}`);
  await page.keyboard.press("Enter");
  await page.locator(`#episodes > li[data-episode="${next}"] details[open] dl`).waitFor();
  await page.keyboard.press("End");
  assert.ok(Number(await focused()) < Number(next));
  await page.keyboard.press("Escape");
  await page.keyboard.press("Home");
  assert.match(await focused(), /^\d+$/);
});

test("a row keeps the focus while new ones come", async () => {
  await page.locator("#episodes details[open]").evaluateAll((all) => all.forEach((one) => { one.open = false; }));
  await page.locator("#episodes > li").first().locator("summary").focus();
  const row = await focused();
  const newest = () => page.locator("#episodes > li").first().getAttribute("data-episode");
  const before = await newest();
  await until("new episodes come", async () => Number(await newest()) > Number(before) + 12);
  assert.equal(await focused(), row);
});

test("a link at the top of the page leads to the box of requests", async () => {
  await page.evaluate(() => { document.activeElement.blur(); window.scrollTo(0, 0); });
  await page.locator(".skip-link", { hasText: "trying the agent" }).focus();
  await page.keyboard.press("Enter");
  await until("the box has the focus", async () => (await focused()) === "request");
});

test("the ring of focus leaves labels free", async () => {
  for (const address of [`${server.address}runs/${server.run}`, `${server.address}runs`]) {
    await page.goto(address);
    await page.locator("main").waitFor({ timeout: PATIENCE });
    await page.locator("details.set summary, #request").first().click();
    await page.keyboard.press("Shift+Tab"); // From here on focus is shown as for the keyboard.
    const covered = await page.evaluate(() => [...document.querySelectorAll("label[for]")].filter((label) => {
      const field = document.getElementById(label.htmlFor);
      if (!field || field.type === "range" || !label.offsetParent || !field.offsetParent) return false;
      field.focus({ focusVisible: true });
      const style = getComputedStyle(field);
      const out = parseFloat(style.outlineWidth) + parseFloat(style.outlineOffset);
      const [text, box] = [label.getBoundingClientRect(), field.getBoundingClientRect()];
      return style.outlineStyle !== "none" && text.bottom > box.top - out && text.top < box.bottom + out && text.right > box.left - out && text.left < box.right + out;
    }).map((label) => label.htmlFor));
    assert.deepEqual(covered, [], address);
  }
});

test("a preset that needs data says so, and starting it all the same says what to do", async () => {
  await page.goto(`${server.address}runs`);
  const paper = page.locator(".choice", { hasText: "Needs something first." }).first();
  await paper.locator("input").check();
  await page.getByRole("button", { name: "Start the run" }).click();
  const problem = page.locator("#new-run-problem");
  await problem.waitFor();
  assert.match(await problem.innerText(), /there is no such folder; make it with iliad data import/);
  assert.doesNotMatch(await problem.innerText(), /Nothing was lost/);
  assert.ok(await paper.locator("input").isChecked(), "what was chosen stays chosen");
});

test("the documentation is read without leaving the server", async () => {
  await page.goto(server.address);
  await page.locator(".foot").getByRole("link", { name: "Documentation" }).click();
  await page.locator(".docs-list").getByRole("link", { name: /data set|export/i }).first().click();
  await page.locator(".docs-text h1").waitFor();
  assert.ok(await page.evaluate(() => [...document.querySelectorAll(".docs-text img")].every((img) => img.complete && img.naturalWidth > 0)));
});
