/** Debian's Chromium for scripts that use our pages as people do, and what all of them do in a page. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

/** Milliseconds that a script waits for anything: machines that test do other things too. */
export const PATIENCE = 300_000;

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function launched() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
    timeout: PATIENCE,
  });
}

/**
 * How many rules of accessibility a page keeps, and each that it breaks, under the `name` of what it shows. They are run
 * by the protocol of developers' tools, which a page's policy does not bind.
 */
export async function accessibility(page, name, options = {}) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate((chosen) => globalThis.axe.run(document, chosen), options);
  const places = ({ nodes }) => nodes.map((node) => node.html.slice(0, 200)).join(" | ");
  return { kept: passes.length, broken: violations.map((each) => `${name}: ${each.id}: ${places(each)}`) };
}

/** Press Tab until the focus is on this element, as whoever has no mouse does. */
export async function tabTo(page, locator) {
  for (let presses = 0; presses < 150; presses += 1) {
    if (await locator.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the keyboard does not reach ${locator}`);
}

/** Write into the field that has the focus, instead of what is there. */
export async function overwrite(page, text) {
  await page.keyboard.press("Control+A");
  await page.keyboard.type(text);
}
