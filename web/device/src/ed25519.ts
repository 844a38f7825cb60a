import type { Bytes } from "../../shared/src/bytes.js";
import { privateKey } from "./okp_key.js";

/** Who a device is: an Ed25519 key (RFC 8032). */
export class Identity {
  readonly public: Bytes;

  private constructor(
    private readonly key: CryptoKey,
    public_: Bytes,
  ) {
    this.public = public_;
  }

  /** The identity of a secret of 32 bytes. */
  static async of(secret: Bytes): Promise<Identity> {
    const found = await privateKey("Ed25519", secret);
    return new Identity(found.key, found.public);
  }

  async sign(statement: Bytes): Promise<Bytes> {
    return new Uint8Array(await crypto.subtle.sign("Ed25519", this.key, statement));
  }
}

/** Whether an identity signed a statement; a key or signature that is malformed signed nothing. */
export async function verified(identity: Bytes, signature: Bytes, statement: Bytes): Promise<boolean> {
  try {
    const key = await crypto.subtle.importKey("raw", identity, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, statement);
  } catch {
    return false;
  }
}
