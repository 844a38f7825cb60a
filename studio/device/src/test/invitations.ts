import type { Bytes } from "../bytes.js";
import { opaque } from "../tls_encoding.js";

export { ascii, type Bytes, hex, join, sha256, systemRandom, uint32, unhex } from "../bytes.js";

/** The terms within an invitation. */
export const opaqueBytes = (bytes: Bytes): Bytes => opaque(2, bytes);
