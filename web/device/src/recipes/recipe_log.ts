import { ascii, type Bytes, hex, join, sha256, utf8 } from "../../../shared/src/bytes.js";
import { CodecError, Refused, Unreachable } from "../errors.js";
import type { HttpReply } from "../http_transport.js";
import { isObject, type Json, type JsonLimits, parseJson } from "../json_text.js";
import { canonicalJson } from "./canonical_json.js";

const FIELDS = ["seq", "time", "kind", "name", "version", "sha256", "study", "round", "people", "task", "previous"];
const LINE: JsonLimits = { length: 4_096, items: 32, depth: 1 };
const [PAGE, MOST_ENTRIES] = [1_000, 1 << 17];
const BEGINNING = "00".repeat(32);

/** The last entry of a server's log that a device has seen. */
export interface LogHead {
  readonly entries: number;
  readonly digest: string;
}
export const NOTHING: LogHead = { entries: 0, digest: BEGINNING };

/** What a round's entry has to say: the fields that its task must agree with. */
export interface LoggedRound {
  /** SHA-256 of the task, in hexadecimal digits. */
  readonly task: string;
  readonly study: string;
  readonly words: readonly Json[];
}

/**
 * A server's public log of recipes as this page or program has read it: it is read once from the beginning, then what is new.
 * A round is answered only if it is in there, word for word; a log that was cut or written anew is refused.
 */
export class RecipeLog {
  private head: LogHead = NOTHING;
  private trouble: string | null = null;
  private readonly digests: string[] = [];
  private readonly asked = new Map<string, string>();
  private readonly stopped = new Set<string>();

  get last(): LogHead {
    return this.head;
  }

  /** Read on to the end; `Unreachable` where there is no answer. `get` asks for a path of the server. */
  async read(get: (path: string) => Promise<HttpReply>, task: string, seen: LogHead): Promise<void> {
    if (this.trouble === null && this.asked.has(task) && seen.entries <= this.head.entries) return;
    this.trouble = null;
    try {
      while (await this.page(get));
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      this.trouble = `the server's public log does not go on from the one it showed before: ${error.message}`;
    }
  }

  /** `Refused` where a device that has `seen` so much of the log does not answer this round. */
  check(round: LoggedRound, seen: LogHead): void {
    const reason = this.rewritten(seen);
    if (reason !== null) throw new Refused(reason);
    if (this.stopped.has(round.study)) throw new Refused("the study was stopped, as the server's public log says");
    const found = this.asked.get(round.task);
    if (found === undefined)
      throw new Refused(
        "this recipe is not in the server's public log, so nobody else can see what this device is asked",
      );
    if (found !== canonicalJson([...round.words]))
      throw new Refused("the server's public log says something else of this round than its task");
  }

  /** Why this is not the log that a device has seen so much of before; null where it is. */
  rewritten(seen: LogHead): string | null {
    if (this.trouble === null && seen.entries && this.digest(seen.entries) !== seen.digest) {
      return `the server's public log of recipes was cut or written anew: entry ${seen.entries}, which this device has seen, is another now, or gone`;
    }
    return this.trouble;
  }

  private digest(number: number): string {
    return number ? (this.digests[number - 1] ?? "") : BEGINNING;
  }

  /** Whether there was a whole page. It begins with the last entry that is known, which must be there. */
  private async page(get: (path: string) => Promise<HttpReply>): Promise<boolean> {
    const known = this.head.entries;
    const answer = await get(`/v1/recipes?after=${Math.max(0, known - 1)}`);
    if (answer.status !== 200)
      throw new Unreachable(`the server shows no public log of recipes (HTTP ${answer.status})`, answer.wait);
    if (answer.content.length > PAGE * (LINE.length + 1) || answer.content.some((byte) => byte > 0x7f))
      throw new CodecError("a page of it is too long, or not in ASCII");
    const lines = new TextDecoder()
      .decode(answer.content)
      .split("\n")
      .filter((line) => line);
    if (lines.length > PAGE) throw new CodecError(`a page of it has more than ${PAGE} entries`);
    if (known) {
      if (!lines.length) throw new CodecError(`entry ${known} is gone`);
      const [first] = await entry(lines[0]!, { entries: known - 1, digest: this.digest(known - 1) });
      if (first.digest !== this.head.digest) throw new CodecError(`entry ${known} is another than before`);
    }
    const fresh = known ? lines.slice(1) : lines;
    for (const line of fresh) await this.take(line);
    return lines.length === PAGE && fresh.length > 0;
  }

  private async take(line: string): Promise<void> {
    if (this.head.entries >= MOST_ENTRIES)
      throw new CodecError(`it has more than the ${MOST_ENTRIES} entries that this device reads`);
    const [head, found] = await entry(line, this.head);
    const task = found["task"];
    if (found["kind"] === "recipe" && typeof task === "string" && !this.asked.has(task)) {
      this.asked.set(
        task,
        canonicalJson(["name", "version", "sha256", "study", "round", "people"].map((name) => found[name]!)),
      );
    }
    if (found["kind"] === "stop" && typeof found["study"] === "string") this.stopped.add(found["study"]);
    this.head = head;
    this.digests.push(head.digest);
  }
}

/** The entry that follows a head, and the head that it makes; `CodecError` if it does not follow. */
async function entry(line: string, { entries, digest }: LogHead): Promise<[LogHead, Record<string, Json>]> {
  const wrong = `it is broken at entry ${entries + 1}`;
  const found = parseJson(line, LINE);
  if (!isObject(found)) throw new CodecError(`${wrong}: this line is not an entry`);
  const names = Object.keys(found).filter((name) => name !== "digest");
  if (
    names.length !== FIELDS.length ||
    !FIELDS.every((name, at) => names[at] === name) ||
    found["seq"] !== BigInt(entries + 1)
  ) {
    throw new CodecError(`${wrong}: one was removed, added or changed`);
  }
  const text = `{${FIELDS.map((name) => `${canonicalJson(name)}:${canonicalJson(found[name]!)}`).join(",")}}`;
  const own: Bytes = await sha256(join(ascii("hazemap recipes 1"), utf8(text)));
  if (found["previous"] !== digest || found["digest"] !== hex(own))
    throw new CodecError(`${wrong}: it, or one before it, was changed`);
  return [{ entries: entries + 1, digest: hex(own) }, found as Record<string, Json>];
}
