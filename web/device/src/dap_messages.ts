import { ascii, type Bytes, join, toBigEndian, uint32 } from "../../shared/src/bytes.js";
import { CodecError, Refused } from "./errors.js";
import { type HpkeConfig, seal, usable } from "./hpke.js";
import { Prio3Multihot } from "./prio3_multihot.js";
import { type Credential, spend } from "./report_credential.js";
import { opaque, TlsReader } from "./tls_encoding.js";

const uint = (x: number | bigint, width: number): Bytes => toBigEndian(BigInt(x), width);
const VERSION = ascii("dap-18");
const [CLIENT, LEADER, HELPER] = [1, 2, 3];
const [TIME_INTERVAL, MULTIHOT] = [1, 5];
const [INTERVAL_EXTENSION, PRIVACY_EXTENSION, ADMISSION_EXTENSION] = [1, 0xff01, 0xff03];
const CREDENTIAL_EXTENSION = 0xff01;
const [DISCRETE_LAPLACE, ONE_LEVEL, NO_DELTA] = [1, 1, 0];
const NO_EXTENSIONS = uint(0, 2);
const [REPORT_ID, PRECISION_OF_TIME] = [16, 8];
const [REPLAYED, OUTDATED, EARLY] = [2, 11, 9];

/** What a task of DAP says, as far as rounds of hazemap differ in it. Times are in time precisions. */
export interface DapTerms {
  readonly info: Bytes;
  readonly leader: string;
  readonly helper: string;
  readonly precision: number;
  readonly minimum: number;
  readonly begins: number;
  readonly lasts: number;
  readonly length: number;
  readonly chunk: number;
  readonly most: number;
  /** The scale of each server's noise, and the price that the task names, in millionths of ε. */
  readonly scale: { readonly numerator: bigint; readonly denominator: bigint };
  readonly micro: bigint;
  /** The public key of who gives out credentials, and how many. */
  readonly issuer: Bytes;
  readonly reports: number;
}

const extension = (type: number, data: Bytes): Bytes => join(uint(type, 2), opaque(2, data));

/** The task's configuration (draft-ietf-ppm-dap-18, 4.2), which every share is bound to. */
export function encodeConfiguration(terms: DapTerms): Bytes {
  const { scale, micro } = terms;
  const privacy = join(
    uint(DISCRETE_LAPLACE, 1),
    uint(scale.numerator, 8),
    uint(scale.denominator, 8),
    uint(ONE_LEVEL, 2),
    uint(micro, 8),
    uint(NO_DELTA, 8),
  );
  return join(
    opaque(1, terms.info),
    opaque(2, ascii(terms.leader)),
    opaque(2, ascii(terms.helper)),
    uint(terms.precision, 8),
    uint(terms.minimum, 8),
    uint(TIME_INTERVAL, 1),
    opaque(2, new Uint8Array(0)),
    uint32(MULTIHOT),
    opaque(2, join(uint32(terms.length), uint32(terms.chunk), uint(terms.most, 8))),
    opaque(
      2,
      join(
        extension(INTERVAL_EXTENSION, join(uint(terms.begins, 8), uint(terms.lasts, 8))),
        extension(PRIVACY_EXTENSION, privacy),
        extension(ADMISSION_EXTENSION, join(terms.issuer, uint(terms.reports, 8))),
      ),
    ),
  );
}

/** A task: its id, its terms, and their encoding. */
export interface DapTask {
  readonly id: Bytes;
  readonly terms: DapTerms;
  readonly configuration: Bytes;
}

/** Bytes that a report draws: its id, the VDAF's seeds, an ephemeral key for each server. */
export const REPORT_RANDOM = REPORT_ID + 4 * 32 + 2 * 32;

/** The time of a report, in time precisions; `Refused` where the servers take none of it. */
export function timeOf({ terms: { precision, begins, lasts } }: DapTask, seconds: number): number {
  const time = Math.floor(seconds / precision);
  if (time < begins || time >= begins + lasts) throw new Refused("the servers take no reports of this round by now");
  return time;
}

/** A report (4.4.2) of bits, made `seconds` after the epoch and sealed for both servers. `random` is fresh, and used for nothing else. */
export async function makeReport(
  task: DapTask,
  keys: readonly [HpkeConfig, HpkeConfig],
  credential: Credential,
  bits: readonly boolean[],
  seconds: number,
  random: Bytes,
): Promise<Bytes> {
  const { length, most, chunk } = task.terms;
  const time = timeOf(task, seconds);
  const part = (from: number, size: number): Bytes => random.slice(from, from + size);
  const id = part(0, REPORT_ID);
  const shares = new Prio3Multihot(length, most, chunk).shard(join(VERSION, task.id), bits, id, part(REPORT_ID, 128));
  const plain = (share: Bytes): Bytes => join(NO_EXTENSIONS, opaque(4, share));
  const spent = await spend(credential, task.id, id, time, shares.public, plain(shares.leader), plain(shares.helper));
  const metadata = join(id, uint(time, PRECISION_OF_TIME), opaque(2, extension(CREDENTIAL_EXTENSION, spent)));
  const aad = join(task.id, task.configuration, metadata, opaque(4, shares.public));
  const sealed = async (at: number, role: number, share: Bytes): Promise<Bytes> => {
    const info = join(VERSION, ascii(" input share"), Uint8Array.of(CLIENT, role));
    const key = keys[at]!;
    const { enc, payload } = await seal(key, info, aad, plain(share), part(REPORT_ID + 128 + 32 * at, 32));
    return join(uint(key.id, 1), opaque(2, enc), opaque(4, payload));
  };
  return join(
    metadata,
    opaque(4, shares.public),
    await sealed(0, LEADER, shares.leader),
    await sealed(1, HELPER, shares.helper),
  );
}

/** The first of an aggregator's keys whose algorithms are known here (4.4.1); `Refused` where there is none. */
export function preferredKey(content: Bytes): HpkeConfig {
  const reader = new TlsReader(content);
  const list = new TlsReader(reader.opaque(2));
  reader.end();
  const found: HpkeConfig[] = [];
  while (list.left > 0) {
    const [id, kem, kdf, aead] = [list.number(1), list.number(2), list.number(2), list.number(2)];
    found.push({ id, kem, kdf, aead, key: list.opaque(2) });
  }
  if (new Set(found.map(({ id }) => id)).size !== found.length)
    throw new Refused("an aggregator offers two keys of one number");
  const first = found.find(usable);
  if (!first) throw new Refused("an aggregator offers no key whose algorithms are known here");
  return first;
}

/** What a leader said of the one report of an upload that it answers with this content. */
export function uploadError(content: Bytes, report: Bytes): "taken" | "early" | "outdated" | "refused" {
  if (!content.length) return "taken";
  const reader = new TlsReader(content);
  const [id, error] = [reader.fixed(REPORT_ID), reader.number(1)];
  reader.end();
  if (id.some((byte, at) => byte !== report[at])) throw new CodecError("a leader speaks of reports that were not sent");
  return error === REPLAYED ? "taken" : error === EARLY ? "early" : error === OUTDATED ? "outdated" : "refused";
}
