/** Uses a page as people do and prints what was found as JSON: node check_page.mjs page.html [folder for pictures]. */

import { launched } from "../../shared/browser/chromium.mjs";
import { visits } from "./visits.mjs";

const [, , file, pictures] = process.argv;
const found = { requests: [], errors: [], checked: 0, violations: [], words: {}, facts: {} };
const browser = await launched();

const visit = visits(browser, file, found, pictures);

async function words(page) {
  const language = await page.getAttribute("html", "lang");
  found.words[language] = await page.$$eval("legend, section > h2, .settings button, .privacy, .check", (all) =>
    all.map((each) => each.textContent),
  );
}

await visit("english", { hash: "#language=en" }, async (page, check) => {
  await words(page);
  for (const [x, y] of [
    [400, 350],
    [300, 300],
    [500, 400],
    [450, 250],
    [350, 500],
    [550, 200],
    [250, 450],
    [420, 420],
  ]) {
    await page.hover("canvas.map", { position: { x, y } });
    found.facts.hover = await page.textContent(".facts");
    if (await page.$(".facts .best")) break;
  }
  await check("density");
  await page.check("input[value=count]");
  await check("count");
  await page.check("input[value=certainty]");
  await check("certainty");
  await page.check(".comparing input");
  await check("compare");
  await page.click("button.privacy");
  await page.click("dialog summary");
  found.facts.statement = await page.textContent("dialog pre");
  await check("privacy");
});

// The main path by keyboard alone: the privacy statement and back, the densest cell, the map around it, another layer.
await visit("keyboard", {}, async (page, check) => {
  const until = async (wanted) => {
    for (let step = 0; step < 60; step++) {
      if (await page.evaluate((selector) => document.activeElement.matches(selector), wanted)) return;
      await page.keyboard.press("Tab");
    }
    found.errors.push(`keyboard: ${wanted} is not reached`);
  };
  await until("button.privacy");
  await page.keyboard.press("Enter");
  found.facts.dialog = await page.$eval("dialog", (dialog) => dialog.open);
  await page.keyboard.press("Escape");
  found.facts.closed = await page.$eval("dialog", (dialog) => !dialog.open);
  await until("details summary");
  await page.keyboard.press("Enter");
  await until("details li button");
  await page.keyboard.press("Enter"); // the densest cell is in the middle now
  await until("canvas.map");
  for (const key of ["+", "ArrowRight", "ArrowLeft", "-"]) await page.keyboard.press(key);
  await page.waitForFunction(() => document.querySelector(".stage [aria-live]").textContent !== "", undefined, {
    timeout: 300_000,
  });
  found.facts.aloud = await page.textContent(".stage [aria-live]");
  await check("map");
  await until("input[name=layer]");
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => location.hash.includes("layer=count"), undefined, { timeout: 300_000 });
  await page.waitForTimeout(600);
  found.facts.layer = await page.$eval("input[name=layer]:checked", (input) => input.value);
  found.facts.link = await page.evaluate(() => location.hash);
});

// Questions: a box that is typed, one that is drawn, a polygon; and one that has no answer.
await visit("asking", { hash: "#language=en" }, async (page, check) => {
  const answer = async () => {
    await page.waitForFunction(
      () => /interval|outside|cross/.test(document.querySelector(".answer").textContent),
      undefined,
      { timeout: 300_000 },
    );
    const text = await page.textContent(".answer");
    await page.evaluate(() => document.querySelector(".answer").replaceChildren());
    return text;
  };
  const fill = async (box) => {
    for (const [i, value] of box.entries()) await page.fill(`.box label:nth-of-type(${i + 1}) input`, String(value));
    await page.keyboard.press("Enter");
  };
  const asked = process.argv[4]?.split(",").map(Number);
  if (asked) {
    await fill(asked);
    found.facts.typed = await answer();
    await check("box");
  }
  await fill([-170, -60, -169, -59]);
  found.facts.outside = await answer();
  await page.click(".ask .row button:nth-of-type(1)");
  const { x, y } = await page.locator("canvas.map").boundingBox();
  await page.mouse.move(x + 250, y + 200);
  await page.mouse.down();
  await page.mouse.move(x + 500, y + 480, { steps: 4 });
  await page.mouse.up();
  found.facts.drawn = await answer();
  await page.click(".ask .row button:nth-of-type(2)");
  for (const [left, top] of [
    [300, 200],
    [500, 220],
    [450, 480],
    [301, 201],
  ])
    await page.mouse.click(x + left, y + top);
  found.facts.polygon = await answer();
  await check("polygon");
});

await visit("linked", { hash: found.facts.link }, async (page) => {
  await page.waitForTimeout(600);
  found.facts.linked = await page.evaluate(() => location.hash);
});

await visit("dark", { hash: "#language=de", colorScheme: "dark" }, async (page, check) => {
  await words(page);
  await page.click("details summary");
  await check("density");
  await page.selectOption(".settings select", "fr");
  await words(page);
  await page.check("input[value=certainty]");
  await check("certainty");
});

await visit("small", { hash: "#language=es", viewport: { width: 390, height: 780 } }, async (page, check) => {
  await words(page);
  await check("density");
});

await browser.close();
console.log(JSON.stringify(found, null, 1));
