// The main job, as a person does it.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { answers, execution, openTeaching, PATIENCE, person, PHONE, post, seenWhileTyping, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
before(async () => { [server, browser] = await Promise.all([startServer(), startBrowser()]); await post(`${server.api}/teacher`, { mode: "human" }); });
after(async () => { await browser?.close(); await server?.stop(); });

const thanked = (page) => page.waitForFunction(() => document.getElementById("notice").textContent.startsWith("Thank you"), null, { timeout: PATIENCE });
const moved = (page, from) => until("the next execution", async () => (await execution(page)) !== from);
const texts = async () => (await answers(server)).map((row) => row.text);

// Opens the page as a new person, runs the test, and looks at the console.
function asPerson(name, work, { options, expected = [] } = {}) {
  test(name, async () => {
    const someone = await person(browser, options);
    try {
      await openTeaching(server, someone.page, { script: options?.javaScriptEnabled });
      await work(someone.page, someone.context);
      const unexpected = someone.errors.filter((error) => !expected.some((pattern) => pattern.test(error)));
      assert.deepEqual(unexpected, [], "no errors in the console");
    } finally {
      await someone.context.close();
    }
  });
}

const OFFLINE = /ERR_INTERNET_DISCONNECTED|ERR_FAILED|net::/;

describe("teaching", () => {
  asPerson("read, describe, Ctrl+Enter, next", async (page) => {
    const first = await execution(page);
    assert.ok((await page.locator("#execution").innerText()).trim().length > 0, "there is something to read");
    assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "the box has the focus");
    await page.keyboard.type("main job “ü” 🙂");
    const begun = Date.now();
    await page.keyboard.press("Control+Enter");
    await moved(page, first);
    assert.ok(Date.now() - begun < 1500, "the next one is there at once");
    await thanked(page);
    assert.equal(await page.locator("#text").inputValue(), "");
    assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "the box has the focus again");
    const rows = (await answers(server)).filter((row) => row.text === "main job “ü” 🙂");
    assert.equal(rows.length, 1);
    assert.ok(rows[0].active_ms >= 0 && rows[0].active_ms < 60_000);
    assert.equal(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("iliad.draft")).length), 0);
  });

  asPerson("a double click stores once", async (page) => {
    await page.fill("#text", "double click");
    await page.locator("#send").dblclick();
    await thanked(page);
    await page.waitForTimeout(500);
    assert.equal((await texts()).filter((text) => text === "double click").length, 1);
    assert.equal(await page.locator("#problem").isVisible(), false);
  });

  asPerson("a draft survives a reload", async (page) => {
    const first = await execution(page);
    await page.keyboard.type("half a sen");
    await page.reload();
    await page.locator("#teach[data-ready]").waitFor();
    assert.equal(await execution(page), first, "the same execution comes back");
    assert.equal(await page.locator("#text").inputValue(), "half a sen");
  });

  asPerson("offline keeps the words, online sends them once", async (page, context) => {
    const first = await execution(page);
    await page.keyboard.type("through a tunnel");
    await context.setOffline(true);
    await page.keyboard.press("Control+Enter");
    await page.locator("#problem").waitFor();
    assert.equal(await page.locator("#text").inputValue(), "through a tunnel");
    assert.equal(await execution(page), first);
    await context.setOffline(false);
    await moved(page, first);
    await thanked(page);
    assert.equal((await texts()).filter((text) => text === "through a tunnel").length, 1);
  }, { expected: [OFFLINE] });

  asPerson("a lost reply does not double, and words changed since replace", async (page, context) => {
    const first = await execution(page);
    let lose = true;
    await context.route("**/answers", async (route) => {
      if (!lose || route.request().method() !== "POST") return route.continue();
      lose = false;
      await route.fetch();
      return route.abort("failed");
    });
    await page.keyboard.type("lost reply");
    await page.keyboard.press("Control+Enter");
    await page.locator("#problem").waitFor();
    await page.keyboard.type(", better");
    await page.keyboard.press("Control+Enter");
    await moved(page, first);
    const rows = (await answers(server)).filter((row) => row.text.startsWith("lost reply"));
    assert.deepEqual(rows.filter((row) => row.superseded_by === null).map((row) => row.text), ["lost reply, better"]);
  }, { expected: [OFFLINE] });

  // The page of a network that wants a sign-in first comes with the status of success.
  asPerson("a stranger's page in place of the answer is no answer", async (page, context) => {
    const stranger = (route) => route.fulfill({ status: 200, contentType: "text/html", body: "<h1>Welcome to the library</h1>" });
    await context.route("**/answers", stranger, { times: 1 });
    const first = await execution(page);
    await page.keyboard.type("not swallowed by the library");
    await page.keyboard.press("Control+Enter");
    await moved(page, first);
    await thanked(page);
    assert.equal((await texts()).filter((text) => text === "not swallowed by the library").length, 1);
  });

  asPerson("a failing server loses nothing", async (page, context) => {
    await context.route("**/answers", (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ code: "failed", detail: "Something broke on our side." }) }), { times: 1 });
    const first = await execution(page);
    await page.keyboard.type("kept through a failure");
    await page.keyboard.press("Control+Enter");
    await page.locator("#problem").waitFor();
    assert.match(await page.locator("#problem").innerText(), /broke on our side/);
    assert.equal(await page.locator("#text").inputValue(), "kept through a failure");
    await page.keyboard.press("Control+Enter");
    await moved(page, first);
    assert.equal((await texts()).filter((text) => text === "kept through a failure").length, 1);
  }, { expected: [/500/] });

  asPerson("two tabs, one answer", async (page, context) => {
    const other = await openTeaching(server, await context.newPage());
    const first = await execution(page);
    assert.equal(await execution(other), first, "a second tab shows what is in hand");
    await other.fill("#text", "from the second tab");
    await page.bringToFront();
    await page.fill("#text", "from the first tab");
    await page.locator("#send").click();
    await moved(page, first);
    await until("the other tab hears of it", async () => /another tab/.test(await other.locator("#notice").innerText()));
    assert.equal(await other.locator("#text").inputValue(), "from the second tab", "and its words stay");
    await other.bringToFront();
    await other.locator("#send").click();
    await moved(other, first);
    const rows = (await answers(server)).filter((row) => / (first|second) tab$/.test(row.text));
    assert.equal(rows.filter((row) => row.superseded_by === null).length, 1);
  });

  asPerson("back and correct", async (page) => {
    await page.fill("#text", "hasty");
    await page.keyboard.press("Control+Enter");
    await thanked(page);
    await page.getByRole("link", { name: "Back" }).click();
    await page.getByRole("heading", { name: "Your last answers" }).waitFor();
    // Nobody presses a key before the page's script is there; a test would.
    await page.waitForLoadState("load");
    await page.getByText("Correct it").first().click();
    await page.locator("textarea").first().fill("considered");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Corrected.").waitFor();
    const rows = (await answers(server)).filter((row) => ["hasty", "considered"].includes(row.text));
    const [old, corrected] = ["hasty", "considered"].map((text) => rows.find((row) => row.text === text));
    assert.equal(old.superseded_by, corrected.answer);
    await page.getByRole("link", { name: "Continue teaching" }).click();
    await page.locator("#text").waitFor();
  });

  asPerson("skip with a reason; unsent words are not lost", async (page) => {
    const first = await execution(page);
    await page.keyboard.type("these words were for nothing");
    await page.locator("#skip summary").click();
    await page.getByRole("button", { name: "Something looks broken" }).click();
    await moved(page, first);
    const row = (await answers(server)).find((row) => row.kind === "skipped" && row.text === "Something looks broken");
    assert.ok(row, "the reason is stored");
    assert.match(await page.locator("#unsent").innerText(), /these words were for nothing/);
    await page.getByRole("button", { name: "Put it in the box" }).click();
    assert.equal(await page.locator("#text").inputValue(), "these words were for nothing");
  });

  asPerson("nothing changed, cannot describe", async (page) => {
    for (const name of ["Nothing changed", "I can’t describe this"]) {
      const from = await execution(page);
      await page.getByRole("button", { name, exact: true }).click();
      // Where something did change, it is asked about.
      await until("it is asked, or goes on", async () => (await page.locator("#confirm").isVisible()) || (await execution(page)) !== from);
      if ((await execution(page)) === from) await page.locator("#confirm").click();
      await moved(page, from);
    }
    const kinds = (await answers(server)).map((row) => row.kind);
    assert.ok(kinds.includes("nothing_changed") && kinds.includes("cannot_describe"));
  });

  asPerson("an empty box is asked to be filled, a long text to be shortened", async (page) => {
    const first = await execution(page);
    await page.keyboard.press("Control+Enter");
    assert.match(await page.locator("#problem").innerText(), /Write a sentence first/);
    await page.fill("#text", "x".repeat(5001));
    await page.keyboard.press("Control+Enter");
    assert.match(await page.locator("#problem").innerText(), /longer than 5,000 characters/);
    assert.equal((await page.locator("#text").inputValue()).length, 5001);
    assert.equal(await execution(page), first);
  });

  asPerson("by keyboard alone", async (page) => {
    const first = await execution(page);
    await page.keyboard.type("typed\nin two lines");
    assert.equal(await page.locator("#text").inputValue(), "typed\nin two lines", "plain Enter is a line end");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await moved(page, first);
    const second = await execution(page);
    const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
    for (let i = 0; i < 12 && (await focused()) !== "Skip"; i += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator("#reason").waitFor();
    await until("the first reason has the focus", async () => (await focused()) === "I do not understand what happened");
    await page.keyboard.press("Escape");
    assert.equal(await focused(), "Skip");
    await page.keyboard.press("Enter");
    await until("the first reason has the focus", async () => (await focused()) === "I do not understand what happened");
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Shift+Tab");
    await until("leaving the menu closes it", async () => (await page.locator("#skip[open]").count()) === 0);
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Skip");
    await page.keyboard.press("Enter");
    await until("the first reason has the focus again", async () => (await focused()) === "I do not understand what happened");
    for (let i = 0; i < 6 && !(await page.evaluate(() => document.activeElement.id === "reason")); i += 1) await page.keyboard.press("Tab");
    await page.keyboard.type("tired of it");
    await page.keyboard.press("Enter");
    await moved(page, second);
    assert.ok((await answers(server)).some((row) => row.kind === "skipped" && row.text === "tired of it"));
  });

  asPerson("Enter in an input method's composition sends nothing", async (page, context) => {
    const first = await execution(page);
    const cdp = await context.newCDPSession(page);
    await cdp.send("Input.imeSetComposition", { text: "にほ", selectionStart: 2, selectionEnd: 2 });
    for (const extra of [{ isComposing: true }, { keyCode: 229 }]) {
      await page.locator("#text").evaluate((box, more) => {
        box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true, cancelable: true, ...more }));
      }, extra);
    }
    await cdp.send("Input.insertText", { text: "にほん" });
    await page.waitForTimeout(300);
    assert.equal(await execution(page), first);
    assert.equal(await page.locator("#text").inputValue(), "にほん");
    await page.keyboard.press("Control+Enter");
    await moved(page, first);
    assert.equal((await texts()).filter((text) => text === "にほん").length, 1);
  });

  asPerson("a lease that was lost is said, and the words can still be sent", async (page, context) => {
    await page.clock.install();
    await page.reload();
    await page.locator("#teach[data-ready]").waitFor();
    const first = await execution(page);
    await page.keyboard.type("slow thoughts");
    await context.route("**/renew", (route) => route.fulfill({ status: 409, contentType: "application/problem+json", body: JSON.stringify({ code: "lease-lost", detail: "Gone." }) }));
    await page.clock.fastForward("30:00");
    await page.keyboard.type("!");
    await until("it is said", async () => /given to somebody else/.test(await page.locator("#notice").innerText()));
    assert.equal(await page.locator("#text").inputValue(), "slow thoughts!");
    await context.unroute("**/renew");
    await page.keyboard.press("Control+Enter");
    await moved(page, first);
    const row = (await answers(server)).find((row) => row.text === "slow thoughts!");
    assert.ok(row && row.active_ms < 60_000, "half an hour away is not counted as work");
  }, { expected: [/409/] });

  // On a server of its own: it counts leases, and people of other tests come and go.
  test("leaving with an empty box gives it back; with words in the box it is kept", async () => {
    const own = await startServer();
    const { page, context, errors } = await person(browser);
    try {
      await post(`${own.api}/teacher`, { mode: "human" });
      await openTeaching(own, page);
      const leased = (n, what) => until(what, async () => (await (await fetch(own.api)).json()).pool.leased === n);
      const mine = await execution(page);
      await leased(2, "the next one is fetched ahead");
      await page.keyboard.type("not finished");
      await page.goto("about:blank");
      await leased(1, "the one fetched ahead is free");
      await openTeaching(own, page);
      assert.equal(await execution(page), mine);
      await leased(2, "the next one is fetched ahead again");
      await page.fill("#text", "");
      await page.goto("about:blank");
      await leased(0, "both are free");
      assert.deepEqual(errors, [], "no errors in the console");
    } finally {
      await context.close();
      await own.stop();
    }
  });

  asPerson("without a script the page teaches too", async (page) => {
    const first = await execution(page);
    await page.fill("#text", "plain form");
    await page.locator("#send").click();
    await page.getByText("Thank you.").waitFor();
    assert.notEqual(await execution(page), first);
    await page.locator("#skip summary").click();
    await page.locator("#reason").fill("no script, no mood");
    await page.getByRole("button", { name: "Skip", exact: true }).click();
    await page.getByText("Skipped.").waitFor();
    const all = await texts();
    assert.ok(all.includes("plain form") && all.includes("no script, no mood"));
  }, { options: { javaScriptEnabled: false } });

  asPerson("on a phone everything needed is above the fold", async (page) => {
    const bottom = await page.locator("#send").evaluate((button) => button.getBoundingClientRect().bottom);
    assert.ok(bottom < 700, `Send ends at ${bottom}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing to scroll sideways");
  }, { options: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } });

  asPerson("on a phone with its keyboard open the box and Send are seen together", async (page) => {
    assert.deepEqual(await seenWhileTyping(page), []);
    // Right after an answer, too, while Undo is offered: until the agent has learned, which a pause keeps it from.
    await post(`${server.api}/pause`);
    const from = await execution(page);
    await page.locator("#send").tap();
    await moved(page, from);
    await page.locator("#undo").waitFor();
    assert.deepEqual(await seenWhileTyping(page), []);
    await post(`${server.api}/resume`);
  }, { options: PHONE });

  asPerson("writing from right to left is shown in its order, and no browser translates it", async (page) => {
    const text = "החלף כל n ב c (סוף)";
    await page.fill("#text", text);
    assert.equal(await page.locator("#text").evaluate((box) => getComputedStyle(box).direction), "rtl");
    await page.keyboard.press("Control+Enter");
    await thanked(page);
    await page.getByRole("link", { name: "Back" }).click();
    const quote = page.locator(".said q", { hasText: text });
    assert.deepEqual(await quote.evaluate((q) => [getComputedStyle(q).direction, getComputedStyle(q).unicodeBidi, q.translate]), ["rtl", "isolate", false]);
    // Words of the agent and of people, wherever they stand on the teachers' pages.
    const translated = async () => page.locator("q, textarea, .edit-pairs, .execution li").evaluateAll((all) => all.filter((element) => element.translate).map((element) => element.outerHTML));
    assert.deepEqual(await translated(), []);
    for (const path of ["", "/guide"]) {
      await page.goto(`${server.address}teach/${server.run}${path}`);
      assert.deepEqual(await translated(), []);
    }
  });

  test("an empty queue is explained and ends by itself", async () => {
    await post(`${server.api}/teacher`, { mode: "simulated" });
    // Between two updates, that is: the run may be learning from what was typed before.
    const mode = async () => (await (await fetch(server.api)).json()).status.teacher.mode;
    await until("the teacher is another", async () => (await mode()) === "simulated");
    const { page, context } = await person(browser);
    await openTeaching(server, page).catch(() => {});
    for (let i = 0; i < 80 && !(await page.locator("#idle").isVisible()); i += 1) {
      const from = await execution(page);
      await page.getByRole("button", { name: "I can’t describe this" }).click();
      await until("it goes on", async () => (await page.locator("#idle").isVisible()) || (await execution(page)) !== from);
    }
    assert.match(await page.locator("#idle-text").innerText(), /simulated teacher/);
    await post(`${server.api}/teacher`, { mode: "human" });
    await page.locator("#stage").waitFor({ timeout: PATIENCE });
    await context.close();
  });
});
