import { expBounds } from "../exponential_bounds.js";
import { Fraction } from "../fraction.js";
import type { Randomiser } from "./randomiser.js";

/** The relative error of one operation with doubles, at most. */
const UNIT = 2 ** -53;
/** Smaller probabilities are cut, so that no double underflows. */
const SMALLEST = 1e-250;
const SMALLEST_DELTA = 1e-40;
/** The part of δ that may go to what the grids leave out. */
const SPILL = 1e-6;
const [FINE, POINTS, LONGEST] = [40, 1_500, 4_096];
const SHOWN = 10n ** 9n;
const LARGEST_EPSILON = new Fraction(200);

/** keep, 1 − keep, turn_on and 1 − turn_on as doubles, each relatively within 2⁻⁵²; and what the removal of a bit tells, rounded up. */
interface Law {
  readonly chances: readonly [number, number, number, number];
  readonly removal: number;
  readonly mirrored: boolean;
}

/** The double next to top/bottom, both above 0. */
function nearest(top: bigint, bottom: bigint): number {
  const shift = bottom.toString(2).length - top.toString(2).length + 66;
  const quotient = shift >= 0 ? (top << BigInt(shift)) / bottom : top / (bottom << BigInt(-shift));
  return Number(quotient) * 2 ** -shift;
}

function lawOf({ kind, epsilon, keep, turnOn }: Randomiser): Law {
  const up = (x: number): number => (Math.ceil((x + 1e-13 * (1 + x)) * 1e9) / 1e9) * (1 + 2 ** -50);
  if (kind === "UnaryEncoding") {
    const one = new Fraction(1);
    const of = ({ numerator, denominator }: Fraction): number => nearest(numerator, denominator);
    const chances = [of(keep), of(one.minus(keep)), of(turnOn), of(one.minus(turnOn))] as const;
    const [kept, dropped, lit, dark] = chances;
    return {
      chances,
      removal: up(Math.max(Math.log(kept / lit), Math.log(dark / dropped))),
      mirrored: keep.plus(turnOn).compare(one) === 0,
    };
  }
  const bits = 400;
  const [, high] = expBounds(epsilon, bits);
  const one = 1n << BigInt(bits);
  const [lit, dark] = [nearest(high, one + high), nearest(one, one + high)];
  const given = epsilon.toNumber();
  if (kind === "Symmetric") return { chances: [dark, lit, lit, dark], removal: given * (1 + 2 ** -50), mirrored: true };
  const removal = Math.min(up(Math.log((Math.exp(given) + 1) / 2)), given * (1 + 2 ** -50));
  return { chances: [0.5, 0.5, lit, dark], removal, mirrored: false };
}

/** The law of a whole number near its middle: P(X = start + i) is about mass[i], relatively; `outside` is left out. */
interface Window {
  readonly mass: Float64Array;
  readonly relative: number;
  readonly outside: number;
}

/** How many of `coins` show heads: a product of ratios from the mode on, cut where Bernstein leaves 2 · `tail`. */
export function binomial(coins: number, heads: number, tails: number, tail: number): Window {
  if (coins === 0) return { mass: Float64Array.of(1), relative: 0, outside: 0 };
  const logarithm = -Math.log(tail);
  const reach =
    Math.floor(1.001 * (logarithm / 3 + Math.sqrt(logarithm ** 2 / 9 + 2 * logarithm * coins * heads * tails))) + 3;
  const mode = Math.min(coins, Math.floor((coins + 1) * heads));
  const odds = heads / tails;
  const [above, below]: [number[], number[]] = [[], []];
  for (let k = mode, mass = 1; k < Math.min(coins, mode + reach); k++)
    above.push((mass *= ((coins - k) / (k + 1)) * odds));
  for (let k = mode, mass = 1; k > Math.max(0, mode - reach); k--) below.push((mass *= k / ((coins - k + 1) * odds)));
  let mass = Float64Array.from([...below.reverse(), 1, ...above]);
  let [first, last] = [0, mass.length];
  while (!(mass[first]! > SMALLEST)) first++;
  while (!(mass[last - 1]! > SMALLEST)) last--;
  mass = mass.slice(first, last);
  const total = mass.reduce((sum, each) => sum + each, 0);
  const outside = 2 * tail + 1e-200;
  const relative = 2 * 9 * (Math.max(above.length, below.length) + 2) * UNIT + (mass.length + 2) * UNIT;
  return { mass: mass.map((each) => each / total), relative: relative + outside, outside };
}

