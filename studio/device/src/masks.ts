import { createCipheriv } from "node:crypto";
import type { Bytes } from "./bytes.js";

/** The keystream of AES in counter mode, counter from zero. */
export function counterMode(key: Bytes, length: number): Bytes {
  const cipher = createCipheriv(key.length === 16 ? "aes-128-ctr" : "aes-256-ctr", key, new Uint8Array(16));
  return cipher.update(new Uint8Array(length));
}

/** Add a mask of this key to a vector (or take it away, with a sign of −1), modulo 2^bits. */
export function addMask(vector: Uint32Array, key: Bytes, bits: number, sign: 1 | -1): void {
  const width = bits <= 16 ? 2 : 4;
  const stream = counterMode(key, vector.length * width);
  const view = new DataView(stream.buffer, stream.byteOffset, stream.byteLength);
  const low = 0xffffffff >>> (32 - bits);
  for (let i = 0; i < vector.length; i++) {
    const word = width === 2 ? view.getUint16(2 * i, true) : view.getUint32(4 * i, true);
    vector[i] = ((vector[i]! + sign * word) & low) >>> 0;
  }
}
