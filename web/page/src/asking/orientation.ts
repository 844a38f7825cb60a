/** On which side of a line a point lies, exactly: rounding decides nothing. */

import type { Point } from "./projection.js";

/** 1 where c lies left of the line from a to b, −1 right of it, 0 on it. */
export function orientation(a: Point, b: Point, c: Point): number {
  const left = (a[0] - c[0]) * (b[1] - c[1]);
  const right = (a[1] - c[1]) * (b[0] - c[0]);
  const found = left - right;
  // Shewchuk's (1997) bound of the rounding of these products.
  if (Math.abs(found) > 3.4e-16 * (Math.abs(left) + Math.abs(right))) return Math.sign(found);
  const [ax, ay, bx, by, cx, cy] = [...a, ...b, ...c].map(whole) as [bigint, bigint, bigint, bigint, bigint, bigint];
  const exact = (ax - cx) * (by - cy) - (ay - cy) * (bx - cx);
  return exact > 0n ? 1 : exact < 0n ? -1 : 0;
}

const view = new DataView(new ArrayBuffer(8));

/** A finite number as a multiple of the smallest there is, 2^−1074. */
function whole(number: number): bigint {
  view.setFloat64(0, Math.abs(number));
  const bits = view.getBigUint64(0);
  const exponent = bits >> 52n;
  const digits = bits & ((1n << 52n) - 1n);
  const size = exponent ? (digits | (1n << 52n)) << (exponent - 1n) : digits;
  return number < 0 ? -size : size;
}
