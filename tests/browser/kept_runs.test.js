// Runs are named, found, archived and deleted; a finished one is tried, measured and continued; a new one is started from the form of
// all settings.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LIVELY, lively, PATIENCE, person, post, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
let page;
let errors;
let finished;
const json = async (path) => (await fetch(`${server.address}${path}`)).json();
const short = LIVELY.filter((setting) => !setting.startsWith("schedule.episodes")).concat("schedule.episodes=16", "schedule.evaluate_every=1", "schedule.checkpoint_every=1");

before(async () => {
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
  ({ page, errors } = await person(browser));
  const reply = await post(`${server.address}api/runs`, { preset: "regex/tiny", seed: 9, teacher: { mode: "simulated" }, set: short });
  finished = (await reply.json()).id;
  await until("it has ended", async () => (await json(`api/runs/${finished}`)).status.state === "stopped");
  await post(`${server.api}/pause`);
});
after(async () => { await browser?.close(); await server?.stop(); });

test("a run is named and tagged on its page and in the list, found and archived", async () => {
  await page.goto(`${server.address}runs/${finished}`);
  await page.getByText("Name, notes, tags").click();
  await page.locator("#label input[name=name]").fill("The short one");
  await page.locator("#label input[name=tags]").fill("pilot, Small");
  await page.locator("#label textarea").fill("It is over soon.\nVery soon.");
  await page.locator("#label button").click();
  await page.locator("#run-title", { hasText: "The short one" }).waitFor();
  assert.match(await page.locator(".notes").innerText(), /Very soon\./);
  await page.goto(`${server.address}runs`);
  await page.getByRole("button", { name: "Change The short one" }).click();
  await page.locator(".row-menu:popover-open input[name=tags]").fill("pilot");
  await page.locator(".row-menu:popover-open").getByRole("button", { name: "Save" }).click();
  await page.locator("#runs").waitFor();
  await page.getByRole("searchbox", { name: "Search runs" }).fill("short");
  await page.keyboard.press("Enter");
  await page.waitForURL(/[?&]q=short/);
  assert.equal(await page.locator("#runs tbody tr").count(), 1);
  await page.goto(`${server.address}runs`);
  await page.getByRole("combobox", { name: "Tag" }).selectOption("pilot");
  await page.waitForURL(/[?&]tag=pilot$/);
  assert.equal(await page.locator("#runs tbody tr").count(), 1);
  await page.getByRole("button", { name: "Change The short one" }).click();
  await page.locator(".row-menu:popover-open").getByRole("button", { name: "Archive" }).click();
  await page.getByRole("checkbox", { name: /Archived, too/ }).check();
  await page.waitForURL(/archived=yes/);
  await page.getByRole("link", { name: "The short one", exact: true }).waitFor();
});

test("a finished run is tried and measured, and its best checkpoint continues as another run", async () => {
  await page.goto(`${server.address}runs/${finished}`);
  await page.locator("#after-end").waitFor();
  assert.equal(await page.locator("#teach-link").isVisible(), false);
  await page.locator("#request").fill("add an e at the end");
  await page.locator("#try-go").click();
  await page.locator("#tried .drawing").waitFor({ timeout: PATIENCE });
  await until("checkpoints can be chosen", async () => await page.locator("#try-checkpoint option").count() >= 2);
  await page.locator("#evaluate-limit").fill("8");
  await page.getByRole("button", { name: "Evaluate ★ best" }).click();
  await until("it is measured", async () => /of 8 /.test(await page.locator("#evaluations").innerText()));
  const under = { checkpoint: "best.safetensors", split: "test", limit: 0, done: 256, tasks: 500, seconds_left: 11.7, failed: null };
  await page.route("**/evaluations", (route) => route.fulfill({ json: { pending: [under], done: [] } }));
  await page.reload();
  await page.getByText("★ best on test tasks: 256 of 500 tasks, about 12 s left").waitFor();
  assert.equal(await page.locator("#evaluations progress").getAttribute("value"), "256");
  await page.unroute("**/evaluations");
  const link = page.getByRole("link", { name: "Download ★ best" });
  const file = await fetch(new URL(await link.getAttribute("href"), server.address));
  assert.equal(file.status, 200);
  const best = (await json(`api/runs/${finished}/checkpoints`)).find((row) => row.name === "best.safetensors");
  assert.equal((await file.arrayBuffer()).byteLength, best.bytes);
  await page.locator("#continue-best").click();
  await page.getByText("Continue as another run").waitFor();
  assert.equal(await page.locator("[data-key='model.hidden']").count(), 0, "the checkpoint decides the model");
  await page.locator("#setting-words").fill("schedule.episodes");
  await page.locator("[id='s.schedule.episodes']").fill("32");
  await page.locator("[id='s.algorithm.replay']").evaluate((input) => { input.value = "1"; input.dispatchEvent(new Event("input", { bubbles: true })); });
  await until("it can start", async () => (await page.locator("#start-state").innerText()) === "It can start.");
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByText(/It continues/).waitFor();
  const id = new URL(page.url()).pathname.split("/").pop();
  await until("it has ended", async () => (await json(`api/runs/${id}`)).status.state === "stopped");
  assert.equal((await json(`api/runs/${id}`)).status.episodes, 32);
  await until("the page offers to go on", () => page.locator("#extend").isVisible());
  await page.locator("#extend input").fill("48");
  await page.locator("#extend-go").click();
  await until("it went on", async () => (await json(`api/runs/${id}`)).status.episodes === 48);
});

