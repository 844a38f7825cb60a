import { svg } from "../../../shared/src/elements.js";
import type { Counted } from "../server.js";

const WIDE = 200,
  HIGH = 16;

/** A count and its interval for each line, all in one scale: a bar with a whisker. The numbers beside it say the same. */
export function intervalBars(lines: readonly Counted[]): SVGElement[] {
  const least = Math.min(0, ...lines.map((line) => Math.min(line.low, line.count)));
  const most = Math.max(1, ...lines.map((line) => Math.max(line.high, line.count)));
  const at = (value: number): number => (WIDE * (value - least)) / (most - least);
  return lines.map((line) => {
    const bar = svg("svg", { class: "interval", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
    const from = Math.min(at(0), at(line.count));
    bar.append(
      svg("rect", { x: from, y: 4, width: Math.abs(at(line.count) - at(0)), height: HIGH - 8 }),
      svg("line", { x1: at(line.low), x2: at(line.high), y1: HIGH / 2, y2: HIGH / 2 }),
    );
    return bar;
  });
}
