/** Questions about regions of a map, answered in the page as `hazemap ask` answers them. */

import type { PackedArray } from "../payload/arrays.js";
import type { MarksData } from "./asking_marks.js";
import type { SlotsData } from "./asking_slots.js";
import { type Clumping, clumpedAt } from "./clumping.js";
import { asymmetryMargin, checkConfidence, leading, reach, reachAtMost } from "./confidence_margins.js";
import { type CutCell, held, placed } from "./cut_cells.js";
import { type Noise, type NoiseData, noiseOf } from "./noise.js";
import { floats, positions } from "./packed_positions.js";
import { FlatRegion, type GroundData, Pieces } from "./pieces.js";
import { densified, equalArea, type Ring, turned } from "./projection.js";
import { checkedBox, checkedPolygons, inSixDigits, type Region, RegionError } from "./regions.js";

export { type Reason, type Region, RegionError } from "./regions.js";

/** The part `asking` of the page's data: what `hazemap.releases.page.asking_payload` writes. */
export interface AskingData {
  readonly version: 1;
  readonly counted: string;
  readonly plane: boolean;
  readonly extent: readonly [number, number, number, number];
  readonly values: PackedArray<"int32" | "float64">;
  readonly unbiased: PackedArray<"int32" | "float64">;
  readonly stddev: PackedArray<"int32" | "float64">;
  readonly ground: GroundData;
  readonly finer: FinerData | null;
  readonly clumping: Clumping;
  readonly kurtosis: number; // the largest of any answer
  readonly chances: readonly (readonly [number, number])[];
  readonly noise: NoiseData;
  readonly slots?: SlotsData;
  readonly marks?: MarksData;
}

/** How the best guess is spread inside cells; `shown` where pictures show it. */
interface FinerData {
  readonly shown: boolean;
  readonly values: PackedArray<"int32" | "float64">;
  readonly holder: PackedArray<"int32">;
  readonly ground: GroundData;
}

/** A number that noise was added to, and how far it may be from the truth: Python's `Estimate`, field by field. */
export interface Estimate {
  readonly best_guess: number;
  readonly low: number;
  readonly high: number;
  readonly confidence: number;
  readonly counted: string;
  readonly unbiased: number;
  readonly stddev: number;
  readonly cut: number;
  readonly placement_stddev: number;
  readonly noise_stddev: number;
}

interface Finer {
  readonly shown: boolean;
  readonly values: Float64Array;
  readonly holder: Int32Array;
  readonly pieces: Pieces;
}

interface Numbers {
  readonly values: Float64Array;
  readonly unbiased: Float64Array;
  readonly stddev: Float64Array;
}

const BY_AREA = 0.1; // the part of a guess of where people are inside a cell that does not look around

/** What is said of a map beside its numbers. */
type Facts = Pick<AskingData, "counted" | "plane" | "extent" | "clumping" | "kurtosis" | "chances">;

/** A map that can be asked how many are in a region. */
export class Asking {
  constructor(
    private readonly data: Facts,
    private readonly numbers: Numbers,
    private readonly noise: Noise,
    private readonly pieces: Pieces,
    private readonly finer: Finer | undefined,
  ) {}

  /** From the page's data: some tenths of a second for 100,000 squares. */
  static async of(data: AskingData): Promise<Asking> {
    if (data.version !== 1) throw new Error("the data for questions is of another version: make the page anew");
    const [values, unbiased, stddev] = await Promise.all([
      floats(data.values),
      floats(data.unbiased),
      floats(data.stddev),
    ]);
    const [noise, pieces, finer] = await Promise.all([
      noiseOf(data.noise, stddev),
      Pieces.of(data.ground, values.length, data.plane),
      data.finer ? finerOf(data.finer, data.plane) : undefined,
    ]);
    return new Asking(data, { values, unbiased, stddev }, noise, pieces, finer);
  }

  /** How many are in a region; `RegionError` for what is no region, or lies outside the map; 0 < confidence < 1. */
  count(region: Region, confidence = 0.95): Estimate {
    checkConfidence(confidence);
    const sharesOf = reading(region, this.data.plane);
    const shares = this.sharesBy(sharesOf);
    const isCut = shares.some((share) => share > 0 && share < 1);
    return isCut ? this.cut(shares, sharesOf, confidence) : this.whole(shares, confidence);
  }

  /** The share of each cell that lies in a region; `RegionError` where none does. */
  shares(region: Region): Float64Array {
    return this.sharesBy(reading(region, this.data.plane));
  }

  private sharesBy(sharesOf: (pieces: Pieces) => Float64Array): Float64Array {
    const shares = sharesOf(this.pieces);
    if (!shares.some((share) => share !== 0)) {
      const [west, south, east, north] = this.data.extent.map(inSixDigits);
      const axes = this.data.plane ? "x,y,x,y" : "west,south,east,north in degrees";
      throw new RegionError(
        "outside",
        `this region lies outside the map, which covers ${west},${south},${east},${north} (${axes})`,
      );
    }
    return shares;
  }

