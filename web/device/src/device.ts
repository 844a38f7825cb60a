import { type Bytes, hex, sha256, unhex, utf8 } from "../../shared/src/bytes.js";
import { AccountClock } from "./account_clock.js";
import { forgotten, headOf, lastNumber } from "./account_head.js";
import { newTerms } from "./campaign_terms.js";
import type { Place } from "./cell_counts.js";
import { checkedContribution, noisy } from "./checked_contribution.js";
import { answer, type ClientOwner, drawsFrom } from "./client.js";
import { type ClientState, readState, writeState } from "./client_state.js";
import { type Coins, coinsOf } from "./coins.js";
import type { Charge, DeviceStore } from "./device_store.js";
import { Identity } from "./ed25519.js";
import { CodecError, Refused } from "./errors.js";
import { Fraction } from "./fraction.js";
import { decode } from "./messages.js";
import { checkPolicy, type Policy } from "./policy.js";
import type { LoggedRound } from "./recipes/recipe_log.js";
import { type RecipeParts, RecipeSide } from "./recipes/recipe_side.js";
import { type DueReport, type ReportParts, RoundReports } from "./round_reports.js";
import type { ServerTask } from "./server_task.js";
import { type SessionParameters, sessionOf } from "./session_parameters.js";
import { checkSpending, spent } from "./spending.js";
import { readTask, type Task } from "./task.js";

const DAY = 86_400_000;
const CLOCKS = 120_000;
const GRACE = DAY;
const LONGEST = 7 * DAY;
const [KEYS, LAST_STAGE] = [1, 6];
/** Sessions that are open at a time, and letters of their tasks together: a server could begin sessions without end. */
const [MOST_SESSIONS, MOST_LETTERS] = [64, 1 << 26];
/** What a device says in each stage, in the log's words. */
const STAGES = [
  "",
  "keys",
  "choice of neighbours",
  "sealed shares",
  "masked counts",
  "assent to who is in the sum",
  "shares to open the sum",
];

/** What to send: a reply, or why there is none. `last` is the end of the session. */
export interface DeviceAnswer {
  readonly reply: Bytes | null;
  readonly refusal: string | null;
  readonly campaign: string | null;
  readonly last: boolean;
  /** Whether it goes out at a time that does not tell how long a query ran. */
  readonly held?: boolean;
  /** Whether the same message was answered before: the bytes are those of then. */
  readonly again?: boolean;
}

/** What a device may have besides: the clock of all devices of a page, and what recipes need. */
export interface DeviceParts {
  readonly clock?: AccountClock;
  readonly recipes?: RecipeParts;
}

/** What the log says of a recipe, and of when rows were. */
function asking({ asked, counts }: Task): string {
  if (asked) return `: the recipe ${asked.recipe.id} asks ${asked.recipe.query.text}`;
  return counts?.slots ? `, who are counted by when they were where: ${counts.slots.words}` : "";
}

/** Why a message is refused. What kept this device from its store, or from other servers, is raised again. */
function reasonOf(error: unknown): string {
  if (error instanceof Refused || error instanceof CodecError) return error.message;
  if (error instanceof RangeError || error instanceof TypeError) return "this device cannot deal with the message";
  throw error;
}

/** What a person's own log says, and no server is told. */
export type Log = (line: string) => void;

/**
 * One person's device: from a server's message to a reply, without a network.
 *
 * Judge, charge, answer, write: the store has the state, the charge and the reply before `answer` returns, so a message
 * that comes again after a crash gets the same bytes for the charge that stands. One thing is done at a time, however many
 * are asked for at once.
 */
export class Device {
  private last: Promise<unknown> = Promise.resolve();
  private readonly reports: RoundReports;
  readonly recipes: RecipeSide;
  private readonly coins: Coins;

  private constructor(
    private readonly identity: Identity,
    private readonly store: DeviceStore,
    private readonly policy: Policy,
    private readonly places: readonly Place[],
    private readonly log: Log,
    private readonly clock: AccountClock,
    recipes: RecipeParts | null,
  ) {
    this.coins = coinsOf(unhex(store.record.sampling));
    this.recipes = new RecipeSide(store.record, policy, places, this.coins, log, recipes);
    this.reports = new RoundReports(store, policy, places, this.coins, log, clock, this.recipes);
  }

  static async of(
    store: DeviceStore,
    policy: Policy,
    places: readonly Place[],
    log: Log,
    parts: DeviceParts = {},
  ): Promise<Device> {
    const clock = parts.clock ?? new AccountClock(store.record);
    return new Device(
      await Identity.of(unhex(store.record.identity)),
      store,
      policy,
      places,
      log,
      clock,
      parts.recipes ?? null,
    );
  }

