/** A map of counts: of a release without slots, and of one with time in all slots together or in one of them. */

import { h } from "../../../shared/src/elements.js";
import { namesOf } from "../map/cell_names.js";
import { COUNT_LAYERS, type CountLayer, densities, MapCells } from "../map/cells.js";
import type { Palette } from "../map/colours.js";
import { Shapes } from "../map/shapes.js";
import type { Projection } from "../map/sheet.js";
import { unpack } from "../payload/arrays.js";
import type { CountFacts, MapPayload, SlotsPayload } from "../payload/release.js";
import { intervalBar } from "../view/interval_bar.js";
import { classLegend, densityLegend } from "../view/legend.js";
import { decimals, type Words } from "../words/words.js";
import type { Listed, Slot, Subject } from "./subject.js";

export class CountMap implements Subject {
  readonly layers: readonly string[] = COUNT_LAYERS;
  readonly certainty = "certainty";
  readonly slots: readonly string[];
  readonly together = true;

  private constructor(
    private readonly payload: CountFacts,
    private readonly timed: SlotsPayload["slots"] | null,
    readonly shapes: Shapes,
    private readonly cells: MapCells,
    private readonly slotCells: (slot: number) => MapCells,
  ) {
    this.slots = timed?.names ?? [];
  }

  static async of(payload: MapPayload | SlotsPayload | CountFacts, projection: Projection): Promise<CountMap> {
    const { cells, scales } = payload,
      timed = "slots" in payload ? payload.slots : null;
    const [shapes, total] = await Promise.all([
      Shapes.of(cells.fine?.places ?? cells.places, projection),
      MapCells.of(cells, scales),
    ]);
    const slotCells = timed ? await inSlots(payload as SlotsPayload, total, shapes.count) : () => total;
    return new CountMap(payload, timed, shapes, total, slotCells);
  }

  name(layer: string, words: Words): string {
    return words.say(layer as CountLayer);
  }

  colours(layer: string, slot: Slot, palette: Palette): Uint32Array {
    return this.of(slot).colours(layer as CountLayer, palette);
  }

  hatched(layer: string, slot: Slot): Uint8Array | null {
    return layer === "certainty" ? null : this.of(slot).uncertain;
  }

  hatching() {
    return { choice: "hatch", legend: "hatched" } as const;
  }

  legend(layer: string, slot: Slot, palette: Palette, words: Words): HTMLElement {
    const { payload } = this,
      noun = words.noun(payload.estimand),
      bound = words.counted(payload.estimand);
    const counted = noun === bound ? "" : ` (${bound})`;
    const scales = slot === null || !this.timed ? payload.scales : this.timed.scales;
    const at = (text: string) => this.during(text, slot);
    if (layer === "certainty") return classLegend(at(words.say("errorShare")), payload.colours.breaks, palette, words);
    return layer === "density"
      ? densityLegend(
          at(words.say("perUnit", { counted: noun, unit: payload.unit }) + counted),
          scales.density,
          palette,
          words,
        )
      : densityLegend(at(words.say("perCell", { counted: noun }) + counted), scales.count, palette, words);
  }

  facts(part: number, _layer: string, slot: Slot, words: Words): HTMLElement[] {
    const { payload } = this,
      facts = this.of(slot).facts(part),
      counted = words.counted(payload.estimand);
    const parts = {
      ...words.interval(facts),
      counted,
      unit: payload.unit,
      unbiased: words.number(facts.unbiased, decimals(facts.stddev)),
      density: words.number(facts.density, decimals(facts.stddev / facts.area)),
    };
    const least = Math.min(facts.low, 0),
      most = Math.max(facts.high, least + 1e-9);
    return [
      h("p", { class: "best" }, this.during(words.say("cellSentence", parts), slot)),
      intervalBar(facts.low, facts.high, facts.best_guess, least, most),
      h("p", {}, words.say("cellInterval", parts)),
      ...(facts.relative > 1 ? [h("p", { class: "warning" }, words.say("cellUncertain"))] : []),
      h(
        "p",
        { class: "hint" },
        words.say("cellNoise", parts),
        " ",
        words.say("cellName", { name: facts.name, area: words.short(facts.area), unit: payload.unit }),
      ),
    ];
  }

  whole(slot: Slot, words: Words): HTMLElement[] {
    const { payload, timed } = this,
      counted = words.counted(payload.estimand);
    const total = slot === null || !timed ? payload.total : timed.totals[slot]!;
    const outside =
      slot !== null && payload.nowhere
        ? h("p", {}, words.say("nowhereTogether", { counted: words.noun(payload.estimand) }))
        : payload.nowhere
          ? h("p", {}, words.say("nowhere", { ...words.interval(payload.nowhere), counted }))
          : h("p", { lang: "en" }, payload.said);
    return [h("p", {}, this.during(words.say("total", { ...words.interval(total), counted }), slot)), outside];
  }

  largest(slot: Slot, words: Words): Listed[] {
    const { payload, timed } = this,
      counted = words.counted(payload.estimand),
      cells = this.of(slot);
    const densest = slot === null || !timed ? payload.densest : timed.densest[slot]!;
    return densest.map((found) => ({
      text: words.say("answer", { ...words.interval(found), counted }),
      part: cells.partOf(found.cell),
    }));
  }

  /** A sentence about a slot, which begins with its name. */
  private during(text: string, slot: Slot): string {
    return slot === null ? text : `${this.slots[slot]!}: ${text}`;
  }

  private of(slot: Slot): MapCells {
    return slot === null ? this.cells : this.slotCells(slot);
  }
}

/** The cells of each slot, made when they are first looked at: painted as finely as they were counted. */
async function inSlots(payload: SlotsPayload, total: MapCells, parts: number): Promise<(slot: number) => MapCells> {
  const {
    slots: { cells, holder, scales },
  } = payload;
  const [held, names] = await Promise.all([unpack(holder), namesOf(cells.places, cells.names)]);
  const [stddev, area, guess, unbiased, low, high] = await Promise.all(
    [cells.stddev, cells.area, cells.best_guess, cells.unbiased, cells.low, cells.high].map((each) => unpack(each)),
  );
  const size = stddev!.length,
    owner = Int32Array.from({ length: parts }, (_, part) => held[total.cellOf(part)]!);
  const made = new Map<number, MapCells>();
  return (slot) => {
    const known = made.get(slot);
    if (known) return known;
    const row = (all: Float32Array) => all.subarray(slot * size, (slot + 1) * size);
    const numbers = {
      best_guess: row(guess!),
      unbiased: row(unbiased!),
      low: row(low!),
      high: row(high!),
      stddev: stddev!,
      area: area!,
    };
    const own = densities(numbers.best_guess, numbers.area);
    const found = new MapCells(
      scales,
      owner,
      Float32Array.from(owner, (cell) => own[cell]!),
      numbers,
      names,
    );
    made.set(slot, found);
    return found;
  };
}
