/**
 * A steward in Debian's Chromium, by keyboard, who stops releases: one before its charge, statistics this time. Prints
 * what was asked of other machines, what went wrong, and what was seen.
 *
 * usage: node browser/stopping.mjs LINK [FOLDER FOR PICTURES]
 */

import { tabTo } from "../../shared/browser/chromium.mjs";
import { begun, inEnglish, press, speak, write } from "./page.mjs";

const [link, pictures] = process.argv.slice(2);
const { page, found, check, over, here } = await begun(link, pictures);
await page.getByRole("heading", { name: "New release" }).waitFor();
await press(page, /city\.parquet/);
await page.getByText("Chosen: city.parquet").waitFor();
await tabTo(page, page.getByLabel("What is told"));
await page.keyboard.press("ArrowDown");
await page.getByLabel("Value", { exact: true }).waitFor();
await page.getByLabel("Value", { exact: true }).selectOption("lat");
for (const [label, value] of [
  ["Least possible value", "54"],
  ["Greatest possible value", "56"],
  ["West", "2.1"],
  ["South", "54.65"],
  ["East", "2.5"],
  ["North", "54.881"],
  ["ε", "0.5"],
])
  await write(page, label, value);
await page.getByRole("table", { name: /places at ε = 0.5/ }).waitFor();
found.facts.plan = await page.getByRole("table", { name: /places at/ }).innerText();
await check(page, "statistics");
await press(page, "See what it costs");
await page.getByRole("heading", { name: "What it costs: ε = 0.5" }).waitFor();
found.facts.command = await page.locator(".cost pre").first().textContent();
await press(page, /^Release it/);
await page.getByText(/reading rows/).waitFor();
await press(page, "Stop it");
await page.getByText(/this costs nothing/).waitFor();
await check(page, "stop");
await press(page, "Yes: Stop it");
await page.getByRole("heading", { name: "It was stopped." }).waitFor();
found.facts.stopped = await page.getByRole("alert").textContent();
await check(page, "stopped");
found.facts.english = [];
for (const code of ["de", "fr", "es"]) {
  await page.goto(`${here}/#/release/${code}`);
  await speak(page, code);
  await page.locator("button.entry", { hasText: "city.parquet" }).click();
  await page.locator(".chosen").waitFor();
  for (const [name, value] of Object.entries({
    west: "2.1",
    south: "54.65",
    east: "2.5",
    north: "54.881",
    epsilon: "0.1",
  })) {
    await page.locator(`main [name=${name}]`).fill(value);
  }
  await page.locator("main form button.main").click();
  await page.locator("button.spend").click();
  await page.locator("progress").waitFor();
  await page.locator(".confirmed button").click();
  found.facts.english.push(...(await inEnglish(page, `${code} running`)));
  await page.locator(".confirmed button.main").click();
  await page.locator(".review [role=alert]").waitFor();
  found.facts.english.push(...(await inEnglish(page, `${code} stopped`)));
}
await over();
