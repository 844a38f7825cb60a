import { ascii, type Bytes, join, unhex } from "../../shared/src/bytes.js";

/** A private key of RFC 8410 as PKCS #8 writes it, up to its 32 bytes. */
const PKCS8 = {
  Ed25519: { start: unhex("302e020100300506032b657004220420"), uses: ["sign"] },
  X25519: { start: unhex("302e020100300506032b656e04220420"), uses: ["deriveBits"] },
} as const;

/** A private key for WebCrypto, with its public key. */
export async function privateKey(curve: keyof typeof PKCS8, secret: Bytes): Promise<{ key: CryptoKey; public: Bytes }> {
  const { start, uses } = PKCS8[curve];
  // WebCrypto gives the public key of a private one only where it may be written out, as JWK.
  const key = await crypto.subtle.importKey("pkcs8", join(start, secret), curve, true, uses);
  const { x } = await crypto.subtle.exportKey("jwk", key);
  return { key, public: ascii(atob(x!.replaceAll("-", "+").replaceAll("_", "/"))) };
}
