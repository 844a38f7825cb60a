import { ctr } from "@noble/ciphers/aes";
import { ascii, type Bytes, join, type RandomBytes, sha256 } from "../../shared/src/bytes.js";
import { derive } from "./key_derivation.js";

const [WORD, PIECE] = [8, 4_096];

/** What a device draws in a session, or for an announcement, for a purpose, with all that it has to depend on. */
export type Coins = (session: Bytes, purpose: string, ...bound: Bytes[]) => Promise<RandomBytes>;

/**
 * Coins that follow from a secret: a device whose record was put back from a copy says the same bytes again, or, where its
 * contribution changed, bytes that have nothing to do with those of before. `key` is the device's own.
 */
export const coinsOf =
  (key: Bytes): Coins =>
  async (session, purpose, ...bound) => {
    const digests = await Promise.all(bound.map((each) => sha256(each)));
    const seed = await derive(session, key, join(ascii(`coins ${purpose}`), Uint8Array.of(0), ...digests), 32);
    return keystream(await sha256(seed));
  };

/** The stream of AES-256 in counter mode, counter from zero, in words of 8 bytes: what is left of a word is thrown away. */
function keystream(key: Bytes): RandomBytes {
  let [piece, at, block] = [new Uint8Array(0), 0, 0n];
  const more = (least: number): void => {
    const counter = new Uint8Array(16);
    new DataView(counter.buffer).setBigUint64(8, block);
    const length = PIECE * Math.ceil(least / PIECE);
    const fresh = new Uint8Array(ctr(key, counter).encrypt(new Uint8Array(length)));
    [piece, at, block] = [join(piece.slice(at), fresh), 0, block + BigInt(length / 16)];
  };
  return (length) => {
    const taken = WORD * Math.ceil(length / WORD);
    if (piece.length - at < taken) more(taken);
    at += taken;
    return piece.slice(at - taken, at - taken + length);
  };
}
