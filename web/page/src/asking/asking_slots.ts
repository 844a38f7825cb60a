/** Questions about some slots of a map with time: `TimedRelease.during`, number by number. */

import type { PackedArray } from "../payload/arrays.js";
import { Asking, type AskingData } from "./asking.js";
import { clumpingOf, type Generation, type GenerationData, generation } from "./clumping.js";
import { type Noise, type NoiseData, noiseOf, slotsOf } from "./noise.js";
import { floats } from "./packed_positions.js";
import { type GroundData, Pieces } from "./pieces.js";

/** The part `slots` of the data for questions: numbers of all slots, one slot after another. */
export interface SlotsData {
  readonly names: readonly string[];
  /** What the cells of a slot own. */
  readonly ground: GroundData;
  readonly extent: readonly [number, number, number, number];
  /** Of each slot the unbiased numbers of its cells, and their best guess. */
  readonly unbiased: PackedArray<"int32" | "float64">;
  readonly values: PackedArray<"int32" | "float64">;
  /** The least squares of a slot's cells: over all slots, and in one. */
  readonly day: LeastSquares;
  readonly slot: LeastSquares;
  /** Null for cells inside each other, of which nothing is learnt. */
  readonly generations: readonly GenerationData[] | null;
}

interface LeastSquares {
  readonly stddev: PackedArray<"int32" | "float64">;
  readonly noise: NoiseData;
}

interface Estimated {
  readonly stddev: Float64Array;
  readonly noise: Noise;
}

/** A map with time, of which some slots can be asked. */
export class AskingSlots {
  private constructor(
    private readonly data: AskingData,
    readonly names: readonly string[],
    private readonly extent: SlotsData["extent"],
    private readonly unbiased: Float64Array,
    private readonly values: Float64Array,
    private readonly day: Estimated,
    private readonly slot: Estimated,
    private readonly pieces: Pieces,
    private readonly generations: readonly Generation[] | undefined,
  ) {}

  static async of(data: AskingData): Promise<AskingSlots> {
    const slots = data.slots;
    if (!slots) throw new Error("this map has no slots");
    const [unbiased, values, day, slot] = await Promise.all([
      floats(slots.unbiased),
      floats(slots.values),
      estimated(slots.day),
      estimated(slots.slot),
    ]);
    const pieces = await Pieces.of(slots.ground, day.stddev.length, data.plane);
    const generations = slots.generations && (await Promise.all(slots.generations.map(generation)));
    return new AskingSlots(
      data,
      slots.names,
      slots.extent,
      unbiased,
      values,
      day,
      slot,
      pieces,
      generations ?? undefined,
    );
  }

  /** The map of some slots together, by their numbers from 0 on. */
  during(slots: readonly number[]): Asking {
    const { names, day, slot } = this;
    const chosen = [...new Set(slots)];
    if (!chosen.length || !chosen.every((each) => Number.isInteger(each) && each >= 0 && each < names.length)) {
      throw new RangeError(`name some of the ${names.length} slots, by numbers from 0 on`);
    }
    const [cells, part] = [day.stddev.length, chosen.length / names.length];
    const unbiased = added(this.unbiased, cells, chosen);
    const values = added(this.values, cells, chosen);
    const stddev = day.stddev.map((whole, at) =>
      Math.sqrt(part ** 2 * whole ** 2 + chosen.length * (1 - part) * slot.stddev[at]! ** 2),
    );
    const noise = slotsOf(day.noise, slot.noise, chosen.length, names.length);
    const clumping = this.generations
      ? clumpingOf(this.generations, unbiased, values, stddev)
      : { error: 1, parts: Array<number>(7).fill(1) };
    const facts = { ...this.data, extent: this.extent, clumping };
    return new Asking(facts, { values, unbiased, stddev }, noise, this.pieces, undefined);
  }
}

async function estimated(data: LeastSquares): Promise<Estimated> {
  const stddev = await floats(data.stddev);
  return { stddev, noise: await noiseOf(data.noise, stddev) };
}

/** The sum of some rows of numbers. */
function added(numbers: Float64Array, length: number, rows: readonly number[]): Float64Array {
  const sum = new Float64Array(length);
  for (const row of rows) for (let at = 0; at < length; at++) sum[at]! += numbers[row * length + at]!;
  return sum;
}
