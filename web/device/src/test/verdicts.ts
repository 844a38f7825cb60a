/**
 * What this device says of bytes from outside: the verdict, the rule, and all that follows from what is accepted.
 *
 * `node verdicts.js` judges one case a line, `{"kind", "content", "policy"}` with the content in base64, and answers a line each.
 */
import { createInterface } from "node:readline";
import init, { type Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import { type Bytes, hex, sha256, systemRandom, unhex, utf8 } from "../../../shared/src/bytes.js";
import { dapTask, readCarriedRound } from "../carried_round.js";
import type { Place } from "../cell_counts.js";
import { checkedContribution } from "../checked_contribution.js";
import { createdRecord } from "../device_store.js";
import { CodecError, InputError, Refused, UnknownKind } from "../errors.js";
import type { Fraction } from "../fraction.js";
import { parseJson } from "../json_text.js";
import { decode } from "../messages.js";
import { checkCarried, checkPolicy, type Policy, readPolicy } from "../policy.js";
import { canonicalJson } from "../recipes/canonical_json.js";
import { quietSqlite } from "../recipes/open_sqlite.js";
import { QuerySandbox } from "../recipes/query_sandbox.js";
import { matchingBins } from "../recipes/recipe.js";
import { checkAccount, checkAsked } from "../recipes/recipe_account.js";
import { admitted, placesAsEvents } from "../recipes/recipe_answers.js";
import { NOTHING, RecipeLog } from "../recipes/recipe_log.js";
import { allowed, LIMITS, readSignedPolicy, type ShippedPolicy, shippedPolicy } from "../recipes/shipped_policy.js";
import { readServerTask } from "../server_task.js";
import { decodeParameters, encodeParameters, type SessionParameters, sessionOf } from "../session_parameters.js";
import { readTask, type Task, termsOf } from "../task.js";
import { vectors } from "./vectors.js";

export interface Case {
  readonly kind: string;
  readonly content: Bytes;
  readonly policy: number;
}

/** `accept` with what follows; `malformed`; `refused` with the words; `unknown` with the kind that this device does not answer. */
export type Verdict =
  | { readonly verdict: "accept"; readonly answer: unknown }
  | { readonly verdict: "malformed" | "refused" | "fault"; readonly words: string }
  | { readonly verdict: "unknown"; readonly kind: string };

const ZEROS = { roster: new Uint8Array(32), nonce: new Uint8Array(32), graph: new Uint8Array(32) };
const SAMPLING = new Uint8Array(32);
const ISSUER = Uint8Array.from({ length: 32 }, (_, at) => at);
const NOW = Date.parse("2026-05-01T12:00:00Z");

const latin = (content: Bytes): string => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);

/** A device by rules and places that both programs know. */
export class Judge {
  private constructor(
    private readonly policies: readonly Policy[],
    private readonly rows: readonly (readonly Place[])[],
    private readonly shipped: ShippedPolicy,
    private readonly sqlite: Sqlite3Static,
    private readonly places: readonly Place[],
  ) {}

  static async of(): Promise<Judge> {
    const { policies, rows } = vectors("device/verdicts");
    const { policy, places } = vectors("device/recipes");
    const place = ([lon, lat, time]: (number | null)[]): Place => ({
      lon: lon ?? NaN,
      lat: lat ?? NaN,
      time: time ?? null,
    });
    const { policy: shipped } = await readSignedPolicy(policy[0].text);
    return new Judge(
      policies.map((rules: object) => readPolicy(JSON.stringify(rules))),
      rows.map((each: (number | null)[][]) => each.map(place)),
      shipped,
      await quietSqlite(init),
      places.map(place),
    );
  }

  async judged({ kind, content, policy }: Case): Promise<Verdict> {
    try {
      return { verdict: "accept", answer: await this.answer(kind, content, this.policies[policy]!) };
    } catch (error) {
      if (error instanceof UnknownKind) return { verdict: "unknown", kind: error.kind };
      if (error instanceof Refused) return { verdict: "refused", words: error.message };
      if (error instanceof CodecError || error instanceof InputError)
        return { verdict: "malformed", words: error.message };
      return { verdict: "fault", words: error instanceof Error ? `${error.stack}` : "?" };
    }
  }

