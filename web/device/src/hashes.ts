/** The two hashes that WebCrypto lacks. */

import { blake2b } from "@noble/hashes/blake2.js";
import { turboshake128 } from "@noble/hashes/sha3-addons.js";
import type { Bytes } from "../../shared/src/bytes.js";

/** Two words of BLAKE2b (RFC 7693), 16 bytes long, with a personalisation of at most 16 bytes. */
export function blake2bWords(message: Bytes, person: Bytes): [bigint, bigint] {
  const personalization = new Uint8Array(16);
  personalization.set(person);
  const { buffer, byteOffset } = blake2b(message, { dkLen: 16, personalization });
  const view = new DataView(buffer, byteOffset);
  return [view.getBigUint64(0, true), view.getBigUint64(8, true)];
}

/** TurboSHAKE128 (RFC 9861): a message's endless stream, for a domain of 1 to 127. */
export class TurboShake128 {
  private readonly stream;

  constructor(message: Bytes, domain: number) {
    this.stream = turboshake128.create({ D: domain }).update(message);
  }

  next(length: number): Bytes {
    return new Uint8Array(this.stream.xof(length));
  }
}
