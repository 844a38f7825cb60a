import type { Bytes } from "../../shared/src/bytes.js";

/** The prime 2^66 · 4611686018427387897 + 1, and a generator of its numbers of order 2^66 (draft-irtf-cfrg-vdaf-20, 6.1). */
export const PRIME = 340282366920938462946865773367900766209n;
const ODD = 4611686018427387897n;
const ORDER = 66n;
/** Bytes of an element, the little end first. */
export const ELEMENT = 16;

/** From 0 to below the prime. */
export const reduced = (x: bigint): bigint => ((x %= PRIME) < 0n ? x + PRIME : x);

function power(base: bigint, exponent: bigint): bigint {
  let found = 1n;
  for (; exponent; exponent >>= 1n, base = (base * base) % PRIME) if (exponent & 1n) found = (found * base) % PRIME;
  return found;
}

const inverse = (x: bigint): bigint => power(x, PRIME - 2n);

export function elements(vector: readonly bigint[]): Bytes {
  const bytes = new Uint8Array(ELEMENT * vector.length);
  const view = new DataView(bytes.buffer);
  vector.forEach((x, at) => {
    view.setBigUint64(ELEMENT * at, x & 0xffffffffffffffffn, true);
    view.setBigUint64(ELEMENT * at + 8, x >> 64n, true);
  });
  return bytes;
}

/** The number in 16 bytes, or nothing where it is no element. */
export function element(bytes: Bytes): bigint | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const found = view.getBigUint64(0, true) | (view.getBigUint64(8, true) << 64n);
  return found < PRIME ? found : undefined;
}

/** Number theoretic transforms of n values; n is a power of two. */
export class Transform {
  private readonly forward: bigint[];
  private readonly backward: bigint[];
  private readonly scale: bigint;

  constructor(readonly size: number) {
    const root = power(power(7n, ODD), 2n ** ORDER / BigInt(size));
    this.forward = powers(root, size / 2);
    this.backward = powers(inverse(root), size / 2);
    this.scale = inverse(BigInt(size));
  }

  /** A polynomial's values at the powers of the n-th root; coefficients that are not there are 0. */
  values(coefficients: readonly bigint[]): bigint[] {
    const found = Array.from({ length: this.size }, (_, at) => coefficients[at] ?? 0n);
    return this.transform(found, this.forward);
  }

  /** The coefficients of the polynomial with these values. */
  coefficients(values: readonly bigint[]): bigint[] {
    return this.transform([...values], this.backward).map((x) => (x * this.scale) % PRIME);
  }

  private transform(values: bigint[], roots: readonly bigint[]): bigint[] {
    const { size } = this;
    for (let i = 1, j = 0; i < size; i++) {
      let bit = size >> 1;
      for (; j & bit; bit >>= 1) j ^= bit;
      j ^= bit;
      if (i < j) [values[i], values[j]] = [values[j]!, values[i]!];
    }
    for (let half = 1; half < size; half *= 2) {
      for (let start = 0; start < size; start += 2 * half) {
        for (let k = 0; k < half; k++) {
          const [even, odd] = [
            values[start + k]!,
            (values[start + k + half]! * roots[(k * size) / (2 * half)]!) % PRIME,
          ];
          values[start + k] = even + odd >= PRIME ? even + odd - PRIME : even + odd;
          values[start + k + half] = even < odd ? even - odd + PRIME : even - odd;
        }
      }
    }
    return values;
  }
}

function powers(root: bigint, length: number): bigint[] {
  const found = [1n];
  while (found.length < length) found.push((found.at(-1)! * root) % PRIME);
  return found;
}
