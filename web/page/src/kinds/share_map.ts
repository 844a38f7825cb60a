/** A map with marks: which share of the people in each cell carries each, and how many people there are. */

import { h } from "../../../shared/src/elements.js";
import { evenPosition, type Palette, word } from "../map/colours.js";
import type { Shapes } from "../map/shapes.js";
import type { Projection } from "../map/sheet.js";
import { unpack } from "../payload/arrays.js";
import type { MarksPayload } from "../payload/release.js";
import { intervalBar } from "../view/interval_bar.js";
import { classLegend, evenLegend } from "../view/legend.js";
import { percent, type Words } from "../words/words.js";
import { CountMap } from "./count_map.js";
import type { Listed, Slot, Subject } from "./subject.js";

/** Of each cell: the share, NaN where there seems to be nobody, and the ends of its interval. */
interface MarkNumbers {
  readonly share: Float32Array;
  readonly low: Float32Array;
  readonly high: Float32Array;
}

const SHARE = "share:",
  WIDTH = "width:"; // of layers

/** How far an interval reaches to either side, half of its width, as parts of 1: the classes of certainty. */
const REACHES = [0.025, 0.05, 0.1, 0.25] as const;

export class ShareMap implements Subject {
  readonly shapes: Shapes;
  readonly layers: readonly string[];
  readonly certainty: string;
  readonly slots = [];
  readonly together = false;

  private constructor(
    private readonly payload: MarksPayload,
    private readonly people: CountMap,
    private readonly numbers: readonly MarkNumbers[],
    private readonly owner: (part: number) => number,
  ) {
    this.shapes = people.shapes;
    const marks = payload.marks.map((mark) => mark.name);
    this.layers = [...marks.map((mark) => SHARE + mark), ...marks.map((mark) => WIDTH + mark), ...people.layers];
    this.certainty = WIDTH + marks[0]!;
  }

  static async of(payload: MarksPayload, projection: Projection): Promise<ShareMap> {
    const numbers = await Promise.all(
      payload.marks.map(async (mark): Promise<MarkNumbers> => {
        const [share, low, high] = await Promise.all([unpack(mark.share), unpack(mark.low), unpack(mark.high)]);
        return { share, low, high };
      }),
    );
    const owner = payload.cells.fine ? await unpack(payload.cells.fine.cell) : null;
    return new ShareMap(payload, await CountMap.of(payload, projection), numbers, (part) =>
      owner ? owner[part]! : part,
    );
  }

  name(layer: string, words: Words): string {
    const [mark, at] = this.markOf(layer);
    if (at < 0) return this.people.name(layer, words);
    return words.say(layer.startsWith(SHARE) ? "shareLayer" : "shareWidthLayer", { mark });
  }

  colours(layer: string, slot: Slot, palette: Palette): Uint32Array {
    const [, at] = this.markOf(layer);
    if (at < 0) return this.people.colours(layer, slot, palette);
    const { share, low, high } = this.numbers[at]!,
      colours = new Uint32Array(this.shapes.count + 1);
    const shades = palette.table(512),
      unknown = word(palette.unknown),
      errors = palette.errors.map((each) => word(each));
    for (let part = 0; part < this.shapes.count; part++) {
      const cell = this.owner(part),
        wide = high[cell]! - low[cell]!;
      colours[part + 1] = layer.startsWith(WIDTH)
        ? errors[reachClass(wide / 2)]!
        : wide > this.payload.wide || Number.isNaN(share[cell]!)
          ? unknown
          : shades[Math.round(evenPosition(this.payload.shares, share[cell]!) * 511)]!;
    }
    return colours;
  }

  hatched(layer: string, slot: Slot): Uint8Array | null {
    const [, at] = this.markOf(layer);
    if (at < 0) return this.people.hatched(layer, slot);
    if (layer.startsWith(WIDTH)) return null;
    const { share, low, high } = this.numbers[at]!,
      found = new Uint8Array(this.shapes.count + 1);
    for (let part = 0; part < this.shapes.count; part++) {
      const cell = this.owner(part);
      found[part + 1] = Number(high[cell]! - low[cell]! > this.payload.wide || Number.isNaN(share[cell]!));
    }
    return found;
  }

  hatching(layer: string) {
    return this.markOf(layer)[1] < 0
      ? this.people.hatching()
      : ({ choice: "hatchShares", legend: "hatchedShares" } as const);
  }

  legend(layer: string, slot: Slot, palette: Palette, words: Words): HTMLElement {
    const [mark, at] = this.markOf(layer),
      counted = words.noun(this.payload.estimand);
    if (at < 0) return this.people.legend(layer, slot, palette, words);
    if (layer.startsWith(WIDTH)) return classLegend(words.say("shareWidth", { mark }), REACHES, palette, words);
    return evenLegend(
      words.say("sharePercent", { mark, counted }),
      this.payload.shares,
      palette,
      (value) => `${words.short(100 * value)} %`,
    );
  }

  facts(part: number, layer: string, slot: Slot, words: Words): HTMLElement[] {
    const counted = words.noun(this.payload.estimand),
      cell = this.owner(part);
    const [, chosen] = this.markOf(layer);
    const order = this.payload.marks.map((_, i) => i).sort((a, b) => Number(b === chosen) - Number(a === chosen));
    const said = order.flatMap((i, place) => {
      const numbers = this.numbers[i]!,
        mark = this.payload.marks[i]!.name;
      const found = { value: numbers.share[cell]!, low: numbers.low[cell]!, high: numbers.high[cell]! };
      const parts = { mark, counted, ...percent(found, words) };
      const sentence = words.say(Number.isNaN(found.value) ? "shareUnknown" : "shareSentence", parts);
      return [
        h("p", { class: place === 0 && chosen >= 0 ? "best" : null }, sentence),
        intervalBar(found.low, found.high, found.value, 0, 1),
        ...(found.high - found.low > this.payload.wide ? [h("p", { class: "warning" }, words.say("shareWide"))] : []),
      ];
    });
    const people = this.people.facts(part, layer, slot, words);
    return chosen < 0 ? [...people, ...said] : [...said, ...people];
  }

  whole(slot: Slot, words: Words): HTMLElement[] {
    const counted = words.noun(this.payload.estimand);
    const shares = this.payload.marks.map(({ name, whole }) =>
      h(
        "p",
        {},
        words.say(whole.value === null ? "shareUnknown" : "shareSentence", {
          mark: name,
          counted,
          ...percent({ ...whole, value: whole.value ?? NaN }, words),
        }),
      ),
    );
    return [...this.people.whole(slot, words), ...shares];
  }

  largest(slot: Slot, words: Words): Listed[] {
    return this.people.largest(slot, words);
  }

  /** The mark that a layer is of, and its place; −1 for layers of people. */
  private markOf(layer: string): readonly [string, number] {
    const mark = layer.startsWith(SHARE) || layer.startsWith(WIDTH) ? layer.slice(SHARE.length) : null;
    return [mark ?? "", mark === null ? -1 : this.payload.marks.findIndex((each) => each.name === mark)];
  }
}

function reachClass(far: number): number {
  const found = REACHES.findIndex((most) => far <= most);
  return found < 0 ? REACHES.length : found;
}
