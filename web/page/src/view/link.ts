/** The part of the page's address after #: what is seen, so that a link shows it again. */

import { LANGUAGES, type Language } from "../../../shared/src/texts.js";

export type Theme = "auto" | "light" | "dark";
export const THEMES: readonly Theme[] = ["auto", "light", "dark"];

/** The slots of the page are named; "all" is all of them together. */
export const ALL = "all";

/** What a link holds; what it does not say is null. */
export interface Link {
  readonly middle: readonly [number, number] | null;
  readonly zoom: number | null;
  readonly layer: string | null;
  readonly beside: string | null;
  readonly slot: string | null;
  readonly language: Language | null;
  readonly theme: Theme | null;
  readonly hatch: boolean | null;
}

/** What an address says, of a page with these layers and slots; what is none of them, no number, language or theme is left out. */
export function readLink(hash: string, layers: readonly string[], slots: readonly string[] = []): Link {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const one = <T extends string>(name: string, values: readonly T[]) =>
    values.find((each) => each === said.get(name)) ?? null;
  const numbers = (said.get("at") ?? "").split(",").map((text) => (text.trim() === "" ? NaN : Number(text)));
  const whole = numbers.length === 3 && numbers.every((number) => Number.isFinite(number));
  return {
    middle: whole ? [numbers[0]!, numbers[1]!] : null,
    zoom: whole ? Math.max(-2, Math.min(32, numbers[2]!)) : null,
    layer: one("layer", layers),
    beside: one("beside", layers),
    slot: one("slot", [...slots, ALL]),
    language: one("language", LANGUAGES),
    theme: one("theme", THEMES),
    hatch: said.get("hatch") === null ? null : said.get("hatch") === "1",
  };
}

export function writeLink(link: Link): string {
  const parts: string[] = [];
  if (link.middle && link.zoom !== null) {
    const digits = Math.max(2, Math.ceil(link.zoom / 3) + 1);
    parts.push(
      `at=${link.middle.map((each) => String(Number(each.toFixed(digits)))).join(",")},${Number(link.zoom.toFixed(2))}`,
    );
  }
  for (const name of ["layer", "beside", "slot", "language", "theme"] as const) {
    if (link[name]) parts.push(`${name}=${encodeURIComponent(link[name])}`);
  }
  if (link.hatch !== null) parts.push(`hatch=${Number(link.hatch)}`);
  return `#${parts.join("&")}`;
}
