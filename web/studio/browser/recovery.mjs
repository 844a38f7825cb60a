/**
 * A steward in Debian's Chromium, by keyboard, whose studio is killed in the middle of a run, after its charge, and
 * started again. Prints what was asked of other machines, what went wrong, and what was seen.
 *
 * usage: node browser/recovery.mjs LINK killed|started [FOLDER FOR PICTURES]
 */

import { tabTo } from "../../shared/browser/chromium.mjs";
import { begun, inEnglish, press, speak, write } from "./page.mjs";

const [link, part, pictures] = process.argv.slice(2);
const { page, found, check, over, here } = await begun(link, pictures);
await page.getByRole("heading", { name: "New release" }).waitFor();
if (part === "killed") {
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
  await write(page, "ε", "0.5");
  await press(page, "See what it costs");
  await press(page, /^Release it/);
  await page
    .locator(".review")
    .getByText(/The studio does not answer/)
    .waitFor();
  found.facts.lost = await page.locator(".review").innerText();
  found.errors = []; // of requests that nobody answered
} else {
  await tabTo(page, page.getByRole("link", { name: "Ledger" }));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Paid for, and not there" }).waitFor();
  found.facts.offered = await page.locator("section.card li").first().innerText();
  await check(page, "recoverable");
  found.facts.english = [];
  for (const code of ["de", "fr", "es", "en"]) {
    await speak(page, code);
    await page.locator("section.card li button").first().waitFor();
    if (code !== "en") found.facts.english.push(...(await inEnglish(page, `${code} recoverable`)));
  }
  await press(page, /^Recover charge/);
  await page.getByRole("heading", { name: /^city-map\.parquet is there/ }).waitFor();
  found.facts.done = await page.getByRole("heading", { level: 2, name: /is there/ }).textContent();
  await check(page, "recovered");
  await tabTo(page, page.getByRole("link", { name: "Look at the map" }));
  await page.keyboard.press("Enter");
  await page.locator(".view img, .view iframe").first().waitFor();
  await page.goto(`${here}/#/ledger`);
  await page.getByRole("table", { name: "Charges", exact: true }).waitFor();
  found.facts.charges = await page.getByRole("table", { name: "Charges", exact: true }).locator("tbody tr").count();
  await page.goto(`${here}/#/release/nobody`);
  await press(page, /city\.parquet/);
  await page.getByText("Chosen: city.parquet").waitFor();
  for (const [label, value] of [
    ["West", "12.1"],
    ["South", "54.65"],
    ["East", "12.5"],
    ["North", "54.881"],
    ["ε", "0.3"],
    ["File for the map", "nobody.parquet"],
  ])
    await write(page, label, value);
  await press(page, "See what it costs");
  await press(page, /^Release it/);
  await page.getByRole("heading", { name: "It ended after its look." }).waitFor();
  found.facts.look = await page.getByRole("alert").innerText();
  await check(page, "ended after its look");
  for (const code of ["de", "fr", "es", "en"]) {
    // the ledger offers to go on, in each
    await page.goto(`${here}/#/ledger`);
    await page.locator("section.card li .confirmed button").first().waitFor(); // it is drawn before it is drawn anew
    await speak(page, code);
    await page.locator("section.card li .confirmed button").first().waitFor();
    if (code !== "en") found.facts.english.push(...(await inEnglish(page, `${code} after a look`)));
  }
  await press(page, "Go on for ε = 0.27");
  await press(page, "Yes: Go on for ε = 0.27");
  await page.getByRole("heading", { name: /^nobody\.parquet is there/ }).waitFor();
}
await over();
