/** A page of the studio in Debian's Chromium for whoever works by keyboard: what it asks of others is noted and stopped. */

import { accessibility, launched, overwrite, PATIENCE, tabTo } from "../../shared/browser/chromium.mjs";

/** A browser that has opened the studio by its link; `found` is printed by `over`. */
export async function begun(link, pictures) {
  const here = new URL(link).origin;
  const found = { requests: [], errors: [], violations: [], checked: 0, facts: {} };
  const browser = await launched();
  const context = await browser.newContext({ viewport: { width: 1400, height: 1000 }, locale: "en-GB" });
  context.setDefaultTimeout(PATIENCE);
  await context.route("**/*", (route) => {
    const address = route.request().url();
    if (address.startsWith(`${here}/`) || /^(data|blob):/.test(address)) return route.continue();
    found.requests.push(address.slice(0, 200));
    return route.abort();
  });

  async function opened(address) {
    const page = await context.newPage();
    page.on("pageerror", (error) => found.errors.push(error.message));
    page.on("console", (message) => {
      const refused = /status of 4(01|02|22)/.test(message.text()); // what the studio says no to is shown in words
      if (message.type() === "error" && !refused) found.errors.push(message.text());
    });
    await page.goto(address);
    return page;
  }

  async function check(page, name) {
    found.checked += 1;
    if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
    const { broken } = await accessibility(page, name, { iframes: false });
    found.violations.push(...broken);
  }

  check.pictures = pictures;

  async function over() {
    await browser.close();
    console.log(JSON.stringify(found));
  }

  return { page: await opened(link), found, opened, check, over, here };
}

/** What a reader of another language would meet in English outside of what is marked as such. */
export async function inEnglish(page, view) {
  const met = await page.evaluate(() => {
    const english =
      /\b(the|of|is|and|are|with|which|people|this|from|been|what|there|that|not|for|it|cells|rows|query|reading|waiting|here|done|running|answers|choose|show|write|each)\b/i;
    const skipped = "[lang=en], [translate=no], code, pre, script, style";
    const texts = [];
    for (const element of document.body.querySelectorAll("*")) {
      if (element.closest(skipped) || !element.checkVisibility()) continue;
      for (const child of element.childNodes) if (child.nodeType === Node.TEXT_NODE) texts.push(child.data);
      for (const name of ["aria-label", "title", "placeholder", "alt", "aria-valuetext"])
        texts.push(element.getAttribute(name) ?? "");
    }
    return [document.title, ...texts].filter((text) => english.test(text.replace(/\S*\/\S*|\w+(-\w+)+/g, ""))); // paths and names to type are no words
  });
  return met.map((text) => `${view}: ${text.trim().slice(0, 120)}`);
}

export async function speak(page, code) {
  await page.locator("header select, select[name=language]").first().selectOption(code);
  await page.locator(`html[lang=${code}]`).waitFor();
}

/**
 * Views in the other three languages: their headings, and what is in English there. Each is a name, an address, what is
 * waited for, and perhaps what is done before.
 */
export async function otherLanguages(page, views, check) {
  const words = {},
    english = [],
    wide = [];
  for (const code of ["de", "fr", "es", "en"]) {
    await page.goto(views[0][1]);
    await speak(page, code);
    words[code] = await page.getByRole("heading", { level: 1 }).textContent();
    for (const [name, address, ready, act] of code === "en" ? [] : views) {
      await page.goto(address);
      if (act) await act();
      await page.locator(ready).first().waitFor();
      english.push(...(await inEnglish(page, `${code} ${name}`)));
      if (code !== "de") continue;
      await check(page, `${name}-german`);
      if (await narrow(page, check.pictures && `${check.pictures}/${name}-narrow.png`)) wide.push(name);
    }
  }
  return { words, english, wide };
}

/** Whether a view is wider than a telephone. */
async function narrow(page, path) {
  const usual = page.viewportSize();
  await page.setViewportSize({ width: 400, height: 800 });
  if (path) await page.screenshot({ path, fullPage: true });
  const found = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await page.setViewportSize(usual);
  return found;
}

export async function press(page, name, key = "Enter") {
  const button = page.getByRole("button", { name });
  await button.waitFor();
  await tabTo(page, button);
  await page.keyboard.press(key);
}

export async function write(page, label, text) {
  await tabTo(page, page.getByLabel(label, { exact: true }));
  await overwrite(page, text);
}
