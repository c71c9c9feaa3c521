// Data that come in by pages: a file of episodes that people then describe, and a corpus that a new run can name.

import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { after, before, test } from "node:test";
import { lively, openTeaching, person, startBrowser, startServer, until } from "./support.js";

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
});
after(async () => { await browser?.close(); await server?.stop(); });

const file = (name, text) => ({ name, mimeType: "application/octet-stream", buffer: Buffer.from(text) });
const rows = [
  { id: "a", request: "bring the red cup", text: "The agent took the cup.\nIt went into the kitchen." },
  { request: "replace c with w", pairs: [{ in: "castle", out: "wastle" }] },
];
const lines = (all) => all.map((row) => JSON.stringify(row)).join("\n");

test("episodes of an agent elsewhere are checked, brought in and described", async () => {
  const { page, errors, context } = await person(browser);
  await page.goto(`${server.address}export`);
  await page.getByRole("navigation", { name: "Data" }).getByRole("link", { name: "Bring in episodes" }).click();
  await page.getByLabel("File").setInputFiles(file("rows.jsonl", `${lines(rows)}\n{"request": "r"}\nnonsense`));
  await page.getByRole("button", { name: "Bring in", exact: true }).click();
  const bad = page.locator("#told .bad-rows tbody tr");
  await bad.first().waitFor();
  assert.deepEqual(await bad.locator(".number").allInnerTexts(), ["3", "4"]);
  assert.match(await page.locator("#told h2").innerText(), /Nothing came in/);

  await page.getByLabel("File").setInputFiles(file("rows.jsonl", lines(rows)));
  await page.getByRole("button", { name: "Check only" }).click();
  // The answer before says of two rows that they could come in, too.
  await page.getByRole("heading", { name: "The file can come in" }).waitFor();
  await page.getByLabel("File").setInputFiles(file("rows.jsonl", lines(rows)));
  await page.getByLabel("In a new run, teachers see the requests").check();
  await page.getByRole("button", { name: "Bring in", exact: true }).click();
  await page.getByRole("heading", { name: "2 episodes came in" }).waitFor();
  const run = new URL(page.url()).searchParams.get("run");
  assert.match(run, /^outside-/);

  // A second time, the file adds nothing to that run.
  await page.getByLabel("Into").selectOption(run);
  await page.getByLabel("File").setInputFiles(file("rows.jsonl", lines(rows)));
  await page.getByRole("button", { name: "Bring in", exact: true }).click();
  await page.getByText("2 rows had come in before and were passed over.").waitFor();

  await page.getByRole("link", { name: "Describe them" }).click();
  await page.waitForURL(/\/teach\//);
  await openTeaching({ address: server.address, run }, page);
  const shown = await page.locator("main").innerText();
  assert.match(shown, /castle|kitchen/);
  await page.fill("#text", "it did as I say");
  await page.locator("#send").click();
  await page.waitForFunction(() => document.querySelector("#text")?.value === "");
  const exported = await (await fetch(`${server.address}export/descriptions.jsonl?run=${run}`)).text();
  assert.match(exported, /it did as I say/);
  assert.deepEqual(errors.filter((error) => !/status of 422/.test(error)), []);
  await context.close();
});

test("a walk of an agent elsewhere plays, and is described", async () => {
  const { page, errors, context } = await person(browser);
  const made = await (await page.request.post(`${server.address}api/v1/outside-runs`, { data: {} })).json();
  const walk = { house: "house-3", heading: 2, viewpoint: "5", actions: [1, 1, 0] };
  const posted = await page.request.post(`${server.address}api/v1/runs/${made.id}/executions`, { data: { executions: [{ request: "go ahead", walk }] } });
  assert.equal(posted.status(), 201, await posted.text());
  await openTeaching({ address: server.address, run: made.id }, page);
  await page.locator("#execution .walk canvas, #execution .walk svg").first().waitFor();
  assert.ok(await page.locator("#execution .walk-words li").count() >= 4, "a line for the start, each move, and the end");
  await page.locator("#text").fill("walk straight on for two steps");
  await page.getByRole("button", { name: "Send" }).click();
  await until("the program has it", async () => {
    const said = await (await page.request.get(`${server.address}api/v1/runs/${made.id}/descriptions`)).json();
    return said.items.some((one) => one.text === "walk straight on for two steps");
  });
  assert.deepEqual(errors, []);
  await context.close();
});

test("descriptions are checked row by row, and then come in", async () => {
  const { page, errors, context } = await person(browser, { viewport: { width: 390, height: 844 } });
  await page.goto(`${server.address}export`);
  await page.getByRole("navigation", { name: "Data" }).getByRole("link", { name: "Bring in descriptions" }).click();
  const row = (episode, text) => ({ run_id: "brought", task: "regex", episode_id: episode, teacher_id: 7, description: text,
    view: { pairs: [{ in: "castle", out: "wastle" }] } });
  const good = [row(1, "replace c with w"), row(2, "swap the first letter for w")];
  await page.getByLabel("File, and its manifest").setInputFiles(file("mine.jsonl", lines([...good, { ...row(3, "x"), task: "chess" }, row(4, "")])));
  await page.getByRole("button", { name: "Check" }).click();
  const bad = page.locator("#told .bad-rows tbody tr");
  await bad.first().waitFor();
  assert.deepEqual(await bad.locator(".number").allInnerTexts(), ["3", "4"]);
  assert.match(await bad.first().innerText(), /there is no task "chess"/);
  assert.equal(await page.getByRole("button", { name: /Bring in \d/ }).count(), 0);

  await page.getByLabel("File, and its manifest").setInputFiles(file("mine.jsonl", lines(good)));
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByRole("heading", { name: "The file can come in" }).waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "nothing is wider than a phone");
  await page.getByLabel("Name of the run").fill("pilot-copy");
  await page.getByRole("button", { name: "Bring in 2 rows" }).click();
  await page.getByRole("heading", { name: "2 descriptions of 1 teacher came in" }).waitFor();
  await page.getByRole("link", { name: "pilot-copy" }).click();
  await page.waitForURL(/runs\/pilot-copy$/);
  const back = await (await page.request.get(`${server.address}api/v1/export/descriptions.jsonl?run=pilot-copy`)).text();
  assert.deepEqual(back.trim().split("\n").map((line) => JSON.parse(line).description), good.map((one) => one.description));
  assert.deepEqual(errors.filter((error) => !/status of 422/.test(error)), []);
  await context.close();
});

