/** A page in Debian's Chromium, without a network: every request but that of the file itself is counted and refused. */

import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { accessibility, PATIENCE } from "../../shared/browser/chromium.mjs";

/** The page of a file once it stands, `before` which something may be done; what it asked for, and what went wrong in it. */
export async function opened(browser, file, { hash = "", before = async () => undefined, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...options });
  context.setDefaultTimeout(PATIENCE);
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
  await page.waitForSelector("html[data-ready]", { timeout: PATIENCE });
  return { page, context, requests, errors };
}

/** Visits of one page, each in a context of its own: what is found goes into `found`, pictures into a folder, if any. */
export function visits(browser, file, found, pictures, series = "") {
  return async (name, options, use) => {
    const { page, context, requests, errors } = await opened(browser, file, options);
    await use(page, async (view) => {
      if (pictures) await page.screenshot({ path: join(pictures, `${series}${name}-${view}.png`) });
      const { kept, broken } = await accessibility(page, `${name} ${view}`);
      if (kept) found.checked += 1;
      found.violations.push(...broken);
    });
    found.requests.push(...requests);
    found.errors.push(...errors.map((error) => `${name}: ${error}`));
    await context.close();
  };
}
