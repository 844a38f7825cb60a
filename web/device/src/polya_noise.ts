import { bigEndian, type RandomBytes } from "../../shared/src/bytes.js";
import { ceil, expBounds } from "./exponential_bounds.js";
import { Fraction } from "./fraction.js";

const DIGITS = 64;

/** A uniform number in [0, 1) of which as many binary digits are drawn as a comparison needs. */
export class LazyUniform {
  private digits = 0;
  private value = 0n;

  constructor(private readonly random: RandomBytes) {}

  /**
   * Whether U < p; `bounds(n)` encloses 2ⁿ p between two integers that come close. It ends with probability 1, and for
   * an irrational p always.
   */
  below(bounds: (digits: number) => readonly [bigint, bigint]): boolean {
    for (let n = DIGITS; ; n *= 2) {
      const value = this.first(n);
      const [low, high] = bounds(n);
      if (value < low) return true; // U < (value + 1)/2ⁿ ≤ p
      if (value >= high) return false;
    }
  }

  private first(n: number): bigint {
    for (; this.digits < n; this.digits += DIGITS)
      this.value = (this.value << BigInt(DIGITS)) | bigEndian(this.random(DIGITS / 8));
    return this.value >> BigInt(this.digits - n);
  }
}

/** Uniform in 0 … below − 1. */
export function uniformBelow(random: RandomBytes, below: bigint): bigint {
  const bits = (below - 1n).toString(2).length;
  const length = Math.ceil(bits / 8);
  for (;;) {
    const drawn = bigEndian(random(length)) >> BigInt(8 * length - bits);
    if (drawn < below) return drawn;
  }
}

/** Draws from Poisson's law of a rational mean of 1 at most, by inversion. */
class SmallPoisson {
  private readonly known = new Map<string, readonly [bigint, bigint]>();

  constructor(private readonly mean: Fraction) {}

  draw(random: RandomBytes): number {
    const uniform = new LazyUniform(random);
    let number = 0;
    while (!uniform.below((digits) => this.cumulative(number, digits))) number++;
    return number;
  }

  /** Bounds of 2ⁿ P(X ≤ number) = 2ⁿ e^(−mean) Σ mean^i/i!: one exponential times one rational, rounded outwards. */
  private cumulative(number: number, digits: number): readonly [bigint, bigint] {
    const name = `${number} ${digits}`;
    let found = this.known.get(name);
    if (!found) {
      let [sum, term] = [new Fraction(1), new Fraction(1)];
      for (let i = 1; i <= number; i++) {
        term = term.times(this.mean).over(new Fraction(i));
        sum = sum.plus(term);
      }
      const [low, high] = expBounds(this.mean, digits + 16);
      const bottom = sum.denominator << 16n;
      found = [(low * sum.numerator) / bottom, ceil(high * sum.numerator, bottom)];
      this.known.set(name, found);
    }
    return found;
  }
}

/** A Poisson number of a rational mean: the sum of ⌈mean⌉ of equal means. */
export function poisson(random: RandomBytes, mean: Fraction): number {
  const parts = ceil(mean.numerator, mean.denominator);
  if (parts === 0n) return 0;
  const part = new SmallPoisson(mean.over(new Fraction(parts)));
  let sum = 0;
  for (let i = 0n; i < parts; i++) sum += part.draw(random);
  return sum;
}

/** Tails of a fair coin before heads. */
function runs(random: RandomBytes): number {
  for (let tails = 0; ; tails += 8) {
    const [byte] = random(1);
    if (byte) return tails + Math.clz32(byte) - 24;
  }
}

/**
 * One person's share of the noise: for each of `size` sums X − Y, X and Y from Pólya(1/parties, e^(−1/scale)), exactly.
 *
 * The jumps of docs/concepts/noise.md, Lemma 5: points fall on the cells (place, sign, level) at rate 1/parties;
 * each takes a uniform length j of its level, and stays with probability r^j 2^i/j (times 2^(t+1) in the last cell).
 * Places without a jump are not in the result. O(size · log₂(scale)/parties), some 20 µs a point.
 */
export function polyaDifference(
  random: RandomBytes,
  parties: number,
  scale: Fraction,
  size: number,
): Map<number, bigint> {
  let last = 0; // K: the least with 2^K ≥ 7s/10
  while (new Fraction(10n << BigInt(last)).compare(scale.times(new Fraction(7))) < 0) last++;
  const levels = BigInt(last + 1);
  const cells = 2n * levels * BigInt(size);
  const noise = new Map<number, bigint>();
  const bounds = new Map<string, readonly [bigint, bigint]>();
  for (let points = poisson(random, new Fraction(cells, parties)); points > 0; points--) {
    const cell = uniformBelow(random, cells);
    const [place, sign] = [Number(cell / (2n * levels)), cell % 2n ? -1n : 1n];
    let level = Number((cell / 2n) % levels);
    const climbed = level === last ? runs(random) : -1;
    level += Math.max(climbed, 0);
    const first = 1n << BigInt(level);
    const length = first + (level ? uniformBelow(random, first) : 0n);
    const stays = new LazyUniform(random).below((digits) => {
      const name = `${length} ${digits}`;
      let found = bounds.get(name);
      if (!found) {
        found = stayBounds(scale, level, climbed + 1, length, digits);
        if (bounds.size < 1 << 14) bounds.set(name, found);
      }
      return found;
    });
    if (stays) noise.set(place, (noise.get(place) ?? 0n) + sign * length);
  }
  return noise;
}

/** Bounds of 2ⁿ p, p = e^(−j/scale) · 2^(i + c)/j. */
export function stayBounds(
  scale: Fraction,
  level: number,
  bonus: number,
  length: bigint,
  digits: number,
): readonly [bigint, bigint] {
  const extra = bonus + 8;
  const [low, high] = expBounds(new Fraction(length).over(scale), digits + extra);
  const raised = BigInt(level + bonus);
  const cut = length << BigInt(extra);
  return [(low << raised) / cut, ceil(high << raised, cut)];
}
