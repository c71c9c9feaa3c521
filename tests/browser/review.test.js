// Two teachers describe the same execution, a reviewer decides between them by keyboard, and a teacher withdraws an answer.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { execution, PATIENCE, person, post, said, startBrowser, startServer, until } from "./support.js";

let server;
let browser;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  await post(`${server.api}/teacher`, { mode: "human" });
  const form = { title: "Two of each", id: "two", goal: "2", overlap: "2", overlap_share: "100", entry: "link", assignment: "teacher", [`use.${server.run}`]: "yes" };
  await send("studies", form);
  await send("studies/two/state", { state: "open" });
});
after(async () => { await browser?.close(); await server?.stop(); });

async function send(path, fields) {
  const reply = await fetch(`${server.address}${path}`, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" });
  assert.equal(reply.status, 303, await reply.text());
}

// A teacher who has joined: on the page where one describes.
async function teacher() {
  const someone = await person(browser);
  const { page } = someone;
  await page.goto(`${server.address}study/two`);
  await page.getByRole("button", { name: "Take part" }).click();
  await page.getByRole("button", { name: "Start teaching" }).first().click();
  await page.locator("#teach[data-ready]").waitFor({ timeout: PATIENCE });
  return someone;
}

async function describe(page, text) {
  const from = await execution(page);
  await page.fill("#text", text);
  await page.locator("#send").click();
  await until("it is stored", async () => (await execution(page).catch(() => "")) !== from);
  return from;
}

const rows = async () => {
  const text = await (await fetch(`${server.address}runs/${server.run}/export.jsonl`)).text();
  return text.split("\n").filter(Boolean).map((line) => said(JSON.parse(line)));
};

test("two teachers, one execution, and a reviewer who decides by keyboard", async () => {
  const [ada, eve, reviewer] = [await teacher(), await teacher(), await person(browser)];
  const first = await describe(ada.page, "the first letter is gone");
  assert.equal(await execution(eve.page), first, "both are asked about the same execution");
  await describe(eve.page, "x");
  const { page } = reviewer;
  await page.goto(`${server.address}studies/two/review`);
  const cards = page.locator(".review-card");
  assert.equal(await cards.count(), 2);
  assert.match(await page.locator("#review-counts").textContent(), /2 to review/);
  await page.keyboard.press("?");
  assert.ok(await page.locator("#keys").isVisible(), "? shows the keys");
  await page.keyboard.press("j");
  await until("the first answer has the focus", () => cards.nth(0).evaluate((card) => card === document.activeElement));
  await page.keyboard.press("a");
  await until("it is accepted", async () => (await cards.nth(0).getAttribute("data-state")) === "accepted");
  await until("the next answer has the focus", () => cards.nth(1).evaluate((card) => card === document.activeElement));
  // Keys in a field are words.
  await page.keyboard.press("r");
  await page.keyboard.type("a jar: says nothing");
  await page.keyboard.press("Enter");
  await until("it is rejected", async () => (await cards.nth(1).getAttribute("data-state")) === "rejected");
  assert.match(await cards.nth(1).locator("[data-review]").textContent(), /a jar: says nothing/);
  // The words of the other teacher are chosen.
  await page.keyboard.press("1");
  const decided = cards.nth(1).locator("[data-adjudicated]");
  await decided.waitFor();
  assert.match(await decided.textContent(), /the first letter is gone/);
  assert.match(await cards.nth(0).locator("[data-adjudicated]").textContent(), /the first letter is gone/);
  // Words of one's own take their place.
  await page.keyboard.press("w");
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.type("It removed the first letter.");
  await page.keyboard.press("ControlOrMeta+Enter");
  await until("it is decided", async () => /It removed the first letter\./.test(await decided.textContent()));
  const [a, e] = await rows();
  assert.deepEqual([a.review_state, e.review_state], ["accepted", "rejected"]);
  assert.deepEqual([a.adjudicated, e.adjudicated], Array(2).fill("It removed the first letter."));
  assert.deepEqual([a.text, e.text, e.quality_flags.includes("very_short")], ["the first letter is gone", "x", true]);
  // Decisions are taken back by key, too.
  await page.keyboard.press("u");
  await until("it is taken back", async () => (await cards.nth(1).getAttribute("data-state")) === "");
  assert.deepEqual(reviewer.errors, [], "no errors in the console");

  // A teacher withdraws what they said.
  await ada.page.goto(`${server.address}study/two/answers`);
  await ada.page.locator(".withdraw summary").first().click();
  await ada.page.getByRole("button", { name: "Withdraw it" }).click();
  await ada.page.getByText("Withdrawn: it is left out of the data set.").waitFor();
  const [withdrawn] = await rows();
  assert.deepEqual([withdrawn.retracted, withdrawn.text], [true, ""]);
  for (const someone of [ada, eve, reviewer]) await someone.context.close();
});
