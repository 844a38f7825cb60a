import { InputError } from "../../device/src/errors.js";
import { type Bytes, join, systemRandom, utf8 } from "../../shared/src/bytes.js";

const NONCE = 12;

/** A key that seals what is kept in a browser. Its bytes cannot be read out, not even by this page. */
export const freshKey = (): Promise<CryptoKey> =>
  crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);

/** AES-256-GCM with a random nonce, under the name of what is kept: one record cannot stand for another. */
export async function seal(key: CryptoKey, name: string, plain: Bytes): Promise<Bytes> {
  const iv = systemRandom(NONCE);
  const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv, additionalData: utf8(name) }, key, plain);
  return join(iv, new Uint8Array(sealed));
}

/** What was sealed under this name; `InputError` where it was changed, moved, or sealed by another key. */
export async function unseal(key: CryptoKey, name: string, sealed: Bytes): Promise<Bytes> {
  const [iv, rest] = [sealed.slice(0, NONCE), sealed.slice(NONCE)];
  try {
    return new Uint8Array(await crypto.subtle.decrypt({ name: "AES-GCM", iv, additionalData: utf8(name) }, key, rest));
  } catch {
    throw new InputError(`what this browser keeps as ${name} was changed: it cannot be opened`);
  }
}
