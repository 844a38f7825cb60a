/** Which share of the people in a region carries each mark: `MarkedRelease.share`, number by number. */

import type { PackedArray } from "../payload/arrays.js";
import { Asking, type AskingData, type Estimate } from "./asking.js";
import { checkConfidence, reach, reachAtMost } from "./confidence_margins.js";
import { floats } from "./packed_positions.js";
import { type Region, RegionError } from "./regions.js";

/** The part `marks` of the data for questions: each number is a sum of some of the `sides` noisy counts of a cell. */
export interface MarksData {
  readonly stddev: number;
  readonly kurtosis: number;
  /** The least step of a count. */
  readonly grain: number;
  readonly sides: number;
  readonly each: readonly {
    readonly name: string;
    /** How many of the counts are of those with the mark. */
    readonly sides: number;
    readonly marked: PackedArray<"int32" | "float64">;
    readonly without: PackedArray<"int32" | "float64">;
  }[];
}

/** Python's `Share`; `value` is null where there seems to be nobody. */
export interface Share {
  readonly mark: string;
  readonly value: number | null;
  readonly low: number;
  readonly high: number;
  readonly confidence: number;
}

/** Python's `RegionShares`: of the cells that lie in a region with half of their area or more. */
export interface RegionShares {
  readonly cells: number;
  /** How many of these the border of the region cuts, and how many others, which do not count. */
  readonly inside: number;
  readonly outside: number;
  readonly people: Estimate;
  readonly shares: readonly Share[];
}

interface Mark {
  readonly name: string;
  readonly sides: number;
  readonly marked: Float64Array;
  readonly without: Float64Array;
}

const HALF = 0.5; // of its area: a cell that lies in a region with less does not count there
const TURNS = 4; // how often the margin is fitted to where an interval ends

/** A map with marks that can be asked for shares. */
export class AskingMarks {
  private constructor(
    private readonly people: Asking,
    private readonly law: MarksData,
    private readonly marks: readonly Mark[],
  ) {}

  static async of(data: AskingData): Promise<AskingMarks> {
    const law = data.marks;
    if (!law) throw new Error("this map has no marks");
    const marks = await Promise.all(
      law.each.map(async ({ name, sides, marked, without }): Promise<Mark> => {
        const [own, others] = await Promise.all([floats(marked), floats(without)]);
        return { name, sides, marked: own, without: others };
      }),
    );
    return new AskingMarks(await Asking.of(data), law, marks);
  }

  /** The shares in a region; `RegionError` for one without cells. */
  share(region: Region, confidence = 0.95): RegionShares {
    checkConfidence(confidence);
    const shares = this.people.shares(region);
    const chosen = shares.map((share) => Number(share >= HALF));
    const cells = chosen.reduce((sum, one) => sum + one, 0);
    if (!cells) {
      throw new RegionError(
        "small",
        "no cell lies in this region with half of its area or more: ask for a larger region",
      );
    }
    const cut = (most: boolean) =>
      shares.reduce((sum, share) => sum + Number(share > 0 && share < 1 && share >= HALF === most), 0);
    return {
      cells,
      inside: cut(true),
      outside: cut(false),
      people: this.people.whole(chosen, confidence),
      shares: this.marks.map((mark) => this.together(mark, chosen, cells, confidence)),
    };
  }

  private together(mark: Mark, chosen: Float64Array, cells: number, confidence: number): Share {
    const { stddev, kurtosis, grain, sides } = this.law;
    const sum = (numbers: Float64Array) => numbers.reduce((all, number, at) => all + number * chosen[at]!, 0);
    const terms = [mark.sides * cells, (sides - mark.sides) * cells];
    const numbers = new ShareNumbers(
      sum(mark.marked),
      sum(mark.without),
      terms.map((each) => stddev * Math.sqrt(each)),
      terms.map((each) => kurtosis / each),
      grain,
    );
    const [low, high] = numbers.interval(confidence);
    return { mark: mark.name, value: numbers.value, low, high, confidence };
  }
}

/** A noisy number with a mark and one without: `hazemap.estimate.marked_counts.Shares` of one place. */
class ShareNumbers {
  private readonly x: number;
  private readonly y: number;

  constructor(
    private readonly marked: number,
    private readonly without: number,
    private readonly noise: readonly number[],
    private readonly kurtosis: readonly number[],
    private readonly grain: number,
  ) {
    this.x = Math.max(marked, 0);
    this.y = Math.max(without, 0);
  }

  get value(): number | null {
    return this.marked + this.without > 0 ? this.x / (this.x + this.y) : null;
  }

  /** Fieller's interval, of whole people; 0 … 1 where noise could explain that nobody is there. */
  interval(confidence: number): [number, number] {
    let [low, high] = this.ends(reachAtMost(confidence, Math.max(...this.kurtosis)));
    for (let turn = 0; turn < TURNS; turn++) {
      [low, high] = [
        this.ends(reach(confidence, this.kurtosisAt(low)))[0],
        this.ends(reach(confidence, this.kurtosisAt(high)))[1],
      ];
    }
    return [low, high];
  }

  /** The excess kurtosis of (1 − p) · marked − p · without. */
  private kurtosisAt(p: number): number {
    const parts = [1 - p, p].map((weight, i) => (weight * this.noise[i]!) ** 2);
    const whole = parts[0]! + parts[1]!;
    return whole > 0 ? (this.kurtosis[0]! * parts[0]! ** 2 + this.kurtosis[1]! * parts[1]! ** 2) / whole ** 2 : 0;
  }

  private ends(far: number): [number, number] {
    const { x, y } = this,
      people = x + y;
    const [mx, my] = this.noise.map((noise) => this.whole(far * noise) ** 2);
    const [a, b, c] = [people ** 2 - mx! - my!, 2 * (mx! - x * people), x ** 2 - mx!];
    if (!(people > 0 && a > 0)) return [0, 1];
    const half = Math.sqrt(Math.max(b ** 2 - 4 * a * c, 0)) / (2 * a),
      middle = -b / (2 * a),
      guess = x / people;
    const inside = (end: number) => Math.max(0, Math.min(1, end));
    return [inside(Math.min(middle - half, guess)), inside(Math.max(middle + half, guess))];
  }

  private whole(margin: number): number {
    return this.grain === 0 ? margin : Math.ceil(margin / this.grain - 1e-9) * this.grain;
  }
}
