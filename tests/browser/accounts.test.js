// People who sign in: the first owner by the link of the start, a researcher by an invitation in a second browser, and
// the way out. Everything works without a script as well.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { person, startBrowser, startServer } from "./support.js";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PASSWORD = "four words in a row";
let server;
let browser;
before(async () => {
  // With a token set, this machine is as any other.
  [server, browser] = await Promise.all([startServer("--access-token", "a-secret-of-mine"), startBrowser()]);
});
after(async () => { await browser?.close(); await server?.stop(); });

async function check(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  const told = violations.map((v) => `${v.id}: ${v.help} (${v.nodes.map((n) => n.target.join(" ")).join(", ")})`);
  assert.deepEqual(told, [], what);
}

// Every page as wide and narrow screens show it, in both themes.
async function look(page, what) {
  for (const [width, height] of [[390, 844], [1280, 800]]) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await check(page, `${what} in ${colorScheme} at ${width} px`);
      if (process.env.ILIAD_PICTURES) await page.screenshot({ path: `${process.env.ILIAD_PICTURES}/${what.replaceAll(" ", "-")}-${width}-${colorScheme}.png`, fullPage: true });
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${what} does not scroll sideways at ${width} px`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

async function fillAccount(page, name) {
  await page.getByLabel("Name or e-mail address").fill(name);
  await page.getByLabel("Password, of 12").fill(PASSWORD);
  await page.getByLabel("The same password again").fill(PASSWORD);
  await page.getByRole("button", { name: "Make the account" }).click();
}

async function signIn(page, name, password = PASSWORD) {
  await page.getByLabel("Name or e-mail address").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

test("an owner invites a researcher, who steers, until they are signed out", async () => {
  const owner = await person(browser);
  const { page } = owner;
  const [, welcome] = server.said().match(/(http:\S+\/welcome\/[0-9a-f]{32})/);
  await page.goto(welcome);
  await look(page, "first account");
  await fillAccount(page, "Ada Lovelace");
  assert.equal(new URL(page.url()).pathname, "/people");
  await page.goto(welcome);
  await page.getByRole("heading", { name: "This link makes no account" }).waitFor();
  await look(page, "used link");
  // An invitation.
  await page.goto(`${server.address}people`);
  await page.getByLabel("As", { exact: true }).selectOption("researcher");
  await page.getByRole("button", { name: "Make a link" }).click();
  await look(page, "people with a link");
  const link = await page.getByLabel("Link of the invitation").inputValue();
  // Somebody else opens it, without a script.
  const guest = await person(browser, { javaScriptEnabled: false });
  await guest.page.goto(link);
  await guest.page.getByLabel("Name or e-mail address").fill("grace@example.org");
  await guest.page.getByLabel("Password, of 12").fill(PASSWORD);
  await guest.page.getByLabel("The same password again").fill(`${PASSWORD}s`);
  await guest.page.getByRole("button", { name: "Make the account" }).click();
  await guest.page.getByText("The two passwords differ").waitFor();
  assert.ok(!guest.page.url().includes(link.split("/").pop()), "the link is in no address after it was opened");
  assert.equal(await guest.page.getByLabel("Name or e-mail address").inputValue(), "grace@example.org");
  assert.equal(await guest.page.getByLabel("Password, of 12").inputValue(), "");
  await fillAccount(guest.page, "grace@example.org");
  assert.equal(new URL(guest.page.url()).pathname, "/runs");
  await guest.page.getByRole("link", { name: "grace@example.org" }).first().waitFor();
  assert.equal((await guest.page.goto(`${server.address}people`)).status(), 403);
  await guest.page.getByText("You are signed in as a researcher").waitFor();
  // Signed in on a second browser, signed out from the first.
  const second = await person(browser);
  await second.page.goto(`${server.address}runs/${server.run}`);
  assert.equal(new URL(second.page.url()).pathname, "/sign-in");
  await look(second.page, "sign in");
  await signIn(second.page, "grace@example.org", "not the password");
  await second.page.getByText("Name and password do not belong together").waitFor();
  await look(second.page, "sign in refused");
  await signIn(second.page, "Grace@Example.org");
  assert.equal(new URL(second.page.url()).pathname, `/runs/${server.run}`);
  await second.page.waitForFunction(() => document.getElementById("link-state").textContent === "Live");
  await guest.page.goto(`${server.address}account`);
  await guest.page.getByRole("button", { name: "Sign out everywhere else" }).click();
  await guest.page.getByText("You were signed out everywhere else.").waitFor();
  await second.page.waitForFunction(() => document.getElementById("link-state").textContent !== "Live");
  await second.page.goto(`${server.address}runs`);
  assert.equal(new URL(second.page.url()).pathname, "/sign-in");
  await look(second.page, "sign in again");
  // The owner sees both, changes a role, and takes an invitation back.
  await page.goto(`${server.address}people`);
  await page.getByRole("button", { name: "Make a link" }).click();
  await page.goto(`${server.address}people`);
  await look(page, "people");
  await page.getByRole("button", { name: "Take back the invitation" }).click();
  await page.getByText("The invitation was taken back").waitFor();
  await page.getByLabel("Role of grace@example.org", { exact: true }).selectOption("reviewer");
  await page.getByRole("button", { name: "Change the role of grace@example.org" }).click();
  await page.getByText("The role was changed").waitFor();
  assert.equal((await guest.page.goto(`${server.address}runs`)).status(), 403);
  await page.getByRole("button", { name: "Disable Ada Lovelace" }).click();
  await page.getByText("This is the last owner who can sign in").waitFor();
  await look(page, "people refused");
  await page.goto(`${server.address}account`);
  await look(page, "account");
  await page.goto(`${server.address}runs`);
  await look(page, "runs signed in");
  await page.getByRole("contentinfo").getByRole("button", { name: "Sign out" }).click();
  assert.equal(new URL(page.url()).pathname, "/");
  assert.equal(await page.getByText("Ada Lovelace").count(), 0);
  await page.goto(`${server.address}access`);
  await look(page, "access token");
  // Refusals that were meant (410, 401, 403, 409) are noted in the console.
  for (const one of [owner, guest, second]) {
    assert.deepEqual(one.errors.filter((error) => !/status of (401|403|409|410|422)/.test(error)), []);
    await one.context.close();
  }
});
