/** What the colours of a layer mean. */

import { h } from "../../../shared/src/elements.js";
import { css, evenPosition, evenTicks, type Palette, position, ticks } from "../map/colours.js";
import type { EvenScale, Scale } from "../payload/release.js";
import type { Words } from "../words/words.js";

const STEPS = 48;

/** Colours that are proportional at first, then logarithmic. */
export function densityLegend(title: string, scale: Scale, palette: Palette, words: Words): HTMLElement {
  const marks = ticks(scale).map((value) => [words.compact(value), position(scale, value)] as const);
  const more =
    scale.densest > scale.high
      ? h("span", { class: "more" }, words.say("upTo", { number: words.compact(scale.densest) }))
      : null;
  return h("figure", { class: "legend" }, h("figcaption", {}, title), bar(palette), labels(marks), more);
}

/** Colours in even steps; `text` says what a number is called. */
export function evenLegend(
  title: string,
  scale: EvenScale,
  palette: Palette,
  text: (value: number) => string,
): HTMLElement {
  const marks = evenTicks(scale).map((value) => [text(value), evenPosition(scale, value)] as const);
  return h("figure", { class: "legend" }, h("figcaption", {}, title), bar(palette), labels(marks));
}

/** Classes of errors, as shares. */
export function classLegend(title: string, breaks: readonly number[], palette: Palette, words: Words): HTMLElement {
  const percent = breaks.map((each) => words.short(100 * each));
  const list = h("ul", { class: "classes" });
  palette.errors.forEach((colour, i) => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = css(colour);
    const parts = { low: percent[i - 1] ?? "", high: percent[i] ?? "" };
    const text = words.say(i === 0 ? "classUpTo" : i === percent.length ? "classOver" : "classBetween", parts);
    list.append(h("li", {}, swatch, text));
  });
  return h("figure", { class: "legend" }, h("figcaption", {}, title), list);
}

function bar(palette: Palette): HTMLElement {
  const found = h("div", { class: "bar", "aria-hidden": "true" });
  for (let i = 0; i < STEPS; i++) {
    const step = h("span");
    step.style.background = css(palette.shade(i / (STEPS - 1)));
    found.append(step);
  }
  return found;
}

function labels(marks: readonly (readonly [string, number])[]): HTMLElement {
  const found = h("div", { class: "ticks" });
  for (const [text, place] of marks) {
    const mark = h("span", {}, text);
    mark.style.left = `${100 * place}%`;
    found.append(mark);
  }
  return found;
}
