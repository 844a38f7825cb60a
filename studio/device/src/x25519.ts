import { createPrivateKey, createPublicKey, diffieHellman } from "node:crypto";
import { type Bytes, join, type RandomBytes, unhex } from "./bytes.js";
import { CodecError, Refused } from "./errors.js";

const PKCS8 = unhex("302e020100300506032b656e04220420");
const SPKI = unhex("302a300506032b656e032100");
const FIELD = 2n ** 255n - 19n;

export interface KeyPair {
  readonly private: Bytes;
  readonly public: Bytes;
}

export function keyPair(secret: Bytes): KeyPair {
  const key = createPublicKey(imported(secret)).export({ format: "der", type: "spki" });
  return { private: secret, public: new Uint8Array(key.subarray(SPKI.length)) };
}

export const drawKeyPair = (random: RandomBytes): KeyPair => keyPair(random(32));

/** `CodecError` unless a key is a little-endian number below 2^255 − 19. */
export function checkPublic(key: Bytes): Bytes {
  if (BigInt(`0x${Buffer.from(key).reverse().toString("hex")}`) >= FIELD) {
    throw new CodecError("a public key is not a number below 2^255 - 19");
  }
  return key;
}

/** The shared point; `Refused` for a key of low order. */
export function agree(secret: Bytes, theirs: Bytes): Bytes {
  const publicKey = createPublicKey({ key: Buffer.from(join(SPKI, theirs)), format: "der", type: "spki" });
  let point: Bytes;
  try {
    point = diffieHellman({ privateKey: imported(secret), publicKey });
  } catch {
    throw new Refused("a public key is of low order");
  }
  if (!point.some(Boolean)) throw new Refused("a public key is of low order");
  return point;
}

const imported = (secret: Bytes) =>
  createPrivateKey({ key: Buffer.from(join(PKCS8, secret)), format: "der", type: "pkcs8" });
