import { h } from "../../../shared/src/elements.js";
import { language, say } from "../catalogue/languages.js";

/** What hazemap itself says, in English, for screen readers and for whoever reads another language. */
export function inEnglish(words: string): HTMLElement {
  const said = h("span", { lang: "en" }, words);
  return language() === "en" || words === "" ? said : h("span", {}, say("saidInEnglish"), " ", said);
}

/** A line under what holds notes in English, for whoever reads another language. */
export function partlyEnglish(): HTMLElement | null {
  return language() === "en" ? null : h("p", {}, h("small", {}, say("partlyEnglish")));
}

/** Sentences of hazemap's own, as a list. */
export function englishList(lines: readonly string[]): HTMLElement {
  const list = h("ul", { lang: "en", class: "told" }, ...lines.map((line) => h("li", {}, line)));
  return language() === "en" ? list : h("div", {}, h("p", {}, say("saidInEnglish")), list);
}
