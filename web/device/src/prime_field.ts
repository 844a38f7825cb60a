import { type Bytes, bigEndian, type RandomBytes, toBigEndian } from "../../shared/src/bytes.js";

export const PRIME = 2n ** 257n - 93n;
export const SHARE = 33;

export const isShare = (bytes: Bytes): boolean => bytes.length === SHARE && bigEndian(bytes) < PRIME;

export const encodeShare = (value: bigint): Bytes => toBigEndian(value, SHARE);

/** A uniform number below the prime: 257 fresh bits, drawn again until they are below it. */
export function uniform(random: RandomBytes): bigint {
  for (;;) {
    const drawn = bigEndian(random(SHARE)) & ((1n << 257n) - 1n);
    if (drawn < PRIME) return drawn;
  }
}
