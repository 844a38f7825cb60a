/**
 * Uses pages of maps with time, with marks, of statistics and of differences as people do, and prints what was found as JSON:
 * node check_kinds.mjs slots|marks|values|difference page.html folder-for-pictures west,south,east,north
 */

import { join } from "node:path";

import { launched } from "../../shared/browser/chromium.mjs";
import { visits } from "./visits.mjs";

const [, , kind, file, pictures, box] = process.argv;
const timed = kind === "slots" || kind === "values",
  asked = kind === "slots" || kind === "marks";
const found = { requests: [], errors: [], checked: 0, violations: [], facts: {}, layers: [] };
const browser = await launched();
const LONG = { timeout: 300_000 };

const visit = visits(browser, file, found, pictures, `${kind}-`);

const name = (page) => page.textContent(".time output");
const facts = (page) => page.$$eval(".facts p", (all) => all.map((each) => each.textContent).join("\n"));

async function answered(page) {
  await page.waitForFunction(() => /interval/.test(document.querySelector(".answer").textContent), undefined, LONG);
  return page.$$eval(".answer p", (all) => all.map((each) => each.textContent));
}

async function ask(page) {
  for (const [i, value] of box.split(",").entries()) await page.fill(`.box label:nth-of-type(${i + 1}) input`, value);
  await page.keyboard.press("Enter");
  return answered(page);
}

/** The tab key until an element has the focus. */
async function until(page, wanted) {
  for (let step = 0; step < 80; step++) {
    if (await page.evaluate((selector) => document.activeElement.matches(selector), wanted)) return;
    await page.keyboard.press("Tab");
  }
  found.errors.push(`${wanted} is not reached by keyboard`);
}

await visit("english", { hash: "#language=en" }, async (page, check) => {
  const select = await page.$(".shown > .choice:first-child select");
  const layers = select
    ? await page.$$eval(".shown > .choice:first-child option", (all) => all.map((each) => each.value))
    : await page.$$eval("input[name=layer]", (all) => all.map((each) => each.value));
  found.layers = layers;
  await page.hover("canvas.map", { position: { x: 400, y: 330 } });
  for (const layer of layers) {
    if (select) await page.selectOption(".shown > .choice:first-child select", layer);
    else await page.check(`input[value="${layer}"]`);
    found.facts[`hover ${layer}`] = await facts(page);
    await check(layer.replaceAll(/\W/g, "_"));
  }
  await page.check(".comparing input");
  await check("compare");
  if (asked) found.facts.asked = await ask(page);
});

if (timed) {
  // By keyboard alone: the slider to the second slot, the map on to the next; then what is asked is of that slot.
  await visit("keyboard", { hash: "#language=en" }, async (page, check) => {
    await until(page, ".slots");
    await page.keyboard.press("ArrowRight");
    found.facts.slid = await name(page);
    await until(page, "canvas.map");
    await page.keyboard.press(".");
    found.facts.next = await name(page);
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.querySelector(".stage [aria-live]").textContent !== "", undefined, LONG);
    found.facts.aloud = await page.textContent(".stage [aria-live]");
    if (kind === "slots") found.facts.during = await ask(page);
    await check("slot");
    if (kind === "slots") {
      await until(page, ".time .slots");
      await page.keyboard.press("ArrowLeft");
      const slot = await name(page);
      await page.waitForFunction(
        (begin) => document.querySelector(".answer").textContent.startsWith(begin),
        slot,
        LONG,
      );
      found.facts.again = await answered(page);
      await page.click(".time .all");
      found.facts.together = await page.getAttribute(".time .all", "aria-pressed");
    }
    await page.waitForTimeout(500);
    found.facts.link = await page.evaluate(() => location.hash);
    await until(page, ".time .play");
    const before = await name(page);
    await page.keyboard.press("Space");
    await page.waitForFunction((old) => document.querySelector(".time output").textContent !== old, before, LONG);
    const first = await name(page);
    await page.waitForFunction((old) => document.querySelector(".time output").textContent !== old, first, LONG);
    found.facts.playing = await page.getAttribute(".time .play", "aria-label");
    await page.keyboard.press("Space");
    found.facts.stopped = await page.getAttribute(".time .play", "aria-label");
  });

  // Whoever prefers less motion goes one slot further with every press.
  await visit("calm", { hash: "#language=en", reducedMotion: "reduce" }, async (page) => {
    found.facts.calm = await page.getAttribute(".time .play", "aria-label");
    const names = [];
    for (let press = 0; press < 2; press++) {
      await page.click(".time .play");
      names.push(await name(page));
    }
    await page.waitForTimeout(1_500);
    found.facts.steps = [...names, await name(page)];
  });
}

await visit("linked", { hash: found.facts.link ?? "#language=en" }, async (page) => {
  await page.waitForTimeout(600);
  found.facts.linked = await page.evaluate(() => location.hash);
});

for (const [language, look] of [
  ["de", "dark"],
  ["fr", "light"],
  ["es", "dark"],
]) {
  await visit(language, { hash: `#language=${language}`, colorScheme: look }, async (page, check) => {
    await page.hover("canvas.map", { position: { x: 400, y: 330 } });
    found.facts[language] = await facts(page);
    await check(look);
  });
}

await visit("small", { hash: "#language=en", viewport: { width: 390, height: 780 } }, async (page, check) => {
  found.facts.overflow = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await check("small");
});

// On paper: nothing to press, and no part of it is cut off at the right.
await visit("paper", { hash: "#language=en", viewport: { width: 794, height: 1123 } }, async (page) => {
  await page.hover("canvas.map", { position: { x: 400, y: 250 } });
  await page.emulateMedia({ media: "print" });
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(pictures, `${kind}-paper.png`), fullPage: true });
  found.facts.pressed = await page.$$eval(
    "button, select, input",
    (all) => all.filter((each) => each.checkVisibility()).length,
  );
  found.facts.paper = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  found.facts.pdf = (await page.pdf({ format: "A4", printBackground: true })).length;
});

await browser.close();
console.log(JSON.stringify(found, null, 1));
