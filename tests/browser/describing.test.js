// Describing when things go wrong, and what helps to describe: drafts, answers that wait for the connection, "It did what was
// asked", and previews.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answers, execution, openTeaching, PATIENCE, person, post, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer("--set", "pool.preview=random"), startBrowser()]);
  await post(`${server.api}/teacher`, { mode: "human" });
});
after(async () => { await browser?.close(); await server?.stop(); });

const OFFLINE = /ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_CONNECTION|net::/;
const thanked = (page) => page.waitForFunction(() => document.getElementById("notice").textContent.includes("Thank you"), null, { timeout: PATIENCE });
const moved = (page, from) => until("the next execution", async () => (await execution(page)) !== from);
const rowsOf = async (text) => (await answers(server)).filter((row) => row.text === text);
const saved = (page, text) => until(`the server has “${text}”`, () => page.evaluate(async ([api, wanted]) => {
  const drafts = await (await fetch(`${api}/drafts`)).json();
  return drafts.some((draft) => draft.text === wanted);
}, [new URL(server.api).pathname, text]));

// A person to whom previews are shown, or not: chance decides at the first visit.
async function someone({ previews = false, options } = {}) {
  for (;;) {
    const found = await person(browser, options);
    await openTeaching(server, found.page);
    if (await found.page.locator("#teach").evaluate((teach) => "previews" in teach.dataset) === previews) return found;
    await found.context.close();
  }
}

function clean(errors, expected = []) {
  assert.deepEqual(errors.filter((error) => !expected.some((pattern) => pattern.test(error))), [], "no errors in the console");
}

test("what is typed survives a restart of the server, and comes back in another browser", async () => {
  const { page, context, errors } = await someone();
  const first = await execution(page);
  await page.keyboard.type("half a sentence");
  await saved(page, "half a sentence");
  await server.restart(() => page.keyboard.type(", and more"));
  await saved(page, "half a sentence, and more");
  const other = await person(browser);
  await other.context.addCookies(await context.cookies());
  await openTeaching(server, other.page);
  assert.equal(await execution(other.page), first, "the same teacher gets the same execution");
  assert.equal(await other.page.locator("#text").inputValue(), "half a sentence, and more");
  // An addition of the other browser is there when this one comes back.
  await other.page.locator("#text").press("End");
  await other.page.keyboard.type(" there");
  await saved(other.page, "half a sentence, and more there");
  await page.reload();
  await page.locator("#teach[data-ready]").waitFor();
  assert.equal(await page.locator("#text").inputValue(), "half a sentence, and more there");
  await page.keyboard.press("Control+Enter");
  await moved(page, first);
  const drafts = await page.evaluate(async (api) => (await fetch(`${api}/drafts`)).json(), new URL(server.api).pathname);
  assert.deepEqual(drafts, [], "what was sent is no draft");
  assert.equal((await rowsOf("half a sentence, and more there")).length, 1);
  clean(errors, [OFFLINE]);
  clean(other.errors, [OFFLINE]);
  await context.close();
  await other.context.close();
});

test("answers wait for the connection, in order, and go once", async () => {
  const { page, context, errors } = await someone();
  const first = await execution(page);
  await page.keyboard.type("first in the tunnel");
  // The next one is there already when the connection goes.
  await page.waitForFunction(() => performance.getEntriesByType("resource").some(({ name }) => name.endsWith("/lease")));
  await page.waitForTimeout(500);
  await context.setOffline(true);
  await page.keyboard.press("Control+Enter");
  await until("it is said", async () => /Not sent yet: no connection\. It goes as soon as there is one\./.test(await page.locator("#problem").innerText()));
  assert.equal(await page.locator("#text").inputValue(), "first in the tunnel");
  await page.locator("#go-on-next").click();
  await moved(page, first);
  assert.equal(await page.locator("#text").inputValue(), "");
  assert.match(await page.locator("#queued").innerText(), /One answer is not sent yet/);
  assert.equal(await page.locator("#unsent").isVisible(), false, "it is no unsent sentence about this one");
  await page.keyboard.type("second in the tunnel");
  await page.keyboard.press("Control+Enter");
  await until("it is said", async () => /Not sent yet/.test(await page.locator("#problem").innerText()));
  await context.setOffline(false);
  await until("both are stored", async () => (await rowsOf("second in the tunnel")).length > 0);
  const [one] = await rowsOf("first in the tunnel");
  const [two] = await rowsOf("second in the tunnel");
  assert.ok(one.answer < two.answer, "in order");
  await until("nothing waits", async () => !(await page.locator("#queued").isVisible()) && !(await page.locator("#problem").isVisible()));
  assert.equal((await rowsOf("first in the tunnel")).length + (await rowsOf("second in the tunnel")).length, 2);
  assert.ok(one.idle_ms >= 0 && one.active_ms >= 0);
  clean(errors, [OFFLINE]);
  await context.close();
});

test("an answer that waits outlives the page", async () => {
  const { page, context, errors } = await someone();
  await page.keyboard.type("closed laptop");
  await until("it is typed", async () => (await page.locator("#text").inputValue()) === "closed laptop");
  let tries = 0;
  await context.route("**/answers", (route) => { tries += 1; return route.abort("failed"); });
  await page.keyboard.press("Control+Enter");
  await until("it is tried", () => tries > 0);
  await until("it is said", async () => /Not sent yet/.test(await page.locator("#problem").innerText()));
  await page.goto("about:blank");
  await context.unroute("**/answers");
  await openTeaching(server, page);
  await until("it is stored", async () => (await rowsOf("closed laptop")).length === 1);
  await thanked(page);
  assert.equal(await page.locator("#text").inputValue(), "");
  clean(errors, [OFFLINE]);
  await context.close();
});

