import { ascii, type Bytes, join, sha256, uint32, unhex } from "../../shared/src/bytes.js";
import { type DapTask, encodeConfiguration } from "./dap_messages.js";
import { CodecError, Refused, UnknownKind } from "./errors.js";
import { Fraction } from "./fraction.js";
import { parseCanonicalJson, TASK } from "./json_text.js";
import { shortestChunk } from "./prio3_multihot.js";
import { LARGEST_SCALE } from "./session_parameters.js";
import { type Task, taskOf } from "./task.js";
import { fieldsOf, fieldsOfType, textOf, typed, whole } from "./typed_json.js";

const ADDRESS = /^https?:\/\/[A-Za-z0-9.\-[\]:_]{1,255}\/(?:[A-Za-z0-9._~-]{1,80}\/){0,8}$/;
const MOST_REPORTS = 2 ** 24;
const LATEST = 2 ** 40;
const PRECISION = 7 * 86_400;
const MICRO = 10n ** 6n;
const FINEST = 1n << 20n;
const LARGEST = 1n << 63n;

/** Two servers of which one is honest: neither opens anything below so many reports. */
export interface TwoServers {
  readonly leader: string;
  readonly helper: string;
  readonly minimum: number;
}

/** A round whose reports go to other servers, as it was announced. */
export interface CarriedRound {
  readonly task: Task;
  readonly carrier: TwoServers;
  readonly batch: string;
  /** When it began, in seconds since 1970. */
  readonly begun: number;
  /** SHA-256 of the announcement. */
  readonly digest: Bytes;
}

/** The round in a text: `CodecError` for what is none, `Refused` for what this device does not report to. */
export async function readCarriedRound(text: string): Promise<CarriedRound> {
  const json = fieldsOfType(
    parseCanonicalJson(text, TASK),
    "CarriedTask",
    "an announcement",
    "batch",
    "begun",
    "carrier",
    "task",
  );
  const batch = textOf(json["batch"], "the batch");
  if (!/^[0-9a-f]{64}$/.test(batch)) throw new CodecError("a batch has 64 hexadecimal digits");
  const carrier = carrierOf(json["carrier"]);
  const digest = await sha256(ascii(text));
  const task = await taskOf(json["task"], digest);
  if (task.asked) throw new UnknownKind("RecipeBins", "this device answers recipes by secure sums alone");
  if (carrier.minimum > task.cohort.people)
    throw new CodecError("a batch is opened with more reports than people are asked");
  return { task, carrier, batch, begun: whole(json["begun"], "when the round began", 0, LATEST), digest };
}

function carrierOf(json: Parameters<typeof typed>[0]): TwoServers {
  const [kind, value] = typed(json, "the carrier");
  if (kind === "ByOneReport" || kind === "ByShuffler")
    throw new UnknownKind(kind, "this device reports to two servers for each question, and to no other carrier");
  if (kind !== "ByTwoServers")
    throw new CodecError("the carrier is two servers, or one that this device does not know");
  const { leader, helper, minimum } = fieldsOf(value, "the carrier", "helper", "leader", "minimum");
  const address = (found: typeof leader, who: string): string => {
    const url = textOf(found, who);
    if (url.length > 1_000 || !ADDRESS.test(url)) throw new CodecError("the address of a server ends in a slash");
    return url;
  };
  const [one, two] = [address(leader, "the leader"), address(helper, "the helper")];
  if (one === two) throw new CodecError("leader and helper have the same address");
  return { leader: one, helper: two, minimum: whole(minimum, "the least reports", 1, MOST_REPORTS) };
}

/** The one task of DAP that follows from a round, with credentials of this issuer: computed here, and taken from nobody. */
export async function dapTask({ task, carrier, batch, begun, digest }: CarriedRound, issuer: Bytes): Promise<DapTask> {
  const { size, sensitivity, price } = task;
  let scale = new Fraction(sensitivity).over(price);
  if (scale.compare(LARGEST_SCALE) > 0)
    throw new Refused("this round's price is so low that its noise cannot be drawn");
  if (scale.numerator >= LARGEST || scale.denominator >= LARGEST) {
    scale = new Fraction(above(scale.times(new Fraction(FINEST))), FINEST);
  }
  const micro = above(new Fraction(MICRO).over(scale));
  if ([scale.numerator, scale.denominator, micro].some((number) => number >= 2n * LARGEST)) {
    throw new Refused("this round's noise and price cannot be written into a task of two servers");
  }
  if (sensitivity !== 1) {
    throw new Refused(`a report proves a single 1 in one place, but here a person may add ${sensitivity}`);
  }
  if (size < 1) throw new Refused("a report needs one place at least");
  const terms = {
    info: join(ascii("hazemap "), digest),
    leader: carrier.leader,
    helper: carrier.helper,
    minimum: carrier.minimum,
    precision: PRECISION,
    begins: Math.floor(begun / PRECISION),
    lasts: 2,
    length: size,
    chunk: shortestChunk(size + 1),
    most: 1,
    scale,
    micro,
    issuer,
    reports: task.cohort.people,
  };
  const id = await sha256(ascii("hazemap task of a campaign"), unhex(batch), uint32(0));
  return { id, terms, configuration: encodeConfiguration(terms) };
}

/** The least whole number that is not below. */
const above = (x: Fraction): bigint => -new Fraction(-x.numerator, x.denominator).floor();

/** Where a task's reports go: a path under the leader's address, with the id in base64url. */
export const reportsPath = (id: Bytes): string =>
  `tasks/${btoa(String.fromCharCode(...id))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")}/reports`;