/** The law of the sum of two independent numbers, added up one by one, so that errors stay relative. */
function add(first: Window, second: Window): Window {
  const rounding = 1.01 * (Math.min(first.mass.length, second.mass.length) + 2) * UNIT;
  return {
    mass: convolved(first.mass, second.mass),
    outside: first.outside + second.outside + 1e-200,
    relative: 1.01 * (first.relative + second.relative) + rounding,
  };
}

function convolved(one: Float64Array, other: Float64Array): Float64Array {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  const sums = new Float64Array(short.length + long.length - 1);
  for (let i = 0; i < short.length; i++) {
    const each = short[i]!;
    for (let j = 0; j < long.length; j++) sums[i + j]! += each * long[j]!;
  }
  return sums;
}

/** How many of these ascending numbers are below x, or at most x. */
function below(ascending: Float64Array, x: number, orEqual: boolean): number {
  let [low, high] = [0, ascending.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (orEqual ? ascending[middle]! <= x : ascending[middle]! < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

const fromTheTop = (mass: Float64Array): Float64Array => {
  const sums = new Float64Array(mass.length + 1);
  for (let at = mass.length - 1; at >= 0; at--) sums[at] = sums[at + 1]! + mass[at]!;
  return sums;
};
const fromTheBottom = (mass: Float64Array): Float64Array => {
  const sums = new Float64Array(mass.length + 1);
  for (let at = 0; at < mass.length; at++) sums[at + 1] = sums[at]! + mass[at]!;
  return sums;
};

/** One coordinate of a sum, with one person's bit set and not set: upper bounds of both hockey-stick divergences at e^ε. */
class CoordinatePair {
  readonly least: number;
  private readonly loss: Float64Array;
  private readonly tails: readonly [Float64Array, Float64Array, Float64Array, Float64Array];
  private readonly ratio: number;
  private readonly relative: number;

  constructor(
    [keep, drop, lit, dark]: Law["chances"],
    private readonly others: Window,
  ) {
    const { mass, relative, outside } = others;
    const [p, q, loss] = [0, 1, 2].map(() => new Float64Array(mass.length + 1)) as [
      Float64Array,
      Float64Array,
      Float64Array,
    ];
    let most = -Infinity;
    for (let at = 0; at <= mass.length; at++) {
      const [one, zero] = [at ? mass[at - 1]! : 0, at < mass.length ? mass[at]! : 0];
      p[at] = keep * one + drop * zero;
      q[at] = lit * one + dark * zero;
      loss[at] = most = Math.max(most, Math.log(p[at]! / q[at]!));
    }
    this.loss = loss;
    this.tails = [fromTheTop(p), fromTheTop(q), fromTheBottom(p), fromTheBottom(q)];
    this.ratio = 2 * relative + 1_000 * UNIT;
    this.relative = relative + (p.length + 200) * UNIT + 1.7 * this.ratio;
    this.least = 2 * outside;
  }

  forward(epsilon: number): number {
    const at = below(this.loss, epsilon - this.ratio, true);
    return this.bound(this.tails[0][at]!, this.tails[1][at]!, epsilon);
  }

  backward(epsilon: number): number {
    const at = below(this.loss, this.ratio - epsilon, false);
    return this.bound(this.tails[3][at]!, this.tails[2][at]!, epsilon);
  }

  private bound(likely: number, unlikely: number, epsilon: number): number {
    const other = Math.exp(epsilon) * unlikely;
    return Math.min(Math.max(likely - other, 0) + this.relative * (likely + other) + this.others.outside, 1);
  }
}

/** Mass at the losses (first + i) · step, and `infinite` at ∞, that dominates a pair of laws. */
export class LossDistribution {
  constructor(
    readonly step: number,
    readonly first: number,
    readonly mass: Float64Array,
    readonly infinite: number,
  ) {}

  /** From upper bounds of H at e^((first + i) step): chords of a convex curve lie above it. */
  static fromCurve(step: number, first: number, bounds: Float64Array): LossDistribution {
    let least = 1;
    const curve = bounds.map((bound) => (least = Math.min(least, bound)));
    const gamma = curve.map((_, at) => Math.exp(step * (first + at)));
    const slopes = new Float64Array(curve.length + 1);
    slopes[0] = (1 - curve[0]!) / gamma[0]!;
    for (let at = 0; at + 1 < curve.length; at++)
      slopes[at + 1] = (curve[at]! - curve[at + 1]!) / (gamma[at]! * Math.expm1(step));
    for (let at = slopes.length - 2; at >= 0; at--) slopes[at] = Math.max(slopes[at]!, slopes[at + 1]!);
    const mass = gamma.map((each, at) => each * (slopes[at]! - slopes[at + 1]!) * (1 + 200 * UNIT));
    return new LossDistribution(step, first, mass, curve.at(-1)!);
  }

  /** Both rounds; up to `spill` of each far end is moved upward. */
  compose(given: LossDistribution, spill: number): LossDistribution {
    let [one, two] = [this.short(), given.short()];
    while (one.step < two.step) one = one.coarser();
    while (two.step < one.step) two = two.coarser();
    const rounding = 1 + 1.1 * (Math.min(one.mass.length, two.mass.length) + 4) * UNIT;
    const infinite = one.infinite + two.infinite * one.mass.reduce((sum, each) => sum + each, 0) + 1e-250;
    const mass = convolved(one.mass, two.mass).map((each) => each * rounding);
    return new LossDistribution(one.step, one.first + two.first, mass, infinite * rounding).trimmed(spill);
  }

  /** On a grid of twice the step: a mass between two points goes to both so that Σ m e^(−l) stays. */
  private coarser(): LossDistribution {
    let [mass, first] = [[...this.mass], this.first];
    if (first % 2) [mass, first] = [[0, ...mass], first - 1];
    if (mass.length % 2 === 0) mass.push(0);
    const up = 1 / (1 + Math.exp(-this.step));
    const halves = new Float64Array((mass.length + 1) / 2);
    for (let at = 0; at < halves.length; at++) {
      const [left, right] = [mass[2 * at - 1] ?? 0, mass[2 * at + 1] ?? 0];
      halves[at] = (mass[2 * at]! + left * up + right * (1 - up)) * (1 + 20 * UNIT);
    }
    return new LossDistribution(2 * this.step, first / 2, halves, this.infinite);
  }

  private short(): LossDistribution {
    let short: LossDistribution = this;
    while (short.mass.length > LONGEST) short = short.coarser();
    return short;
  }

  private trimmed(spill: number): LossDistribution {
    const { mass } = this;
    const [above, under] = [fromTheTop(mass), fromTheBottom(mass)];
    let begin = 0;
    while (begin < mass.length && under[begin + 1]! <= spill) begin++;
    let end = mass.length;
    while (end > 0 && above[end - 1]! <= spill) end--;
    if (!(begin < end)) return this;
    const kept = mass.slice(begin, end);
    const rounding = 1 + 2 * (mass.length + 4) * UNIT;
    if (begin) kept[0]! += under[begin]! * rounding;
    const gone = end < mass.length ? above[end]! * rounding : 0;
    return new LossDistribution(this.step, this.first + begin, kept, (this.infinite + gone) * (1 + 2 * UNIT));
  }

  /** D(e^ε), rounded up. */
  delta(epsilon: number): number {
    let total = 0;
    for (let at = Math.max(0, Math.floor(epsilon / this.step) - this.first); at < this.mass.length; at++) {
      const loss = (this.first + at) * this.step;
      if (loss > epsilon) total += this.mass[at]! * -Math.expm1(epsilon - loss);
    }
    return Math.min(1, (total + this.infinite) * (1 + (this.mass.length + 100) * UNIT));
  }

  /** The least ε ≥ 0 with D(e^ε) ≤ δ, rounded up; ∞ if there is none. */
  epsilon(delta: number): number {
    const goal = delta * (1 - 4 * (this.mass.length + 100) * UNIT);
    if (this.infinite > goal) return Infinity;
    if (this.delta(0) <= goal) return 0;
    const loss = (at: number): number => (this.first + at) * this.step;
    let [low, high] = [-1, this.mass.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.delta(loss(middle)) <= goal) high = middle;
      else low = middle;
    }
    const top = loss(high);
    let slope = 0;
    for (let at = high; at < this.mass.length; at++) slope += this.mass[at]! * Math.exp(top - loss(at));
    const room = goal - this.delta(top);
    let least = room < slope ? top + Math.log1p((-room / slope) * (1 - 1e-12)) : 0;
    if (low >= 0) least = Math.max(least, loss(low));
    return Math.max(least, 0) * (1 + 1e-12) + 1e-14;
  }
}

/** Intervals of how many of `people` hold a bin that cover 0 … people. */
function cover({ chances: [keep, drop, lit, dark] }: Law, people: number): [number, number][] {
  if (keep * drop >= lit * dark * (1 - 1e-9)) return spans(people, keep * drop, lit * dark);
  return spans(people, lit * dark, keep * drop)
    .reverse()
    .map(([low, high]) => [people - high, people - low]);
}

/** Intervals where each holder adds the variance `loud`, and each other person `quiet`, which is no more. */
function spans(people: number, loud: number, quiet: number): [number, number][] {
  const noise = people * quiet;
  const louder = loud > 1.01 * quiet;
  let loss = louder ? 5e-4 : 5e-3;
  if (noise > 1e5) loss = loud > 4 * quiet ? 5e-4 : loud > 1.2 * quiet ? 2e-3 : louder ? 5e-3 : 1e-2;
  const part = noise < 200 ? 0.02 : noise < 2_000 ? 0.05 : 0.3;
  const found: [number, number][] = [];
  for (let low = 0; low <= people; ) {
    let high = people; // the holders alone are noise enough
    if (!(louder && low * loud >= 1.5 * noise + 60)) {
      high = Math.floor(low + Math.min((low * (loud - quiet) + loss * noise) / quiet, part * (people - low)));
    }
    high = Math.max(low, Math.min(people, high));
    found.push([low, high]);
    low = high + 1;
  }
  return found;
}

/** Losses of one coordinate of a sum of `honest` reports, whatever the other people hold: forward and backward. */
function coordinateLosses(law: Law, honest: number, spill: number): [LossDistribution, LossDistribution] {
  const [keep, drop, lit, dark] = law.chances;
  const tail = Math.max(spill * 1e-3, 1e-60);
  let intervals = cover(law, honest - 1);
  if (law.mirrored) intervals = intervals.filter(([, high]) => 2 * high >= honest - 1); // they are the finer near their end
  const pairs = intervals.map(
    ([low, high]) =>
      new CoordinatePair(
        law.chances,
        add(binomial(low, keep, drop, tail), binomial(honest - 1 - high, lit, dark, tail)),
      ),
  );
  const [step, points] = grid(law, honest, [pairs[0]!, pairs.at(-1)!], spill);
  const losses = Float64Array.from({ length: 2 * points + 1 }, (_, at) => (at - points) * step);
  const worst = (way: "forward" | "backward"): Float64Array =>
    losses.map((loss) => (loss >= law.removal ? 0 : Math.max(...pairs.map((pair) => pair[way](loss)))));
  let [forward, backward] = [worst("forward"), worst("backward")];
  if (law.mirrored) forward = backward = forward.map((each, at) => Math.max(each, backward[at]!));
  return [LossDistribution.fromCurve(step, -points, forward), LossDistribution.fromCurve(step, -points, backward)];
}

/** The step, a power of two, and the points on each side: up to where H is below `spill`, or to the local ε₀. */
function grid(
  { chances: [keep, drop, lit, dark], removal }: Law,
  honest: number,
  ends: CoordinatePair[],
  spill: number,
): [number, number] {
  const spread = Math.max(honest, 4) * Math.min(keep * drop, lit * dark) + 1;
  const deviation = (keep - lit) / Math.sqrt(spread);
  let reach = Math.min(removal, 4 * deviation);
  while (reach < removal) {
    if (ends.every((pair) => Math.max(pair.forward(reach), pair.backward(reach)) <= Math.max(spill, pair.least))) break;
    reach = Math.min(removal, reach * 1.2);
  }
  const step = 2 ** Math.floor(Math.log2(Math.max(deviation / FINE, reach / POINTS)));
  return [step, Math.ceil(reach / step) + 1];
}

const known = new Map<string, Fraction>();

/**
 * ε at this δ of a sum of so many honest reports, by the exact law of the sum, rounded up; never above ε₀ of one report. It
 * covers whatever the others hold. Floats are bounds here, rounded outwards: some 10 to 500 ms.
 */
export function sumPrice(law: Randomiser, honest: number, delta: Fraction): Fraction {
  const goal = delta.toNumber() * (1 - 2 ** -52);
  if (goal < SMALLEST_DELTA || law.replacement.compare(LARGEST_EPSILON) > 0) return law.replacement;
  const name = [law.kind, law.epsilon, law.keep, law.turnOn, honest, delta].join(" ");
  const found = known.get(name) ?? exactSum(law, honest, goal);
  if (known.size < 256) known.set(name, found);
  return found;
}

function exactSum(law: Randomiser, honest: number, goal: number): Fraction {
  const part = (goal * SPILL) / 4;
  const [forward, backward] = coordinateLosses(lawOf(law), honest, part);
  const priced = forward.compose(backward, part).epsilon(goal);
  if (!Number.isFinite(priced)) return law.replacement;
  const shown = new Fraction(BigInt(Math.ceil(priced * 1e9 * (1 + 2 ** -50))), SHOWN);
  return shown.compare(law.replacement) < 0 ? shown : law.replacement;
}
