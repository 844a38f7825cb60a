/** Statistics of a value: a layer for each, a cell's profile over slots, and how the value is distributed in it. */

import { h } from "../../../shared/src/elements.js";
import { leading } from "../asking/confidence_margins.js";
import { namesOf } from "../map/cell_names.js";
import { evenPosition, type Palette, word } from "../map/colours.js";
import { Shapes } from "../map/shapes.js";
import type { Projection } from "../map/sheet.js";
import { unpack } from "../payload/arrays.js";
import type { EvenScale, ValuesPayload } from "../payload/release.js";
import { histogramChart, profileChart, type Series } from "../view/charts.js";
import { intervalBar } from "../view/interval_bar.js";
import { classLegend, evenLegend } from "../view/legend.js";
import { decimals, type Words } from "../words/words.js";
import type { Slot, Subject } from "./subject.js";

/** A statistic of all places, one slot after another; NaN where too few people are. */
interface Statistic {
  readonly name: string;
  readonly value: Float32Array;
  readonly stddev: Float32Array;
  readonly low: Float32Array;
  readonly high: Float32Array;
  readonly bias: Float32Array | null;
  readonly scale: EvenScale;
}

interface Numbers {
  readonly statistics: readonly Statistic[];
  readonly people: Float32Array;
  readonly guess: Float32Array;
  readonly guessError: Float32Array;
  readonly bins: Float32Array | null;
  readonly area: Float32Array;
}

const MEAN = "mean",
  GUESS = "guess",
  CERTAINTY = "certainty",
  PEOPLE = "people";

export class ValueMap implements Subject {
  readonly layers: readonly string[];
  readonly certainty = CERTAINTY;
  readonly slots: readonly string[];
  readonly together = false;

  private constructor(
    private readonly payload: ValuesPayload,
    readonly shapes: Shapes,
    private readonly numbers: Numbers,
    private readonly cellName: (index: number) => string,
  ) {
    const [mean, ...others] = numbers.statistics.map((each) => each.name);
    this.layers = [mean!, GUESS, ...others, CERTAINTY, PEOPLE];
    this.slots = payload.slots.length > 1 ? payload.slots : [];
  }

  static async of(payload: ValuesPayload, projection: Projection): Promise<ValueMap> {
    const { cells, guess, people, histogram } = payload;
    const statistics = await Promise.all(
      payload.statistics.map(async (one): Promise<Statistic> => {
        const [value, stddev, low, high] = await Promise.all([
          unpack(one.value),
          unpack(one.stddev),
          unpack(one.low),
          unpack(one.high),
        ]);
        return {
          name: one.name,
          scale: one.scale,
          value,
          stddev,
          low,
          high,
          bias: one.bias && (await unpack(one.bias)),
        };
      }),
    );
    const [shapes, name, area, number, best, error, bins] = await Promise.all([
      Shapes.of(cells.places, projection),
      namesOf(cells.places, cells.names),
      unpack(cells.area),
      unpack(people.count),
      unpack(guess.value),
      unpack(guess.stddev),
      histogram && unpack(histogram.people),
    ]);
    return new ValueMap(
      payload,
      shapes,
      { statistics, people: number, guess: best, guessError: error, bins, area },
      name,
    );
  }

  name(layer: string, words: Words): string {
    if (layer === GUESS) return words.say("guessLayer");
    if (layer === CERTAINTY) return words.say("certainty");
    return layer === PEOPLE ? words.say("count") : words.statistic(layer);
  }

  colours(layer: string, slot: Slot, palette: Palette): Uint32Array {
    const colours = new Uint32Array(this.shapes.count + 1),
      [values, scale] = this.shown(layer);
    const shades = palette.table(512),
      unknown = word(palette.unknown),
      errors = palette.errors.map((each) => word(each));
    for (let cell = 0; cell < this.shapes.count; cell++) {
      const value = values[this.place(cell, slot)]!;
      colours[cell + 1] = Number.isNaN(value)
        ? unknown
        : layer === CERTAINTY
          ? errors[palette.errorClass(value / (scale.high - scale.low))]!
          : shades[Math.round(evenPosition(scale, value) * 511)]!;
    }
    return colours;
  }

