// The page on which tokens of programs are made and revoked.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { person, startBrowser, startMadeUpServer } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let server;
let browser;
before(async () => { [server, browser] = await Promise.all([startMadeUpServer(), startBrowser()]); });
after(async () => { await browser?.close(); await server?.stop(); });

test("a token is made, shown once, good for its scopes alone, and revoked", async () => {
  const { page, context, errors } = await person(browser, { reducedMotion: "reduce" });
  const asks = (token, path, method = "GET") => fetch(`${server.address}api/v1/${path}`, { method, headers: { authorization: `Bearer ${token}` } });
  await page.goto(`${server.address}tokens`);
  await page.getByLabel(/^Name/).fill("analysis <b>");
  await page.getByRole("button", { name: /Make/ }).click();
  const token = await page.locator("#token").inputValue();
  assert.match(token, /^iliad_/);
  assert.equal((await asks(token, "runs")).status, 200);
  assert.equal((await asks(token, `runs/${server.run}/pause`, "POST")).status, 403, "it may read only");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(" ")}`), []);
  await page.goto(`${server.address}tokens`);
  assert.equal(await page.locator("#token").count(), 0, "it is shown once");
  assert.ok((await page.locator("main").innerText()).includes("analysis <b>"));
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it fits a phone");
  await page.getByRole("button", { name: /Revoke/ }).first().click();
  await page.getByText("There is no token yet").or(page.getByText(/revoked/i)).first().waitFor();
  assert.equal((await asks(token, "runs")).status, 401);
  assert.deepEqual(errors, []);
  await context.close();
});
