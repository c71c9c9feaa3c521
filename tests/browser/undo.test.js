// What a press or a key does after an answer, and how an answer is taken back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answers, execution, openTeaching, person, post, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer("--set", "pool.size=80"), startBrowser()]);
  await post(`${server.api}/teacher`, { mode: "human" });
  // Nothing is learnt from while the run pauses: an answer can be taken back for as long as a test takes. Nothing new is
  // executed then either, so the pool is a large one.
  await until("the run pauses", async () => {
    await post(`${server.api}/pause`);
    return (await (await fetch(server.api)).json()).status.state === "paused";
  });
});
after(async () => { await browser?.close(); await server?.stop(); });

const moved = (page, from) => until("the next execution", async () => (await execution(page)) !== from);
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
const standing = (rows) => rows.filter((row) => row.superseded_by === null);
const NOTHING = { name: "Nothing changed", exact: true };

async function asPerson(name, work, options = {}) {
  test(name, async () => {
    const { page, context, errors } = await person(browser, options);
    try {
      await openTeaching(server, page, { script: options.javaScriptEnabled });
      await work(page, context);
      // Without a script the question is a page of its own, with the status of a refusal, which the browser notes.
      const expected = options.javaScriptEnabled === false ? /409 \(Conflict\)/ : /^$/;
      assert.deepEqual(errors.filter((error) => !expected.test(error)), [], "no errors in the console");
    } finally {
      await context.close();
    }
  });
}

// Whatever is said of an execution, and whether it is asked about first.
async function answer(page, how) {
  const from = await execution(page);
  await how();
  await until("it is asked about, or the next one is there", async () => (await execution(page)) !== from || (await page.locator("#confirm").isVisible()));
  if ((await execution(page)) === from) await page.locator("#confirm").click();
  await moved(page, from);
  return from;
}

const WAYS = {
  "Nothing changed, by mouse": (page) => page.getByRole("button", NOTHING).click(),
  "Nothing changed, by key": async (page) => { await page.getByRole("button", NOTHING).focus(); await page.keyboard.press("Space"); },
  "cannot describe, by key": async (page) => { await page.getByRole("button", { name: "I can’t describe this" }).focus(); await page.keyboard.press("Enter"); },
  "a skip": async (page) => { await page.locator("#skip summary").click(); await page.getByRole("button", { name: "Something looks broken" }).click(); },
  "Send": async (page) => { await page.fill("#text", "every letter moved"); await page.locator("#send").click(); },
};

asPerson("after every answer the focus is in the box, and what is typed is words", async (page) => {
  for (const [name, way] of Object.entries(WAYS)) {
    await answer(page, () => way(page));
    assert.equal(await focused(page), "text", name);
    const [now, before] = [await execution(page), (await answers(server)).length];
    await page.keyboard.type("the agent did ");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#text").inputValue(), "the agent did \n", name);
    await page.waitForTimeout(150);
    assert.equal(await execution(page), now, `${name}: typing answers nothing`);
    assert.equal((await answers(server)).length, before, name);
    await page.fill("#text", "");
  }
});

asPerson("what is typed while an answer is on its way comes to the next execution, whole", async (page) => {
  await page.route("**/answers", async (route) => { await new Promise((done) => setTimeout(done, 400)); await route.continue(); });
  const from = await execution(page);
  await page.getByRole("button", { name: "I can’t describe this" }).click();
  await page.keyboard.type("the agent ");
  await moved(page, from);
  await page.keyboard.type("moved");
  assert.equal(await page.locator("#text").inputValue(), "the agent moved");
  await page.keyboard.press("Control+Enter");
  await page.keyboard.type("and then");
  await until("the next execution", async () => (await page.locator("#text").inputValue()) === "and then");
  assert.ok((await answers(server)).some((row) => row.text === "the agent moved" && row.kind === "described"));
});

