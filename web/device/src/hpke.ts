import { chacha20poly1305 } from "@noble/ciphers/chacha";
import { ascii, type Bytes, join, toBigEndian } from "../../shared/src/bytes.js";
import { agree, keyPair } from "./x25519.js";

const [KEM, KDF] = [0x0020, 1];
const [AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305] = [1, 2, 3];
const KEY_BYTES = new Map([
  [AES_128_GCM, 16],
  [AES_256_GCM, 32],
  [CHACHA20_POLY1305, 32],
]);
const NONCE = 12;
/** Bytes of a public key, and of the randomness of a message. */
export const KEY = 32;

const uint16 = (x: number): Bytes => toBigEndian(BigInt(x), 2);
const VERSION = ascii("HPKE-v1");
const OF_KEM = join(ascii("KEM"), uint16(KEM));

async function hmac(key: Bytes, message: Bytes): Promise<Bytes> {
  const known = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", known, message));
}

/** HKDF-SHA256 whose inputs say which suite and step they are for (RFC 9180, section 4). No salt is 32 zeros. */
const extract = (suite: Bytes, salt: Bytes, label: string, secret: Bytes): Promise<Bytes> =>
  hmac(salt.length ? salt : new Uint8Array(32), join(VERSION, suite, ascii(label), secret));

/** At most 32 bytes, which are one block. */
const expand = async (suite: Bytes, key: Bytes, label: string, info: Bytes, length: number): Promise<Bytes> =>
  (await hmac(key, join(uint16(length), VERSION, suite, ascii(label), info, Uint8Array.of(1)))).slice(0, length);

/** A public key with the algorithms it is for (draft-ietf-ppm-dap-18, 4.4.1). */
export interface HpkeConfig {
  readonly id: number;
  readonly kem: number;
  readonly kdf: number;
  readonly aead: number;
  readonly key: Bytes;
}

/** Whether this device has the algorithms: X25519 with SHA-256, and one of three ciphers. */
export const usable = ({ kem, kdf, aead, key }: HpkeConfig): boolean =>
  kem === KEM && kdf === KDF && KEY_BYTES.has(aead) && key.length === KEY;

/**
 * SealBase of RFC 9180: what only the holder of a private key opens, with the key to agree on it, `enc`. The ephemeral key is that
 * of `random`, 32 fresh bytes. `Refused` for a public key of low order.
 */
export async function seal(
  { aead, key: theirs }: HpkeConfig,
  info: Bytes,
  aad: Bytes,
  plain: Bytes,
  random: Bytes,
): Promise<{ enc: Bytes; payload: Bytes }> {
  const none = new Uint8Array(0);
  const own = await keyPair(await expand(OF_KEM, await extract(OF_KEM, none, "dkp_prk", random), "sk", none, 32));
  const point = await extract(OF_KEM, none, "eae_prk", await agree(own, theirs));
  const secret = await expand(OF_KEM, point, "shared_secret", join(own.public, theirs), 32);
  const suite = join(ascii("HPKE"), uint16(KEM), uint16(KDF), uint16(aead));
  const said = await extract(suite, none, "psk_id_hash", none);
  const context = join(Uint8Array.of(0), said, await extract(suite, none, "info_hash", info));
  const schedule = await extract(suite, secret, "secret", none);
  const key = await expand(suite, schedule, "key", context, KEY_BYTES.get(aead)!);
  const nonce = await expand(suite, schedule, "base_nonce", context, NONCE);
  return { enc: own.public, payload: await encrypted(aead, key, nonce, aad, plain) };
}

async function encrypted(aead: number, key: Bytes, nonce: Bytes, aad: Bytes, plain: Bytes): Promise<Bytes> {
  if (aead === CHACHA20_POLY1305) return new Uint8Array(chacha20poly1305(key, nonce, aad).encrypt(plain));
  const known = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
  return new Uint8Array(await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce, additionalData: aad }, known, plain));
}
