/** How the errors of the cells' numbers hang together: `Noise.of` of each kind of map. */

import { type PackedArray, unpack } from "../payload/arrays.js";
import type { Spread } from "./confidence_margins.js";
import { positions } from "./packed_positions.js";

/** What the page is told of a map's noise. A variance of null is infinite: nothing was counted. */
export type NoiseData =
  | { readonly kind: "independent"; readonly kurtosis: number }
  | { readonly kind: "levels"; readonly levels: readonly CountedLevel[] }
  | {
      readonly kind: "forest";
      readonly parent: PackedArray<"int32">;
      readonly missing: PackedArray<"uint8">;
      readonly law: PackedArray<"uint8" | "int32">;
      readonly laws: readonly Law[];
      readonly cells: PackedArray<"int32">;
    }
  | {
      readonly kind: "wavelet";
      readonly side: number;
      readonly places: PackedArray<"int32">;
      readonly stddev: number;
      readonly kurtosis: number;
    }
  | {
      readonly kind: "slots";
      readonly total: NoiseData;
      readonly slot: NoiseData;
      readonly chosen: number;
      readonly slots: number;
    };

interface CountedLevel {
  readonly size: number;
  readonly variance: number | null;
  readonly kurtosis: number;
}

/** The variance and the excess kurtosis of a measurement. */
type Law = readonly [number | null, number];

/** The noise of Σ weights · numbers of the cells. */
export type Noise = (weights: Float64Array) => Spread;

/** The noise of a map whose cells have these standard errors. */
export async function noiseOf(data: NoiseData, stddev: Float64Array): Promise<Noise> {
  switch (data.kind) {
    case "independent":
      return (weights) => independent(weights, stddev, data.kurtosis);
    case "levels": {
      const forest = forestOfLevels(data.levels);
      return (weights) => forest.of(weights);
    }
    case "forest": {
      const [missing, law] = await Promise.all([unpack(data.missing), unpack(data.law)]);
      const [parent, cells] = await Promise.all([positions(data.parent), positions(data.cells)]);
      const forest = new Forest(parent, missing, Int32Array.from(law), data.laws, cells);
      return (weights) => forest.of(weights);
    }
    case "wavelet": {
      const places = await positions(data.places);
      return (weights) => wavelet(weights, data.side, places, data.stddev, data.kurtosis);
    }
    case "slots": {
      const [total, slot] = await Promise.all([noiseOf(data.total, stddev), noiseOf(data.slot, stddev)]);
      return slotsOf(total, slot, data.chosen, data.slots);
    }
  }
}

/** The noise of numbers in `chosen` of `all` slots. */
export function slotsOf(total: Noise, slot: Noise, chosen: number, all: number): Noise {
  return (weights) => slots(total(weights), slot(weights), chosen, all);
}

function spread(variance: number, fourth: number): Spread {
  return { stddev: Math.sqrt(variance), kurtosis: variance > 0 ? fourth / variance ** 2 : 0 };
}

/** Errors that have nothing to do with each other: variances and fourth cumulants add. */
function independent(weights: Float64Array, stddev: Float64Array, kurtosis: number): Spread {
  let variance = 0;
  let squares = 0;
  for (let at = 0; at < weights.length; at++) {
    const own = (weights[at]! * stddev[at]!) ** 2;
    variance += own;
    squares += own * own;
  }
  return spread(variance, kurtosis * squares);
}

/** Numbers in k of S slots: the total's errors, and those of differences between slots. */
function slots(total: Spread, slot: Spread, chosen: number, all: number): Spread {
  const part = chosen / all;
  const variance = part ** 2 * total.stddev ** 2 + chosen * (1 - part) * slot.stddev ** 2;
  const differences = chosen * (1 - part) ** 4 + (all - chosen) * part ** 4;
  const fourth = part ** 4 * total.kurtosis * total.stddev ** 4 + differences * slot.kurtosis * slot.stddev ** 4;
  return spread(variance, fourth);
}

/** A level a generation, each cell of which has as many children, one after another. */
function forestOfLevels(levels: readonly CountedLevel[]): Forest {
  const size = levels.reduce((sum, level) => sum + level.size, 0);
  const [parent, law] = [new Int32Array(size).fill(-1), new Int32Array(size)];
  let start = 0;
  let before = 0;
  for (const [number, level] of levels.entries()) {
    const fan = number ? level.size / levels[number - 1]!.size : 0;
    for (let at = 0; at < level.size; at++) {
      law[start + at] = number;
      if (number) parent[start + at] = before + Math.floor(at / fan);
    }
    before = start;
    start += level.size;
  }
  const cells = Int32Array.from({ length: size - before }, (_, at) => before + at);
  const laws = levels.map((level): Law => [level.variance, level.kurtosis]);
  return new Forest(parent, new Uint8Array(size), law, laws, cells);
}

