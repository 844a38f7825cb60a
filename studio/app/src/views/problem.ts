import { h } from "../elements.ts";
import { Problem } from "../server.ts";

/** What went wrong, read out at once. */
export function problem(error: unknown): HTMLElement {
  const words = error instanceof Error ? error.message : String(error);
  const spent = error instanceof Problem && error.status === 402;
  return h("p", { role: "alert", class: spent ? "problem spent" : "problem", lang: "en" }, words);
}
