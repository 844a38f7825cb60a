import { h } from "../../../shared/src/elements.js";
import { language, say } from "../catalogue/languages.js";
import { Problem, type Told } from "../server.js";
import { inEnglish } from "./in_english.js";

/** What went wrong, read out at once: the studio's own sentences in the reader's language, all else in English. */
export function problem(error: unknown): HTMLElement {
  const spent = error instanceof Problem && error.status === 402;
  const place = { role: "alert", class: spent ? "problem spent" : "problem" };
  if (error instanceof Problem) return error.told ? toldOf(error.told, place) : h("p", place, error.message);
  return h("p", place, inEnglish(error instanceof Error ? error.message : String(error)));
}

/** The same of a run that failed. */
export function toldOf(told: Told, place = { role: "alert", class: "problem" }): HTMLElement {
  const { message, said } = told;
  if (said === null || language() === "en") return h("p", place, inEnglish(message));
  return h("p", place, say(said.sentence, said.words), said.more ? " " : null, said.more ? inEnglish(message) : null);
}
