// A server with an empty data folder and a real browser, for one test file.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const BINARY = process.env.ILIAD_BIN ?? fileURLToPath(new URL("../../target/debug/iliad", import.meta.url));
// The first is Chromium without windows and menus, which nobody sees here: it draws the same pages with a third less work.
const BROWSERS = [
  process.env.CHROMIUM, "/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome",
];
const FLAGS = [
  "--no-sandbox", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];
// WebGL drawn by the processor: there is no graphics card where tests run.
export const DRAWN = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"];
// A real agent may be warming up when the page opens.
export const PATIENCE = Number(process.env.ILIAD_PATIENCE_MS ?? 120_000);

// These pages have a made-up run behind them, which understands every sentence without the word "wrong" (tests/support/server.rs).
const EXAMPLE = process.env.ILIAD_TEST_SERVER ?? join(dirname(BINARY), "examples", "test_server");

async function startProcess(binary, port, folder, more) {
  const child = spawn(binary, ["serve", "--port", port, "--data-dir", folder, ...more], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const address = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`no address within ${PATIENCE} ms; the server said:\n${said}`)), PATIENCE);
    const hear = (piece) => {
      said += piece;
      const found = said.match(/http:\/\/127\.0\.0\.1:\d+\/\S*/);
      if (found) { clearTimeout(late); resolve(found[0]); }
    };
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}:\n${said}`)));
  });
  const end = async () => {
    if (child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
  };
  return { address, end, said: () => said };
}

// Settings with which a run goes on for ever and something is new at every moment, on a busy machine too.
export const LIVELY = ["schedule.episodes=0", "schedule.point_every=1", "schedule.evaluate_tasks=8", "algorithm.batch=4", "algorithm.replay=0"];
export const lively = ["--preset", "tiny", ...LIVELY.flatMap((setting) => ["--set", setting])];

export const startServer = (...more) => serve(BINARY, more);

export async function startMadeUpServer(...more) {
  assert.ok(existsSync(EXAMPLE), "the test server is needed: cargo build --example test_server");
  return serve(EXAMPLE, more);
}

async function serve(binary, more) {
  const folder = await mkdtemp(join(tmpdir(), "iliad-browser-"));
  let { address, end, said } = await startProcess(binary, "0", folder, more);
  const home = await (await fetch(address)).text();
  const run = home.match(/\/(?:teach|runs)\/([^"/]+)"/)?.[1];
  assert.ok(run, "the start page shows a run");
  return {
    address,
    run,
    api: `${address}api/runs/${run}`,
    // The output of the process so far.
    said: () => said(),
    // Ends the process, lets `meanwhile` look at the silence, and starts it again with the same data at the same address.
    async restart(meanwhile) {
      await end();
      await meanwhile();
      ({ end, said } = await startProcess(binary, new URL(address).port, folder, more));
    },
    async stop() {
      await end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function startBrowser(flags = ["--disable-gpu"]) {
  const executablePath = BROWSERS.find((path) => path && existsSync(path));
  assert.ok(executablePath, "Chromium is needed; name it in the environment variable CHROMIUM");
  return chromium.launch({ executablePath, args: [...FLAGS, ...flags] });
}

// A person with a browser of their own. Errors in the console fail the test at the end, but for those it expects.
export async function person(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const errors = [];
  context.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  context.on("weberror", (error) => errors.push(String(error.error())));
  return { context, errors, page: await context.newPage() };
}

export async function openTeaching(server, page, { script = true } = {}) {
  await page.goto(`${server.address}teach/${server.run}`);
  const start = page.getByRole("button", { name: "Start teaching" }).first();
  if (await start.count() > 0) await start.click();
  await page.locator("#text").waitFor({ timeout: PATIENCE });
  // A person is slower than a script that loads; this file is not.
  if (script) await page.locator("#teach[data-ready]").waitFor();
  return page;
}

export const execution = (page) => page.locator("#describe input[name=execution]").inputValue();

// A row of the data set, with short names for what most tests ask for.
export const said = (row) => ({
  ...row,
  answer: row.description_id,
  text: row.description ?? row.skip_reason,
  used_in_update: row.used_in_updates[0] ?? null,
});

// The answers of people, as the data set has them.
export async function answers(server) {
  const text = await (await fetch(`${server.address}runs/${server.run}/export.jsonl`)).text();
  return text.split("\n").filter(Boolean).map((line) => said(JSON.parse(line))).filter((row) => row.source === "human");
}

export async function until(what, check, patience = PATIENCE) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await check();
    if (found) return found;
    assert.ok(Date.now() < end, `in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

// Phones, upright and lying, with the keyboard closed and open.
const SCREENS = [{ width: 390, height: 844 }, { width: 360, height: 300 }, { width: 320, height: 256 }, { width: 640, height: 320 }];
export const PHONE = { viewport: SCREENS[0], isMobile: true, hasTouch: true };

// While somebody types, the box and Send are on the screen together, and nothing lies over them.
export async function seenWhileTyping(page) {
  const wrong = [];
  for (const screen of SCREENS) {
    await page.setViewportSize(screen);
    await page.fill("#text", "");
    await page.locator("#text").pressSequentially("a sentence that is long enough for more lines than one on every phone that there is, and on");
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    for (const id of ["text", "send"]) {
      const seen = await page.locator(`#${id}`).evaluate((element) => {
        const { left, top, right, bottom } = element.getBoundingClientRect();
        const clear = (x, y) => element.contains(document.elementFromPoint(x, y));
        return top >= 0 && bottom <= innerHeight && clear(left + 12, top + 6) && clear(right - 12, bottom - 6);
      });
      if (!seen) wrong.push(`${id} at ${screen.width}×${screen.height}`);
    }
  }
  return wrong;
}

export async function post(url, body = {}) {
  return fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}
