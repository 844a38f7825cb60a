import { type Bytes, join, uint32 } from "../../shared/src/bytes.js";
import { CodecError } from "./errors.js";
import { LETTER } from "./key_derivation.js";
import { isShare, SHARE } from "./prime_field.js";
import { decodeParameters, type SessionParameters } from "./session_parameters.js";
import { type Bitmap, numbered, opaque, TlsReader } from "./tls_encoding.js";
import { checkPublic } from "./x25519.js";

const VERSION = 1;
const LONGEST_PATH = 32;
export const SIGNATURE = 64;

export interface PublicKeys {
  readonly sealing: Bytes;
  readonly masking: Bytes;
  readonly commitment: Bytes;
  readonly signature: Bytes;
}

export interface Peer {
  readonly position: number;
  readonly identity: Bytes;
  readonly proof: readonly Bytes[];
  readonly keys: PublicKeys;
}

/** What a server says. `stage` is the one that it belongs to. */
export type Down =
  | {
      readonly kind: "Invitation";
      readonly stage: 1;
      readonly terms: SessionParameters;
      readonly position: number;
      readonly proof: readonly Bytes[];
    }
  | { readonly kind: "Roll"; readonly stage: 2; readonly session: Bytes; readonly roll: Bitmap }
  | {
      readonly kind: "Neighbours";
      readonly stage: 3;
      readonly session: Bytes;
      readonly roll: Bitmap;
      readonly seed: Bytes;
      readonly peers: readonly Peer[];
    }
  | {
      readonly kind: "Inbox";
      readonly stage: 4;
      readonly session: Bytes;
      readonly sharers: Bitmap;
      readonly letters: ReadonlyMap<number, Bytes>;
    }
  | { readonly kind: "Survivors"; readonly stage: 5; readonly session: Bytes; readonly survivors: Bitmap }
  | {
      readonly kind: "Assents";
      readonly stage: 6;
      readonly session: Bytes;
      readonly assents: ReadonlyMap<number, Bytes>;
      readonly masked: ReadonlyMap<number, Bytes>;
    };

/** What a client says; a server's business, read here only to refuse what is malformed. */
export interface Up {
  readonly kind: "Keys" | "Picks" | "Sealed" | "Masked" | "Assent" | "Unmask";
}

const path = (reader: TlsReader): Bytes[] => {
  const length = reader.number(1);
  if (length > LONGEST_PATH) throw new CodecError(`a proof has at most ${LONGEST_PATH} hashes, not ${length}`);
  return Array.from({ length }, () => reader.fixed(32));
};

const publicKeys = (reader: TlsReader): PublicKeys => ({
  sealing: checkPublic(reader.fixed(32)),
  masking: checkPublic(reader.fixed(32)),
  commitment: reader.fixed(32),
  signature: reader.fixed(SIGNATURE),
});

function peers(reader: TlsReader): Peer[] {
  const found = reader.numbered(() => ({ identity: reader.fixed(32), proof: path(reader), keys: publicKeys(reader) }));
  return [...found].map(([position, peer]) => ({ position, ...peer }));
}

const fixedEach = (reader: TlsReader, length: number): Map<number, Bytes> =>
  reader.numbered(() => reader.fixed(length));

/** The message that these bytes are; `CodecError` for bytes that are none. */
export function decode(data: Bytes): Down | Up {
  const reader = new TlsReader(data);
  const [version, type] = [reader.number(1), reader.number(1)];
  if (version !== VERSION) throw new CodecError(`this client knows version ${VERSION}, not ${version}`);
  const message = body(reader, type);
  reader.end();
  return message;
}

function body(reader: TlsReader, type: number): Down | Up {
  if (type === 1) {
    const terms = decodeParameters(reader.opaque(2));
    return { kind: "Invitation", stage: 1, terms, position: reader.number(4), proof: path(reader) };
  }
  if (type < 2 || type > 12) throw new CodecError(`there is no message of type ${type}`);
  const session = reader.fixed(32);
  switch (type) {
    case 2:
      publicKeys(reader);
      return { kind: "Keys" };
    case 3:
      return { kind: "Roll", stage: 2, session, roll: reader.bitmap() };
    case 4:
      reader.numbered(() => null);
      return { kind: "Picks" };
    case 5:
      return {
        kind: "Neighbours",
        stage: 3,
        session,
        roll: reader.bitmap(),
        seed: reader.fixed(32),
        peers: peers(reader),
      };
    case 6:
      fixedEach(reader, LETTER);
      return { kind: "Sealed" };
    case 7:
      return { kind: "Inbox", stage: 4, session, sharers: reader.bitmap(), letters: fixedEach(reader, LETTER) };
    case 8:
      reader.opaque(4);
      reader.fixed(SIGNATURE);
      return { kind: "Masked" };
    case 9:
      return { kind: "Survivors", stage: 5, session, survivors: reader.bitmap() };
    case 10:
      reader.fixed(SIGNATURE);
      return { kind: "Assent" };
    case 11:
      return {
        kind: "Assents",
        stage: 6,
        session,
        assents: fixedEach(reader, SIGNATURE),
        masked: fixedEach(reader, SIGNATURE),
      };
    default: {
      const [seeds, keys] = [fixedEach(reader, SHARE), fixedEach(reader, SHARE)];
      if ([...keys.keys()].some((position) => seeds.has(position))) throw new CodecError("both shares of one client");
      if (![...seeds.values(), ...keys.values()].every(isShare)) throw new CodecError("a share is not below the prime");
      return { kind: "Unmask" };
    }
  }
}

const up = (type: number, session: Bytes, ...fields: Bytes[]): Bytes =>
  join(Uint8Array.of(VERSION, type), session, ...fields);

export const encodeKeys = (session: Bytes, keys: PublicKeys): Bytes =>
  up(2, session, keys.sealing, keys.masking, keys.commitment, keys.signature);

export const encodePicks = (session: Bytes, picks: readonly number[]): Bytes =>
  up(4, session, uint32(picks.length), ...picks.map(uint32));

export const encodeSealed = (session: Bytes, letters: ReadonlyMap<number, Bytes>): Bytes =>
  up(6, session, numbered(letters));

export const encodeMasked = (session: Bytes, vector: Bytes, signature: Bytes): Bytes =>
  up(8, session, opaque(4, vector), signature);

export const encodeAssent = (session: Bytes, signature: Bytes): Bytes => up(10, session, signature);

export const encodeUnmask = (
  session: Bytes,
  seeds: ReadonlyMap<number, Bytes>,
  keys: ReadonlyMap<number, Bytes>,
): Bytes => up(12, session, numbered(seeds), numbered(keys));
