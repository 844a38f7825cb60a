import type { Bytes } from "../../shared/src/bytes.js";
import { hex, unhex } from "../../shared/src/bytes.js";
import { decodeParameters, encodeParameters, type SessionParameters } from "./session_parameters.js";

/** What a client has to know of a peer. `letter` and `masking` are there until the vector is masked. */
export interface KnownPeer {
  readonly position: number;
  readonly identity: Bytes;
  readonly holds: boolean;
  readonly deals: boolean;
  readonly letter: Bytes | null;
  readonly masking: Bytes | null;
}

/** All that a client remembers between two messages; a secret that was used is null. */
export interface ClientState {
  /** The stage that was answered last. */
  readonly stage: number;
  /** SHA-256 of its message, and the answer to it. */
  readonly asked: Bytes;
  readonly reply: Bytes;
  readonly terms: SessionParameters;
  readonly position: number;
  readonly sealing: Bytes | null;
  readonly masking: Bytes | null;
  readonly seed: Bytes | null;
  /** The contribution modulo 2^bits, where it is not 0, and SHA-256 of it as it is packed. */
  readonly said: Bytes | null;
  readonly contribution: readonly (readonly [number, number])[] | null;
  readonly roll: Bytes | null;
  readonly picks: readonly number[] | null;
  readonly peers: readonly KnownPeer[];
  /** The two shares in the letter of each dealer, masking key first. */
  readonly shares: ReadonlyMap<number, Bytes>;
  readonly sharers: Bytes | null;
  readonly survivors: Bytes | null;
}

interface Written {
  [name: string]: unknown;
}

const text = (bytes: Bytes | null): string | null => bytes && hex(bytes);
const bytes = (digits: unknown): Bytes | null => (typeof digits === "string" ? unhex(digits) : null);

/** As JSON values, for the device's own file. */
export function writeState(state: ClientState): Written {
  return {
    stage: state.stage,
    asked: hex(state.asked),
    reply: hex(state.reply),
    terms: hex(encodeParameters(state.terms)),
    position: state.position,
    sealing: text(state.sealing),
    masking: text(state.masking),
    seed: text(state.seed),
    said: text(state.said),
    contribution: state.contribution,
    roll: text(state.roll),
    picks: state.picks,
    peers: state.peers.map((peer) => ({
      ...peer,
      identity: hex(peer.identity),
      letter: text(peer.letter),
      masking: text(peer.masking),
    })),
    shares: [...state.shares].map(([position, both]) => [position, hex(both)]),
    sharers: text(state.sharers),
    survivors: text(state.survivors),
  };
}

/** What `writeState` wrote: the device's own file is believed. */
export function readState(written: Written): ClientState {
  const peers = written["peers"] as Written[];
  return {
    stage: written["stage"] as number,
    asked: bytes(written["asked"])!,
    reply: bytes(written["reply"])!,
    terms: decodeParameters(bytes(written["terms"])!),
    position: written["position"] as number,
    sealing: bytes(written["sealing"]),
    masking: bytes(written["masking"]),
    seed: bytes(written["seed"]),
    said: bytes(written["said"]),
    contribution: written["contribution"] as [number, number][] | null,
    roll: bytes(written["roll"]),
    picks: written["picks"] as number[] | null,
    peers: peers.map((peer) => ({
      position: peer["position"] as number,
      identity: bytes(peer["identity"])!,
      holds: peer["holds"] as boolean,
      deals: peer["deals"] as boolean,
      letter: bytes(peer["letter"]),
      masking: bytes(peer["masking"]),
    })),
    shares: new Map((written["shares"] as [number, string][]).map(([position, both]) => [position, unhex(both)])),
    sharers: bytes(written["sharers"]),
    survivors: bytes(written["survivors"]),
  };
}
