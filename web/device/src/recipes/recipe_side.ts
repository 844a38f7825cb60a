import type { Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import { type Bytes, hex } from "../../../shared/src/bytes.js";
import type { Place } from "../cell_counts.js";
import type { Coins } from "../coins.js";
import type { Charge, DeviceRecord } from "../device_store.js";
import { InputError, Refused } from "../errors.js";
import { checkLeast, type Policy } from "../policy.js";
import type { SessionParameters } from "../session_parameters.js";
import { checkRounds } from "../spending.js";
import type { Task } from "../task.js";
import type { AdmittedQuery, OpenSqlite } from "./query_sandbox.js";
import { type AskedReport, checkAccount, checkCampaign } from "./recipe_account.js";
import { admitted, answered, placesAsEvents } from "./recipe_answers.js";
import { type LoggedRound, type LogHead, NOTHING, RecipeLog } from "./recipe_log.js";
import { allowed, checkUpdate, readSignedPolicy, type ShippedPolicy } from "./shipped_policy.js";

/** What a device needs for recipes besides: SQLite, and when it was given its places, in milliseconds since 1970. */
export interface RecipeParts {
  readonly sqlite: OpenSqlite;
  readonly given: number;
  /** The server's public log, as any device of this page has read it. */
  readonly log?: RecipeLog;
}

/** A recipe that may be answered: what the policy lets it, what its query reads, and what its report costs. */
interface Weighed {
  readonly policy: ShippedPolicy;
  readonly query: AdmittedQuery;
  readonly sqlite: Sqlite3Static;
  readonly asked: AskedReport;
}

/** Take a signed policy in the place of the one before; the first needs the key that it is to be signed by. The caller saves. */
export async function acceptPolicy(record: DeviceRecord, text: string, key: string): Promise<ShippedPolicy> {
  const fresh = await readSignedPolicy(text);
  const given = key.trim().toLowerCase();
  if (given && given !== fresh.key)
    throw new InputError("this policy is signed by another key than the one that you gave");
  if (record.shipped === undefined && !given)
    throw new InputError(
      "the first policy of a device needs the key that it is to be signed by: 64 hexadecimal digits",
    );
  if (record.shipped !== undefined && record.shipped !== text) {
    try {
      checkUpdate(fresh, await readSignedPolicy(record.shipped));
    } catch (error) {
      throw error instanceof Refused ? new InputError(error.message) : error;
    }
  }
  record.shipped = text;
  return fresh.policy;
}

/** A device's side of recipes: weigh, charge, answer. Until the query runs, nothing that is done depends on an event. */
export class RecipeSide {
  readonly log: RecipeLog;
  private known: { text: string; policy: ShippedPolicy } | null = null;

  constructor(
    private readonly record: DeviceRecord,
    private readonly own: Policy,
    private readonly places: readonly Place[],
    private readonly coins: Coins,
    private readonly tell: (line: string) => void,
    private readonly parts: RecipeParts | null,
  ) {
    this.log = parts?.log ?? new RecipeLog();
  }

  get seen(): LogHead {
    return this.record.log ?? NOTHING;
  }

  /** What the public log has to say of a task. */
  static logged({ campaign, round, cohort, digest, asked }: Task): LoggedRound {
    const { id, version, digest: recipe } = asked!.recipe;
    return {
      task: hex(digest),
      study: campaign,
      words: [id, BigInt(version), recipe, campaign, BigInt(round), BigInt(cohort.people)],
    };
  }

  /** Keep what was read of the log, unless it does not go on from what was seen. The caller saves. */
  keepSeen(): void {
    if (this.log.rewritten(this.seen) === null) this.record.log = this.log.last;
  }

  /** The accepted policy, as far as its owner's rules allow it too; null where none was accepted. */
  private async policy(): Promise<ShippedPolicy | null> {
    const text = this.record.shipped;
    if (text === undefined) return null;
    if (this.known?.text !== text) this.known = { text, policy: (await readSignedPolicy(text)).policy };
    return allowed(this.known.policy, this.own);
  }

  /** `Refused` where a map's round is not within what the accepted policy allows. */
  async checkCampaign(task: Task, now: number): Promise<void> {
    const policy = await this.policy();
    if (policy) checkCampaign(this.record, task, policy, now, (reason) => this.tell(`cannot pay: ${reason}`));
  }

  /** `Refused` where a recipe is not answered in a session of these terms: checks 1 to 3, and without an event. */
  async weighed(task: Task, terms: SessionParameters, now: number): Promise<Weighed> {
    const policy = await this.policy();
    if (!policy || !this.parts) throw new Refused("this device has accepted no policy for recipes, so it answers none");
    checkRounds(this.record, this.own, now);
    checkLeast(this.own, task.asked!.recipe.epsilon);
    const { recipe } = task.asked!;
    let sqlite: Sqlite3Static;
    try {
      sqlite = await this.parts.sqlite();
    } catch {
      throw new Refused("this device cannot run queries where it is");
    }
    const query = admitted(sqlite, recipe, policy);
    const asked = {
      recipe,
      fields: query.touched,
      people: terms.survivors,
      study: task.campaign,
      whole: [task.budget, task.budgetDelta] as const,
    };
    checkAccount(this.record, asked, policy, now, (reason) => this.tell(`cannot pay: ${reason}`));
    return { policy, query, sqlite, asked };
  }

  /** The report to a recipe that was weighed: it is kept until it is paid. Its coins follow from the session and the rows. */
  report(task: Task, session: Bytes, { policy, query, sqlite }: Weighed, now: number): Promise<Uint32Array> {
    const source = placesAsEvents(this.places, this.parts!.given, policy, now);
    return answered(sqlite, task.asked!, query, policy, source, (own) => this.coins(session, "report", own));
  }

  /** The charge of a report: it is for the write that keeps the masked vector. */
  charge(task: Task, session: string, { asked }: Weighed, vector: Uint32Array, paidAt: number): Charge {
    const { recipe } = task.asked!;
    this.tell(
      `pays ε = ${recipe.epsilon.toNumber()} and δ = ${recipe.delta.toNumber()} for the recipe ${recipe.id} (ε₀ = ${recipe.local.toNumber()}): its query ` +
        `reads ${asked.fields.join(", ")}; what it says was randomised here, and is ${bitsOf(vector)}`,
    );
    const about = {
      analysis: recipe.analysis,
      fields: asked.fields,
      delta: recipe.delta.toString(),
      local: recipe.local.toString(),
      digest: recipe.digest,
    };
    return {
      campaign: task.campaign,
      round: task.round,
      session,
      epsilon: recipe.epsilon.toString(),
      time: paidAt,
      recipe: about,
    };
  }
}

/** The randomised report, for its owner: the places of its 1s, of which a long report has many. */
function bitsOf(vector: Uint32Array): string {
  const ones = [...vector.keys()].filter((at) => vector[at]);
  return `${ones.length} of ${vector.length} numbers set${ones.length && ones.length <= 20 ? `: ${ones.join(", ")}` : ""}`;
}
