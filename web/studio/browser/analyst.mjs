/**
 * An analyst at work in Debian's Chromium, by keyboard alone: a study is begun, a recipe written, checked and asked, its
 * answer read. Prints what was asked of other machines, what went wrong, and what was seen.
 *
 * usage: node browser/analyst.mjs LINK RECIPE [FOLDER FOR PICTURES]
 */

import { tabTo } from "../../shared/browser/chromium.mjs";
import { begun, otherLanguages, press, write } from "./page.mjs";

const [link, recipe, pictures] = process.argv.slice(2);
const { page, found, check, over, here } = await begun(link, pictures);

await page.getByRole("heading", { name: "New release" }).waitFor();
await tabTo(page, page.getByRole("link", { name: "Studies" }));
await page.keyboard.press("Enter");
await page.getByText("This server has no study yet.").waitFor();
await check(page, "studies-none");
await tabTo(page, page.getByRole("link", { name: "Begin a study" }));
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: "Begin a study" }).waitFor();
for (const [label, text] of [
  ["Name of the study", "spring"],
  ["Analysis", "keyboard"],
  ["ε", "20"],
  ["δ", "1e-5"],
  ["Most rounds", "4"],
  ["People asked in a round", "12"],
]) {
  await write(page, label, text);
}
await tabTo(page, page.locator("summary").first());
await page.keyboard.press("Enter");
for (const [label, text] of [
  ["Part that may drop out", "0.25"],
  ["Part that may work with the server", "0"],
  ["For each stage", "600"],
  ["A round waits for people", "600"],
]) {
  await write(page, label, text);
}
await press(page, "See what it costs");
await page.getByRole("heading", { name: /^At most: / }).waitFor();
await check(page, "study-order");
await press(page, "Begin spring");
await page.getByRole("heading", { name: "spring", level: 1 }).waitFor();
await page.getByText("No round has begun.").waitFor();
await press(page, "An example");
await page.waitForFunction(() => document.querySelector("textarea").value.includes("next-words-by-age"));
await press(page, "Check it");
await page.getByRole("heading", { name: /^next-words-by-age: / }).waitFor();
await check(page, "recipe-example");
await page.getByLabel("The recipe, in TOML or JSON").fill("no recipe");
await press(page, "Check it");
await page.getByRole("alert").waitFor();
found.facts.refused = await page.getByRole("alert").textContent();
await page.getByLabel("The recipe, in TOML or JSON").fill(recipe);
await write(page, "File in the folder", "words.toml");
await press(page, "Save it");
await page.getByText("words.toml is there.").waitFor();
await write(page, "Policy of the devices", "keyboard.json");
await press(page, "Check it");
await page.getByText("Devices that have told nothing yet would answer.").waitFor();
found.facts.words = await page.locator("ul.told").first().innerText();
await check(page, "recipe");
await press(page, /^Ask words: /);
await page.getByRole("table", { name: "The largest counts" }).waitFor();
found.facts.answer = await page.getByRole("table", { name: "The largest counts" }).innerText();
await page.locator("dl strong").first().filter({ hasText: "3 reports" }).waitFor(); // it is asked for after the answer
found.facts.left = await page.locator("dl strong").first().textContent();
await press(page, "Write the answers");
await page.getByText("spring.parquet is there.").waitFor();
await check(page, "study");
await page.emulateMedia({ colorScheme: "dark" });
await check(page, "study-dark");
await press(page, "Stop it");
await press(page, "Yes: Stop it");
await page.getByText("stopped", { exact: true }).first().waitFor();
await page.goto(`${here}/#/studies`);
await page.getByRole("link", { name: "spring" }).waitFor();
await check(page, "studies");
found.facts.other = await otherLanguages(
  page,
  [
    ["studies", `${here}/#/studies`, "main li a"],
    ["study-order", `${here}/#/studies/new/order`, "form.card"],
    ["study", `${here}/#/studies/spring`, "#answer", () => page.locator("td button").first().click()],
  ],
  check,
);
await over();