  hatched(layer: string, slot: Slot): Uint8Array | null {
    if (layer === PEOPLE) return null;
    const found = new Uint8Array(this.shapes.count + 1),
      [values] = this.shown(layer);
    for (let cell = 0; cell < this.shapes.count; cell++)
      found[cell + 1] = Number(Number.isNaN(values[this.place(cell, slot)]!));
    return found;
  }

  hatching() {
    return { choice: "hatchFew", legend: "hatchedFew" } as const;
  }

  legend(layer: string, slot: Slot, palette: Palette, words: Words): HTMLElement {
    const { payload } = this,
      [, scale] = this.shown(layer);
    const at = (text: string) => (this.slots.length ? `${this.slots[slot ?? 0]!}: ${text}` : text);
    if (layer === CERTAINTY) return classLegend(at(words.say("errorOfScale")), payload.colours.breaks, palette, words);
    const title =
      layer === PEOPLE
        ? words.say("perCell", { counted: words.noun(payload.estimand) })
        : words.say("statisticOf", { statistic: this.name(layer, words), value: payload.value });
    return evenLegend(at(title), scale, palette, (value) => words.short(value));
  }

  facts(part: number, layer: string, slot: Slot, words: Words): HTMLElement[] {
    const { payload, numbers } = this,
      place = this.place(part, slot),
      counted = words.counted(payload.estimand);
    const chosen = numbers.statistics.find((each) => each.name === layer) ?? numbers.statistics[0]!;
    const others = numbers.statistics.filter((each) => each !== chosen);
    const guess = numbers.guess[place]!,
      error = numbers.guessError[place]!,
      digits = decimals(error);
    const guessed = Number.isNaN(guess)
      ? []
      : [
          h(
            "p",
            { class: layer === GUESS ? "best" : null },
            words.say("guessSentence", { value: words.number(guess, digits), stddev: words.number(error, digits) }),
          ),
        ];
    const people = numbers.people[place]!,
      { stddev, margin } = payload.people;
    const number = h(
      "p",
      { class: layer === PEOPLE ? "best" : null },
      stddev > 0
        ? words.say("peopleSentence", {
            ...words.interval({ best_guess: people, stddev, ...leading(people, people - margin, people + margin) }),
            counted,
          })
        : words.say("peopleExact", { value: words.number(people), counted }),
    );
    return [
      ...(layer === GUESS ? guessed : layer === PEOPLE ? [number] : []),
      ...this.statistic(chosen, place, words, layer !== GUESS && layer !== PEOPLE),
      ...others.flatMap((each) => this.statistic(each, place, words, false)),
      ...(layer === GUESS ? [number] : layer === PEOPLE ? guessed : [...guessed, number]),
      ...this.charts(part, chosen, slot, words),
      h("p", { class: "hint" }, this.populations(words)),
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
    const { payload } = this,
      few = this.numbers.statistics[0]!.value.filter(Number.isNaN).length,
      all = this.numbers.statistics[0]!.value.length;
    const parts = {
      cells: words.number(this.shapes.count),
      slots: words.number(payload.slots.length),
      value: payload.value,
      known: words.number(all - few),
      all: words.number(all),
      few: words.number(Math.ceil(payload.threshold)),
      counted: words.noun(payload.estimand),
    };
    return [
      h("p", {}, words.say("valuesSize", parts)),
      h("p", {}, words.say("valuesThreshold", parts)),
      h("p", {}, words.say("valuesOutside")),
    ];
  }

  largest(): [] {
    return [];
  }

  /** Of what a mean is, and how wide the bins of quantiles are. */
  private populations(words: Words): string {
    const { records, bin_width: width } = this.payload;
    const mean =
      records === null
        ? words.say("meanOfAll")
        : records === 1
          ? words.say("meanOfPeople")
          : words.say("meanOfRecords", { records: words.number(records) });
    return width === null ? mean : `${mean} ${words.say("binsSentence", { width: words.short(width) })}`;
  }

  /** What a layer shows of all places, and its colours. */
  private shown(layer: string): readonly [Float32Array, EvenScale] {
    const { numbers, payload } = this;
    if (layer === GUESS) return [numbers.guess, payload.guess.scale];
    if (layer === PEOPLE) return [numbers.people, { low: 0, high: Math.max(payload.people.most, 1) }];
    const one =
      numbers.statistics.find((each) => each.name === (layer === CERTAINTY ? MEAN : layer)) ?? numbers.statistics[0]!;
    return [layer === CERTAINTY ? one.stddev : one.value, one.scale];
  }

  /** Where the numbers of a cell in a slot stand. */
  private place(cell: number, slot: Slot): number {
    return (slot ?? 0) * this.shapes.count + cell;
  }

  /** One statistic of a place: a sentence, and of the one that is looked at its interval as a picture. */
  private statistic(one: Statistic, place: number, words: Words, chosen: boolean): HTMLElement[] {
    const value = one.value[place]!,
      stddev = one.stddev[place]!,
      low = one.low[place]!,
      high = one.high[place]!;
    const few = Number.isNaN(value),
      error = Number.isNaN(stddev) ? (high - low) / 4 : stddev;
    const digits = decimals(error || Math.abs(high - low) / 4);
    const parts = {
      statistic: words.statistic(one.name),
      name: this.payload.value,
      value: words.number(few ? 0 : value, digits),
      ...words.ends(low, high, digits),
      counted: words.noun(this.payload.estimand),
    };
    const sentence = words.say(few ? "statisticFew" : "statisticSentence", parts);
    if (!chosen) return [h("p", {}, sentence)];
    const [least, most] =
      one.name === "variance" ? [0, (this.payload.bounds[1] - this.payload.bounds[0]) ** 2 / 4] : this.payload.bounds;
    const bias =
      one.bias && !Number.isNaN(one.bias[place]!)
        ? words.say("biasSentence", { bias: words.short(one.bias[place]!) })
        : null;
    return [
      h("p", { class: few ? "warning" : "best" }, sentence),
      intervalBar(low, high, value, least, most),
      ...(bias === null ? [] : [h("p", { class: "hint" }, bias)]),
    ];
  }

  /** The cell over all slots, and its histogram, where the release has them. */
  private charts(cell: number, one: Statistic, slot: Slot, words: Words): HTMLElement[] {
    const { payload, numbers } = this,
      found: HTMLElement[] = [],
      text = (value: number) => words.short(value);
    const title = words.say("statisticOf", { statistic: words.statistic(one.name), value: payload.value });
    if (this.slots.length) {
      const over = (all: Float32Array) => this.slots.map((_, each) => all[this.place(cell, each)]!);
      const series: Series = { value: over(one.value), low: over(one.low), high: over(one.high) };
      const [least, most] = payload.bounds,
        bounds = one.name === "variance" ? ([0, (most - least) ** 2 / 4] as const) : payload.bounds;
      const label = words.say("profile", { statistic: title });
      found.push(
        h(
          "figure",
          { class: "drawn" },
          h("figcaption", {}, label),
          profileChart(label, this.slots, series, bounds, slot ?? 0, text),
        ),
      );
    }
    if (numbers.bins && payload.histogram) {
      const { edges, margin } = payload.histogram,
        size = edges.length - 1,
        at = this.place(cell, slot) * size;
      const people = numbers.bins.subarray(at, at + size);
      const label = words.say("histogram", { counted: words.noun(payload.estimand), value: payload.value });
      if (!people.some(Number.isNaN)) {
        found.push(
          h(
            "figure",
            { class: "drawn" },
            h("figcaption", {}, label),
            histogramChart(label, edges, people, margin, text),
          ),
        );
      }
    }
    return found;
  }
}
