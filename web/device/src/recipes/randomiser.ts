import { type Bytes, bigEndian, type RandomBytes } from "../../../shared/src/bytes.js";
import { CodecError } from "../errors.js";
import { ceil, expBounds } from "../exponential_bounds.js";
import { Fraction } from "../fraction.js";
import type { Json } from "../json_text.js";
import { LazyUniform } from "../polya_noise.js";
import { fieldsOf, fraction, typed } from "../typed_json.js";

const [LEAST_LOCAL, MOST_LOCAL] = [new Fraction(1n, 1n << 20n), new Fraction(64)];
const [LONGEST, FINE] = [1n << 63n, 1n << 40n];
const HALF = new Fraction(1, 2);
const ONE = new Fraction(1);

/**
 * What a person does to a vector with one 1 before it leaves them: the 1 is sent as 1 with one chance, each 0 with a smaller
 * one. A chance is a rational, or 1/(e^ε + 1), or what that leaves of 1.
 */
export interface Randomiser {
  readonly kind: "Symmetric" | "Asymmetric" | "UnaryEncoding";
  /** ε of the first two kinds. */
  readonly epsilon: Fraction;
  /** Both chances of the third. */
  readonly keep: Fraction;
  readonly turnOn: Fraction;
  /** ε₀ of one report against that of somebody who says something else, rounded up. */
  readonly replacement: Fraction;
}

/** As the codec writes it; `CodecError` for a report that says nothing, or hides nothing. */
export function readRandomiser(json: Json | undefined): Randomiser {
  const [kind, value] = typed(json, "the randomiser");
  if (kind === "UnaryEncoding") return unary(value);
  if (kind !== "Symmetric" && kind !== "Asymmetric")
    throw new CodecError("a report is randomised by Symmetric, Asymmetric or UnaryEncoding");
  const epsilon = fraction(fieldsOf(value, kind, "epsilon")["epsilon"], "the local ε");
  const long = [epsilon.numerator, epsilon.denominator].some((part) => part >= 1n << 128n);
  if (long || epsilon.compare(LEAST_LOCAL) < 0 || epsilon.compare(MOST_LOCAL) > 0) {
    throw new CodecError("the local epsilon of a report is between 2^-20 and 64, with at most 128 binary digits");
  }
  return {
    kind,
    epsilon,
    keep: HALF,
    turnOn: HALF,
    replacement: kind === "Symmetric" ? epsilon.times(new Fraction(2)) : epsilon,
  };
}

function unary(json: Json): Randomiser {
  const { keep, turn_on } = fieldsOf(json, "UnaryEncoding", "keep", "turn_on");
  const [kept, lit] = [fraction(keep, "keep"), fraction(turn_on, "turn_on")];
  if (lit.numerator <= 0n || lit.compare(kept) >= 0 || kept.compare(ONE) >= 0) {
    throw new CodecError("a 1 is kept with a probability below 1, and above that with which a 0 is turned on");
  }
  if (kept.denominator >= LONGEST || lit.denominator >= LONGEST)
    throw new CodecError("the probabilities of a report have denominators below 2^63");
  const replacement = logarithm(kept.over(lit).times(ONE.minus(lit)).over(ONE.minus(kept)));
  if (replacement.compare(LEAST_LOCAL) < 0 || replacement.compare(MOST_LOCAL) > 0)
    throw new CodecError("the local epsilon of a report is between 2^-20 and 64");
  return { kind: "UnaryEncoding", epsilon: replacement, keep: kept, turnOn: lit, replacement };
}

/** The least multiple of 2^−40 that is certified to be at least ln x, for x ≥ 1. */
export function logarithm(x: Fraction): Fraction {
  const length = (number: bigint): number => number.toString(2).length;
  let [low, high] = [0n, FINE * BigInt(Math.max(1, length(x.numerator) - length(x.denominator) + 1))];
  const bits = 128 + Number(high / FINE) * 2;
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    const enough = expBounds(new Fraction(middle, FINE), bits)[1] * x.numerator <= x.denominator << BigInt(bits);
    [low, high] = enough ? [low, middle] : [middle, high];
  }
  return new Fraction(high, FINE);
}

type Bounds = (digits: number) => readonly [bigint, bigint];

const rational =
  (p: Fraction): Bounds =>
  (digits) => {
    const top = p.numerator << BigInt(digits);
    return [top / p.denominator, ceil(top, p.denominator)];
  };

/** 2ⁿ/(e^x + 1) between two integers: e^−x/(1 + e^−x) grows with e^−x. */
const logistic =
  (x: Fraction): Bounds =>
  (digits) => {
    const bits = digits + 8;
    const [low, high] = expBounds(x, bits);
    const one = 1n << BigInt(bits);
    return [(low << BigInt(digits)) / (one + low), ceil(high << BigInt(digits), one + high)];
  };

const other =
  (bounds: Bounds): Bounds =>
  (digits) => {
    const [low, high] = bounds(digits);
    return [(1n << BigInt(digits)) - high, (1n << BigInt(digits)) - low];
  };

/** The two chances of a law, each as what encloses 2ⁿ of it. */
export function chancesOf({ kind, epsilon, keep, turnOn }: Randomiser): { keep: Bounds; turnOn: Bounds } {
  if (kind === "UnaryEncoding") return { keep: remembered(rational(keep)), turnOn: remembered(rational(turnOn)) };
  const lit = remembered(logistic(epsilon));
  return { keep: remembered(kind === "Symmetric" ? other(lit) : rational(HALF)), turnOn: lit };
}

function remembered(bounds: Bounds): Bounds {
  const known = new Map<number, readonly [bigint, bigint]>();
  return (digits) => {
    const found = known.get(digits) ?? bounds(digits);
    known.set(digits, found);
    return found;
  };
}

/** What one person sends, of 1s and 0s: their 1 at `place`, with coins thrown over all. Exact; O(size), some 2 µs each. */
export function report(law: Randomiser, random: RandomBytes, place: number, size: number): Uint32Array {
  if (!Number.isInteger(place) || place < 0 || place >= size)
    throw new RangeError("the place of a report is one of its places");
  const { keep, turnOn } = chancesOf(law);
  const drawn = pooled(random);
  const bits = Uint32Array.from({ length: size }, () => (new LazyUniform(drawn).below(turnOn) ? 1 : 0));
  bits[place] = new LazyUniform(drawn).below(keep) ? 1 : 0; // the coin of the 1 replaces what its place was given as a 0
  return bits;
}

/** The same bytes, asked for in larger parts. */
function pooled(random: RandomBytes): RandomBytes {
  let [pool, at] = [new Uint8Array(0) as Bytes, 0];
  return (length) => {
    if (at + length > pool.length) [pool, at] = [random(Math.max(length, 1 << 14)), 0];
    return pool.slice(at, (at += length));
  };
}

/** A whole number from 0 to below `below`, uniform. */
export function uniform(random: RandomBytes, below: number): number {
  const range = 1n << 64n;
  const whole = range - (range % BigInt(below));
  for (;;) {
    const drawn = bigEndian(random(8));
    if (drawn < whole) return Number(drawn % BigInt(below));
  }
}
