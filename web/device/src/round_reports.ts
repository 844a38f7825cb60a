import { ascii, type Bytes, hex, joined, sha256, uint32, unhex, utf8 } from "../../shared/src/bytes.js";
import type { AccountClock } from "./account_clock.js";
import { newTerms } from "./campaign_terms.js";
import { type CarriedRound, dapTask, readCarriedRound } from "./carried_round.js";
import type { Place } from "./cell_counts.js";
import { checkedContribution } from "./checked_contribution.js";
import type { Coins } from "./coins.js";
import { type DapTask, makeReport, REPORT_RANDOM, timeOf } from "./dap_messages.js";
import type { DeviceStore } from "./device_store.js";
import { Identity } from "./ed25519.js";
import { Refused } from "./errors.js";
import type { HpkeConfig } from "./hpke.js";
import { checkCarried, type Policy } from "./policy.js";
import type { RecipeSide } from "./recipes/recipe_side.js";
import { askedKey, type Credential, readCredential, reportKey } from "./report_credential.js";
import type { ServerTask } from "./server_task.js";
import { checkSpending } from "./spending.js";

const DAY = 86_400_000;
const LONGEST = 14 * DAY;

/** What a report needs of others: `Unreachable` where it comes later, `Refused` where it never comes. */
export interface ReportParts {
  /** The public keys of both servers, fetched anew or remembered. */
  readonly keys: (round: CarriedRound) => Promise<readonly [HpkeConfig, HpkeConfig]>;
  /** The coordinator's credential for the report, for the key of the device's that it is asked with. */
  readonly credential: (asked: Bytes) => Promise<Bytes>;
}

/** A report that is to be sent, where its task's reports go; no bytes where the servers have it. */
export interface DueReport {
  readonly round: CarriedRound;
  readonly task: DapTask;
  readonly report: Bytes | null;
}

/**
 * A device's reports to two servers: judge, charge, make, keep. The charge, the report's bytes and the log are in the store
 * before `made` returns. Who asks again for the same batch gets the same bytes, for nothing; in other words, nothing.
 */
export class RoundReports {
  constructor(
    private readonly store: DeviceStore,
    private readonly policy: Policy,
    private readonly places: readonly Place[],
    private readonly coins: Coins,
    private readonly log: (line: string) => void,
    private readonly clock: AccountClock,
    private readonly recipes: RecipeSide,
  ) {}

  async made(work: ServerTask, now: number, parts: ReportParts): Promise<DueReport> {
    const kept = this.store.report(work.session);
    if (kept === null) throw new Refused("this device has left this round and does not come back");
    if (work.task === null || work.message.length) throw new Refused("an announcement is a task, and nothing else");
    const round = await readCarriedRound(work.task);
    if (round.batch !== work.session) throw new Refused("the announcement is of another batch than it says");
    if (kept && kept.announcement !== hex(round.digest)) {
      throw new Refused("this device has answered this round in other words, and its report is for those alone");
    }
    const issuer = unhex(this.store.record.pinned ?? "");
    const task = await dapTask(round, issuer);
    if (kept) {
      await this.store.save(); // the first time may have failed
      return { round, task, report: kept.report === null ? null : unhex(kept.report) };
    }
    checkCarried(this.policy, round);
    const terms = newTerms(this.store.record, round.task, round.carrier);
    checkSpending(this.store.record, this.policy, round.task, this.clock.now(now));
    await this.recipes.checkCampaign(round.task, this.clock.now(now));
    timeOf(task, now / 1_000);
    const keys = await parts.keys(round);
    const secret = unhex(this.store.record.identity);
    const key = await reportKey(secret, task.id);
    const asked = await askedKey(await Identity.of(secret), issuer, unhex(round.batch), key.public);
    const credential = await readCredential(await parts.credential(asked), key, issuer, task.id);
    const report = await this.report(round, task, keys, credential, now);
    if (terms) this.store.record.campaigns.push(terms);
    this.keep(work, round, report, now);
    await this.store.save();
    return { round, task, report };
  }

  /** The servers have a report: its bytes are not needed any more. */
  async arrived(batch: string): Promise<void> {
    const kept = this.store.report(batch);
    if (!kept?.report) return;
    this.store.setReport(batch, { ...kept, report: null });
    this.log("the servers have the report");
    await this.store.save();
  }

  /** What no server came back for is not sent any more. The caller saves. */
  forget(now: number): void {
    const old = (this.store.record.reports ?? []).filter(([, kept]) => kept?.report && kept.until < now);
    for (const [batch] of old) this.store.setReport(batch, null);
    if (old.length) this.log(`leaves ${old.length} reports for which the server did not come back`);
  }

  /** Nothing that could be refused is left: from here on there is a report, whatever the rows are. */
  private async report(
    round: CarriedRound,
    task: DapTask,
    keys: readonly [HpkeConfig, HpkeConfig],
    credential: Credential,
    now: number,
  ): Promise<Bytes> {
    const key = await sha256(unhex(this.store.record.sampling), utf8(round.task.campaign));
    const { sums, trouble } = checkedContribution(round.task.counts!, this.places, key);
    if (trouble) this.log(`reports as if it had no rows: counting them failed (${trouble})`);
    const bits = Array.from(sums, (sum) => sum === 1);
    const seconds = Math.floor(now / 1_000);
    const said = joined(Array.from(sums, uint32));
    const { serial, issued } = credential;
    const sealedFor = [
      task.id,
      task.configuration,
      ...keys.map(({ key }) => key),
      serial,
      issued,
      ascii(`${timeOf(task, seconds)}`),
    ];
    const random = await this.coins(round.digest, "parcel", said, ...sealedFor);
    return makeReport(task, keys, credential, bits, seconds, random(REPORT_RANDOM));
  }

  private keep(work: ServerTask, round: CarriedRound, report: Bytes, now: number): void {
    const { campaign, purpose, round: number, price, cohort, counts } = round.task;
    const { leader, helper, minimum } = round.carrier;
    const time = this.clock.charged(now);
    this.store.record.charges.push({
      campaign,
      round: number,
      session: work.session,
      epsilon: price.toString(),
      time,
      timed: counts!.slots !== null,
    });
    this.store.setReport(work.session, {
      campaign,
      announcement: hex(round.digest),
      until: Math.min(work.until + DAY, now + LONGEST),
      report: hex(report),
    });
    this.log(
      `takes part in round ${number} of “${campaign}” (“${purpose}”), among ${cohort.people} people${counts?.slots ? `, who are counted by when they were where: ${counts.slots.words}` : ""}`,
    );
    this.log(
      `pays ε = ${price.toNumber()} for round ${number}: its report has ${report.length} bytes, in halves for ${leader} and ${helper}, ` +
        `each unreadable alone; they open sums of ${minimum} reports or more, with noise`,
    );
  }
}