  /** What the server's public log has to say of a recipe that would be answered now: read it before. */
  async logged(work: ServerTask): Promise<LoggedRound | null> {
    if (!work.task?.includes('"RecipeBins"') || this.store.session(work.session) !== undefined) return null;
    try {
      const task = await readTask(work.task);
      return task.asked && RecipeSide.logged(task);
    } catch (error) {
      reasonOf(error); // `answer` says what is wrong with it
      return null;
    }
  }

  answer(work: ServerTask, now: number): Promise<DeviceAnswer> {
    return this.inTurn(() => this.judged(work, now));
  }

  /** A report to the servers that carry a round: one that is kept and not sent yet, or why there is none. */
  report(work: ServerTask, now: number, parts: ReportParts): Promise<DueReport | string> {
    return this.inTurn(async () => {
      try {
        if (!(now - work.until <= CLOCKS))
          throw new Refused("the time for this report is over, by this device's clock");
        return await this.reports.made(work, now, parts);
      } catch (error) {
        const reason = reasonOf(error);
        await this.giveUp(work.session, reason);
        return reason;
      }
    });
  }

  /** The servers have the report of a batch, or will never take it: then `reason` says why. */
  reported(batch: string, reason: string | null): Promise<void> {
    return this.inTurn(() => (reason === null ? this.reports.arrived(batch) : this.giveUp(batch, reason)));
  }

  /** Leave a session for good: what it remembered is gone. */
  close(session: string): Promise<void> {
    return this.inTurn(() => this.leave(session));
  }

  /** How far the account has come, for the server to keep: with what was paid for, and is in the store. */
  head(): Promise<string | null> {
    return headOf(this.store.record);
  }

  /** Count the period as spent where the server keeps a head that this record has not reached: it is an older copy. */
  putBack(head: Bytes, now: number): Promise<void> {
    return this.inTurn(async () => {
      const { record } = this.store;
      const number = await forgotten(record, head);
      if (number === null) return;
      this.log(
        `was put back from a copy; charges that it has forgotten: ${number - lastNumber(record)}; everything that may be ` +
          "spent in a period counts as spent, until it has passed",
      );
      record.charges.push({
        campaign: "",
        round: 0,
        session: "",
        epsilon: "0",
        time: this.clock.charged(now),
        forgotten: number,
      });
      await this.store.save();
    });
  }

  /** Close the sessions to which no server came back, and note the account's time. */
  sweep(now: number): Promise<void> {
    return this.inTurn(async () => {
      const left = this.store.record.sessions.filter(([, open]) => open && open.until + GRACE < now);
      for (const [session] of left) this.store.setSession(session, null);
      if (left.length) this.log(`leaves ${left.length} sessions to which the server did not come back`);
      this.reports.forget(now);
      this.clock.now(now);
      await this.store.save();
    });
  }

