import { createHash, randomBytes } from "node:crypto";

export type Bytes = Uint8Array;

/** Fresh secret bytes; tests give their own. */
export type RandomBytes = (length: number) => Bytes;

export const systemRandom: RandomBytes = (length) => randomBytes(length);

export const ascii = (text: string): Bytes => Buffer.from(text, "latin1");

export const hex = (bytes: Bytes): string => Buffer.from(bytes).toString("hex");

/** The bytes of hexadecimal digits that were checked, or that we wrote ourselves. */
export const unhex = (digits: string): Bytes => new Uint8Array(Buffer.from(digits, "hex"));

export const join = (...parts: Bytes[]): Bytes => new Uint8Array(Buffer.concat(parts));

export const equal = (a: Bytes, b: Bytes): boolean => Buffer.compare(a, b) === 0;

export const sha256 = (...parts: Bytes[]): Bytes => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
};

/** x in four bytes, big-endian. */
export const uint32 = (x: number): Bytes => {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, x);
  return bytes;
};

export const bigEndian = (bytes: Bytes): bigint => (bytes.length ? BigInt(`0x${hex(bytes)}`) : 0n);

/** A whole number of 0 or more in `length` bytes, big-endian; without a length in as few as it needs, 0 in none. */
export const toBigEndian = (x: bigint, length?: number): Bytes => {
  const digits = x === 0n ? "" : x.toString(16);
  const least = digits.padStart(digits.length + (digits.length % 2), "0");
  return unhex(length === undefined ? least : least.padStart(2 * length, "0"));
};
