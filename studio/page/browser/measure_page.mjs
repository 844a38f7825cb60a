/** Milliseconds until a page is ready, and frames a second while it is dragged: node measure_page.mjs page.html … */

import { launched, opened } from "./chromium.mjs";

const measured = {};
for (const file of process.argv.slice(2)) {
  const browser = await launched();
  const { page, requests, errors } = await opened(browser, file);
  const ready = Number(await page.getAttribute("html", "data-ready"));
  await page.evaluate(() => {
    globalThis.frames_ = [];
    const tick = (now) => {
      globalThis.frames_.push(now);
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  await page.mouse.move(700, 400);
  await page.mouse.down();
  for (let step = 1; step <= 120; step++) await page.mouse.move(700 - 2 * step, 400 + Math.round(40 * Math.sin(step / 10)));
  await page.mouse.up();
  const frames = await page.evaluate(() => globalThis.frames_);
  const repaint = await page.evaluate(() => performance.getEntriesByName("repaint").map((each) => Math.round(each.duration)));
  measured[file] = { ready_ms: ready, frames_per_second: Math.round((1000 * (frames.length - 1)) / (frames.at(-1) - frames[0])),
    repaint_ms: repaint, requests: requests.length, errors };
  await browser.close();
}
console.log(JSON.stringify(measured, null, 1));
