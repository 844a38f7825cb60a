/** Small charts of a cell: a number over all slots, and how a value is distributed. */

import { svg } from "../../../shared/src/elements.js";
import { leading } from "../asking/confidence_margins.js";
import { evenTicks } from "../map/colours.js";

const WIDE = 300,
  HIGH = 130,
  LEFT = 38,
  BELOW = 20,
  ABOVE = 6,
  RIGHT = 6;
const LETTER = 5.6; // pixels, about, of a label

/** Numbers with their intervals; `value` is NaN where too few people are, of which only the interval is known. */
export interface Series {
  readonly value: ArrayLike<number>;
  readonly low: ArrayLike<number>;
  readonly high: ArrayLike<number>;
}

/** A cell over all slots: values as points on a line, their intervals as bars, grey where too few people are. */
export function profileChart(
  label: string,
  names: readonly string[],
  series: Series,
  bounds: readonly [number, number],
  chosen: number,
  text: (value: number) => string,
): SVGSVGElement {
  const known = names.map((_, i) => i).filter((i) => Number.isFinite(series.value[i]!));
  const ends = known.length
    ? [Math.min(...known.map((i) => series.low[i]!)), Math.max(...known.map((i) => series.high[i]!))]
    : bounds;
  const room = 0.06 * (ends[1]! - ends[0]! || 1);
  const spoken = known.map((i) => `${names[i]!} ${text(series.value[i]!)}`).join(", ");
  const chart = new Chart(
    `${label}: ${spoken || "–"}`,
    Math.max(bounds[0], ends[0]! - room),
    Math.min(bounds[1], ends[1]! + room),
    text,
  );
  const step = (WIDE - LEFT - RIGHT) / names.length,
    x = (i: number) => LEFT + (i + 0.5) * step;
  names.forEach((_, i) => {
    const [low, high] = [chart.y(series.low[i]!), chart.y(series.high[i]!)];
    chart.put("rect", {
      class: `band${known.includes(i) ? "" : " few"}${i === chosen ? " chosen" : ""}`,
      x: x(i) - 0.4 * step,
      y: high,
      width: 0.8 * step,
      height: Math.max(low - high, 1),
    });
  });
  const runs = names
    .map((_, i) =>
      known.includes(i)
        ? `${known.includes(i - 1) ? "L" : "M"}${x(i).toFixed(1)} ${chart.y(series.value[i]!).toFixed(1)}`
        : "",
    )
    .join("");
  chart.put("path", { class: "line", d: runs });
  for (const i of known)
    chart.put("circle", {
      class: i === chosen ? "point chosen" : "point",
      cx: x(i),
      cy: chart.y(series.value[i]!),
      r: names.length > 48 ? 1.5 : 2.6,
    });
  chart.across(names, x);
  return chart.element;
}

/** People in bins of a value, as bars with lines for their intervals; noise may take them below 0. */
export function histogramChart(
  label: string,
  edges: readonly number[],
  people: ArrayLike<number>,
  margin: number,
  text: (value: number) => string,
): SVGSVGElement {
  const all = Array.from(people),
    most = Math.max(...all) + margin,
    least = Math.min(0, Math.min(...all) - margin);
  const spoken = all.map((number, i) => `${text(edges[i]!)}–${text(edges[i + 1]!)} ${text(number)}`).join(", ");
  const chart = new Chart(`${label}: ${spoken}`, least, Math.max(most, least + 1), text);
  const [first, last] = [edges[0]!, edges.at(-1)!];
  const x = (value: number) => LEFT + ((value - first) / (last - first)) * (WIDE - LEFT - RIGHT);
  all.forEach((number, i) => {
    const [left, right, top, foot] = [
      x(edges[i]!),
      x(edges[i + 1]!),
      chart.y(Math.max(number, 0)),
      chart.y(Math.min(number, 0)),
    ];
    chart.put("rect", {
      class: "band",
      x: left + 0.5,
      y: top,
      width: Math.max(right - left - 1, 0.5),
      height: Math.max(foot - top, 0.5),
    });
    const { low, high } = leading(number, number - margin, number + margin);
    chart.put("line", {
      class: "whisker",
      x1: (left + right) / 2,
      x2: (left + right) / 2,
      y1: chart.y(low),
      y2: chart.y(high),
    });
  });
  chart.put("line", { class: "axis", x1: LEFT, x2: WIDE - RIGHT, y1: chart.y(0), y2: chart.y(0) });
  const ticks = evenTicks({ low: first, high: last }, 6);
  ticks.forEach((value) => chart.write(text(value), Math.min(x(value), WIDE - RIGHT - 8), HIGH - 5, "middle"));
  return chart.element;
}

/** Axes, and a picture to draw on. */
class Chart {
  readonly element: SVGSVGElement;

  constructor(
    label: string,
    private readonly low: number,
    private readonly high: number,
    text: (value: number) => string,
  ) {
    const viewBox = `0 0 ${WIDE} ${HIGH}`;
    this.element = svg("svg", { class: "chart", viewBox, role: "img", "aria-label": label });
    for (const tick of evenTicks({ low, high }, 4)) {
      const y = this.y(tick);
      this.put("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y, y2: y });
      this.write(text(tick), LEFT - 4, y + 3.5, "end");
    }
  }

  /** Where a number stands, within the chart. */
  y(value: number): number {
    const share = Math.max(0, Math.min(1, (value - this.low) / (this.high - this.low || 1)));
    return HIGH - BELOW - share * (HIGH - BELOW - ABOVE);
  }

  put(tag: keyof SVGElementTagNameMap, attributes: { readonly [name: string]: string | number }): SVGElement {
    const rounded = Object.entries(attributes).map(([name, value]) => [
      name,
      typeof value === "number" ? value.toFixed(2) : value,
    ]);
    const found = svg(tag, Object.fromEntries(rounded));
    this.element.append(found);
    return found;
  }

  write(text: string, x: number, y: number, anchor: string): void {
    this.put("text", { x, y, "text-anchor": anchor }).textContent = text;
  }

  /** Names below the chart, as many as have room. */
  across(names: readonly string[], x: (i: number) => number): void {
    const longest = Math.max(...names.map((name) => name.length)) * LETTER + 8;
    const every = Math.max(1, Math.ceil((longest * names.length) / (WIDE - LEFT - RIGHT)));
    names.forEach((name, i) => {
      if (i % every) return;
      const half = (name.length * LETTER) / 2;
      this.write(name, Math.max(half, Math.min(WIDE - half, x(i))), HIGH - 5, "middle");
    });
  }
}