/**
 * Least squares on a forest of regions, parents first (`hazemap.estimate.tree_least_squares`): ω, with which a region's
 * own measurement counts, and s, the share it takes of what its parent knows better.
 */
class Forest {
  private readonly own: Float64Array;
  private readonly given: Float64Array;
  private readonly variances: Float64Array;

  constructor(
    private readonly parent: Int32Array,
    missing: Uint8Array,
    private readonly law: Int32Array,
    private readonly laws: readonly Law[],
    private readonly cells: Int32Array,
  ) {
    const size = parent.length;
    this.variances = Float64Array.from(law, (number) => laws[number]![0] ?? Infinity);
    this.own = new Float64Array(size).fill(1);
    this.given = new Float64Array(size);
    const [own, below] = [this.own, this.variances.slice()];
    const sums = new Float64Array(size);
    const unknown = new Int32Array(size).fill(-1); // children of which nothing is known; −1 without children
    for (let at = size - 1; at >= 0; at--) {
      const [measured, sum] = [this.variances[at]!, sums[at]!];
      if (unknown[at] === 0 && !missing[at]) {
        if (measured === Infinity) {
          own[at] = 0;
          below[at] = sum;
        } else if (measured + sum > 0) {
          own[at] = sum / (measured + sum);
          below[at] = own[at]! * measured;
        }
      }
      const above = parent[at]!;
      if (above < 0) continue;
      if (unknown[above]! < 0) unknown[above] = 0;
      if (below[at] === Infinity) unknown[above] = unknown[above]! + 1;
      else sums[above] = sums[above]! + below[at]!;
    }
    for (let at = 0; at < size; at++) {
      const above = parent[at]!;
      if (above < 0 || missing[above]) continue;
      if (unknown[above] === 0 && sums[above]! > 0) this.given[at] = below[at]! / sums[above]!;
      else if (unknown[above] === 1 && below[at] === Infinity) this.given[at] = 1;
    }
  }

  /** Variance and fourth cumulant of Σ weights · numbers, by the passes run backwards. */
  of(weights: Float64Array): Spread {
    const { parent, own, given, variances, law, laws, cells } = this;
    const size = parent.length;
    const [pull, passed] = [new Float64Array(size), new Float64Array(size)];
    for (let at = 0; at < cells.length; at++) pull[cells[at]!] = pull[cells[at]!]! + weights[at]!;
    for (let at = size - 1; at >= 0; at--) {
      const above = parent[at]!;
      if (above >= 0) passed[above] = passed[above]! + given[at]! * (pull[at]! + passed[at]!);
    }
    let variance = 0;
    let fourth = 0;
    for (let at = 0; at < size; at++) {
      const above = parent[at]!;
      let moves = pull[at]! + passed[at]!;
      if (above >= 0) moves += pull[above]! * (1 - own[above]!) - passed[above]!;
      pull[at] = moves; // from here on how the sum moves with what is known of a region from below
      const weight = moves * own[at]!;
      if (weight !== 0 && variances[at]! < Infinity) {
        const part = weight * weight * variances[at]!;
        variance += part;
        fourth += laws[law[at]!]![1] * part * part;
      }
    }
    return spread(variance, fourth);
  }
}

/** A grid of which a wavelet was measured: the weights of its sums are the wavelet of the cells' weights. */
function wavelet(weights: Float64Array, side: number, places: Int32Array, stddev: number, kurtosis: number): Spread {
  const levels = Math.log2(side);
  const grid = Float64Array.from(places, (place) => weights[place]!);
  for (const [step, other] of [
    [1, side],
    [side, 1],
  ] as const) {
    for (let line = 0; line < side; line++) differences(grid, line * other, step, side);
  }
  // A number is about a block of so many places of its axis.
  const length = (at: number) => (at ? side / 2 ** (31 - Math.clz32(at)) : side);
  const lengths = Float64Array.from({ length: side }, (_, at) => length(at));
  let sum = 0;
  let squares = 0;
  const add = (pull: number) => {
    sum += pull ** 2;
    squares += pull ** 4;
  };
  grid.forEach((number, at) => add(number / lengths[Math.floor(at / side)]! / lengths[at % side]!));
  weights.subarray(side * side).forEach((weight) => add(weight / (levels + 1)));
  return { stddev: stddev * Math.sqrt(sum), kurtosis: sum > 0 ? (kurtosis * squares) / sum ** 2 : 0 };
}

/** A line's sum and, for blocks of 2, 4 … places, first half less second half, in place. */
function differences(grid: Float64Array, start: number, step: number, side: number): void {
  let sums = Float64Array.from({ length: side }, (_, at) => grid[start + at * step]!);
  while (sums.length > 1) {
    const half = sums.length / 2;
    for (let at = 0; at < half; at++) grid[start + (half + at) * step] = sums[2 * at]! - sums[2 * at + 1]!;
    sums = Float64Array.from({ length: half }, (_, at) => sums[2 * at]! + sums[2 * at + 1]!);
  }
  grid[start] = sums[0]!;
}