asPerson("a key held down and a double click answer one execution", async (page) => {
  const rows = async () => (await answers(server)).length;
  // The second press of a double click comes when the next execution is there already.
  const spot = await page.getByRole("button", { name: "I can’t describe this" }).boundingBox();
  const [x, y] = [spot.x + spot.width / 2, spot.y + spot.height / 2];
  let [from, before] = [await execution(page), await rows()];
  await page.mouse.click(x, y);
  await moved(page, from);
  from = await execution(page);
  const again = await page.getByRole("button", { name: "I can’t describe this" }).boundingBox();
  await page.mouse.move(again.x + again.width / 2, again.y + again.height / 2);
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  await page.waitForTimeout(200);
  assert.equal(await execution(page), from);
  assert.equal(await rows(), before + 1);
  // Enter goes down on the button and stays down.
  await page.getByRole("button", { name: "I can’t describe this" }).focus();
  await page.keyboard.down("Enter");
  await moved(page, from);
  const next = await execution(page);
  for (let i = 0; i < 5; i++) await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  await page.waitForTimeout(200);
  assert.equal(await execution(page), next);
  assert.equal(await page.locator("#text").inputValue(), "", "nor are there empty lines in the box");
  // Enter held on Skip opens the menu and chooses no reason.
  await page.locator("#skip summary").focus();
  await page.keyboard.down("Enter");
  await until("the first reason has the focus", async () => (await focused(page)).startsWith("I do not understand"));
  for (let i = 0; i < 3; i++) await page.keyboard.down("Enter");
  await page.keyboard.up("Enter");
  await page.keyboard.type("tired of it");
  assert.equal(await page.locator("#reason").inputValue(), "tired of it", "letters in the menu are a reason in one's own words");
  assert.equal(await rows(), before + 2);
});

asPerson("“Nothing changed” is asked about where something did", async (page) => {
  const said = async () => (await answers(server)).filter((row) => row.kind === "nothing_changed").length;
  const [from, before] = [await execution(page), await said()];
  await page.getByRole("button", NOTHING).click();
  await page.locator("#confirm").waitFor();
  assert.match(await page.locator("#problem").innerText(), /words? changed\. Do you still mean “Nothing changed”\?/);
  assert.equal(await focused(page), "text");
  assert.equal(await execution(page), from);
  await page.keyboard.type("it did change");
  assert.equal(await page.locator("#confirm").isVisible(), false, "words are an answer, too");
  assert.equal(await said(), before, "nothing was stored");
});

asPerson("Undo brings execution and words back, and nothing learns from what was taken back", async (page) => {
  const from = await execution(page);
  const drawn = await page.locator("#execution").innerText();
  await page.fill("#text", "hasty “ü” 🙂");
  await page.keyboard.press("Control+Enter");
  await moved(page, from);
  const next = await execution(page);
  await page.keyboard.type("half a sentence");
  await page.getByRole("button", { name: "Undo" }).click();
  await until("it is back", async () => (await execution(page)) === from);
  assert.equal(await page.locator("#text").inputValue(), "hasty “ü” 🙂");
  assert.equal(await page.locator("#execution").innerText(), drawn);
  assert.equal(await focused(page), "text");
  const hasty = (await answers(server)).find((row) => row.text === "hasty “ü” 🙂");
  assert.ok(hasty.withdrawn_at !== null && hasty.superseded_by === hasty.answer, "the dataset says that it was taken back");
  // The very same words, and then the one that had come meanwhile, with what was typed there.
  await page.keyboard.press("Control+Enter");
  await moved(page, from);
  assert.equal(await execution(page), next);
  assert.equal(await page.locator("#text").inputValue(), "half a sentence");
  const rows = (await answers(server)).filter((row) => row.text === "hasty “ü” 🙂");
  assert.equal(rows.length, 2);
  assert.equal(standing(rows).length, 1, "sent once more they stand");
});

asPerson("every kind of answer can be taken back, for ten seconds at once and under Back for longer", async (page) => {
  for (const [name, way] of Object.entries(WAYS)) {
    const from = await answer(page, () => way(page));
    await page.getByRole("button", { name: "Undo" }).click();
    await until(`${name} is back`, async () => (await execution(page)) === from);
    assert.equal(await page.getByRole("button", { name: "Undo" }).isVisible(), false);
    await page.fill("#text", "");
  }
  await page.clock.install();
  await page.reload();
  await page.locator("#teach[data-ready]").waitFor();
  const from = await execution(page);
  await page.getByRole("button", { name: "I can’t describe this" }).click();
  await page.getByRole("button", { name: "Undo" }).waitFor();
  await page.clock.fastForward(11_000);
  await page.getByRole("button", { name: "Undo" }).waitFor({ state: "hidden" });
  await page.getByRole("link", { name: "Back" }).click();
  await page.getByRole("button", { name: "Undo: take it back" }).first().click();
  await page.locator("#teach[data-ready]").waitFor();
  assert.equal(await execution(page), from);
  assert.match(await page.locator("#notice").innerText(), /Taken back/);
});