  /** After all that was asked before has ended: else a stage could have two answers, or a session that was left come back. */
  private inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const done = this.last.then(work);
    this.last = done.catch(() => undefined);
    return done;
  }

  private async judged(work: ServerTask, now: number): Promise<DeviceAnswer> {
    try {
      if (!(now - work.until <= CLOCKS)) throw new Refused("the time for this answer is over, by this device's clock");
      const open = this.store.session(work.session);
      if (open === null) throw new Refused("this device has left the session and does not come back");
      return await (open ? this.next(work, open.task, readState(open.state), now) : this.first(work, now));
    } catch (error) {
      return await this.refuse(work, reasonOf(error));
    }
  }

  private async giveUp(batch: string, reason: string): Promise<void> {
    this.log(`refuses to report: ${reason}`);
    this.store.setReport(batch, null);
    await this.store.save();
  }

  private async leave(session: string): Promise<void> {
    this.store.setSession(session, null);
    await this.store.save();
  }

  /** Whether a campaign has nothing more to ask of this device: its budget is paid, and no session is open. */
  ended(campaign: string): boolean {
    const said = this.store.record.campaigns.find(([name]) => name === campaign)?.[1];
    const open =
      this.store.record.sessions.some(([, session]) => session) ||
      this.store.record.reports?.some(([, kept]) => kept?.report);
    if (!said || open) return false;
    const { budget } = JSON.parse(said) as { budget: string };
    return spent(this.store.record, (charge) => charge.campaign === campaign).compare(Fraction.written(budget)) >= 0;
  }

  private async first(work: ServerTask, now: number): Promise<DeviceAnswer> {
    if (work.task === null) throw new Refused("a session begins with a task");
    const open = this.store.record.sessions.flatMap(([, session]) => session ?? []);
    if (
      open.length >= MOST_SESSIONS ||
      open.reduce((sum, { task }) => sum + task.length, work.task.length) > MOST_LETTERS
    ) {
      throw new Refused("this device has as many sessions open as it keeps");
    }
    const message = decode(work.message);
    if (message.kind !== "Invitation") throw new Refused("a session begins with an invitation");
    if (hex(await sessionOf(message.terms)) !== work.session)
      throw new Refused("the session is not the one that its terms name");
    const task = await readTask(work.task);
    checkPolicy(this.policy, task, message.terms);
    const agreed = newTerms(this.store.record, task);
    if (task.asked) await this.weighed(task, message.terms, now);
    else await this.canPay(task, now);
    const charges: Charge[] = [];
    const state = await answer(null, work.message, this.owner(task, now, charges));
    if (agreed) this.store.record.campaigns.push(agreed);
    this.log(
      `takes part in round ${task.round} of “${task.campaign}” (“${task.purpose}”), among ${message.terms.clients} people, at ε = ${task.price.toNumber()}${asking(task)}`,
    );
    return this.kept(work, work.task, task, state, charges, now);
  }

  private async next(work: ServerTask, text: string, state: ClientState, now: number): Promise<DeviceAnswer> {
    const task = await readTask(text);
    const charges: Charge[] = [];
    const answered = await answer(state, work.message, this.owner(task, now, charges));
    if (answered === state) {
      await this.store.save(); // the first time may have failed
      return {
        reply: state.reply,
        refusal: null,
        campaign: task.campaign,
        last: state.stage === LAST_STAGE,
        again: true,
      };
    }
    return this.kept(work, text, task, answered, charges, now);
  }

  /** State, charge, reply and what the log says of them are kept together, before anything is sent. */
  private async kept(
    work: ServerTask,
    text: string,
    task: Task,
    state: ClientState,
    charges: Charge[],
    now: number,
  ): Promise<DeviceAnswer> {
    const until = Math.min(work.until, now + LONGEST);
    this.store.record.charges.push(...charges);
    this.store.setSession(work.session, { task: text, until, state: writeState(state) });
    this.log(`has its ${STAGES[state.stage]} for round ${task.round} ready: ${state.reply.length} bytes`);
    await this.store.save();
    return {
      reply: state.reply,
      refusal: null,
      campaign: task.campaign,
      last: state.stage === LAST_STAGE,
      held: task.asked !== null && state.stage === KEYS,
    };
  }

  private async canPay(task: Task, now: number): Promise<void> {
    const time = this.clock.now(now);
    checkSpending(this.store.record, this.policy, task, time);
    await this.recipes.checkCampaign(task, time);
  }

  /** A recipe's round that the public log knows, and that may be answered and paid. */
  private async weighed(task: Task, terms: SessionParameters, now: number): Promise<void> {
    const { recipes } = this;
    const seen = recipes.seen;
    recipes.keepSeen();
    recipes.log.check(RecipeSide.logged(task), seen);
    await recipes.weighed(task, terms, this.clock.now(now));
  }

  private async refuse(work: ServerTask, reason: string): Promise<DeviceAnswer> {
    this.log(`refuses a session: ${reason}`);
    await this.leave(work.session);
    return { reply: null, refusal: reason, campaign: null, last: true };
  }

  private owner(task: Task, now: number, charges: Charge[]): ClientOwner {
    return {
      identity: this.identity,
      draws: drawsFrom(this.coins),
      check: (terms) => checkPolicy(this.policy, task, terms),
      contribution: (terms) => this.contribution(task, terms, now),
      pay: (terms, sums) => this.charged(task, terms, sums, now, charges),
      noisy: (sums, terms, random) => (task.asked ? sums.slice() : noisy(sums, terms, random)),
    };
  }

  /** What this device adds: it is kept until it is paid and masked. The first message says nothing about it. */
  private async contribution(task: Task, terms: SessionParameters, now: number): Promise<Uint32Array> {
    if (task.asked) {
      const weighed = await this.recipes.weighed(task, terms, this.clock.now(now));
      return this.recipes.report(task, await sessionOf(terms), weighed, now);
    }
    const key = await sha256(unhex(this.store.record.sampling), utf8(task.campaign));
    const { sums, trouble } = checkedContribution(task.counts!, this.places, key);
    if (trouble) this.log(`answers as if it had no rows: counting them failed (${trouble})`);
    return sums;
  }

  /** The masked vector's charge is for the write that keeps it. Nothing refused depends on what was counted. */
  private async charged(
    task: Task,
    terms: SessionParameters,
    sums: Uint32Array,
    now: number,
    charges: Charge[],
  ): Promise<void> {
    const session = hex(await sessionOf(terms));
    if (task.asked) {
      const weighed = await this.recipes.weighed(task, terms, this.clock.now(now));
      charges.push(this.recipes.charge(task, session, weighed, sums, this.clock.charged(now)));
      return;
    }
    await this.canPay(task, now);
    this.log(`pays ε = ${task.price.toNumber()} for round ${task.round}: its counts go out masked, with noise`);
    charges.push({
      campaign: task.campaign,
      round: task.round,
      session,
      epsilon: task.price.toString(),
      time: this.clock.charged(now),
      timed: task.counts!.slots !== null,
    });
  }
}
