/** An interval as a line, the best guess as a point on it. */

import { h } from "../../../shared/src/elements.js";

/** Drawn from the least to the most that is shown; `value` is NaN where there is no guess. */
export function intervalBar(low: number, high: number, value: number, least: number, most: number): HTMLElement {
  const place = (at: number) => `${(100 * (Math.max(least, Math.min(most, at)) - least)) / (most - least)}%`;
  const span = h("span", { class: "span" }),
    zero = h("span", { class: "zero" });
  span.style.left = place(low);
  span.style.right = `calc(100% - ${place(high)})`;
  zero.style.left = place(Math.max(least, 0));
  const bar = h("div", { class: "interval", "aria-hidden": "true" }, zero, span);
  if (Number.isFinite(value)) {
    const dot = h("span", { class: "dot" });
    dot.style.left = place(value);
    bar.append(dot);
  }
  return bar;
}
