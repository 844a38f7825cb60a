import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import { ascii, type Bytes, join, sha256, uint32 } from "./bytes.js";
import { agree, type KeyPair } from "./x25519.js";

export const LETTER = 82;
const TAG = 16;
const LETTERS_STAGE = 3;

/** HKDF-SHA256 with the session as salt. */
export const derive = (session: Bytes, secret: Bytes, purpose: Bytes, length: number): Bytes =>
  new Uint8Array(hkdfSync("sha256", secret, session, join(ascii("hazemap 1 "), purpose), length));

/** A key that two clients agree on; of their public keys the smaller one comes first. */
export function agreed(session: Bytes, own: KeyPair, theirs: Bytes, purpose: string, length: number): Bytes {
  const both = [own.public, theirs].sort(Buffer.compare);
  return derive(session, agree(own.private, theirs), join(ascii(purpose), ...both), length);
}

export const letterKey = (session: Bytes, own: KeyPair, theirs: Bytes): Bytes => agreed(session, own, theirs, "letter", 32);

export const pairMask = (session: Bytes, own: KeyPair, theirs: Bytes): Bytes => agreed(session, own, theirs, "mask", 16);

export const selfMask = (session: Bytes, seed: Bytes): Bytes => derive(session, seed, ascii("self"), 16);

/** Where a letter goes: associated data, and part of the key. */
export const letterAddress = (session: Bytes, sender: number, receiver: number): Bytes =>
  join(session, uint32(sender), uint32(receiver), Uint8Array.of(LETTERS_STAGE));

/** HKDF-Expand to 32 bytes is one block. */
export const sealingKey = (key: Bytes, address: Bytes): Bytes =>
  new Uint8Array(createHmac("sha256", key).update(ascii("hazemap 1 seal")).update(address).update(Uint8Array.of(1)).digest());

const CIPHER = "chacha20-poly1305";

export function seal(key: Bytes, address: Bytes, plain: Bytes): Bytes {
  const cipher = createCipheriv(CIPHER, sealingKey(key, address), new Uint8Array(12), { authTagLength: TAG });
  cipher.setAAD(address, { plaintextLength: plain.length });
  return join(cipher.update(plain), cipher.final(), cipher.getAuthTag());
}

/** What a letter says; null for one that was not sealed under this key and address. */
export function unseal(key: Bytes, address: Bytes, sealed: Bytes): Bytes | null {
  const cipher = createDecipheriv(CIPHER, sealingKey(key, address), new Uint8Array(12), { authTagLength: TAG });
  const length = sealed.length - TAG;
  cipher.setAAD(address, { plaintextLength: length });
  cipher.setAuthTag(sealed.slice(length));
  try {
    return join(cipher.update(sealed.slice(0, length)), cipher.final());
  } catch {
    return null;
  }
}

export const seedCommitment = (session: Bytes, position: number, seed: Bytes): Bytes =>
  sha256(ascii("hazemap 1 seed"), session, uint32(position), seed);

export const ringCommitment = (seed: Bytes): Bytes => sha256(ascii("hazemap 1 graph commitment"), seed);

/** What a client signs in `Keys`; `keys` are sealing ‖ masking ‖ commitment. */
export const keysStatement = (session: Bytes, position: number, keys: Bytes): Bytes =>
  join(ascii("hazemap 1 keys"), session, uint32(position), keys);

export const maskedStatement = (session: Bytes, position: number, sharers: Bytes): Bytes =>
  join(ascii("hazemap 1 masked"), session, uint32(position), sha256(sharers));

export const assentStatement = (session: Bytes, position: number, sharers: Bytes, survivors: Bytes): Bytes =>
  join(ascii("hazemap 1 assent"), session, uint32(position), sha256(sharers), sha256(survivors));