test("an upload says how much is sent, read and stored, and how long the rest takes", async () => {
  const { page, errors, context } = await person(browser, { viewport: { width: 390, height: 844 } });
  await page.goto(`${server.address}import/descriptions`);
  const row = (episode) => ({ run_id: "long", task: "regex", episode_id: episode, teacher_id: 7, description: "replace c with w".repeat(20),
    view: { pairs: [{ in: "castle", out: "wastle" }] } });
  const many = lines(Array.from({ length: 2_000 }, (_, n) => row(n)));
  // A slow line.
  const network = await context.newCDPSession(page);
  const speed = (uploadThroughput) => network.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput });
  await speed(150_000);
  const choose = () => page.getByLabel("File, and its manifest").setInputFiles(file("long.jsonl", many));
  const state = page.locator("form.upload .upload-state");
  const figures = page.locator(".work-progress span");
  const share = () => page.locator(".work-progress progress").evaluate((meter) => meter.position);
  await choose();
  await page.getByRole("button", { name: "Check" }).click();
  await until("a part is sent, and the page says when the rest will be", async () => (await share()) > 0 && (await share()) < 1 && /^\d+ kB of \d+ kB, about \d+ s left$/.test(await figures.innerText()));
  assert.equal(await state.innerText(), "Sending…");
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "nothing is wider than a phone");
  await page.getByRole("button", { name: "Cancel" }).click();
  assert.equal(await state.innerText(), "Cancelled; nothing was stored.");
  assert.equal(await page.locator(".work-progress").count(), 0);

  // The server reads, and then stores: the page asks how far that is.
  await speed(-1);
  // Answers wait until they are released.
  const waiting = [];
  network.on("Fetch.requestPaused", ({ requestId }) => waiting.push(requestId));
  await network.send("Fetch.enable", { patterns: [{ urlPattern: "*/import/descriptions*ticket=*", requestStage: "Response" }] });
  const release = async () => {
    await until("the server has answered", () => waiting.length > 0);
    await network.send("Fetch.continueRequest", { requestId: waiting.shift() });
  };
  let at = { stage: "going", step: "Reading the rows", unit: "bytes", done: 250_000, all: 800_000, seconds_left: 11.7 };
  await page.route("**/progress?*", (route) => route.fulfill({ json: at }));
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("250 kB of 800 kB, about 12 s left").waitFor();
  assert.equal(await state.innerText(), "Reading the rows…");
  assert.equal(await share(), 250 / 800);
  await release();
  await page.getByRole("heading", { name: "The file can come in" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "told", "the answer has the focus");
  at = { ...at, step: "Storing the rows", unit: "rows", done: 1_200, all: 2_000, seconds_left: 3 };
  await page.getByRole("button", { name: "Bring in 2,000 rows" }).click();
  await page.getByText("1,200 of 2,000 rows, about 3 s left").waitFor();
  assert.equal(await page.locator("form.sent .upload-state").innerText(), "Storing the rows…");
  await page.unroute("**/progress?*");
  await release();
  await page.getByRole("heading", { name: "2,000 descriptions of 1 teacher came in" }).waitFor();

  // A refusal leaves what was chosen, and so does a line that breaks.
  await network.send("Fetch.disable");
  await choose();
  await page.route("**/import/descriptions?ticket=*", (route) => route.abort());
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("The connection broke off, or the file has changed").waitFor();
  await page.unroute("**/import/descriptions?ticket=*");
  await page.route("**/import/descriptions?ticket=*", (route) => route.fulfill({ status: 507, contentType: "text/html", body: "<main><h1>Full</h1><p class=lead>The disk of the server is full.</p></main>" }));
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("The disk of the server is full.").waitFor();
  assert.equal(await page.getByLabel("File, and its manifest").evaluate((field) => field.files.length), 1);
  assert.deepEqual(errors.filter((error) => !/status of 507|ERR_FAILED/.test(error)), []);
  await context.close();
});

