/** What changed between two releases: each cell's difference with its interval; hatched where noise explains it. */

import { h } from "../../../shared/src/elements.js";
import { namesOf } from "../map/cell_names.js";
import { evenPosition, type Palette, word } from "../map/colours.js";
import { Shapes } from "../map/shapes.js";
import type { Projection } from "../map/sheet.js";
import { unpack } from "../payload/arrays.js";
import type { DifferencePayload, EvenScale } from "../payload/release.js";
import { intervalBar } from "../view/interval_bar.js";
import { evenLegend } from "../view/legend.js";
import type { Words } from "../words/words.js";
import type { Slot, Subject } from "./subject.js";

interface Numbers {
  readonly difference: Float32Array;
  readonly stddev: Float32Array;
  readonly low: Float32Array;
  readonly high: Float32Array;
  readonly area: Float32Array;
  readonly changed: Uint8Array;
}

const DENSITY = "changeDensity",
  COUNT = "change";

export class DifferenceMap implements Subject {
  readonly layers = [DENSITY, COUNT];
  readonly certainty = COUNT;
  readonly slots = [];
  readonly together = false;
  private readonly density: Float32Array;

  private constructor(
    private readonly payload: DifferencePayload,
    readonly shapes: Shapes,
    private readonly numbers: Numbers,
    private readonly cellName: (index: number) => string,
  ) {
    this.density = numbers.difference.map((each, cell) => (numbers.area[cell]! > 0 ? each / numbers.area[cell]! : 0));
  }

  static async of(payload: DifferencePayload, projection: Projection): Promise<DifferenceMap> {
    const { cells } = payload;
    const [shapes, name, difference, stddev, low, high, area, changed] = await Promise.all([
      Shapes.of(cells.places, projection),
      namesOf(cells.places, cells.names),
      unpack(payload.difference),
      unpack(payload.stddev),
      unpack(payload.low),
      unpack(payload.high),
      unpack(payload.area),
      unpack(payload.changed),
    ]);
    return new DifferenceMap(payload, shapes, { difference, stddev, low, high, area, changed }, name);
  }

  name(layer: string, words: Words): string {
    return words.say(layer === DENSITY ? "changeDensity" : "change");
  }

  colours(layer: string, _slot: Slot, palette: Palette): Uint32Array {
    const colours = new Uint32Array(this.shapes.count + 1),
      shades = palette.diverging.table(513);
    const values = this.values(layer),
      scale = this.scale(layer);
    values.forEach((value, cell) => {
      colours[cell + 1] = shades[Math.round(evenPosition(scale, value) * 512)] ?? word(palette.unknown);
    });
    return colours;
  }

  hatched(): Uint8Array {
    const found = new Uint8Array(this.shapes.count + 1);
    this.numbers.changed.forEach((changed, cell) => {
      found[cell + 1] = 1 - changed;
    });
    return found;
  }

  hatching() {
    return { choice: "hatchNoise", legend: "hatchedNoise" } as const;
  }

  legend(layer: string, _slot: Slot, palette: Palette, words: Words): HTMLElement {
    const parts = { counted: words.noun(this.payload.estimand), unit: this.payload.unit };
    return evenLegend(
      words.say(layer === DENSITY ? "changePerUnit" : "changePerCell", parts),
      this.scale(layer),
      palette.diverging,
      (value) => words.compact(value),
    );
  }

  facts(part: number, _layer: string, _slot: Slot, words: Words): HTMLElement[] {
    const { payload, numbers } = this,
      counted = words.counted(payload.estimand),
      changed = numbers.changed[part] === 1;
    const found = {
      best_guess: numbers.difference[part]!,
      stddev: numbers.stddev[part]!,
      low: numbers.low[part]!,
      high: numbers.high[part]!,
    };
    return [
      h("p", { class: "best" }, words.say("changeSentence", { ...words.interval(found), counted })),
      intervalBar(found.low, found.high, found.best_guess, Math.min(found.low, 0), Math.max(found.high, 0)),
      h("p", { class: changed ? null : "warning" }, words.say(changed ? "changeBeyond" : "changeNoise")),
      h(
        "p",
        { class: "hint" },
        words.say("cellName", {
          name: this.cellName(part),
          area: words.short(numbers.area[part]!),
          unit: payload.unit,
        }),
      ),
    ];
  }

  whole(_slot: Slot, words: Words): HTMLElement[] {
    const { payload, numbers } = this,
      changed = numbers.changed.reduce((sum, each) => sum + each, 0);
    const line = h("span", { lang: "en" }, payload.before.line);
    return [
      h("p", {}, words.say("changedCells", { changed: words.number(changed), all: words.number(this.shapes.count) })),
      h("p", {}, words.say("changeBefore", { title: payload.before.title }), " ", line),
      h("p", {}, words.say("changeDrawn")),
    ];
  }

  largest(): [] {
    return [];
  }

  private values(layer: string): Float32Array {
    return layer === DENSITY ? this.density : this.numbers.difference;
  }

  private scale(layer: string): EvenScale {
    const most = layer === DENSITY ? this.payload.most_density : this.payload.most;
    return { low: -most, high: most };
  }
}
