/**
 * Visitors in Debian's Chromium, each in a profile of their own, who make their tabs devices by keyboard alone. They answer
 * until a line comes on standard input. Then what they saw is printed as JSON.
 *
 * usage: node browser/visitors.mjs ORDERS.json, which is
 * {"links": […], "rules": {"people": "40", …}, "files": [path or null for a made-up walk, …],
 *  "closed": the visitor whose tab is closed when it is about to send its masked counts, or null,
 *  "recipes": {"policy": a signed file, "key": its key} or nothing,
 *  "pictures": a folder or null}
 */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

import { accessibility, launched, overwrite, PATIENCE, tabTo } from "../../shared/browser/chromium.mjs";

const orders = JSON.parse(readFileSync(process.argv[2], "utf8"));
const found = { requests: [], errors: [], violations: [], checked: 0, logs: [], facts: {} };
const MASKED = 4;

const browser = await launched();

async function visitor(link) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 1000 }, locale: "en-GB" });
  context.setDefaultTimeout(PATIENCE);
  const shared = (orders.rules.aggregators ?? "")
    .split(" ")
    .filter(Boolean)
    .map((address) => new URL(address).origin);
  const allowed = [new URL(link).origin, new URLSearchParams(new URL(link).hash.slice(1)).get("server"), ...shared];
  context.on("request", (request) => {
    const address = request.url();
    if (!allowed.some((each) => address.startsWith(`${each}/`)) && !/^(data|blob):/.test(address))
      found.requests.push(address.slice(0, 200));
  });
  return context;
}

async function opened(context, link) {
  const page = await context.newPage();
  page.on("pageerror", (error) => found.errors.push(error.message));
  page.on("console", (message) => {
    const told = /status of 4|Content Security Policy|ERR_/.test(message.text()); // what was refused is shown in words
    if (message.type() === "error" && !told) found.errors.push(message.text());
  });
  await page.goto(link);
  return page;
}

async function check(page, name) {
  found.checked += 1;
  if (orders.pictures) await page.screenshot({ path: `${orders.pictures}/${name}.png`, fullPage: true });
  const { broken } = await accessibility(page, name);
  found.violations.push(...broken);
}

async function press(page, name) {
  await tabTo(page, page.getByRole("button", { name }));
  await page.keyboard.press("Enter");
}

async function write(page, id, text) {
  await tabTo(page, page.locator(`#${id}`));
  await overwrite(page, text);
}

/** The dialog for a file. A browser that is busy may open none for a key: press it again, as people do. */
async function chooser(page, id = "file") {
  for (let presses = 0; presses < 6; presses += 1) {
    await tabTo(page, page.locator(`#${id}`));
    const opened = page.waitForEvent("filechooser", { timeout: 60_000 }).catch(() => null);
    await page.keyboard.press("Space");
    const found = await opened;
    if (found) return found;
  }
  throw new Error("no dialog for a file opens");
}

const logOf = (page) => page.locator(".lines li").allTextContents();

