// The comparison of a study's conditions: curves over three kinds of effort, their table, on wide screens and narrow ones.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PHONE, lively, person, post, startBrowser, startServer, until } from "./support.js";

let server;
let browser;

const sent = (path, cookie, fields) => fetch(`${server.address}${path}`, {
  method: "POST", redirect: "manual", body: new URLSearchParams(fields), headers: { cookie, accept: "text/html" },
});

// A teacher without a browser, who gives so many answers.
async function teaches(answers) {
  const page = await fetch(`${server.address}study/words`);
  const cookie = page.headers.get("set-cookie").split(";")[0];
  await sent("study/words/join", cookie, {});
  await sent("study/words/begin", cookie, {});
  const ask = async (path, body) => (await fetch(`${server.api}/${path}`, { method: "POST", body: JSON.stringify(body), headers: { cookie, "content-type": "application/json" } })).json();
  for (let given = 0; given < answers; given += 1) {
    const leased = await until("an execution", async () => { const offer = await ask("lease", {}); return offer.execution && offer; });
    const { execution, client_key } = leased;
    await ask("answers", { execution, client_key, kind: "described", text: "replace the last letter with an e", active_ms: 9000 });
  }
}

before(async () => {
  const people = ["--set", 'teacher.mode={"mode":"human"}', "--set", "schedule.evaluate_every=1"];
  [server, browser] = await Promise.all([startServer(...lively, ...people), startBrowser()]);
  const study = { id: "words", title: "Words of people", goal: "50", entry: "link", assignment: "teacher", judge: "researcher", preview: "off", currency: "EUR" };
  const made = await sent("studies", "", { ...study, [`use.${server.run}`]: "yes", [`arm.${server.run}`]: "descriptions" });
  assert.equal(made.status, 303, await made.text());
  await sent("studies/words/state", "", { state: "open" });
  await teaches(6);
  await until("the answers are learned from and tested", async () => {
    const found = await (await fetch(`${server.address}api/studies/words/comparison`)).json();
    return found.conditions[0].outcome.responses === 6;
  });
});
after(async () => { await browser?.close(); await server?.stop(); });

test("curves are drawn over minutes, responses and updates, and a table says the same", async () => {
  const { page, errors } = await person(browser);
  await page.goto(`${server.address}studies/words`);
  await page.getByRole("link", { name: "Compare with curves" }).click();
  await page.locator("#comparison[data-ready]").waitFor();
  const canvas = page.locator("#comparison canvas");
  for (const [label, words] of [["Responses", "over responses"], ["Updates", "over updates"], ["Active minutes", "over active minutes"]]) {
    await page.locator(".segments label", { hasText: label }).click();
    await until(`the axis is ${label}`, async () => (await canvas.getAttribute("aria-label")).includes(words));
  }
  // By keyboard alone, too.
  await page.locator(".segments input:checked").focus();
  await page.keyboard.press("ArrowRight");
  await until("the arrow changes the axis", async () => (await canvas.getAttribute("aria-label")).includes("over responses"));
  assert.match(await page.locator("#comparison .legend").innerText(), /descriptions\s+\d+\.\d% \(\d+%–\d+%\)/);
  await page.locator(".table-view summary").click();
  assert.ok(await page.locator(".table-view tbody tr").count() >= 2);
  const cells = await page.locator("#compared tbody tr").first().locator("th, td").allInnerTexts();
  assert.deepEqual(cells.slice(0, 4), ["descriptions", "1", "6", "0.9"]);
  assert.match(cells[6], /^(0\.000|[+−]\d)[\d.]*\s+[+−\d.]+ to [+−\d.]+$/);
  await page.locator("#theme").click();
  await until("the theme redraws it", async () => await canvas.count() === 1);
  assert.deepEqual(errors, []);
});

test("a phone shows it without scrolling the page sideways", async () => {
  const { page, errors } = await person(browser, PHONE);
  for (const path of ["studies/words", "studies/words/comparison"]) {
    await page.goto(`${server.address}${path}`);
    await page.locator("main").waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, path);
  }
  await page.locator("#comparison[data-ready]").waitFor();
  assert.deepEqual(errors, []);
});

test("without a script the tables are there", async () => {
  const { page } = await person(browser, { javaScriptEnabled: false });
  await page.goto(`${server.address}studies/words/comparison`);
  assert.ok(await page.locator("#compared tbody tr").count() >= 1);
  assert.equal(await page.locator("#comparison .segments").isVisible(), false, "nothing that needs a script is offered");
  assert.equal((await post(`${server.address}studies/words/comparison`)).status, 405);
});
