import { h, replace, svg, tableOf } from "../../../shared/src/elements.js";
import { number, type Sentence, say } from "../catalogue/languages.js";
import type { Chart, ChartPoint } from "../server.js";

const WIDE = 640,
  HIGH = 380,
  LEFT = 64,
  RIGHT = 170,
  TOP = 14,
  BOTTOM = 44;
const INKS = ["#8d1d4e", "#1b6ca8", "#2f7d32", "#b35900", "#5e35b1", "#00798c", "#7a5c00", "#5d5966"];
const SCORES: Record<string, Sentence> = { mre: "scoreMre", l1: "scoreL1", seconds: "scoreSeconds" };
const DASHES = ["none", "6 3", "2 3", "9 3 2 3"];

/** Curves of one score over ε: each point says its numbers in words, by mouse, by arrow keys, and in a table. */
export function hoverChart(chart: Chart, map: string): HTMLElement {
  const score = say(SCORES[chart.score] ?? "scoreMre");
  const points = chart.methods.flatMap((method, line) =>
    method.points.map((point) => ({ method: method.name, line, point })),
  );
  const x = scale(
    points.map(({ point }) => point.epsilon),
    LEFT,
    WIDE - RIGHT,
  );
  const y = scale(
    points.flatMap(({ point }) => [point.low, point.mean, point.high]),
    HIGH - BOTTOM,
    TOP,
  );
  const said = h("p", { role: "status", class: "said" }, say("hoverHelp"));
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDE} ${HIGH}`,
    role: "group",
    "aria-label": `${map}: ${score}`,
    class: "chart",
  });
  picture.append(...axes(score, x, y));
  chart.methods.forEach((method, line) => {
    const path = method.points
      .map((point, at) => `${at === 0 ? "M" : "L"}${x.at(point.epsilon)},${y.at(point.mean)}`)
      .join("");
    picture.append(svg("path", { d: path, class: "curve", stroke: ink(line), "stroke-dasharray": dash(line) }));
    for (const point of method.points) {
      picture.append(
        svg("line", {
          x1: x.at(point.epsilon),
          x2: x.at(point.epsilon),
          y1: y.at(point.low),
          y2: y.at(point.high),
          stroke: ink(line),
        }),
      );
    }
  });
  picture.append(...labels(chart, y));
  const words = (method: string, point: ChartPoint): string =>
    say("pointSaid", {
      method,
      epsilon: number(point.epsilon, 3),
      mean: point.mean_said,
      low: point.low_said,
      high: point.high_said,
      count: point.number,
      words: score,
    });
  const dots = points.map(({ method, line, point }, at) => {
    const text = words(method, point);
    const dot = svg("circle", {
      cx: x.at(point.epsilon),
      cy: y.at(point.mean),
      r: 5,
      fill: ink(line),
      tabindex: at === 0 ? 0 : -1,
      role: "img",
      "aria-label": text,
    });
    const title = svg("title", {});
    title.textContent = text;
    dot.append(title);
    const show = (): void => replace(said, text);
    dot.addEventListener("mouseenter", show);
    dot.addEventListener("focus", show);
    dot.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[(event as KeyboardEvent).key];
      const next = step === undefined ? undefined : dots[at + step];
      if (next === undefined) return;
      event.preventDefault();
      dot.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
    return dot;
  });
  picture.append(...dots);
  const rows = points.map(({ method, point }) => [
    method,
    number(point.epsilon, 3),
    point.mean_said,
    `${point.low_said} – ${point.high_said}`,
    point.number,
  ]);
  return h(
    "figure",
    { class: "card" },
    h("figcaption", {}, `${map}: ${score}`),
    picture,
    said,
    h(
      "details",
      {},
      h("summary", {}, say("asTable")),
      tableOf(
        `${map}: ${score}`,
        [say("method"), say("epsilon"), say("mean"), say("interval"), say("repetitions")],
        rows,
        true,
      ),
    ),
  );
}

interface Scale {
  at(value: number): number;
  ticks: number[];
}

/** Logarithmic, from the least to the most that is positive. */
function scale(values: readonly number[], from: number, to: number): Scale {
  const known = values.filter((value) => value > 0 && Number.isFinite(value));
  const low = Math.log10(Math.min(...known, 1e6)),
    high = Math.log10(Math.max(...known, 1e-6));
  const pad = Math.max(0.05, 0.06 * (high - low));
  const begin = low - pad,
    end = Math.max(high + pad, begin + 0.1);
  const at = (value: number): number =>
    from + ((Math.log10(Math.max(value, 10 ** begin)) - begin) * (to - from)) / (end - begin);
  const ticks: number[] = [];
  for (let power = Math.floor(begin); power <= end; power += 1) {
    for (const digit of [1, 2, 5]) {
      const tick = digit * 10 ** power;
      if (Math.log10(tick) >= begin && Math.log10(tick) <= end) ticks.push(tick);
    }
  }
  return { at, ticks: ticks.length > 0 ? ticks : [10 ** ((begin + end) / 2)] };
}

function axes(score: string, x: Scale, y: Scale): SVGElement[] {
  const found: SVGElement[] = [
    svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: HIGH - BOTTOM, y2: HIGH - BOTTOM, class: "axis" }),
    svg("line", { x1: LEFT, x2: LEFT, y1: TOP, y2: HIGH - BOTTOM, class: "axis" }),
    text("ε", (LEFT + WIDE - RIGHT) / 2, HIGH - 8, "middle"),
    text(score, LEFT - 56, TOP + 2, "start"),
  ];
  for (const tick of x.ticks) found.push(text(number(tick, 4), x.at(tick), HIGH - BOTTOM + 16, "middle"));
  for (const tick of y.ticks) {
    found.push(svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y.at(tick), y2: y.at(tick), class: "grid" }));
    if (y.at(tick) > TOP + 14) found.push(text(number(tick, 4), LEFT - 6, y.at(tick) + 4, "end"));
  }
  return found;
}

/** The name of each curve at its right end, moved apart where they would lie on each other. */
function labels(chart: Chart, y: Scale): SVGElement[] {
  const ends = chart.methods
    .map((method, line) => ({ name: method.name, line, at: y.at(method.points.at(-1)!.mean) }))
    .sort((one, other) => one.at - other.at);
  let last = TOP - 8;
  return ends.map(({ name, line, at }) => {
    last = Math.max(at, last + 14);
    const made = text(name, WIDE - RIGHT + 10, last + 4, "start");
    made.setAttribute("color", ink(line));
    made.setAttribute("class", "name");
    return made;
  });
}

function ink(line: number): string {
  return INKS[line % INKS.length]!;
}

function dash(line: number): string {
  return DASHES[Math.floor(line / INKS.length) % DASHES.length]!;
}

function text(words: string, x: number, y: number, anchor: string): SVGElement {
  const made = svg("text", { x, y, "text-anchor": anchor });
  made.textContent = words;
  return made;
}
