/**
 * Milliseconds until a page is ready, and frames a second while it is dragged: node measure_page.mjs page.html …
 *
 * On a machine that does other things too, these are longer than on one that does not. So the time that the processor
 * works for the page is measured as well: of its main thread, and of all threads of its process.
 */

import { launched } from "../../shared/browser/chromium.mjs";
import { opened } from "./visits.mjs";

const measured = {};
for (const file of process.argv.slice(2)) {
  const browser = await launched();
  let tools;
  const before = async (page) => {
    tools = await page.context().newCDPSession(page);
    await tools.send("Performance.enable", { timeDomain: "threadTicks" });
  };
  const worked = async () => {
    const { metrics } = await tools.send("Performance.getMetrics");
    const [main, all] = ["ThreadTime", "ProcessTime"].map(
      (name) => 1000 * metrics.find((each) => each.name === name).value,
    );
    return { main, all };
  };
  const { page, requests, errors } = await opened(browser, file, { before });
  const ready = Number(await page.getAttribute("html", "data-ready")),
    opening = await worked();
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
  for (let step = 1; step <= 120; step++)
    await page.mouse.move(700 - 2 * step, 400 + Math.round(40 * Math.sin(step / 10)));
  await page.mouse.up();
  const frames = await page.evaluate(() => globalThis.frames_),
    dragging = (await worked()).main - opening.main;
  const repaint = await page.evaluate(() =>
    performance.getEntriesByName("repaint").map((each) => Math.round(each.duration)),
  );
  measured[file] = {
    ready_ms: ready,
    work_ms: Math.round(opening.main),
    work_of_all_threads_ms: Math.round(opening.all),
    work_a_frame_ms: Math.round((10 * dragging) / frames.length) / 10,
    frames_per_second: Math.round((1000 * (frames.length - 1)) / (frames.at(-1) - frames[0])),
    repaint_ms: repaint,
    requests: requests.length,
    errors,
  };
  await browser.close();
}
console.log(JSON.stringify(measured, null, 1));
