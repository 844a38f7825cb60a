import { ascii, type Bytes, unhex } from "../../shared/src/bytes.js";
import { HEAD } from "./account_head.js";
import { CodecError } from "./errors.js";
import { ENVELOPE, isObject, parseJsonBytes } from "./json_text.js";

const DATE =
  /^(?!0000)[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$/;

/** What a server wants answered. `task` comes with an invitation; `until` is in milliseconds since 1970. */
export interface ServerTask {
  readonly session: string;
  /** 1 to 6 of a secure sum; 0 announces a round whose reports go to other servers. */
  readonly stage: number;
  readonly task: string | null;
  readonly message: Bytes;
  readonly until: number;
  /** What its server keeps of the device's account; nothing where it is not written as one, for a device goes on without. */
  readonly head: Bytes;
}

/** What the server wrote; `CodecError` for anything else. */
export function readServerTask(content: Bytes): ServerTask {
  const found = parseJsonBytes(content, ENVELOPE);
  if (!isObject(found)) throw new CodecError("the server's work is not written as agreed");
  const { session, stage, task, message, until, head } = found;
  if (
    typeof session !== "string" ||
    !/^[0-9a-f]{64}$/.test(session) ||
    typeof stage !== "bigint" ||
    stage < 0n ||
    stage > 6n ||
    (task !== null && typeof task !== "string") ||
    typeof message !== "string" ||
    typeof until !== "string" ||
    !DATE.test(until)
  ) {
    throw new CodecError("the server's work is not written as agreed: a field has another type");
  }
  const bytes = fromBase64(message);
  const day = new Date(`${until.slice(0, 10)}T00:00:00Z`);
  if (day.toISOString().slice(0, 10) !== until.slice(0, 10)) throw new CodecError("the server's time is none");
  const ends = Date.parse(until);
  const known = typeof head === "string" && head.length === 2 * HEAD && /^[0-9a-f]+$/.test(head);
  return {
    session,
    stage: Number(stage),
    task,
    message: bytes,
    until: ends,
    head: known ? unhex(head) : new Uint8Array(0),
  };
}

/** Base64 with its padding, in its one spelling. */
function fromBase64(text: string): Bytes {
  let letters: string;
  try {
    letters = atob(text);
  } catch {
    letters = "";
  }
  if (btoa(letters) !== text) throw new CodecError("the server's message is not base64");
  return ascii(letters);
}
