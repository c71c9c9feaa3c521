// The export page: rows by people among many are one click, filters are counted while they are chosen, and downloads hold what was counted.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { answers, openTeaching, person, startBrowser, startMadeUpServer, until } from "./support.js";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([startMadeUpServer("--teacher", "mixed"), startBrowser()]);
});
after(async () => { await browser?.close(); await server?.stop(); });

async function saved(page, press) {
  const [download] = await Promise.all([page.waitForEvent("download"), press()]);
  return { name: download.suggestedFilename(), bytes: await readFile(await download.path()) };
}

test("what people said is one click away, and counts agree with files", async () => {
  const { page, errors, context } = await person(browser);
  await openTeaching(server, page);
  for (const text of ["=the first letter is gone", "the last letter is gone"]) {
    await page.fill("#text", text);
    await page.locator("#send").click();
    await until("it is stored", async () => (await answers(server)).some((row) => row.text === text));
  }
  await page.goto(`${server.address}runs/${server.run}`);
  await page.getByRole("link", { name: "Export…" }).click();
  const row = page.locator("#parts tbody tr", { hasText: "all that people answered" });
  assert.equal(await row.locator(".number").innerText(), "2");
  const csv = await saved(page, () => row.getByRole("link", { name: "CSV" }).click());
  assert.equal(csv.name, "iliad-descriptions-1.csv");
  await until("the page says that it is whole", async () => (await page.locator("#downloads").innerText()).includes("CSV, By people: 2 rows, handed over"));
  assert.match(csv.bytes.toString(), /"'=the first letter is gone"/, "a spreadsheet does not execute it");

  const count = page.locator("#count");
  await page.locator("select[name=source]").selectOption("human");
  await until("people's rows are counted", async () => (await count.innerText()) === "2 rows");
  await page.locator("select[name=kind]").selectOption("skipped");
  await until("there is no skip", async () => (await count.innerText()) === "0 rows");
  await page.locator("select[name=kind]").selectOption("");
  await until("they are counted again", async () => (await count.innerText()) === "2 rows");
  assert.match(page.url(), /source=human/, "the address leads back");
  const lines = await saved(page, () => page.getByRole("button", { name: "JSON lines" }).click());
  const rows = lines.bytes.toString().split("\n").filter(Boolean).map((line) => JSON.parse(line));
  assert.deepEqual(rows.map((found) => found.description), ["=the first letter is gone", "the last letter is gone"]);

  await page.fill("input[name=name]", "letters");
  await page.keyboard.press("Enter");
  await page.fill("input[name=licence]", "CC-BY-4.0");
  const tar = await saved(page, () => page.getByRole("button", { name: "Data set (tar)" }).click());
  assert.equal(tar.name, "letters-1.tar");
  const text = tar.bytes.toString("latin1");
  for (const part of ["letters-1/README.md", "letters-1/data/train-00000.parquet", "license: cc-by-4.0", '"source": "human"']) {
    assert.ok(text.includes(part), part);
  }
  await until("it is whole", async () => /^Data set \(tar\): \d+ rows, handed over/.test(await page.locator("#downloads").innerText()));
  assert.ok(!page.url().includes("ticket"), "the address that leads back has no ticket");
  // A long download shows its progress and the time left.
  await page.route("**/progress?*", (route) => route.fulfill({ json: { stage: "going", step: "Handing over", unit: "rows", done: 1200, all: 5000, seconds_left: 11.7 } }));
  await saved(page, () => page.getByRole("button", { name: "CSV", exact: true }).click());
  await page.getByText("CSV: 1,200 of 5,000 rows, about 12 s left").waitFor();
  await page.unroute("**/progress?*");
  await page.locator("input[name=version]").fill("../2");
  await page.getByRole("button", { name: "CSV", exact: true }).click();
  assert.equal(await page.locator("input[name=version]:invalid").count(), 1, "what cannot be a version is said before anything is sent");
  assert.deepEqual(errors, []);
  await context.close();
});

test("the page counts without a script, and says what is wrong with a filter", async () => {
  const { page, context } = await person(browser, { javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
  await page.goto(`${server.address}export?run=${server.run}&source=human`);
  assert.equal(await page.locator("#count").innerText(), "2 rows");
  await page.locator("select[name=kind]").selectOption("skipped");
  await page.getByRole("button", { name: "Count" }).click();
  assert.equal(await page.locator("#count").innerText(), "0 rows");
  await page.goto(`${server.address}export?from=yesterday`);
  assert.match(await page.locator("#choose-problem").innerText(), /2026-01-31/);
  await context.close();
});
