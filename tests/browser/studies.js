// Tests and pictures of studies share this: a study in a server, and a person in it.

import assert from "node:assert/strict";
import { PATIENCE, until } from "./support.js";

export const CONSENT = "We keep what you write, under a **number**.\n\n- You can stop at any time.\n- Nobody asks for your name.";
export const GUIDELINES = "Say *where* the word changes, and to what.\n\n1. One sentence is enough.\n2. Speak of all words, not of one.";

// Sends a form of the researcher's pages.
export async function send(server, path, fields) {
  const response = await fetch(server.address + path, { method: "POST", body: new URLSearchParams(fields), redirect: "manual" });
  assert.equal(response.status, 303, `${path}: ${response.status === 303 ? "" : await response.text()}`);
  return response.headers.get("location");
}

// Makes a study of the server's run and opens it; gives its name.
export async function openStudy(server, fields) {
  const made = await send(server, "studies", { title: "Words of people", goal: "3", [`use.${server.run}`]: "yes", [`arm.${server.run}`]: "descriptions", ...fields });
  const study = made.split("/").pop();
  await send(server, `studies/${study}/state`, { state: "open" });
  return study;
}

export async function api(server, path) {
  return (await fetch(`${server.address}api/studies/${path}`)).json();
}

// Goes to the next thing that takes the focus until it is the wanted one, as somebody without a mouse does.
export async function tabTo(page, selector) {
  for (let step = 0; step < 80; step += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted), selector)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab leads to ${selector} on ${page.url()}`);
}

// Opens a study's link and joins, by keyboard only.
export async function join(page) {
  await page.getByRole("button", { name: "Take part" }).waitFor();
  if (await page.locator("input[name=agree]").count() > 0) {
    await tabTo(page, "input[name=agree]");
    await page.keyboard.press("Space");
  }
  await tabTo(page, ".study-join button[type=submit]");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => !url.search.includes("="));
}

export async function begin(page) {
  await page.locator(".guide-go button").waitFor();
  await tabTo(page, ".guide-go button");
  await page.keyboard.press("Enter");
  await page.locator(".guide-go").waitFor({ state: "detached" });
}

export async function qualify(page, texts) {
  for (const [position, text] of texts.entries()) {
    await page.locator(`.qualify input[name=position][value="${position}"]`).waitFor({ state: "attached" });
    await tabTo(page, "#text");
    await page.keyboard.type(text);
    await tabTo(page, ".qualify button[type=submit]");
    await page.keyboard.press("Enter");
  }
  await page.locator(".qualify").waitFor({ state: "detached" });
}

// Describes what the teaching page shows; gives the execution.
export async function describe(page, text, { touch = false } = {}) {
  await page.locator("#text").waitFor({ timeout: PATIENCE });
  await page.locator("#teach[data-ready]").waitFor();
  // Phones do not open their keyboard by themselves.
  if (touch) await page.locator("#text").tap();
  const shown = await page.locator("#describe input[name=execution]").inputValue();
  assert.ok(await page.locator("#text").evaluate((box) => box === document.activeElement), "the focus is in the box");
  await page.keyboard.type(text);
  await page.keyboard.press("Control+Enter");
  return shown;
}

export const given = (page, count) => until(`${count} answers are shown as given`, async () => (await page.locator("#study-given").innerText()) === String(count));

// Answers the attention check that is shown; `described` are the executions by what was said of them.
export async function check(page, described) {
  await page.locator(".attention").waitFor();
  const said = await page.locator(".attention .said q").innerText();
  const right = described.get(said);
  assert.ok(right, `“${said}” was said`);
  await tabTo(page, "input[name=choice]");
  await page.keyboard.press("Space");
  for (let step = 0; step < 6; step += 1) {
    if (await page.evaluate((wanted) => document.querySelector("input[name=choice]:checked")?.value === wanted, right)) break;
    await page.keyboard.press("ArrowDown");
  }
  assert.equal(await page.locator("input[name=choice]:checked").getAttribute("value"), right);
  await tabTo(page, ".attention button[type=submit]");
  await page.keyboard.press("Enter");
  await page.locator(".attention").waitFor({ state: "detached" });
}