asPerson("without a script it is asked and undone as well", async (page) => {
  const from = await execution(page);
  await page.fill("#text", "words of before");
  await page.getByRole("button", NOTHING).click();
  await page.getByText("Do you still mean").waitFor();
  assert.equal(await page.locator("#text").inputValue(), "words of before", "the words are kept");
  assert.equal(await execution(page), from);
  await page.locator("#confirm").click();
  await page.getByText("Noted: nothing changed.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Taken back.").waitFor();
  assert.equal(await execution(page), from);
  await page.fill("#text", "plainly said");
  await page.locator("#send").click();
  await page.getByText("Thank you.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Taken back.").waitFor();
  assert.equal(await page.locator("#text").inputValue(), "plainly said");
  assert.equal(await execution(page), from);
}, { javaScriptEnabled: false });

asPerson("the last answers say what is true of each kind, and “Correct it” puts the focus into its box", async (page) => {
  for (const way of ["Nothing changed, by mouse", "cannot describe, by key", "a skip", "Send"]) await answer(page, () => WAYS[way](page));
  await page.getByRole("link", { name: "Back" }).click();
  const metas = await page.locator(".answer .meta").allInnerTexts();
  assert.equal(metas.length, 4);
  assert.match(metas[0], /You wrote.* the agent has not learned from it yet/);
  for (const meta of metas.slice(1)) assert.match(meta, /You (said|skipped).* nothing is learned from this/);
  await page.setViewportSize({ width: 390, height: 500 });
  const item = page.locator(".answer").last();
  const summary = item.locator("summary");
  await summary.scrollIntoViewIfNeeded();
  await summary.click();
  const box = item.locator("textarea");
  await until("the box has the focus", async () => box.evaluate((element) => element === document.activeElement));
  for (const part of [box, item.getByRole("button", { name: "Send the correction" })]) {
    assert.ok(await part.evaluate((element) => { const { top, bottom } = element.getBoundingClientRect(); return top >= 0 && bottom <= innerHeight; }), "it is on the screen");
  }
  await page.keyboard.type("considered");
  await page.keyboard.press("Control+Enter");
  await page.getByText("Corrected.").waitFor();
  await until("the focus is in the box again", async () => page.evaluate(() => document.activeElement.matches(".answer textarea") && document.activeElement.value === "considered"));
});

test("what the agent has learned from is not said to be taken back", async () => {
  const { page, context } = await person(browser);
  await openTeaching(server, page);
  const from = await execution(page);
  await page.fill("#text", "learnt at once");
  await page.keyboard.press("Control+Enter");
  await moved(page, from);
  await post(`${server.api}/resume`);
  const learnt = () => answers(server).then((rows) => rows.find((row) => row.text === "learnt at once" && row.used_in_update > 0));
  await until("the agent learns from it", learnt);
  await page.getByRole("button", { name: "Undo" }).click({ timeout: 3_000 }).catch(async () => {
    // It took longer than the offer lasts: what the button would have asked.
    const { answer: id } = await learnt();
    const told = await page.evaluate(async (url) => (await fetch(url, { method: "POST", body: "{}", headers: { "content-type": "application/json" } })).json(), `${server.api}/answers/${id}/undo`);
    assert.equal(told.undone, false);
  });
  await until("it is said", async () => /has learned from this one already|has learned your sentence|Thank you/.test(await page.locator("#notice").innerText()));
  if (/learned from this one/.test(await page.locator("#notice").innerText())) {
    assert.equal(await execution(page), from);
    assert.equal(await page.locator("#text").inputValue(), "learnt at once");
    await page.keyboard.press("End");
    await page.keyboard.type(", and better");
    await page.keyboard.press("Control+Enter");
    await moved(page, from);
    const rows = (await answers(server)).filter((row) => row.text.startsWith("learnt at once"));
    assert.deepEqual(standing(rows).map((row) => row.text), ["learnt at once, and better"]);
  }
  // Everything that was taken back in this file was left alone by the update.
  const back = (await answers(server)).filter((row) => row.withdrawn_at !== null);
  assert.ok(back.length >= 5 && back.every((row) => row.used_in_update === null));
  await context.close();
});
