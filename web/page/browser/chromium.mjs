/** A page in Debian's Chromium, without a network: every request but that of the file itself is counted and refused. */

import { pathToFileURL } from "node:url";

import { chromium } from "playwright-core";

export async function launched() {
  const flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"];
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: flags,
    timeout: 300_000,
  });
}

/** The page of a file once it stands, `before` which something may be done; what it asked for, and what went wrong in it. */
export async function opened(browser, file, { hash = "", before = async () => undefined, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...options });
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  const own = pathToFileURL(file).href,
    requests = [],
    errors = [];
  await page.route("**/*", (route) => {
    const address = route.request().url();
    if (address === own || address.startsWith("data:")) return route.continue();
    requests.push(address.slice(0, 200));
    return route.abort();
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await before(page);
  await page.goto(own + hash);
  await page.waitForSelector("html[data-ready]", { timeout: 300_000 });
  return { page, context, requests, errors };
}