  /** How many are in cells that are in a region whole (1), or not at all (0). Of one cell it is what its row says. */
  whole(weights: Float64Array, confidence: number): Estimate {
    const spread = this.noise(weights);
    const value = dot(weights, this.numbers.unbiased);
    const one = weights.reduce((most, weight) => Math.max(most, weight), 0) || 1;
    const single = weights.reduce((some, weight) => some + (weight === 0 ? 0 : 1), 0) === 1;
    const times = single ? reachAtMost(confidence, this.data.kurtosis) : reach(confidence, spread.kurtosis);
    const far = (times * spread.stddev) / one + this.asymmetry(confidence);
    const margin = Math.ceil(far) * one;
    const best = dot(weights, this.numbers.values);
    return this.estimate(value, spread.stddev, value - margin, value + margin, confidence, best, 0, 0);
  }

  /** Some cells cut: of those the best guess says how many people are inside. */
  private cut(shares: Float64Array, sharesOf: (pieces: Pieces) => Float64Array, confidence: number): Estimate {
    const { values, unbiased, stddev } = this.numbers;
    let best = dot(shares, values);
    let parts = shares;
    if (this.finer) {
      const fine = sharesOf(this.finer.pieces);
      const inside = new Float64Array(values.length);
      let sum = 0;
      fine.forEach((share, at) => {
        const people = share * this.finer!.values[at]!;
        sum += people;
        inside[this.finer!.holder[at]!]! += people;
      });
      if (this.finer.shown) best = sum;
      parts = shares.map((share, at) => {
        if (!(share > 0 && share < 1)) return share;
        const guess = values[at]! > 0 ? Math.min(Math.max(inside[at]! / values[at]!, 0), 1) : share;
        return BY_AREA * share + (1 - BY_AREA) * guess;
      });
    }
    const noise = this.noise(parts);
    const value = dot(parts, unbiased);
    const cells: CutCell[] = [];
    let [within, outside, people] = [0, 0, 0];
    parts.forEach((part, at) => {
      const likely = Math.max(values[at]!, 0);
      if (part >= 1) within += likely;
      else if (part <= 0) outside += likely;
      else {
        people += likely;
        const many = held(likely, unbiased[at]!, stddev[at]!);
        cells.push({ part, people: many, clumped: clumpedAt(this.data.clumping, many), stddev: stddev[at]! });
      }
    });
    const doubt = placed(cells, noise, confidence, within, outside);
    const asymmetry = this.asymmetry(confidence);
    const low = Math.floor(value + doubt.low - asymmetry);
    const high = Math.ceil(value + doubt.high + asymmetry) + 0; // 0, never −0
    return this.estimate(
      value,
      Math.hypot(noise.stddev, doubt.stddev),
      low,
      high,
      confidence,
      best,
      people,
      doubt.stddev,
    );
  }

  private asymmetry(confidence: number): number {
    return Math.max(0, ...this.data.chances.map((law) => asymmetryMargin(law, confidence)));
  }

  private estimate(
    value: number,
    stddev: number,
    low: number,
    high: number,
    confidence: number,
    best: number,
    cut: number,
    placement: number,
  ): Estimate {
    const noise = Math.sqrt(Math.max(stddev ** 2 - placement ** 2, 0));
    const { counted } = this.data;
    return {
      best_guess: best,
      ...leading(best, low, high),
      confidence,
      counted,
      unbiased: value,
      stddev,
      cut,
      placement_stddev: placement,
      noise_stddev: noise,
    };
  }
}

/** What an estimate says, in English: `2,858 people (95 % interval 2,796 … 2,919)`. */
export function sentence(found: Estimate): string {
  const digits =
    found.stddev > 0 && found.stddev < Infinity ? Math.max(0, 1 - Math.floor(Math.log10(found.stddev))) : 0;
  // As Python rounds: halves to even, and to 0, never to −0.
  const rounded = {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    roundingMode: "halfEven",
    signDisplay: "negative",
  };
  const format = new Intl.NumberFormat("en-US", rounded as Intl.NumberFormatOptions);
  const text = (number: number) => format.format(number);
  const sure = inSixDigits(100 * found.confidence);
  return (
    `${text(found.best_guess)} ${found.counted}` + ` (${sure} % interval ${text(found.low)} … ${text(found.high)})`
  );
}

async function finerOf(data: FinerData, plane: boolean): Promise<Finer> {
  const [values, holder] = await Promise.all([floats(data.values), positions(data.holder)]);
  return { shown: data.shown, values, holder, pieces: await Pieces.of(data.ground, values.length, plane) };
}

/** How to work out the share of each cell of some pieces that lies in a region. */
function reading(region: Region, plane: boolean): (pieces: Pieces) => Float64Array {
  if ("box" in region) {
    const [west, south, east, north] = checkedBox(region.box, plane);
    const [low, high] = plane
      ? [[west, south] as const, [east, north] as const]
      : [equalArea([west, south]), equalArea([east, north])];
    return (pieces) => pieces.inBox(low[0], low[1], high[0], high[1]);
  }
  const flatten = (ring: Ring) => (plane ? ring : densified(ring).map(equalArea));
  const rings = checkedPolygons(region.polygon, plane).flatMap((polygon) =>
    polygon.map((ring, at) => turned(flatten(ring), at === 0)),
  );
  const flat = new FlatRegion(rings);
  return (pieces) => pieces.inRegion(flat);
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}
