import { ascii, type Bytes, join, sha256, toBigEndian } from "../../shared/src/bytes.js";
import { Identity, verified } from "./ed25519.js";
import { Refused } from "./errors.js";

const [SERIAL, SIGNATURE] = [32, 64];
const [LEADER, HELPER] = [2, 3];

/** What counts one report of a person's in one task: the coordinator's word on a serial, and the device's key that spends it. */
export interface Credential {
  readonly serial: Bytes;
  readonly issued: Bytes;
  readonly key: Identity;
}

/** A device's key of one task: from its own secret, so that nothing of it is kept, and keys of two tasks differ. */
export async function reportKey(secret: Bytes, task: Bytes): Promise<Identity> {
  const hmac = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return Identity.of(new Uint8Array(await crypto.subtle.sign("HMAC", hmac, join(ascii("hazemap 1 report key"), task))));
}

/** What a device sends that asks an issuer for a round's credential: the key that it is for, signed by the device's identity. */
export async function askedKey(identity: Identity, issuer: Bytes, session: Bytes, key: Bytes): Promise<Bytes> {
  return join(key, await identity.sign(join(ascii("hazemap 1 credential keys"), issuer, session, key)));
}

/** What an issuer signs: that a serial is spent by this key, in this task. */
export const credentialStatement = (task: Bytes, serial: Bytes, key: Bytes): Bytes =>
  join(ascii("hazemap 1 report credential"), task, serial, key);

/** The credential that a coordinator gave; `Refused` for what this issuer did not sign for this task and this key. */
export async function readCredential(given: Bytes, key: Identity, issuer: Bytes, task: Bytes): Promise<Credential> {
  const [serial, issued] = [given.slice(0, SERIAL), given.slice(SERIAL)];
  if (issued.length !== SIGNATURE || !(await verified(issuer, issued, credentialStatement(task, serial, key.public)))) {
    throw new Refused("the credential is not of the server that this device enrolled with, for this round");
  }
  return { serial, issued, key };
}

/** What a report carries (docs/reference/dap.md): the device signs its id, its time, its public share and both input shares. */
export async function spend(
  { serial, issued, key }: Credential,
  task: Bytes,
  id: Bytes,
  time: number,
  publicShare: Bytes,
  leader: Bytes,
  helper: Bytes,
): Promise<Bytes> {
  const share = (role: number, plain: Bytes): Promise<Bytes> =>
    sha256(ascii("hazemap 1 input share"), Uint8Array.of(role), plain);
  const shares = join(await share(LEADER, leader), await share(HELPER, helper));
  const report = await sha256(id, toBigEndian(BigInt(time), 8), await sha256(publicShare));
  const signed = await key.sign(join(ascii("hazemap 1 credited report"), task, serial, report, shares));
  return join(serial, key.public, issued, shares, signed);
}