  private answer(kind: string, content: Bytes, policy: Policy): unknown {
    switch (kind) {
      case "work":
        return work(content);
      case "task":
        return this.task(text(content), policy);
      case "invitation":
        return invitation(text(content), policy);
      case "announcement":
        return this.announcement(text(content), policy);
      case "message":
        return message(content);
      case "policy":
        return document(text(content));
      case "log":
        return log(content);
    }
    throw new TypeError(`no kind ${kind}`);
  }

  private async task(written: string, policy: Policy): Promise<unknown> {
    const task = await readTask(written);
    const clients = Math.min(task.cohort.shard, task.cohort.people, 10_000);
    const terms = termsOf(task, clients, ZEROS);
    checkPolicy(policy, task, terms);
    const answer = { digest: hex(task.digest), terms: hex(encodeParameters(terms)), size: task.size };
    return { ...answer, ...(task.asked ? this.recipe(task, terms, policy) : await this.sums(task)) };
  }

  private async sums(task: Task): Promise<object> {
    const key = await sha256(SAMPLING, utf8(task.campaign));
    const sums = this.rows.map((rows) => {
      const { sums: found, trouble } = checkedContribution(task.counts!, rows, key);
      return trouble ?? [...found.entries()].filter(([, sum]) => sum);
    });
    return { sums };
  }

  private recipe(task: Task, terms: SessionParameters, own: Policy): object {
    const policy = allowed(this.shipped, own);
    const { recipe } = task.asked!;
    const query = admitted(this.sqlite, recipe, policy);
    const asked = {
      recipe,
      fields: query.touched,
      people: terms.survivors,
      study: task.campaign,
      whole: [task.budget, task.budgetDelta] as readonly [Fraction, Fraction],
    };
    checkAsked(asked, policy);
    checkAccount(createdRecord(systemRandom), asked, policy, NOW, () => undefined);
    const analysis = policy.analyses.get(recipe.analysis)!;
    const { rows } = new QuerySandbox(this.sqlite, policy.streams, analysis.queries).run(
      query,
      placesAsEvents(this.places, NOW, policy, NOW),
    );
    return { recipe: recipe.digest, touched: query.touched, bins: matchingBins(recipe, rows) };
  }

  private async announcement(written: string, policy: Policy): Promise<unknown> {
    const round = await readCarriedRound(written);
    checkCarried(policy, round);
    const { id, configuration } = await dapTask(round, ISSUER);
    return {
      digest: hex(round.digest),
      task: hex(id),
      configuration: hex(configuration),
      ...(await this.sums(round.task)),
    };
  }
}

async function invitation(written: string, policy: Policy): Promise<unknown> {
  const place = written.indexOf(" ");
  const terms = decodeParameters(unhex(written.slice(0, place)));
  checkPolicy(policy, await readTask(written.slice(place + 1)), terms);
  return hex(await sessionOf(terms));
}

/** A text from outside: of an envelope, whose text is UTF-8. */
function text(content: Bytes): string {
  try {
    return latin(content);
  } catch {
    throw new CodecError("this is not UTF-8");
  }
}

async function work(content: Bytes): Promise<unknown> {
  const { session, stage, task, message, until, head } = readServerTask(content);
  return {
    session,
    stage,
    task: task === null ? null : hex(await sha256(utf8(task))),
    message: hex(message),
    until: Math.floor(until),
    head: hex(head),
  };
}

function message(content: Bytes): unknown {
  const found = decode(content);
  return "terms" in found ? [found.kind, hex(encodeParameters(found.terms)), found.position] : [found.kind];
}

async function document(written: string): Promise<unknown> {
  const json = parseJson(written, LIMITS);
  shippedPolicy(json);
  return hex(await sha256(utf8(canonicalJson(json))));
}

async function log(content: Bytes): Promise<unknown> {
  const found = new RecipeLog();
  await found.read(async () => ({ status: 200, wait: null, kind: "", content }), "", NOTHING);
  if (found.rewritten(NOTHING) !== null) throw new CodecError(found.rewritten(NOTHING)!);
  return [found.last.entries, found.last.digest];
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const judge = await Judge.of();
  for await (const line of createInterface({ input: process.stdin })) {
    const { kind, content, policy } = JSON.parse(line) as { kind: string; content: string; policy: number };
    const verdict = await judge.judged({ kind, content: Uint8Array.from(Buffer.from(content, "base64")), policy });
    process.stdout.write(
      `${JSON.stringify(verdict, (_, value) => (typeof value === "bigint" ? `${value}` : value))}\n`,
    );
  }
}
