// Times the first contentful paint of a page in fresh browsers: node first-paint.js ADDRESS. Prints JSON, in milliseconds.

import { startBrowser } from "./support.js";

const ROUNDS = 7;
const times = [];
const browser = await startBrowser();
for (let round = 0; round < ROUNDS; round += 1) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(process.argv[2]);
  times.push(await page.evaluate(() => new Promise((resolve) => {
    new PerformanceObserver((list, observer) => {
      const [paint] = list.getEntriesByName("first-contentful-paint");
      if (!paint) return;
      observer.disconnect();
      resolve(Math.round(paint.startTime));
    }).observe({ type: "paint", buffered: true });
  })));
  await context.close();
}
await browser.close();
const sorted = [...times].sort((a, b) => a - b);
process.stdout.write(`${JSON.stringify({ rounds: times, median: sorted[Math.floor(ROUNDS / 2)], most: sorted.at(-1) })}\n`);