/** Wait for the log to say what became of every answer: a server may have the last one, and end its round, before. */
async function settled(page) {
  for (;;) {
    const lines = await logOf(page);
    const often = (words) => lines.filter((line) => words.test(line)).length;
    const sent = often(/ ready: \d+ bytes/) <= often(/sent \d+ bytes \(HTTP/);
    if (sent && often(/its report has/) <= often(/said that it has reported/)) return;
    await setTimeout(50);
  }
}

/** Places, rules, and the start. */
async function join(page, file) {
  await page.waitForSelector("html[data-ready]");
  if (file) {
    await (await chooser(page)).setFiles(file);
  } else {
    await tabTo(page, page.locator("summary"));
    await page.keyboard.press("Enter");
    await press(page, "Make a walk up");
  }
  await page.getByText(/places are kept here, sealed/).waitFor();
  for (const [name, value] of Object.entries(orders.rules)) await write(page, `rule-${name}`, value);
  await press(page, "Keep these rules");
  await page.getByText(/goes by other rules/).waitFor();
  if (orders.recipes) {
    await write(page, "policy-key", orders.recipes.key);
    await (await chooser(page, "policy-file")).setFiles(orders.recipes.policy);
    await page.getByText(/Goes by the policy/).waitFor();
  }
  await press(page, "Start answering");
  await page.getByText(/Enrolled at/).waitFor();
}

const contexts = [],
  pages = [];
for (const [at, link] of orders.links.entries()) {
  const context = await visitor(link),
    page = await opened(context, link);
  if (at === 0) {
    await page.waitForSelector("html[data-ready]");
    found.facts.address = page.url();
    found.facts.begun = [await page.getByRole("status").textContent(), await page.locator("#rule-people").inputValue()];
    await check(page, "begun");
  }
  contexts.push(context);
  pages.push(page);
  if (at === orders.closed) {
    let sent = 0;
    await page.route("**/v1/tasks/*", async (route) => {
      if (route.request().method() !== "POST" || ++sent < MASKED) return route.continue();
      await route.abort(); // a request that waits here would go out when the tab is closed
      if (sent === MASKED) await page.close();
    });
  }
  await join(page, orders.files[at]);
}
const second = await opened(contexts[0], orders.links[0]);
found.facts.second = await second.getByRole("alert").textContent();
await check(second, "second-tab");
await second.close();
// A host that does not send the header which forbids frames: the page itself works in none.
const frame = await contexts[0].newPage();
await frame.route("**/*", async (route) => {
  const response = await route.fetch();
  await route.fulfill({ body: await response.text(), contentType: "text/html" });
});
await frame.setContent(`<iframe src="${orders.links[0].replaceAll("&", "&amp;")}"></iframe>`);
found.facts.framed = await frame.frameLocator("iframe").getByRole("alert").textContent();
await frame.close();
console.log("answering");

for await (const _ of createInterface({ input: process.stdin })) break;

await check(pages[0], "answering");
found.facts.bound = await pages[0].evaluate(
  (url) =>
    fetch(url).then(
      () => "reached",
      (error) => error.name,
    ),
  orders.links[0],
);
for (const [at, page] of pages.entries()) {
  if (page.isClosed()) {
    pages[at] = await opened(contexts[at], orders.links[at]);
    await pages[at].waitForSelector("html[data-ready]");
    found.facts.reopened = await pages[at].getByRole("status").textContent();
    await check(pages[at], "reopened");
  } else {
    await settled(page);
    await press(page, "Stop answering");
    await page.getByText(/Not answering/).waitFor();
  }
  found.logs.push(await logOf(pages[at]));
}
await pages[0].emulateMedia({ colorScheme: "dark" });
await check(pages[0], "dark");
found.facts.kept = await pages[0].evaluate(async () => {
  const asked = (request) =>
    new Promise((resolve) => {
      request.onsuccess = () => resolve(request.result);
    });
  const store = (await asked(indexedDB.open("hazemap-device"))).transaction("kept").objectStore("kept");
  const names = await asked(store.getAllKeys());
  const key = await asked(store.get("key"));
  const kinds = [];
  for (const name of names) kinds.push([name, (await asked(store.get(name))).constructor.name]);
  return { kinds: Object.fromEntries(kinds), extractable: key.extractable };
});
// Whoever clears what a browser keeps is a stranger again: the same code opens nothing.
await pages[0].close();
const again = await contexts[0].newPage();
const tools = await contexts[0].newCDPSession(again);
await tools.send("Storage.clearDataForOrigin", { origin: new URL(orders.links[0]).origin, storageTypes: "all" });
await again.goto(orders.links[0]);
await again.waitForSelector("html[data-ready]");
await press(again, "Start answering");
await again.getByRole("alert").waitFor();
found.facts.again = await again.getByRole("alert").textContent();
await check(again, "refused");
await browser.close();
console.log(JSON.stringify(found));
process.exit(0);
