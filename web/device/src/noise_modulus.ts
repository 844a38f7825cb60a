import { expBounds } from "./exponential_bounds.js";
import { Fraction } from "./fraction.js";

const LIKELY = 40;
const FAR = new Fraction(4096);
const GRID = 1n << 20n;
const DIGITS = LIKELY + 64;
const TILTS = Array.from({ length: 15 }, (_, k) => new Fraction(k + 1, 16));

/** The least multiple of 2^−20 at which e^−c ≤ 1 − κ² is certain, c. */
function moment(tilt: Fraction): Fraction {
  const most = new Fraction(1).minus(tilt.times(tilt)).times(new Fraction(1n << 64n));
  let [low, high] = [0n, 4n * GRID];
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    const enough = new Fraction(expBounds(new Fraction(middle, GRID), 64)[1]).compare(most) <= 0;
    [low, high] = enough ? [low, middle] : [middle, high];
  }
  return new Fraction(high, GRID);
}

const MOMENTS = TILTS.map(moment);

/** Digits b of the modulus in which `size` noisy sums of `people` fit who add 0 … `most` each: docs, Lemma 6. */
export function modulusBits(scale: Fraction, parties: number, people: number, most: number, size: number): number {
  const largest = BigInt(people) * BigInt(most);
  const shape = new Fraction(people, parties);
  let bits = largest === 0n ? 1 : largest.toString(2).length + 1;
  for (; bits <= 62; bits++) {
    const half = 1n << BigInt(bits - 1);
    if (TILTS.some((tilt, at) => fits(tilt, MOMENTS[at]!, scale, shape, [half - largest, half + 1n], size)))
      return bits;
  }
  return bits;
}

function fits(
  tilt: Fraction,
  least: Fraction,
  scale: Fraction,
  shape: Fraction,
  ends: bigint[],
  size: number,
): boolean {
  const exponents = ends.map((end) => {
    const exponent = tilt.times(new Fraction(end)).over(scale).minus(shape.times(least));
    return exponent.compare(FAR) > 0 ? FAR : exponent;
  });
  if (exponents.some((exponent) => exponent.compare(new Fraction(27)) < 0)) return false; // e^−27 > 2^−40
  const chance = exponents.reduce((sum, exponent) => sum + expBounds(exponent, DIGITS)[1], 0n);
  return BigInt(size) * chance < 1n << BigInt(DIGITS - LIKELY);
}
