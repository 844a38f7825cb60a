import type { Bytes } from "../../shared/src/bytes.js";

const BLOCK = 16;
/** Words of a mask that are made at once: enough that asking costs nothing, and few enough for any memory. */
const CHUNK = 1 << 20;

/** The keystream of AES in counter mode, counter from zero: `length` bytes from `start`, which is a multiple of 16. */
export async function counterMode(key: Bytes, length: number, start = 0): Promise<Bytes> {
  const counter = new Uint8Array(BLOCK);
  new DataView(counter.buffer).setBigUint64(8, BigInt(start / BLOCK));
  const aes = await crypto.subtle.importKey("raw", key, "AES-CTR", false, ["encrypt"]);
  return new Uint8Array(
    await crypto.subtle.encrypt({ name: "AES-CTR", counter, length: 128 }, aes, new Uint8Array(length)),
  );
}

/** Add a mask of this key to a vector (or take it away, with a sign of −1), modulo 2^bits; `chunk` is a multiple of 8. */
export async function addMask(
  vector: Uint32Array,
  key: Bytes,
  bits: number,
  sign: 1 | -1,
  chunk = CHUNK,
): Promise<void> {
  const width = bits <= 16 ? 2 : 4;
  const low = 0xffffffff >>> (32 - bits);
  for (let first = 0; first < vector.length; first += chunk) {
    const part = vector.subarray(first, first + chunk);
    const view = new DataView((await counterMode(key, part.length * width, first * width)).buffer);
    for (let i = 0; i < part.length; i++) {
      const word = width === 2 ? view.getUint16(2 * i, true) : view.getUint32(4 * i, true);
      part[i] = ((part[i]! + sign * word) & low) >>> 0;
    }
  }
}
