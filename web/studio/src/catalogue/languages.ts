import { type Catalogue, english } from "./english.js";
import { french } from "./french.js";
import { german } from "./german.js";
import { spanish } from "./spanish.js";

export type Sentence = keyof Catalogue;

const languages: Record<string, { name: string; catalogue: Catalogue }> = {
  en: { name: "English", catalogue: english },
  de: { name: "Deutsch", catalogue: german },
  fr: { name: "Français", catalogue: french },
  es: { name: "Español", catalogue: spanish },
};
const KEPT = "hazemap language";

let chosen = localStorage.getItem(KEPT) ?? navigator.language.slice(0, 2);
if (!(chosen in languages)) chosen = "en";

export const names = Object.entries(languages).map(([code, { name }]) => ({ code, name }));

export function language(): string {
  return chosen;
}

export function choose(code: string): void {
  if (!(code in languages)) return;
  chosen = code;
  localStorage.setItem(KEPT, code);
}

/** A sentence in the chosen language, with what stands in braces filled in. */
export function say(sentence: Sentence, words: Record<string, string | number> = {}): string {
  const text = (languages[chosen]?.catalogue ?? english)[sentence];
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(words[name] ?? whole));
}

export function number(value: number, digits = 0): string {
  return value.toLocaleString(chosen, { maximumFractionDigits: digits });
}
