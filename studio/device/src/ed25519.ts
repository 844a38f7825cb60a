import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { type Bytes, join, unhex } from "./bytes.js";

const PKCS8 = unhex("302e020100300506032b657004220420");
const SPKI = unhex("302a300506032b6570032100");

/** Who a device is: an Ed25519 key (RFC 8032). */
export class Identity {
  private readonly key;
  readonly public: Bytes;

  constructor(readonly secret: Bytes) {
    this.key = createPrivateKey({ key: Buffer.from(join(PKCS8, secret)), format: "der", type: "pkcs8" });
    const spki = createPublicKey(this.key).export({ format: "der", type: "spki" });
    this.public = new Uint8Array(spki.subarray(SPKI.length));
  }

  sign(statement: Bytes): Bytes {
    return new Uint8Array(sign(null, statement, this.key));
  }
}

/** Whether an identity signed a statement; a key or signature that is malformed signed nothing. */
export function verified(identity: Bytes, signature: Bytes, statement: Bytes): boolean {
  try {
    const key = createPublicKey({ key: Buffer.from(join(SPKI, identity)), format: "der", type: "spki" });
    return verify(null, statement, key, signature);
  } catch {
    return false;
  }
}