test("an answer that finds the server's disk full goes by itself once there is room", async () => {
  const { page, context, errors } = await someone();
  const first = await execution(page);
  let refused = 0;
  await context.route("**/answers", (route) => {
    refused += 1;
    return route.fulfill({ status: 507, contentType: "application/problem+json", body: JSON.stringify({ code: "no-room", detail: "There is no room for this." }) });
  });
  await page.keyboard.type("no room yet");
  await page.keyboard.press("Control+Enter");
  await until("it is said", async () => /no room for this. Your words are kept and are sent/.test(await page.locator("#problem").innerText()));
  assert.equal(await page.locator("#text").inputValue(), "no room yet");
  assert.deepEqual([await execution(page), (await rowsOf("no room yet")).length], [first, 0]);
  await until("the page tries again by itself", () => refused > 1);
  await context.unroute("**/answers");
  await moved(page, first);
  assert.equal((await rowsOf("no room yet")).length, 1);
  clean(errors, [/507/]);
  await context.close();
});

test("the dashboard says how many answers the agent has not learned from yet", async () => {
  const { page, context } = await someone();
  await post(`${server.api}/pause`, {});
  const dashboard = await context.newPage();
  await dashboard.goto(`${server.address}runs/${server.run}`);
  const waiting = () => dashboard.locator("#t-waiting").innerText();
  const from = await execution(page);
  await page.keyboard.type("learn this later");
  await page.keyboard.press("Control+Enter");
  await moved(page, from);
  await until("it is told", async () => /^\d+ more stored, not learned from yet$/.test(await waiting()));
  await post(`${server.api}/resume`, {});
  await until("all are learned from", async () => (await waiting()) === "");
  await context.close();
});

test("it did what was asked, by keyboard", async () => {
  const { page, context, errors } = await someone();
  const first = await execution(page);
  assert.equal(await page.locator("#asked").isVisible(), false, "the request is hidden");
  await page.locator("#look").focus();
  await page.keyboard.press("Enter");
  await page.locator("#fulfilling").waitFor();
  const request = await page.locator("#fulfilling-words").innerText();
  assert.ok(request.length > 3);
  assert.ok(await page.locator("#fulfilled").evaluate((button) => button === document.activeElement));
  // No: it is described, and the request stays to be seen.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("#fulfilling").isVisible(), false);
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement));
  assert.equal(await page.locator("#asked-words").innerText(), request);
  // Yes, after all.
  await page.locator("#look").click();
  await page.locator("#fulfilled").click();
  await moved(page, first);
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "the box has the focus");
  assert.equal(await page.locator("#asked").isVisible(), false, "the next request is hidden again");
  const [row] = (await answers(server)).filter((row) => row.fulfilled);
  assert.deepEqual([row.text, row.kind, row.request_shown], [request, "described", true]);
  clean(errors);
  await context.close();
});

test("a preview shows what the agent would do; both versions are kept", async () => {
  const { page, context, errors } = await someone({ previews: true });
  const first = await execution(page);
  await page.keyboard.type("remove the first");
  await page.keyboard.press("Control+Enter");
  await page.locator("#preview").waitFor();
  assert.ok((await page.locator("#preview-drawing").innerText()).trim().length > 0);
  assert.equal(await execution(page), first, "nothing is sent yet");
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement));
  await page.keyboard.type(" letter");
  await page.locator("#preview-again").click();
  await page.locator("#preview-again-line").waitFor({ state: "hidden" });
  await page.keyboard.press("Control+Enter");
  await moved(page, first);
  assert.equal(await page.locator("#preview").isVisible(), false);
  const [row] = await rowsOf("remove the first letter");
  assert.deepEqual([row.first_text, row.preview_shown, row.preview_arm], ["remove the first", true, true]);
  clean(errors);
  await context.close();
  const plain = await someone();
  const from = await execution(plain.page);
  await plain.page.keyboard.type("without a preview");
  await plain.page.keyboard.press("Control+Enter");
  await moved(plain.page, from);
  const [without] = await rowsOf("without a preview");
  assert.deepEqual([without.first_text, without.preview_shown, without.preview_arm], [null, false, false]);
  await plain.context.close();
});

test("Arabic and Hebrew run from right to left wherever they are shown", async () => {
  const { page, context, errors } = await someone();
  for (const text of ["احذف أول حرفين n", "מחק את שתי האותיות הראשונות n"]) {
    const from = await execution(page);
    await page.fill("#text", text);
    assert.equal(await page.locator("#text").evaluate((box) => getComputedStyle(box).direction), "rtl");
    await page.keyboard.press("Control+Enter");
    await moved(page, from);
    assert.equal(await page.locator("#text").evaluate((box) => getComputedStyle(box).direction), "ltr", "the empty box is English again");
    await until("it is shown", async () => (await page.locator("#waiting-text").innerText()) === text || (await page.locator("#latest-text").innerText()) === text);
    for (const id of ["waiting-text", "latest-text", "unsent-text", "asked-words", "fulfilling-words"]) {
      assert.equal(await page.locator(`#${id}`).getAttribute("dir"), "auto", id);
    }
  }
  await page.getByRole("link", { name: "Back" }).click();
  assert.equal(await page.locator(".said q").first().evaluate((quote) => getComputedStyle(quote).direction), "rtl");
  clean(errors);
  await context.close();
});
