import { chacha20poly1305 } from "@noble/ciphers/chacha";
import { ascii, type Bytes, compare, join, sha256, uint32 } from "../../shared/src/bytes.js";
import { agree, type KeyPair } from "./x25519.js";

const NONCE = 12;
export const LETTER = NONCE + 82;
const LETTERS_STAGE = 3;

/** HKDF-SHA256 with the session as salt. */
export async function derive(session: Bytes, secret: Bytes, purpose: Bytes, length: number): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const hkdf = { name: "HKDF", hash: "SHA-256", salt: session, info: join(ascii("hazemap 1 "), purpose) };
  return new Uint8Array(await crypto.subtle.deriveBits(hkdf, key, 8 * length));
}

/** A key that two clients agree on; of their public keys the smaller one comes first. */
export async function agreed(
  session: Bytes,
  own: KeyPair,
  theirs: Bytes,
  purpose: Bytes,
  length: number,
): Promise<Bytes> {
  const both = [own.public, theirs].sort(compare);
  return derive(session, await agree(own, theirs), join(purpose, ...both), length);
}

export const letterKey = (session: Bytes, own: KeyPair, theirs: Bytes): Promise<Bytes> =>
  agreed(session, own, theirs, ascii("letter"), 32);

/** One for each list of sharers: from vectors that a client masked among several lists no mask cancels. */
export const pairMask = async (session: Bytes, own: KeyPair, theirs: Bytes, sharers: Bytes): Promise<Bytes> =>
  agreed(session, own, theirs, join(ascii("mask"), await sha256(sharers)), 16);

export const selfMask = (session: Bytes, seed: Bytes): Promise<Bytes> => derive(session, seed, ascii("self"), 16);

/** Where a letter goes: associated data, and part of the key. */
export const letterAddress = (session: Bytes, sender: number, receiver: number): Bytes =>
  join(session, uint32(sender), uint32(receiver), Uint8Array.of(LETTERS_STAGE));

/** HKDF-Expand to 32 bytes is one block. */
async function expand(key: Bytes, ...info: Bytes[]): Promise<Bytes> {
  const hmac = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", hmac, join(...info, Uint8Array.of(1))));
}

export const sealingKey = (key: Bytes, address: Bytes): Promise<Bytes> => expand(key, ascii("hazemap 1 seal"), address);

/** WebCrypto has no such cipher. */
const cipher = async (key: Bytes, address: Bytes, nonce: Bytes) =>
  chacha20poly1305(await sealingKey(key, address), nonce, address);

/** Two letters of one key have one nonce, which comes first, only where they are the same. */
export async function seal(key: Bytes, address: Bytes, plain: Bytes): Promise<Bytes> {
  const nonce = (await expand(key, ascii("hazemap 1 nonce"), address, plain)).slice(0, NONCE);
  return join(nonce, new Uint8Array((await cipher(key, address, nonce)).encrypt(plain)));
}

/** What a letter says; null for one that was not sealed under this key and address. */
export async function unseal(key: Bytes, address: Bytes, sealed: Bytes): Promise<Bytes | null> {
  if (sealed.length < NONCE) return null;
  const opening = await cipher(key, address, sealed.slice(0, NONCE));
  try {
    return new Uint8Array(opening.decrypt(sealed.slice(NONCE)));
  } catch {
    return null;
  }
}

export const seedCommitment = (session: Bytes, position: number, seed: Bytes): Promise<Bytes> =>
  sha256(ascii("hazemap 1 seed"), session, uint32(position), seed);

export const ringCommitment = (seed: Bytes): Promise<Bytes> => sha256(ascii("hazemap 1 graph commitment"), seed);

/** What a client signs in `Keys`; `keys` are sealing ‖ masking ‖ commitment. */
export const keysStatement = (session: Bytes, position: number, keys: Bytes): Bytes =>
  join(ascii("hazemap 1 keys"), session, uint32(position), keys);

export const maskedStatement = async (session: Bytes, position: number, sharers: Bytes): Promise<Bytes> =>
  join(ascii("hazemap 1 masked"), session, uint32(position), await sha256(sharers));

export const assentStatement = async (
  session: Bytes,
  position: number,
  sharers: Bytes,
  survivors: Bytes,
): Promise<Bytes> =>
  join(ascii("hazemap 1 assent"), session, uint32(position), await sha256(sharers), await sha256(survivors));
