// People demonstrate and rate, with the mouse, with the keyboard alone, and without a script.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { answers, execution, PATIENCE, person, PHONE, startBrowser, startServer, until } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const people = (name, ...more) => ["--preset", "tiny", `algorithm.name=${name}`, 'teacher.mode={"mode":"human"}', "schedule.evaluate_tasks=8", ...more]
  .flatMap((item, i) => (i < 2 ? [item] : ["--set", item]));
const standing = (rows) => rows.filter((row) => row.superseded_by === null);

let browser;
before(async () => { browser = await startBrowser(); });
after(async () => { await browser?.close(); });

async function teaching(server, page) {
  await page.goto(`${server.address}teach/${server.run}`);
  const start = page.getByRole("button", { name: "Start teaching" }).first();
  if (await start.count() > 0) await start.click();
  await page.locator("#stage:not([hidden])").waitFor({ timeout: PATIENCE });
  await page.locator("#teach[data-ready]").waitFor();
}

async function sound(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

const moved = (page, from) => until("the next execution", async () => (await execution(page)) !== from);

test("word edits are demonstrated with the keyboard, refused with a sentence, and taken back", async () => {
  const server = await startServer(...people("dagger"));
  const { page, context, errors } = await person(browser);
  try {
    await teaching(server, page);
    assert.match(await page.locator("#asked").innerText(), /^The agent is asked to: /);
    assert.deepEqual(await sound(page), []);
    const fields = page.locator(".show-output");
    assert.equal(await fields.count(), 5);
    assert.ok(await fields.first().evaluate((field) => field === document.activeElement), "the first field has the focus");
    const words = await fields.evaluateAll((all) => all.map((field) => field.dataset.word));

    // Outputs that no rule makes are refused, and the typed text stays.
    const from = await execution(page);
    await fields.nth(0).fill(`${words[0]}qx`);
    await fields.nth(1).fill(`z${words[1]}`);
    await page.locator("#send").click();
    await until("it is refused", async () => /^No edit I know does that/.test(await page.locator("#problem").innerText()));
    assert.equal(await fields.nth(0).inputValue(), `${words[0]}qx`);
    await page.reload();
    await page.locator("#teach[data-ready]").waitFor();
    assert.equal(await fields.nth(1).inputValue(), `z${words[1]}`, "a draft is kept");

    await fields.first().focus();
    for (const word of words) {
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.type(`${word}s`);
      await page.keyboard.press("Enter");
    }
    await moved(page, from);
    const [row] = standing(await answers(server));
    assert.deepEqual(row.demonstration.outputs, words.map((word) => `${word}s`));
    assert.equal(row.medium, "demonstration");
    await until("the agent learns from it", async () => standing(await answers(server))[0].used_in_update > 0);

    // The expression itself, for those who know the language; and Undo.
    const next = await execution(page);
    await page.getByText("I know the expression language").click();
    await page.locator("#show-expression").fill("(^)(.)()@k");
    await page.keyboard.press("Enter");
    await moved(page, next);
    await page.getByRole("button", { name: "I can’t show this" }).click();
    await until("three are stored", async () => (await answers(server)).length === 3);
    assert.deepEqual(errors.filter((error) => !/status of 422/.test(error)), []);
  } finally {
    await context.close();
    await server.stop();
  }
});

test("the way through a house is shown by clicks and by keys", async () => {
  const server = await startServer("--preset", "nav/tiny", ...["algorithm.name=dagger", 'teacher.mode={"mode":"human"}', "schedule.evaluate_tasks=4"].flatMap((item) => ["--set", item]));
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  try {
    await teaching(server, page);
    const places = page.locator(".way-next .button");
    await places.first().waitFor();
    assert.deepEqual(await sound(page), []);
    const from = await execution(page);
    await page.locator("#send").click();
    assert.match(await page.locator("#problem").innerText(), /^Show first how it is done/);
    await page.locator(".way-plan [data-place]").first().click();
    assert.match(await page.locator(".way-said").innerText(), /^1 step, now in the /);
    await page.getByRole("button", { name: "Take the last step back" }).click();
    assert.match(await page.locator(".way-said").innerText(), /^It starts in the /);
    await places.first().focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("1");
    await page.keyboard.press("1");
    await page.keyboard.press("Backspace");
    assert.match(await page.locator(".way-said").innerText(), /^2 steps, now in the /);
    const path = (await page.locator("[name='show-path']").inputValue()).split(" ");
    await page.locator("#send").click();
    await moved(page, from);
    const [row] = standing(await answers(server));
    assert.deepEqual(row.demonstration.path, path);
    assert.ok(row.text.length > 10);
    assert.deepEqual(errors.filter((error) => !/status of 4\d\d/.test(error)), []);
  } finally {
    await context.close();
    await server.stop();
  }
});

test("executions are rated by keys and by presses, on a phone and without a script", async () => {
  const server = await startServer(...people("reinforce-binary", "people.rating=stars"));
  try {
    const { page, context, errors } = await person(browser, PHONE);
    await teaching(server, page);
    assert.match(await page.locator("#asked").innerText(), /^It was asked to: /);
    assert.deepEqual(await sound(page), []);
    let from = await execution(page);
    await page.keyboard.press("4");
    await moved(page, from);
    from = await execution(page);
    await page.getByRole("button", { name: "1 of 5 stars" }).click();
    await moved(page, from);
    const rows = await answers(server);
    assert.deepEqual(rows.map((row) => row.rating), [0.75, 0]);
    assert.equal(rows[0].text, "4 of 5 stars");
    await until("the agent learns from them", async () => (await answers(server)).every((row) => row.used_in_update > 0));
    assert.deepEqual(errors, []);
    await context.close();

    const plain = await person(browser, { javaScriptEnabled: false });
    await plain.page.goto(`${server.address}teach/${server.run}`);
    await plain.page.getByRole("button", { name: "Start teaching" }).first().click();
    await plain.page.getByRole("button", { name: "5 of 5 stars" }).click();
    await plain.page.getByText("Thank you").waitFor();
    assert.equal((await answers(server)).at(-1).rating, 1);
    await plain.context.close();
  } finally {
    await server.stop();
  }
});
