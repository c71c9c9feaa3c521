// The researcher's page.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { lively, PATIENCE, person, post, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
let page;
let errors;
before(async () => {
  // Updates of the default preset take seconds where two cores have other work, and nearly every test here waits for some.
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
  ({ page, errors } = await person(browser));
  await page.goto(`${server.address}runs/${server.run}`);
  await until("it is live", async () => (await page.locator("#link-state").innerText()) === "Live");
  await until("it learns", async () => (await (await fetch(server.api)).json()).status.state === "running");
});
after(async () => { await browser?.close(); await server?.stop(); });

const points = () => page.evaluate(() => document.querySelectorAll("#points tbody tr").length);
const state = async () => (await (await fetch(server.api)).json()).status;

test("the teacher is switched and points appear without a reload", async () => {
  await page.evaluate(() => { window.sameDocument = true; });
  await page.getByText("The curves as a table").click();
  await page.getByRole("radio", { name: "Simulated" }).check();
  await until("the run has switched", async () => (await state()).teacher.mode === "simulated");
  await until("points appear", async () => (await points()) >= 2);
  const before = await page.locator("#t-episodes").innerText();
  await until("figures move", async () => (await page.locator("#t-episodes").innerText()) !== before);
  assert.ok(await page.evaluate(() => window.sameDocument));
  assert.ok(await page.locator("#charts canvas").count() >= 4);
  await page.getByRole("radio", { name: "Mixed" }).check();
  await page.locator("#share").fill("60");
  await until("the share is taken", async () => (await state()).teacher.share === 0.6);
});

test("episodes open and stay under the reader", async () => {
  const row = page.locator("#episodes > li").first();
  await row.waitFor({ timeout: PATIENCE });
  const number = await row.getAttribute("data-episode");
  const same = page.locator(`#episodes > li[data-episode="${number}"]`);
  await same.locator("summary").click();
  await same.locator("dl").waitFor();
  await until("newer ones wait", async () => page.locator("#episodes-new").isVisible());
  assert.ok(await same.locator("details[open]").isVisible());
  await page.locator("#episodes-new").click();
  assert.equal(await page.locator("#episodes details[open]").count(), 0);
});

test("pause and resume, by button and by key, and no key while typing", async () => {
  await page.locator("#pause").click();
  await until("it is paused", async () => (await state()).state === "paused");
  await until("the page says so", async () => (await page.locator("#pause").innerText()) === "Resume");
  await page.locator("#request").fill("");
  await page.locator("#request").pressSequentially("pcx?");
  assert.equal(await page.locator("#request").inputValue(), "pcx?");
  await page.waitForTimeout(300);
  assert.equal((await state()).state, "paused");
  assert.equal(await page.locator("#shortcuts").isVisible(), false);
  await page.locator("h1").click();
  await page.keyboard.press("p");
  await until("it goes on", async () => (await state()).state === "running");
  await page.keyboard.press("?");
  await page.locator("#shortcuts").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("x");
  assert.equal(await page.locator("#axis").inputValue(), "descriptions");
});

test("the agent is tried, a checkpoint is written", async () => {
  await page.locator("#request").fill("add an e at the end");
  await page.locator("#try-go").click();
  await page.locator("#tried .drawing").waitFor({ timeout: PATIENCE });
  assert.match(await page.locator("#tried").innerText(), /after [\d,]+ updates/);
  assert.match(await page.locator("#tried .would").innerText(), /^It would .+\.$/);
  await page.locator("#checkpoint").click();
  await page.locator("#checkpoints tbody tr").first().waitFor({ timeout: PATIENCE });
});

test("a server that goes is noticed, and its return too", async () => {
  await page.evaluate(() => { window.sameDocument = true; });
  await server.restart(() => until("the loss is said", async () => /Connection lost/.test(await page.locator("#link-state").innerText())));
  await until("it is live again", async () => (await page.locator("#link-state").innerText()) === "Live");
  await until("it learns again", async () => (await state()).state === "running");
  assert.ok(await page.evaluate(() => window.sameDocument));
});

test("stopping asks first", async () => {
  await page.locator("#stop").click();
  await page.getByRole("button", { name: "Keep it running" }).click();
  await page.waitForTimeout(300);
  assert.notEqual((await state()).state, "stopped");
  await page.locator("#stop").click();
  await page.getByRole("button", { name: "Stop it" }).click();
  await until("it has ended", async () => (await state()).state === "stopped");
  await until("the page says so", async () => (await page.locator("#run-word").innerText()) === "Ended");
  const late = await post(`${server.api}/pause`);
  assert.equal(late.status, 409);
});

test("an ended run goes on where it stopped", async () => {
  const { update, descriptions_simulated: simulated } = await state();
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await until("it learns again", async () => (await state()).state === "running");
  await until("the page is live", async () => (await page.locator("#link-state").innerText()) === "Live");
  await page.locator("#pause").waitFor({ timeout: PATIENCE });
  assert.equal(await page.locator("#resume").isVisible(), false);
  const now = await state();
  assert.ok(now.update >= update && now.descriptions_simulated >= simulated, "nothing that it learned is gone");
});

test("a new run is started by keyboard, laid over the other, and has a log", async () => {
  await post(`${server.api}/pause`);
  await page.goto(`${server.address}runs`);
  await page.getByRole("radio", { name: /^tiny.*two minutes/ }).focus();
  await page.keyboard.press("Space");
  assert.equal(await page.getByRole("radio", { name: "Simulated", exact: true }).isChecked(), true, "the preset brings its teacher");
  await page.locator("#seed").focus();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("77");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\/regex-tiny-/);
  await page.getByText("Preset tiny · seed 77").waitFor();
  await until("the log has its first lines", async () => (await page.locator("#log li").count()) > 0);
  await page.locator("#overlay option").nth(1).waitFor({ state: "attached" });
  await until("it has been tested", async () => (await page.locator("#t-best").innerText()).includes("%"));
  await page.locator("#overlay").selectOption(server.run);
  await until("it is in the legend", async () => (await page.locator("#charts .legend").first().innerText()).includes(`${server.run}: validation`));
  assert.deepEqual(errors.filter((error) => !/net::ERR_/.test(error)), []);
});
