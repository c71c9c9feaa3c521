// One event stream a browser, however many dashboards are open: other pages would find no connection left.

import assert from "node:assert/strict";
import { request, createServer } from "node:http";
import { after, before, test } from "node:test";
import { LIVELY, lively, person, post, startBrowser, startServer, until } from "./support.js";

// Passes everything on, and knows which streams are open.
async function counting(server) {
  const streams = new Set();
  const target = new URL(server.address);
  const proxy = createServer((asked, reply) => {
    const on = request({ host: target.hostname, port: target.port, path: asked.url, method: asked.method, headers: { ...asked.headers, host: target.host, origin: target.origin } }, (answer) => {
      reply.writeHead(answer.statusCode, answer.headers);
      reply.flushHeaders();
      answer.pipe(reply);
    });
    if (/\/events(\?|$)/.test(asked.url)) {
      streams.add(reply);
      reply.on("close", () => streams.delete(reply));
    }
    reply.on("close", () => on.destroy());
    on.on("error", () => reply.destroy());
    asked.pipe(on);
  });
  await new Promise((resolve) => { proxy.listen(0, "127.0.0.1", resolve); });
  return {
    address: `http://127.0.0.1:${proxy.address().port}/`,
    streams,
    stop: () => { proxy.close(); proxy.closeAllConnections(); },
  };
}

let server;
let proxy;
let browser;
let second;
before(async () => {
  [server, browser] = await Promise.all([startServer(...lively), startBrowser()]);
  proxy = await counting(server);
  const started = await post(`${server.address}api/runs`, { preset: "regex/tiny", seed: 7, teacher: { mode: "simulated" }, set: LIVELY });
  second = (await started.json()).id;
  assert.ok(second, "a second run begins");
});
after(async () => { await browser?.close(); proxy?.stop(); await server?.stop(); });

const live = (page) => until("it is live", async () => (await page.locator("#link-state").innerText()) === "Live");
const count = async (wanted, what) => {
  await until(what, () => proxy.streams.size === wanted);
  // A second one would come soon.
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(proxy.streams.size, wanted, what);
};
// Headless pages are always seen; a person's are not.
const hide = (page, hidden) => page.evaluate((value) => {
  Object.defineProperty(document, "hidden", { value, configurable: true });
  Object.defineProperty(document, "visibilityState", { value: value ? "hidden" : "visible", configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, hidden);

test("eight dashboards of two runs share one stream, and other pages load", async (t) => {
  const { context, page, errors } = await person(browser);
  t.after(() => context.close());
  const tabs = [page];
  for (let i = 0; i < 8; i += 1) {
    const tab = i === 0 ? page : await context.newPage();
    if (i > 0) tabs.push(tab);
    await tab.goto(`${proxy.address}runs/${i % 2 ? second : server.run}`);
    await live(tab);
  }
  await count(1, "eight tabs hold one stream");
  const ninth = await context.newPage();
  await ninth.goto(`${proxy.address}runs`);
  await ninth.locator("#runs").waitFor();
  const teaching = await context.newPage();
  await teaching.goto(`${proxy.address}teach/${server.run}`);
  await teaching.getByRole("button", { name: "Start teaching" }).first().waitFor();
  // Each tab hears of its own run.
  for (const tab of tabs.slice(0, 2)) {
    const before = await tab.locator("#t-time").innerText();
    await until("its figures move", async () => (await tab.locator("#t-time").innerText()) !== before);
  }
  for (const tab of tabs) await hide(tab, true);
  await count(0, "hidden tabs hold none");
  await hide(tabs[1], false);
  await count(1, "a tab that is seen again has it back");
  await live(tabs[1]);
  const before = await tabs[1].locator("#t-time").innerText();
  await until("it goes on", async () => (await tabs[1].locator("#t-time").innerText()) !== before);
  await tabs[1].close();
  await count(0, "a closed tab holds none");
  assert.deepEqual(errors, []);
});

for (const [without, gone] of [["a shared worker", ["SharedWorker"]], ["a shared worker and locks", ["SharedWorker", "locks"]]]) {
  test(`dashboards without ${without}`, async (t) => {
    const { context, errors } = await person(browser);
    t.after(() => context.close());
    await context.addInitScript((names) => {
      if (names.includes("SharedWorker")) delete window.SharedWorker;
      if (names.includes("locks")) delete Navigator.prototype.locks;
    }, gone);
    const tabs = [];
    for (let i = 0; i < 3; i += 1) {
      const tab = await context.newPage();
      tabs.push(tab);
      await tab.goto(`${proxy.address}runs/${i % 2 ? second : server.run}`);
      await live(tab);
    }
    const shared = !gone.includes("locks");
    if (shared) {
      await count(1, "the pages chose one of themselves");
      await hide(tabs[0], true);
      await count(1, "another has the stream when that one is hidden");
      const before = await tabs[1].locator("#t-time").innerText();
      await until("the others go on", async () => (await tabs[1].locator("#t-time").innerText()) !== before);
    }
    for (const tab of tabs) await hide(tab, true);
    await count(0, "hidden tabs hold none");
    await hide(tabs[2], false);
    await count(1, "one that is seen has its stream");
    await live(tabs[2]);
    assert.deepEqual(errors, []);
  });
}

test("a compared run that learns moves, and catches up", async (t) => {
  const { context, page, errors } = await person(browser);
  t.after(() => context.close());
  await page.goto(`${proxy.address}runs/${server.run}`);
  await live(page);
  await post(`${server.api}/pause`);
  await page.locator(`#overlay option[value="${second}"]`).waitFor({ state: "attached" });
  await page.locator("#overlay").selectOption(second);
  await count(1, "both come in one stream");
  const compared = async () => (await page.locator("#charts .legend").nth(1).innerText()).split(`${second}: loss`)[1]?.trim();
  await until("it is in the legend", async () => /\d/.test(await compared() ?? ""));
  const before = await compared();
  await until("its curve moves", async () => (await compared()) !== before);
  await hide(page, true);
  await count(0, "nothing is heard while hidden");
  const hidden = await compared();
  const points = async () => (await (await fetch(`${server.address}api/runs/${second}/points`)).json()).at(-1).update;
  const then = await points();
  await until("the other run goes on meanwhile", async () => (await points()) > then);
  await post(`${server.address}api/runs/${second}/pause`);
  await hide(page, false);
  await until("it has caught up", async () => (await compared()) !== hidden);
  await post(`${server.address}api/runs/${second}/resume`);
  await post(`${server.api}/resume`);
  assert.deepEqual(errors, []);
});
