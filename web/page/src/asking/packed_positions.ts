/** Whole numbers that the page's data holds as differences. */

import { type PackedArray, unpack } from "../payload/arrays.js";

/** The numbers themselves. */
export async function positions(packed: PackedArray<"int32">): Promise<Int32Array> {
  let sum = 0;
  return Int32Array.from(await unpack(packed), (step) => (sum += step));
}

/** Numbers that are whole, or not, as floats. */
export async function floats(packed: PackedArray<"int32" | "float64">): Promise<Float64Array> {
  return Float64Array.from(await unpack(packed));
}
