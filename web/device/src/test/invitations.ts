import { type Bytes, hex, join, sha256, uint32 } from "../../../shared/src/bytes.js";
import type { Identity } from "../ed25519.js";
import type { ServerTask } from "../server_task.js";
import { encodeParameters, sessionOf } from "../session_parameters.js";
import { readTask, termsOf } from "../task.js";
import { opaque } from "../tls_encoding.js";
export const opaqueBytes = (bytes: Bytes): Bytes => opaque(2, bytes);

export const NOW = Date.parse("2026-05-01T12:00:00Z");

/** An invitation of a session in which a device is the first of a shard and all others are made up. */
export async function invited(identity: Identity, text: string, nonce: number): Promise<ServerTask> {
  const task = await readTask(text);
  const clients = task.cohort.shard;
  let root = await sha256(Uint8Array.of(0), identity.public);
  const proof: Bytes[] = [];
  for (let last = clients - 1; last > 0; last >>= 1) {
    proof.push(await sha256(uint32(last)));
    root = await sha256(Uint8Array.of(1), root, proof.at(-1)!);
  }
  const chosen = { roster: root, nonce: new Uint8Array(32).fill(nonce), graph: new Uint8Array(32) };
  const terms = termsOf(task, clients, chosen);
  const message = join(
    Uint8Array.of(1, 1),
    opaque(2, encodeParameters(terms)),
    uint32(0),
    Uint8Array.of(proof.length),
    ...proof,
  );
  return {
    session: hex(await sessionOf(terms)),
    stage: 1,
    task: text,
    message,
    until: NOW + 60_000,
    head: new Uint8Array(0),
  };
}
