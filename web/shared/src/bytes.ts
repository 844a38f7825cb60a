/** Bytes in memory of their own: what WebCrypto takes. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Fresh secret bytes; tests give their own. */
export type RandomBytes = (length: number) => Bytes;

/** WebCrypto gives no more at once. */
const MOST_AT_ONCE = 65_536;

export const systemRandom: RandomBytes = (length) => {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += MOST_AT_ONCE) crypto.getRandomValues(bytes.subarray(at, at + MOST_AT_ONCE));
  return bytes;
};

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** A byte for each letter: they were checked to be ASCII or bytes, or we wrote them ourselves. */
export function ascii(text: string): Bytes {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

export function hex(bytes: Bytes): string {
  let digits = "";
  for (const byte of bytes) digits += HEX[byte]!;
  return digits;
}

/** The bytes of hexadecimal digits that were checked, or that we wrote ourselves. */
export function unhex(digits: string): Bytes {
  const bytes = new Uint8Array(digits.length >> 1);
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(digits.slice(2 * at, 2 * at + 2), 16);
  return bytes;
}

export const join = (...parts: Bytes[]): Bytes => joined(parts);

/** As `join`, of any number of parts. */
export function joined(parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** The order of bytes, the first that differs deciding: below 0 where a comes first. */
export function compare(a: Bytes, b: Bytes): number {
  const shorter = Math.min(a.length, b.length);
  for (let at = 0; at < shorter; at++) if (a[at] !== b[at]) return a[at]! - b[at]!;
  return a.length - b.length;
}

export const equal = (a: Bytes, b: Bytes): boolean => compare(a, b) === 0;

export const sha256 = async (...parts: Bytes[]): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", joined(parts)));

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
