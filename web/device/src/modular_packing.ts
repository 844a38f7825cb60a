import type { Bytes } from "../../shared/src/bytes.js";
import { CodecError } from "./errors.js";

/** Numbers modulo 2^bits, b bits each, least first. O(numbers). */
export function pack(vector: Uint32Array, bits: number): Bytes {
  const packed = new Uint8Array(Math.ceil((vector.length * bits) / 8));
  let [held, count, at] = [0, 0, 0]; // below 2^8 between numbers: sums stay below 2^40, exact in a double
  for (const word of vector) {
    held += word * 2 ** count;
    for (count += bits; count >= 8; count -= 8) {
      packed[at++] = held % 256;
      held = Math.floor(held / 256);
    }
  }
  if (count) packed[at] = held;
  return packed;
}

/** What `pack` wrote for so many numbers; `CodecError` for a wrong length, or padding that is not zero. */
export function unpack(packed: Bytes, size: number, bits: number): Uint32Array {
  if (packed.length !== Math.ceil((size * bits) / 8)) throw new CodecError("a packed vector has another length");
  const vector = new Uint32Array(size);
  let [held, count, at] = [0, 0, 0];
  for (let i = 0; i < size; i++) {
    for (; count < bits; count += 8) held += packed[at++]! * 2 ** count;
    vector[i] = held % 2 ** bits;
    held = Math.floor(held / 2 ** bits);
    count -= bits;
  }
  if (held) throw new CodecError("the bits left over of a packed vector are not zero");
  return vector;
}
