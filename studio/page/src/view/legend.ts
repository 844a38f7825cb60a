/** What the colours of a layer mean. */

import { css, type Layer, type Palette, position, ticks } from "../map/colours.js";
import type { PagePayload } from "../payload/release.js";
import type { Words } from "../words/words.js";
import { make } from "./elements.js";

const STEPS = 48;

export function legend(payload: PagePayload, layer: Layer, palette: Palette, words: Words): HTMLElement {
  return layer === "certainty" ? classes(payload, palette, words) : shades(payload, layer, palette, words);
}

function shades(payload: PagePayload, layer: "density" | "count", palette: Palette, words: Words): HTMLElement {
  const scale = payload.scales[layer], counted = words.counted(payload.counted);
  const unit = layer === "density" ? words.say("perUnit", { counted, unit: payload.unit }) : words.say("perCell", { counted });
  const bar = make("div", { class: "bar", "aria-hidden": "true" });
  for (let i = 0; i < STEPS; i++) {
    const step = make("span");
    step.style.background = css(palette.shade(i / (STEPS - 1)));
    bar.append(step);
  }
  const marks = make("div", { class: "ticks" });
  for (const value of ticks(scale)) {
    const mark = make("span", {}, words.compact(value));
    mark.style.left = `${100 * position(scale, value)}%`;
    marks.append(mark);
  }
  const more = scale.densest > scale.high ? make("span", { class: "more" }, words.say("upTo", { number: words.compact(scale.densest) })) : null;
  return make("figure", { class: "legend" }, make("figcaption", {}, unit), bar, marks, more);
}

function classes(payload: PagePayload, palette: Palette, words: Words): HTMLElement {
  const percent = payload.colours.breaks.map((each) => words.short(100 * each));
  const list = make("ul", { class: "classes" });
  palette.errors.forEach((colour, i) => {
    const swatch = make("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = css(colour);
    const parts = { low: percent[i - 1] ?? "", high: percent[i] ?? "" };
    const text = words.say(i === 0 ? "classUpTo" : i === percent.length ? "classOver" : "classBetween", parts);
    list.append(make("li", {}, swatch, text));
  });
  return make("figure", { class: "legend" }, make("figcaption", {}, words.say("errorShare")), list);
}
