/**
 * A steward at work in Debian's Chromium, by keyboard alone: from a table to a map; then a second tab, other views and
 * languages. Prints what was asked of other machines, what went wrong, and what was seen.
 *
 * usage: node browser/steward.mjs LINK [FOLDER FOR PICTURES]
 */

import { tabTo } from "../../shared/browser/chromium.mjs";
import { begun, otherLanguages, press, write } from "./page.mjs";

const [link, pictures] = process.argv.slice(2);

async function fill(page, epsilon) {
  await press(page, /city\.parquet/);
  await page.getByText("Chosen: city.parquet").waitFor();
  for (const [side, value] of [
    ["West", "2.1"],
    ["South", "54.65"],
    ["East", "2.5"],
    ["North", "54.881"],
  ]) {
    await write(page, side, value);
  }
  await write(page, "ε", epsilon);
}

const { page, found, opened, check, over, here } = await begun(link, pictures);
await page.getByRole("heading", { name: "New release" }).waitFor();
found.facts.address = page.url();
await fill(page, "5");
await page.getByText(/cells at ε = 5/).waitFor();
await tabTo(page, page.getByLabel("Move ε"));
await page.keyboard.press("Home");
await page.getByText(/cells at ε = 0\.01/).waitFor();
found.facts.coarse = await page.getByText(/cells at ε/).textContent();
await page.locator("summary", { hasText: "The figures" }).waitFor();
await check(page, "plan");
await page.getByText("In δ or ρ").click();
await write(page, "ρ", "0.02");
await write(page, "Data set that pays", "others"); // whose cap is not in ε
await page.getByText(/cells at ρ = 0\.02/).waitFor();
await press(page, "See what it costs");
await page.getByRole("heading", { name: /^What it costs: ρ = 0\.02/ }).waitFor();
found.facts.rho = await page.locator(".cost pre").first().textContent();
await check(page, "rho");
for (const label of ["ρ", "Data set that pays"]) {
  await tabTo(page, page.getByLabel(label, { exact: true }));
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
}
await write(page, "ε", "5");
await press(page, "See what it costs");
await page.getByRole("alert").waitFor();
found.facts.refused = await page.getByRole("alert").textContent();
await check(page, "refused");
await write(page, "ε", "0.5");
await press(page, "See what it costs");
await page.getByRole("heading", { name: "What it costs: ε = 0.5" }).waitFor();
found.facts.cost = await page.locator(".cost dl").innerText();
found.facts.command = await page.locator(".cost pre").first().textContent();
await check(page, "cost");

const second = await opened(here);
await second.getByRole("heading", { name: "New release" }).waitFor();
await fill(second, "0.5");
await write(second, "File for the map", "second.parquet");
await press(second, "See what it costs");
await second.getByRole("button", { name: /^Release it/ }).waitFor();

await press(page, /^Release it: ε = 0.5 of city, for good/);
await page.getByRole("link", { name: "Look at the map" }).waitFor();
found.facts.done = await page.getByRole("heading", { level: 2 }).first().textContent();
await check(page, "done");
await press(second, /^Release it/);
await second.getByRole("alert").waitFor();
found.facts.second = await second.getByRole("alert").textContent();

await tabTo(page, page.getByRole("link", { name: "Look at the map" }));
await page.keyboard.press("Enter");
await page.getByText("Save as").waitFor();
await page.locator(".view img, .view iframe").first().waitFor();
await press(page, "Picture");
await page.locator(".view img").waitFor();
await check(page, "picture");
await press(page, "Interactive page");
await page.locator(".view iframe").waitFor();
const framed = await (await page.locator(".view iframe").elementHandle()).contentFrame();
await framed.locator("body *").first().waitFor();
found.facts.framed = await framed.evaluate(() => {
  const tried = (what) => {
    try {
      return String(what());
    } catch (error) {
      return error.name;
    }
  };
  return { origin: self.origin, cookie: tried(() => document.cookie), parent: tried(() => parent.document.title) };
});
await check(page, "page");
const download = page.waitForEvent("download");
await press(page, ".geojson");
found.facts.saved = (await download).suggestedFilename();
await page.goto(`${here}/#/ledger`);
await page.getByText("Charges", { exact: true }).first().waitFor();
found.facts.ledger = await page.getByRole("table").first().innerText();
await check(page, "ledger");
await page.goto(`${here}/#/maps`);
await page.getByRole("link", { name: /city-map/ }).waitFor();
await check(page, "maps");
await page.emulateMedia({ colorScheme: "dark" });
await page.goto(`${here}/#/release`);
await page.getByText("city.parquet").waitFor();
await check(page, "dark");
const order = (fields) => async () => {
  await page.locator("button.entry", { hasText: "city.parquet" }).click();
  await page.locator(".chosen").waitFor();
  for (const [name, value] of Object.entries(fields)) await page.locator(`main [name=${name}]`).fill(value);
  await page.locator("main form button.main").click();
};
const box = { west: "2.1", south: "54.65", east: "2.5", north: "54.881" };
found.facts.other = await otherLanguages(
  page,
  [
    ["release", `${here}/#/release/1`, ".plan details", () => order({ ...box, epsilon: "0.3" })()],
    [
      "refused",
      `${here}/#/release/2`,
      ".review [role=alert]",
      order({ ...box, epsilon: "5", output: "other.parquet" }),
    ],
    [
      "there",
      `${here}/#/release/3`,
      ".review [role=alert]",
      order({ ...box, epsilon: "0.1", output: "city-map.parquet" }),
    ],
    ["cost", `${here}/#/release/4`, ".cost", order({ ...box, epsilon: "0.2", output: "karte.parquet" })],
    [
      "values",
      `${here}/#/release/5`,
      ".plan table",
      async () => {
        await page.locator("[name=kind]").selectOption("statistics");
        await order({ low: "0", high: "10" })();
      },
    ],
    ["ledger", `${here}/#/ledger`, "table"],
    ["maps", `${here}/#/maps`, "main li a"],
    ["map", `${here}/#/maps/city-map.parquet`, ".view iframe, .view img"],
    [
      "difference",
      `${here}/#/maps/city-map.parquet`,
      "section .view iframe",
      async () => {
        await page.locator("form button[type=submit]").click();
        await page.locator("section[aria-labelledby=changed] button").first().click();
      },
    ],
    ["nowhere", `${here}/#/maps/nothing.parquet`, "[role=alert]"],
  ],
  check,
);
await press(page, "Sign out");
await page.getByRole("heading", { name: "Sign in" }).waitFor();
await check(page, "signed-out");
await over();
