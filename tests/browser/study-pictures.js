// Makes the pictures of docs/studies.md anew: node study-pictures.js, in light colours, of the made-up run.

import { fileURLToPath } from "node:url";
import { startPlatforms } from "./platforms.js";
import { begin, CONSENT, describe, given, GUIDELINES, join, openStudy } from "./studies.js";
import { person, startBrowser, startMadeUpServer } from "./support.js";

const file = (name) => fileURLToPath(new URL(`../../docs/images/study-${name}.png`, import.meta.url));
const [server, browser, platforms] = await Promise.all([startMadeUpServer(), startBrowser(), startPlatforms()]);
const options = { colorScheme: "light", reducedMotion: "reduce", viewport: { width: 1100, height: 720 } };
const SUMMARY = "An agent changes words, and you say what it did. It learns from your sentences.";

try {
  const { page } = await person(browser, options);
  await page.goto(`${server.address}studies/new`);
  for (const [name, text] of Object.entries({ title: "Words of people", summary: SUMMARY, consent: CONSENT, guidelines: GUIDELINES, goal: "30", pay_per_hour: "12" })) {
    await page.fill(`#${name}`, text);
  }
  await page.locator("#study-preview strong").first().waitFor();
  await page.waitForFunction(() => document.getElementById("study-preview").textContent.includes("600 answers"));
  await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  await page.screenshot({ path: file("editor") });
  const study = await openStudy(server, {
    title: "Words of people", summary: SUMMARY, entry: "prolific", goal: "2", places: "20", pay_per_hour: "12", consent: CONSENT, guidelines: GUIDELINES,
    code: "C1ABCD", screened_out_code: "C2EFGH", thanks: "You helped the agent **a lot**.",
  });
  await page.goto(`${server.address}studies/${study}`);
  const place = platforms.publish({ external_study_url: await page.locator("#link").inputValue(), completion_codes: [] });
  // Three people: one has finished, one teaches, one reads the guidelines.
  for (const [name, words, answers] of [["5f1c0a", "add an e at the end", 2], ["60b2d9", "put un in front", 1], ["5e77aa", "", 0]]) {
    const someone = await person(browser, { ...options, viewport: { width: 1000, height: 640 } });
    await someone.page.goto(place(name));
    await someone.page.locator("#open").click();
    await someone.page.locator(".study-join").waitFor();
    if (answers === 2) await someone.page.screenshot({ path: file("join"), fullPage: true });
    await join(someone.page);
    if (answers > 0) await begin(someone.page);
    for (let count = 1; count <= answers; count += 1) {
      await describe(someone.page, `${words}, in word ${count}`);
      if (count < 2) await given(someone.page, count);
    }
    if (answers === 2) {
      await someone.page.locator("#code").waitFor();
      await someone.page.screenshot({ path: file("end"), fullPage: true });
    }
    await someone.context.close();
  }
  await page.reload();
  await page.screenshot({ path: file("page"), fullPage: true });
} finally {
  await browser.close();
  await server.stop();
  await platforms.stop();
}
