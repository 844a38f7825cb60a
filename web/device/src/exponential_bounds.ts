import type { Fraction } from "./fraction.js";

/** top/bottom rounded up, for a top of 0 or more. */
export const ceil = (top: bigint, bottom: bigint): bigint => (top + bottom - 1n) / bottom;

/**
 * Integers low ≤ e^(−x) · 2^bits ≤ high, close together, for x > 0. Partial sums of the alternating series for
 * x/2^m ≤ 1 lie on either side; m squarings follow. Every step rounds outwards.
 */
export function expBounds(x: Fraction, bits: number): [bigint, bigint] {
  const halvings = (x.numerator / x.denominator).toString(2).replace(/^0$/, "").length;
  const guard = BigInt(bits + halvings + 16);
  const one = 1n << guard;
  const over = x.denominator << BigInt(halvings);
  let [termLow, termHigh, low, high] = [one, one, one, one];
  for (let k = 1n; termHigh > 1n; k++) {
    termLow = (termLow * x.numerator) / (over * k);
    termHigh = ceil(termHigh * x.numerator, over * k);
    [low, high] = k % 2n ? [low - termHigh, high - termLow] : [low + termLow, high + termHigh];
  }
  low = low > termHigh ? low - termHigh : 0n; // all further terms together
  high = high + termHigh < one ? high + termHigh : one;
  for (let i = 0; i < halvings; i++) {
    low = (low * low) >> guard;
    high = ceil(high * high, one);
  }
  const cut = guard - BigInt(bits);
  return [low >> cut, ceil(high, 1n << cut)];
}
