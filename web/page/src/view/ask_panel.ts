/** Questions about areas: drawn or typed, answered with an interval from the release's own numbers. */

import { h } from "../../../shared/src/elements.js";
import { type Reason, type Region, RegionError } from "../asking/regions.js";
import type { Slot } from "../kinds/subject.js";
import type { Extent, Projection } from "../map/sheet.js";
import type { Key } from "../words/catalogue.js";
import type { Words } from "../words/words.js";
import type { Asker } from "./askers.js";
import { button } from "./controls.js";
import type { Point } from "./decorations.js";
import type { Drawing } from "./gestures.js";

type Box = readonly [number, number, number, number];

interface Hands {
  draw(mode: Drawing): void;
  show(corners: readonly Point[]): void;
  seen(): Extent;
  slot(): Slot;
}

export class AskPanel {
  private words!: Words;
  private readonly said = h("div", { class: "answer", "aria-live": "polite" });
  private region: Region | null = null;
  private readonly fields = [0, 1, 2, 3].map(() =>
    h("input", { type: "text", inputmode: "decimal", autocomplete: "off" }),
  );

  constructor(
    private readonly asker: Asker,
    private readonly projection: Projection,
    private readonly hands: Hands,
  ) {}

  element(words: Words): HTMLElement {
    this.words = words;
    const names = this.projection.plane
      ? (["leastX", "leastY", "greatestX", "greatestY"] as const)
      : (["west", "south", "east", "north"] as const);
    const form = h(
      "form",
      { class: "box" },
      ...names.map((name, i) => h("label", {}, h("span", {}, words.say(name)), this.fields[i]!)),
      button(words.say("visibleBox"), () => this.fill(this.hands.seen())),
      h("button", {}, words.say("countBox")),
    );
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.typed();
    });
    const draw = (mode: "box" | "polygon") => () => {
      this.hands.draw(mode);
      this.region = null;
      this.say(words.say(mode === "box" ? "drawingBox" : "drawingPolygon"));
    };
    return h(
      "section",
      { class: "ask" },
      h("h2", {}, words.say("ask")),
      h("p", { class: "hint" }, words.say("askHint")),
      h(
        "div",
        { class: "row" },
        button(words.say("drawBox"), draw("box")),
        button(words.say("drawPolygon"), draw("polygon")),
      ),
      form,
      this.said,
    );
  }

  /** Count inside corners on the sheet. */
  answer(corners: readonly Point[]): void {
    const points = corners.map(([x, y]): Point => [this.projection.lon(x), this.projection.lat(y)]);
    const [a, , c] = points;
    const upright =
      points.length === 4 && points.every(([x, y]) => (x === a![0] || x === c![0]) && (y === a![1] || y === c![1]));
    if (upright) {
      const box: Box = [Math.min(a![0], c![0]), Math.min(a![1], c![1]), Math.max(a![0], c![0]), Math.max(a![1], c![1])];
      box.forEach((each, i) => (this.fields[i]!.value = String(Number(each.toFixed(6)))));
      void this.count({ box });
    } else void this.count({ polygon: { type: "Polygon", coordinates: [[...points, points[0]!]] } });
  }

  private typed(): void {
    const box = this.fields.map((field) =>
      field.value.trim() === "" ? NaN : Number(field.value.trim().replace(",", ".")),
    );
    const [west, south, east, north] = box as unknown as Box;
    if (!box.every(Number.isFinite) || west >= east || south >= north) {
      this.region = null;
      this.say(this.words.say("askBox"));
      return;
    }
    const x = [west, east].map((each) => this.projection.x(each)),
      y = [north, south].map((each) => this.projection.y(each));
    this.hands.show([
      [x[0]!, y[0]!],
      [x[1]!, y[0]!],
      [x[1]!, y[1]!],
      [x[0]!, y[1]!],
    ]);
    void this.count({ box: [west, south, east, north] });
  }

  private fill({ west, north, east, south }: Extent): void {
    const { projection } = this,
      lats = [projection.lat(north), projection.lat(south)];
    const box = [projection.lon(west), Math.min(...lats), projection.lon(east), Math.max(...lats)];
    box.forEach((each, i) => (this.fields[i]!.value = String(Number(each.toFixed(6)))));
  }

  /** The same area in another slot, or in other words. */
  again(): void {
    if (this.region) void this.count(this.region);
  }

  private async count(region: Region): Promise<void> {
    const { words } = this,
      slot = this.hands.slot();
    this.region = region;
    const lines = await this.asker(region, slot, words).catch((error: unknown) => [
      error instanceof RegionError
        ? words.say(WHY[error.reason])
        : words.say("askFailed", { reason: error instanceof Error ? error.message : String(error) }),
    ]);
    if (this.region === region && this.hands.slot() === slot) this.say(...lines);
  }

  private say(...lines: readonly string[]): void {
    this.said.replaceChildren(...lines.map((line) => h("p", {}, line)));
  }
}

const WHY: { readonly [reason in Reason]: Key } = {
  box: "askBox",
  kind: "askCrossing",
  degrees: "askOutside",
  crossing: "askCrossing",
  outside: "askOutside",
  small: "askSmall",
};