test("all settings are in one form, which says at once what is wrong", async () => {
  await page.goto(`${server.address}runs/new?preset=regex/tiny`);
  assert.equal(await page.locator("#setting-count").innerText(), "Everything is as the preset has it.");
  await page.locator("#setting-words").fill("mixing weight lambda");
  await page.locator("#setting-words").fill("algorithm.mixing.lambda");
  const lambda = page.locator("[data-key='algorithm.mixing.lambda']");
  assert.match(await lambda.innerText(), /paper: 0\.5/);
  await page.locator("[id='s.algorithm.mixing.lambda']").fill("2");
  await until("it is said", async () => /lie between 0 and 1/.test(await lambda.innerText()));
  assert.match(await lambda.getAttribute("class"), /differs/);
  await page.locator("[id='s.algorithm.mixing.lambda']").fill("0.25");
  await until("it is right", async () => (await page.locator("#start-state").innerText()) === "It can start.");
  assert.equal(await page.locator("#setting-count").innerText(), "1 setting differs from the preset.");
  // A preset that needs data asks for its folder.
  await page.goto(`${server.address}runs`);
  await page.getByRole("link", { name: "Name it" }).first().click();
  await page.locator(".setting.wrong [id='s.task.path']").waitFor();
});

test("settings go out as a file and come in again", async () => {
  const text = await (await fetch(`${server.address}runs/${finished}/settings.toml`)).text();
  assert.match(text, /^family = "regex"/m);
  await page.goto(`${server.address}runs/new`);
  await page.getByText("Read the settings from a file").click();
  await page.locator("#settings-file").setInputFiles({ name: "a.toml", mimeType: "application/toml", buffer: Buffer.from(text.replace(/^seed = \d+$/m, "seed = 4242")) });
  await until("it is read", async () => (await page.locator("#settings-text").inputValue()).length > 100);
  await page.getByRole("button", { name: "Fill the form" }).click();
  await page.locator("#seed").waitFor();
  assert.equal(await page.locator("#seed").inputValue(), "4242");
  assert.equal(await page.locator("[id='s.schedule.episodes']").inputValue(), "16");
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByText("seed 4242").first().waitFor();
});

test("from an episode one comes to what its description changed", async () => {
  await page.goto(`${server.address}runs/${finished}`);
  const row = page.locator("#episodes > li", { has: page.getByRole("link", { name: "What it changed", includeHidden: true }) }).first();
  await row.locator("summary").click();
  const episode = await row.getAttribute("data-episode");
  await row.getByRole("link", { name: "What it changed" }).click();
  await page.locator("h1", { hasText: "Learned in update" }).waitFor();
  assert.equal(await page.locator(`.learned .card:has(#episode-${episode})`).count(), 1);
  assert.match(page.url(), new RegExp(`#episode-${episode}$`));
});

test("a deleted run waits in the trash, and can be put back", async () => {
  await page.goto(`${server.address}runs/${finished}`);
  await page.getByText("Name, notes, tags").click();
  await page.locator("#delete").click();
  await page.getByText("What is lost").waitFor();
  assert.match(await page.locator(".losses").innerText(), /checkpoints?, [\d.]+ [kM]B/);
  await page.getByRole("button", { name: "Move it to the trash" }).click();
  await page.getByRole("heading", { name: "Trash" }).waitFor();
  await page.getByRole("button", { name: "Put back The short one" }).click();
  await page.locator("#run-title", { hasText: "The short one" }).waitFor();
});

test("the trash is emptied after it has said what is lost", async () => {
  await page.goto(`${server.address}runs/${finished}/delete`);
  await page.getByRole("button", { name: "Move it to the trash" }).click();
  await page.getByRole("link", { name: "Empty the trash now…" }).click();
  await page.getByRole("heading", { name: "Empty the trash now?" }).waitFor();
  assert.match(await page.locator(".losses").innerText(), /of [\d,]+ answers in all[^]*checkpoints?, [\d.]+ [kM]B/);
  assert.match(await page.locator("#lost").innerText(), /The short one/);
  await page.getByRole("button", { name: "Remove for good" }).click();
  assert.match(page.url(), /trash\/empty$/, "nothing goes without the tick");
  await page.getByRole("checkbox", { name: "Remove it for good" }).check();
  await page.getByRole("button", { name: "Remove for good" }).click();
  await page.getByText("1 run was removed for good.").waitFor();
  assert.equal((await fetch(`${server.address}api/v1/runs/${finished}`)).status, 404);
  assert.deepEqual(errors, []);
});