test("without a script a file comes in as well", async () => {
  const { page, context } = await person(browser, { javaScriptEnabled: false });
  await page.goto(`${server.address}import/descriptions`);
  const row = { run_id: "plain", task: "regex", episode_id: 1, teacher_id: 7, description: "replace c with w", view: { pairs: [{ in: "castle", out: "wastle" }] } };
  await page.getByLabel("File, and its manifest").setInputFiles(file("mine.jsonl", lines([row])));
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByRole("button", { name: "Bring in 1 row" }).click();
  await page.getByRole("heading", { name: "1 description of 1 teacher came in" }).waitFor();
  await context.close();
});

const pairs = [["moon", "mooc"], ["sun", "suc"], ["a", "a"], ["b", "b"], ["c", "c"]];
const item = { re: "()(n)()@c", instructions: [["n", "is", "c"]], examples: pairs };
const special = ["<PAD>", "<UNK>", "<", ">"];
const corpus = (words) => [
  { name: "corpus.json.gz", mimeType: "application/gzip", buffer: gzipSync(JSON.stringify({ train: [item, item], val: [item], test: [item] })) },
  file("vocab.json", JSON.stringify({ word: [...special, "n"], char: [...special, "a"], regex: [...special, "("] })),
  file("unlabeled_regexes.txt", "()(n)()@c\n"),
  file("words.txt", words),
];

test("a corpus is uploaded, named in a new run, and deleted", async () => {
  const { page, errors, context } = await person(browser, { viewport: { width: 390, height: 844 } });
  await page.goto(`${server.address}runs/new?preset=regex/paper`);
  await page.getByRole("link", { name: "Upload a corpus" }).click();
  const send = async (name, files) => {
    await page.getByLabel("Name").fill(name);
    await page.locator("select[name=kind]").selectOption("regex");
    await page.getByLabel("Files, or one archive").setInputFiles(files);
    await page.getByRole("button", { name: "Upload and check" }).click();
  };
  await send("my-words", corpus("moon\n\nsun\n"));
  await page.getByText("words.txt.gz: line 2 is empty").waitFor();
  assert.equal(await page.getByLabel("Name").inputValue(), "my-words", "what was typed is kept");
  assert.equal(await page.locator("#corpora").count(), 0);
  await send("my-words", corpus("moon\nsun\n"));
  await page.getByRole("heading", { name: "my-words is there" }).waitFor();
  assert.match(await page.locator("#corpora .facts").innerText(), /2 tasks to learn from/);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(wide, 0, "nothing is wider than a phone");

  await page.getByRole("link", { name: "New run with it" }).click();
  assert.match(await page.locator("[name='s.task.path']").inputValue(), /corpora\/my-words$/);
  await page.goto(`${server.address}runs/new?preset=regex/tiny`);
  const path = page.locator("[name='s.task.path']");
  if (!(await path.isVisible())) await page.locator("summary", { hasText: "task" }).first().click();
  await page.getByRole("link", { name: "my-words" }).click();
  assert.match(await path.inputValue(), /corpora\/my-words$/);
  assert.equal(await page.locator("[name='s.task.world']").inputValue(), "corpus");
  assert.ok(page.url().endsWith("preset=regex/tiny"), "the form stays, with what is typed in it");

  await page.goto(`${server.address}corpora`);
  await page.locator("#corpora summary").click();
  await page.getByRole("button", { name: "Delete its files for good" }).click();
  await page.getByText("The corpus my-words was removed.").waitFor();
  assert.equal(await page.locator("#corpora").count(), 0);
  assert.deepEqual(errors.filter((error) => !/status of 422/.test(error)), []);
  await context.close();
});
