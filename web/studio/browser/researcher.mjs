/**
 * A researcher at work in Debian's Chromium, by keyboard: an own map is dropped, methods are measured on it, and the
 * points of the figures say their numbers. Prints what was asked of other machines, what went wrong, what was seen.
 *
 * usage: node browser/researcher.mjs LINK MAP [FOLDER FOR PICTURES]
 */

import { readFileSync } from "node:fs";

import { tabTo } from "../../shared/browser/chromium.mjs";
import { begun, otherLanguages, press, write } from "./page.mjs";

const [link, map, pictures] = process.argv.slice(2);
const { page, found, check, over, here } = await begun(link, pictures);

await page.getByRole("heading", { name: "New release" }).waitFor();
await tabTo(page, page.getByRole("link", { name: "Methods" }));
await page.keyboard.press("Enter");
await page.getByLabel("city").first().waitFor();
const content = readFileSync(map).toString("base64");
await page.evaluate((text) => {
  const moved = new DataTransfer();
  moved.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], "my town.csv"));
  document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: moved, bubbles: true }));
}, content);
await page.getByText("my town.csv: 400 people").waitFor();
await tabTo(page, page.locator('input[name="map"][value="city"]'));
await page.keyboard.press("Space");
await tabTo(page, page.locator('input[name="method"][value="auto"]'));
await page.keyboard.press("Space");
await write(page, "Prices ε, with commas between", "0.5, 1, 2");
await write(page, "Repetitions", "2");
await write(page, "Folder for the results", "../elsewhere");
await press(page, "Measure");
await page.getByRole("alert").waitFor();
found.facts.refused = await page.getByRole("alert").textContent();
await write(page, "Folder for the results", "comparison");
await check(page, "comparison-order");
await press(page, "Measure");
await page.getByRole("heading", { name: "Results in comparison" }).waitFor();
found.facts.charts = await page.locator("svg.chart").count();
const first = page.locator("svg.chart circle").first();
await tabTo(page, first);
found.facts.first = await page.locator(".said").first().textContent();
await page.keyboard.press("ArrowRight");
found.facts.second = await page.locator(".said").first().textContent();
await page.locator("svg.chart circle").nth(4).hover();
found.facts.hovered = await page.locator(".said").first().textContent();
await check(page, "comparison");
await page.emulateMedia({ colorScheme: "dark" });
await check(page, "comparison-dark");
found.facts.other = await otherLanguages(
  page,
  [
    [
      "comparison",
      `${here}/#/comparison`,
      "svg.chart",
      async () => {
        await page.locator("main form button.quiet").last().click();
      },
    ],
  ],
  check,
);
await over();
