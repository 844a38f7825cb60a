/**
 * An operator at work in Debian's Chromium, by keyboard alone: a campaign is ordered, watched and fetched. Prints what
 * was asked of other machines, what went wrong, and what was seen.
 *
 * usage: node browser/operator.mjs LINK SECRET [FOLDER FOR PICTURES]
 */

import { tabTo } from "../../shared/browser/chromium.mjs";
import { begun, otherLanguages, press, write } from "./page.mjs";

const [link, secret, pictures] = process.argv.slice(2);
const { page, found, check, over, here } = await begun(link, pictures);

await page.getByRole("heading", { name: "New release" }).waitFor();
await tabTo(page, page.getByRole("link", { name: "Campaigns" }));
await page.keyboard.press("Enter");
await page.getByText(/14 devices are enrolled/).waitFor();
await page.getByRole("table", { name: /Whether the servers/ }).waitFor();
await check(page, "campaigns-none");
await tabTo(page, page.getByRole("link", { name: "Order a campaign" }));
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Order a campaign" }).waitFor();
await write(page, "Name of the campaign", "commuters");
await write(page, "Purpose", "where people <i>live</i>");
for (const [side, value] of [
  ["West", "13.2"],
  ["South", "52.4"],
  ["East", "13.6"],
  ["North", "52.6"],
]) {
  await write(page, side, value);
}
await write(page, "ε", "10");
await write(page, "People asked in a round", "1");
await press(page, "See what it costs");
await page.getByRole("alert").waitFor();
found.facts.refused = await page.getByRole("alert").textContent();
await write(page, "People asked in a round", "12");
await write(page, "Part that may drop out", "0.25");
await write(page, "Part that may work with the server", "0");
await write(page, "For each stage", "600");
await write(page, "A round waits for people", "600");
await check(page, "campaign-order");
await press(page, "See what it costs");
await page.getByRole("heading", { name: "What it costs: ε = 10" }).waitFor();
await page.locator(".cost summary").click();
found.facts.command = await page.locator(".cost pre").first().textContent();
found.facts.python = await page.locator(".cost pre").nth(1).textContent();
await check(page, "campaign-cost");
await press(page, /^Begin commuters: ε = 10, for good/);
await page.getByRole("heading", { name: "commuters", level: 1 }).waitFor();
await page
  .getByRole("heading", { name: /why devices declined/ })
  .first()
  .waitFor();
found.facts.reasons = await page.locator("section.card h2 + ul").first().innerText();
await page.locator(".view img").waitFor();
await page.getByRole("status").getByText("done").waitFor();
found.facts.rounds = await page.getByRole("table", { name: "Rounds" }).innerText();
await check(page, "campaign-done");
await press(page, "Fetch the release");
await page.getByRole("link", { name: "Look at the map" }).waitFor();
await page.goto(`${here}/#/campaigns/second`);
await page.getByText(/Waiting for/).waitFor();
await press(page, "Stop it");
await page.getByText(/what was charged stays charged/).waitFor();
await check(page, "campaign-stop");
await press(page, "Yes: Stop it");
await page.getByRole("status").getByText("stopped").first().waitFor();
await page.goto(`${here}/#/campaigns`);
await page.getByRole("table", { name: "Campaigns" }).waitFor();
await page.getByText("Devices", { exact: true }).click();
await page.getByRole("table", { name: "Devices" }).waitFor();
await check(page, "campaigns");
await page.emulateMedia({ colorScheme: "dark" });
await check(page, "campaigns-dark");
await page.emulateMedia({ colorScheme: "light" });
const campaign = async () => {
  const filled = {
    name: "third",
    purpose: "qui",
    west: "13.2",
    south: "52.4",
    east: "13.6",
    north: "52.6",
    people: "12",
  };
  for (const [name, value] of Object.entries(filled)) await page.locator(`main [name=${name}]`).fill(value);
  for (const each of await page.locator("main form details summary").all()) await each.click();
  await page.locator("[name=slots]").fill("hour-of-day");
  await page.locator("main form button.main").click();
};
found.facts.other = await otherLanguages(
  page,
  [
    ["campaigns", `${here}/#/campaigns`, "table"],
    ["campaign", `${here}/#/campaigns/commuters`, ".view img"],
    ["campaign-stopped", `${here}/#/campaigns/second`, "dl"],
    ["campaign-slots", `${here}/#/campaigns/new/order`, ".cost", campaign],
  ],
  check,
);
await page.goto(`${here}/#/campaigns`);
await page.goto(`${here}/#/campaigns/new/order`);
await campaign();
found.facts.slots = await page.locator(".cost pre").first().textContent();
found.facts.kept = await page.evaluate((token) => {
  const stored = JSON.stringify({ ...localStorage, ...sessionStorage });
  return (stored + document.cookie + location.href + document.documentElement.outerHTML).includes(token);
}, secret);
await over();
