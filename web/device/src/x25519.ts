import { type Bytes, bigEndian, type RandomBytes } from "../../shared/src/bytes.js";
import { CodecError, Refused } from "./errors.js";
import { privateKey } from "./okp_key.js";

const FIELD = 2n ** 255n - 19n;

export interface KeyPair {
  readonly private: Bytes;
  readonly public: Bytes;
  /** The private key as WebCrypto has it. */
  readonly key: CryptoKey;
}

export const keyPair = async (secret: Bytes): Promise<KeyPair> => ({
  private: secret,
  ...(await privateKey("X25519", secret)),
});

export const drawKeyPair = (random: RandomBytes): Promise<KeyPair> => keyPair(random(32));

/** `CodecError` unless a key is a little-endian number below 2^255 − 19. */
export function checkPublic(key: Bytes): Bytes {
  if (bigEndian(key.slice().reverse()) >= FIELD) throw new CodecError("a public key is not a number below 2^255 - 19");
  return key;
}

/** The shared point; `Refused` for a key of low order. */
export async function agree(own: KeyPair, theirs: Bytes): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", theirs, "X25519", false, []);
  let point: Bytes;
  try {
    point = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: key }, own.key, 256));
  } catch {
    throw new Refused("a public key is of low order");
  }
  if (!point.some(Boolean)) throw new Refused("a public key is of low order");
  return point;
}
