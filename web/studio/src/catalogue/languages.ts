import { fill, LANGUAGES, type Language } from "../../../shared/src/texts.js";
import { type Catalogue, english } from "./english.js";
import { french } from "./french.js";
import { german } from "./german.js";
import { spanish } from "./spanish.js";

export type Sentence = keyof Catalogue;

const languages: Record<Language, { name: string; catalogue: Catalogue }> = {
  en: { name: "English", catalogue: english },
  de: { name: "Deutsch", catalogue: german },
  fr: { name: "Français", catalogue: french },
  es: { name: "Español", catalogue: spanish },
};
const KEPT = "hazemap language";

const known = (code: string): Language | undefined => LANGUAGES.find((each) => each === code);
let chosen = known(localStorage.getItem(KEPT) ?? navigator.language.slice(0, 2)) ?? "en";

export const names = Object.entries(languages).map(([code, { name }]) => ({ code, name }));

export function language(): Language {
  return chosen;
}

export function choose(code: string): void {
  const found = known(code);
  if (found === undefined) return;
  chosen = found;
  localStorage.setItem(KEPT, code);
}

/** A sentence in the chosen language, with what stands in braces filled in. */
export function say(sentence: Sentence, words: Record<string, string | number> = {}): string {
  return fill(languages[chosen].catalogue[sentence], words);
}

export function number(value: number, digits = 0): string {
  return value.toLocaleString(chosen, { maximumFractionDigits: digits });
}
