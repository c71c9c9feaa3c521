// Studies in a real browser: through stand-ins of Prolific and Mechanical Turk, by keyboard only, on a phone, with a connection that
// drops; and the pages on which researchers write and steer them.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { startPlatforms } from "./platforms.js";
import { api, begin, check, CONSENT, describe, given, GUIDELINES, join, openStudy, qualify, tabTo } from "./studies.js";
import { person, PHONE, startBrowser, startMadeUpServer, until } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const OFFLINE = /ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_CONNECTION|net::/;
const SCREENS = [{ width: 1280, height: 800 }, { width: 1366, height: 650 }, { width: 390, height: 844 }];

let browser;
let platforms;
before(async () => { [browser, platforms] = await Promise.all([startBrowser(), startPlatforms()]); });
after(async () => { await browser?.close(); await platforms?.stop(); });

// A server of its own for each test, since its one run belongs to one study.
async function withServer(work) {
  const server = await startMadeUpServer();
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

// The page on all screens, light and dark: nothing scrolls sideways, and an audit of accessibility finds nothing.
async function look(page, what) {
  const before = page.viewportSize();
  for (const screen of SCREENS) {
    await page.setViewportSize(screen);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const where = `${what}, ${colorScheme}, ${screen.width} px`;
      const wide = await page.evaluate(() => [...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .drawing, pre, .visually-hidden, #execution")).map((e) => e.outerHTML.slice(0, 80)));
      assert.deepEqual(wide, [], `${where}: nothing sticks out`);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${where}: it does not scroll sideways`);
      if (screen.height === 650) continue;
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).join(", ")})`), [], where);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize(before);
}

const clean = (errors, expected = []) => assert.deepEqual(errors.filter((error) => !expected.some((pattern) => pattern.test(error))), [], "no errors in the console");

const csv = async (server, study) => {
  const text = await (await fetch(`${server.address}studies/${study}/approvals.csv`)).text();
  const [head, ...rows] = text.trim().split(/\r?\n/).map((line) => line.split(","));
  return rows.map((row) => Object.fromEntries(head.map((name, at) => [name, row[at]])));
};

const PROLIFIC = {
  entry: "prolific", goal: "3", consent: CONSENT, guidelines: GUIDELINES, qualification: "2", qualification_right: "1", judge: "executor",
  attention: "2", misses: "1", code: "CDONE1", screened_out_code: "COUT22", thanks: "That **helped** a lot.",
};

test("a study through Prolific: by keyboard only, on two devices, with a connection that drops", () => withServer(async (server) => {
  const study = await openStudy(server, { ...PROLIFIC, return_url: `${platforms.address}/submissions/complete?cc={code}` });
  const researcher = await person(browser);
  await researcher.page.goto(`${server.address}studies/${study}`);
  const link = await researcher.page.locator("#link").inputValue();
  const place = platforms.publish({
    external_study_url: link,
    completion_codes: [{ code: "CDONE1", code_type: "COMPLETED" }, { code: "COUT22", code_type: "SCREENED_OUT" }],
  });
  const anna = await person(browser);
  await anna.page.goto(place("anna"));
  await tabTo(anna.page, "#open");
  await anna.page.keyboard.press("Enter");
  await anna.page.locator(".study-join").waitFor();
  await look(anna.page, "joining");
  const session = anna.page.url();
  await join(anna.page);
  await look(anna.page, "guidelines");
  await begin(anna.page);
  await look(anna.page, "qualification");
  await qualify(anna.page, ["this is wrong", "every word gets an e"]);
  const described = new Map();
  described.set("the first one", await describe(anna.page, "the first one"));
  await given(anna.page, 1);
  await look(anna.page, "teaching in a study");
  // Another device with the link of the same submission goes on where this one is.
  const phone = await person(browser, PHONE);
  await phone.page.goto(session);
  await phone.page.locator("input[name=agree]").check();
  await phone.page.getByRole("button", { name: "Take part" }).tap();
  await phone.page.locator("#teach[data-ready]").waitFor();
  assert.equal(await phone.page.locator("#study-given").innerText(), "1");
  described.set("the second one", await describe(phone.page, "the second one", { touch: true }));
  await phone.page.locator(".attention").waitFor();
  await phone.context.close();
  // The first device: whatever it shows, the study's page leads to the question.
  await anna.page.goto(`${server.address}study/${study}`);
  await anna.page.locator(".attention").waitFor();
  await look(anna.page, "attention check");
  await check(anna.page, described);
  await anna.page.locator("#teach[data-ready]").waitFor();
  // The connection drops at the last step.
  await anna.context.setOffline(true);
  await describe(anna.page, "the third one");
  await until("it is said that nothing was sent", async () => /Not sent yet/.test(await anna.page.locator("#problem").innerText()));
  await anna.page.reload().catch(() => {});
  await anna.context.setOffline(false);
  await anna.page.goto(`${server.address}study/${study}`);
  await anna.page.locator("#code").waitFor();
  assert.equal(await anna.page.locator("#code").innerText(), "CDONE1");
  await look(anna.page, "the end");
  await anna.page.reload();
  assert.equal(await anna.page.locator("#code").innerText(), "CDONE1");
  // It drops once more on the way back to the platform.
  await anna.context.setOffline(true);
  await anna.page.locator("#return").click();
  await until("the browser has failed", async () => !anna.page.url().includes("/study/"));
  await anna.context.setOffline(false);
  await anna.page.goto(`${server.address}study/${study}`);
  await tabTo(anna.page, "#return");
  await anna.page.keyboard.press("Enter");
  assert.equal(await anna.page.locator("#status").innerText(), "AWAITING REVIEW");
  clean(anna.errors, [OFFLINE]);
  clean(phone.errors);
  // Somebody who does not pass comes back with the other code.
  const ben = await person(browser);
  await ben.page.goto(place("ben"));
  await ben.page.locator("#open").click();
  await join(ben.page);
  await begin(ben.page);
  await qualify(ben.page, ["wrong", "wrong again"]);
  assert.equal(await ben.page.locator("#code").innerText(), "COUT22");
  await ben.page.locator("#return").click();
  assert.equal(await ben.page.locator("#status").innerText(), "SCREENED OUT");
  clean(ben.errors);
  // The researcher's list and the platform's name the same people, submissions and codes.
  const rows = await csv(server, study);
  const ours = rows.map((row) => [row.platform_person, row.platform_session, row.completion_code, row.state]);
  const theirs = platforms.submissions.map((s) => [s.participant, s.id, s.entered_code, s.status === "SCREENED OUT" ? "screened_out" : "finished"]);
  assert.deepEqual(ours, theirs);
  assert.deepEqual([rows[0].answers, rows[0].attention_passed, rows[0].attention_missed], ["3", "1", "0"]);
  await researcher.page.reload();
  await look(researcher.page, "the study's page");
  await researcher.page.getByRole("button", { name: "Approve" }).first().click();
  await researcher.page.locator(".pay span", { hasText: "approved" }).waitFor();
  const approved = new Set((await csv(server, study)).filter((row) => row.approval === "approved").map((row) => row.platform_session));
  platforms.review((one) => approved.has(one.id));
  assert.deepEqual(platforms.submissions.map((s) => s.status), ["APPROVED", "SCREENED OUT"]);
  await researcher.page.getByRole("link", { name: "P001" }).click();
  await look(researcher.page, "a participant");
  await researcher.page.getByText("Erase who this is").click();
  await researcher.page.getByRole("button", { name: "Erase it now" }).click();
  await researcher.page.getByText("erased").first().waitFor();
  assert.equal((await csv(server, study))[0].platform_person, "");
  clean(researcher.errors);
  await Promise.all([anna, ben, researcher].map(({ context }) => context.close()));
}));

test("a study through Mechanical Turk: a code is pasted and compared", () => withServer(async (server) => {
  const study = await openStudy(server, { entry: "mturk", goal: "1", thanks: "Paste the code into the task." });
  const researcher = await person(browser);
  await researcher.page.goto(`${server.address}studies/${study}`);
  const place = platforms.offer(await researcher.page.locator("#link").inputValue());
  const { page, context, errors } = await person(browser);
  const opened = async () => {
    const [tab] = await Promise.all([context.waitForEvent("page"), page.locator("#open").click()]);
    return tab;
  };
  await page.goto(place());
  const early = await opened();
  await early.getByText("This is a preview. Accept the task first").waitFor();
  assert.equal(await early.getByRole("button", { name: "Take part" }).count(), 0);
  await early.close();
  await page.goto(place("carla"));
  const survey = await opened();
  await join(survey);
  await begin(survey);
  await describe(survey, "the only one");
  const code = await survey.locator("#code").innerText();
  assert.equal(await survey.locator("#return").count(), 0, "there is no address to return to");
  await page.getByLabel("Survey code").fill(` ${code} `);
  await page.getByRole("button", { name: "Submit" }).click();
  const rows = await csv(server, study);
  const [mine] = platforms.assignments;
  assert.deepEqual([rows[0].platform_person, rows[0].platform_session, rows[0].completion_code], [mine.worker, mine.id, mine.code]);
  clean(errors);
  await context.close();
  await researcher.context.close();
}));

test("a study is written with a preview, opened, paused, extended and closed", () => withServer(async (server) => {
  const { page, context, errors } = await person(browser);
  await page.goto(`${server.address}studies`);
  await look(page, "no study yet");
  await page.getByRole("link", { name: "New study" }).click();
  await tabTo(page, "#title");
  await page.keyboard.type("Words, again");
  await tabTo(page, "#consent");
  await page.keyboard.type("We keep **everything**.");
  const preview = page.locator("#study-preview");
  await until("the preview follows", async () => /We keep everything\./.test(await preview.innerText()) && /Words, again/.test(await preview.innerText()));
  assert.equal(await preview.locator("strong").innerText(), "everything");
  await page.fill("#goal", "lots");
  await until("the preview names what is wrong", async () => /must be a whole number/.test(await preview.innerText()));
  await page.locator(`input[name="use.${server.run}"]`).check();
  await page.getByRole("button", { name: "Make the draft" }).click();
  await page.getByText("Something has to be changed").waitFor();
  assert.deepEqual([await page.locator("#goal").inputValue(), await page.locator("#title").inputValue()], ["lots", "Words, again"]);
  await look(page, "the editor with a problem");
  await page.fill("#goal", "2");
  await page.fill("#places", "1");
  await page.fill("#pay_per_hour", "12");
  await page.getByRole("button", { name: "Make the draft" }).click();
  await page.getByRole("button", { name: "Open the study" }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  const study = page.url().split("/").pop();
  const dora = await person(browser);
  await dora.page.goto(await page.locator("#link").inputValue());
  await join(dora.page);
  await begin(dora.page);
  await describe(dora.page, "one of two");
  await given(dora.page, 1);
  // Who leaves finds the way back; a pause holds everybody up and loses nothing.
  await dora.page.getByRole("button", { name: "Leave the study" }).click();
  await look(dora.page, "left");
  await dora.page.getByRole("button", { name: "Go on after all" }).click();
  await dora.page.locator("#teach[data-ready]").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Open again" }).waitFor();
  await dora.page.goto(`${server.address}study/${study}`);
  await dora.page.getByText("The study takes a break").first().waitFor();
  await page.getByRole("button", { name: "Open again" }).click();
  const emil = await person(browser);
  await emil.page.goto(`${server.address}study/${study}`);
  await emil.page.locator("input[name=agree]").check();
  await emil.page.getByRole("button", { name: "Take part" }).click();
  await emil.page.getByText("All places in this study are taken").waitFor();
  await look(emil.page, "no place left");
  // Extended, by one place and to people who are invited.
  await page.getByRole("link", { name: "Edit or extend" }).click();
  await look(page, "the editor of an open study");
  await page.fill("#places", "2");
  await page.locator("input[name=entry][value=invitation]").check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.fill("#labels", "Emil\nFrida");
  await page.getByRole("button", { name: "Make invitations" }).click();
  await page.locator(".fresh").waitFor();
  await look(page, "invitations");
  const invitation = await page.locator(".fresh li", { hasText: "Emil" }).locator("code").innerText();
  await page.goto(`${server.address}studies/${study}`);
  await page.locator("tr", { hasText: "Frida" }).getByRole("button", { name: "Withdraw" }).click();
  await page.locator("tr", { hasText: "Frida" }).getByText("withdrawn").waitFor();
  await emil.page.goto(invitation);
  await emil.page.locator("input[name=agree]").check();
  await emil.page.getByRole("button", { name: "Take part" }).click();
  await emil.page.locator(".guide-go button").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Open again" }).waitFor();
  await emil.page.reload();
  await emil.page.getByText("It ended before you were done").waitFor();
  assert.equal((await api(server, study)).state, "closed");
  await page.goto(`${server.address}studies`);
  await look(page, "the list of studies");
  // The settings as a file fill the editor of another study.
  const file = await (await fetch(`${server.address}studies/${study}/settings.toml`)).text();
  await page.getByRole("link", { name: "New study" }).click();
  await page.getByText("Read the settings from a file").click();
  await page.locator("#settings-file").setInputFiles({ name: "words.toml", mimeType: "application/toml", buffer: Buffer.from(file) });
  await until("the file is in the box", async () => (await page.locator("#settings-text").inputValue()) === file);
  await page.getByRole("button", { name: "Fill the form" }).click();
  assert.deepEqual([await page.locator("#title").inputValue(), await page.locator("#places").inputValue()], ["Words, again", "2"]);
  await page.goto(`${server.address}studies/new?from=${study}`);
  assert.equal(await page.locator("#consent").inputValue(), "We keep **everything**.");
  clean(errors, [/422/]);
  clean(dora.errors);
  clean(emil.errors, [/409/]);
  await Promise.all([context, dora.context, emil.context].map((one) => one.close()));
}));

test("a webhook is tried, its key shown, and its messages listed", () => withServer(async (server) => {
  const study = await openStudy(server, { webhook: `${platforms.address}/nothing-here` });
  const { page, context, errors } = await person(browser);
  await page.goto(`${server.address}studies/${study}`);
  await Promise.all([page.waitForURL(/studies/), page.waitForEvent("load"), page.getByRole("button", { name: "Send a test message" }).click()]);
  await until("what became of it is said", async () => { await page.reload(); return /it answered 404/.test(await page.locator("#webhooks").innerText()); });
  await page.getByRole("button", { name: "Show the key" }).click();
  assert.match(await page.locator("#webhook-secret").innerText(), /^[0-9a-f]{32}$/);
  await look(page, "the webhook");
  clean(errors);
  await context.close();
}));
