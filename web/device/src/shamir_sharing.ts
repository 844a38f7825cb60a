import { type Bytes, bigEndian, type RandomBytes } from "../../shared/src/bytes.js";
import { encodeShare, PRIME, uniform } from "./prime_field.js";

/** The coefficients of x, x², … of a polynomial of which `threshold` values tell the one at 0. */
export const drawCoefficients = (random: RandomBytes, threshold: number): bigint[] =>
  Array.from({ length: threshold - 1 }, () => uniform(random));

/** The value at a point: 33 bytes, big-endian. O(coefficients). */
export function share(secret: Bytes, coefficients: readonly bigint[], point: number): Bytes {
  const x = BigInt(point);
  let value = 0n;
  for (let i = coefficients.length - 1; i >= 0; i--) value = ((value + coefficients[i]!) * x) % PRIME;
  return encodeShare((value + bigEndian(secret)) % PRIME);
}
