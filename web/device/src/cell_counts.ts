import type { Bytes } from "../../shared/src/bytes.js";
import { NOWHERE } from "./cell_tree.js";
import { type CountedCells, plain, readCountedCells } from "./counted_cells.js";
import { CodecError, UnknownKind } from "./errors.js";
import type { Json } from "./json_text.js";
import { KeyedDraws } from "./keyed_draws.js";
import type { TimeSlots } from "./time_slots.js";
import { fieldsOf, typed, whole } from "./typed_json.js";

/** Where somebody was, in degrees, and when, in seconds since 1970 (UTC), where that is known. */
export interface Place {
  readonly lon: number;
  readonly lat: number;
  readonly time?: number | null;
}

type Rule = "AtMostRows" | "AtMostCells";
/** What becomes of rows in no cell: dropped, counted, or counted for who has no other. */
type Outside = boolean | "people";

/** Encoders of other questions to devices. */
const OTHERS = ["Stack", "Sketch", "Wavelet", "Values"];
const MOST_VOTES = 2 ** 31;

/** Counts of a person's rows in cells, bounded by one rule. */
export class CellCounts {
  constructor(
    readonly cells: CountedCells,
    readonly rule: Rule,
    readonly most: number,
    readonly outside: Outside,
  ) {}

  /** As the codec writes it; `Refused` for questions of other kinds. */
  static read(json: Json | undefined): CellCounts {
    const [encoder, counts] = typed(json, "the encoder");
    if (OTHERS.includes(encoder))
      throw new UnknownKind(encoder, `this device answers counts of rows in cells, not ${plain(encoder)}`);
    if (encoder !== "Counts")
      throw new CodecError(`a question asks for counts of rows in cells, not for ${plain(encoder)}`);
    const { cells, bounding } = fieldsOf(counts, "Counts", "bounding", "cells");
    const [rule, bound] = typed(bounding, "the bounding rule");
    if (rule === "OneVote")
      throw new UnknownKind(rule, "this device bounds its rows by AtMostRows or AtMostCells, not by OneVote");
    if (rule !== "AtMostRows" && rule !== "AtMostCells")
      throw new CodecError(`a device does not bound its rows by ${plain(rule)}`);
    const { most, nowhere } = fieldsOf(bound, rule, "most", "nowhere");
    if (nowhere !== "people" && typeof nowhere !== "boolean")
      throw new CodecError("'nowhere' is true, false or \"people\"");
    return new CellCounts(readCountedCells(cells), rule, whole(most, "the most rows or cells", 1, MOST_VOTES), nowhere);
  }

  get size(): number {
    return this.cells.size;
  }

  /** Slots in which rows are counted; null where it does not matter when they were. */
  get slots(): TimeSlots | null {
    return this.cells.slots;
  }

  /** How far one person can move the sums: Δ₁. */
  get sensitivity(): number {
    return this.most;
  }

  /** What a person adds to each sum. O(rows · (depth + log rows)). */
  contribution(places: readonly Place[], key: Bytes): Uint32Array {
    const every = places.map((place) => this.cells.baseCell(place));
    const inside = every.filter((cell) => cell !== NOWHERE);
    const counted = this.outside === true || (this.outside === "people" && !inside.length) ? every : inside;
    const draws = new KeyedDraws(key, this.rule);
    const words = this.rule === "AtMostRows" ? counted.map((_, rank) => BigInt(rank)) : [...new Set(counted)];
    const drawn = words.map((word) => ({
      number: draws.number(word),
      cell: this.rule === "AtMostRows" ? counted[Number(word)]! : word,
    }));
    drawn.sort((a, b) => (a.number < b.number ? -1 : a.number > b.number ? 1 : 0));
    const sums = new Uint32Array(this.size);
    for (const { cell } of drawn.slice(0, this.most)) {
      const at = this.cells.position(cell);
      if (at !== undefined) sums[at]!++;
    }
    return sums;
  }
}
