import { ascii, type Bytes, bigEndian, equal, join, sha256, toBigEndian, uint32 } from "../../shared/src/bytes.js";
import { CodecError } from "./errors.js";
import { Fraction } from "./fraction.js";
import { opaque, TlsReader } from "./tls_encoding.js";

export const SEMI_HONEST = 1;
export const MALICIOUS = 2;
export type Mode = typeof SEMI_HONEST | typeof MALICIOUS;

export const LARGEST_SCALE = new Fraction(1n << 50n);

/** The public terms of one session. A scale of 0 says that vectors are reports. */
export interface SessionParameters {
  readonly mode: Mode;
  readonly task: Bytes;
  readonly nonce: Bytes;
  readonly clients: number;
  readonly degree: number;
  readonly threshold: number;
  readonly survivors: number;
  readonly size: number;
  readonly bits: number;
  readonly scale: Fraction;
  readonly parties: number;
  readonly roster: Bytes;
  readonly graph: Bytes;
}

export const encodeParameters = (terms: SessionParameters): Bytes =>
  join(
    Uint8Array.of(terms.mode),
    terms.task,
    terms.nonce,
    ...[terms.clients, terms.degree, terms.threshold, terms.survivors, terms.size].map(uint32),
    Uint8Array.of(terms.bits),
    opaque(1, toBigEndian(terms.scale.numerator)),
    opaque(1, toBigEndian(terms.scale.denominator)),
    uint32(terms.parties),
    terms.roster,
    terms.graph,
  );

/** The terms that these bytes are; `CodecError` for what cannot be a session, or is not in its one encoding. */
export function decodeParameters(data: Bytes): SessionParameters {
  const reader = new TlsReader(data);
  const mode = reader.number(1);
  if (mode !== SEMI_HONEST && mode !== MALICIOUS) throw new CodecError(`there is no mode ${mode}`);
  const terms: SessionParameters = {
    mode,
    task: reader.fixed(32),
    nonce: reader.fixed(32),
    clients: reader.number(4),
    degree: reader.number(4),
    threshold: reader.number(4),
    survivors: reader.number(4),
    size: reader.number(4),
    bits: reader.number(1),
    scale: new Fraction(bigEndian(reader.opaque(1)), bigEndian(reader.opaque(1))),
    parties: reader.number(4),
    roster: reader.fixed(32),
    graph: reader.fixed(32),
  };
  reader.end();
  check(terms);
  if (!equal(encodeParameters(terms), data)) throw new CodecError("the terms are not in their one encoding");
  return terms;
}

function check(terms: SessionParameters): void {
  const { mode, clients, degree, threshold, survivors, size, bits, parties } = terms;
  const wrong =
    (clients < 2 && "fewer than 2 clients") ||
    ((threshold < 1 || threshold > degree || degree >= clients) &&
      "1 <= threshold <= degree < clients does not hold") ||
    ((survivors < 1 || survivors > clients) && "1 <= survivors <= clients does not hold") ||
    ((size < 1 || bits < 1 || bits > 32) && "a vector has 1 number or more of 1 to 32 bits") ||
    (terms.scale.compare(LARGEST_SCALE) > 0 && "the scale of the noise is above 2^50") ||
    ((parties < 1 || parties > survivors) && "1 <= parties <= survivors does not hold") ||
    (mode === MALICIOUS && terms.graph.some(Boolean) && "a malicious session has a graph") ||
    (mode === SEMI_HONEST && degree % 2 === 1 && degree !== clients - 1 && "a ring has an odd degree");
  if (wrong) throw new CodecError(`these are not the terms of a session: ${wrong}`);
}

/** The name of a session. */
export const sessionOf = (terms: SessionParameters): Promise<Bytes> =>
  sha256(ascii("hazemap secure sum 1"), encodeParameters(terms));
