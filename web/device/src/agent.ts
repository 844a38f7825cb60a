import { type Bytes, bigEndian, systemRandom } from "../../shared/src/bytes.js";
import type { Device, DeviceAnswer, Log } from "./device.js";
import type { DeviceStore } from "./device_store.js";
import { enrol } from "./enrolment.js";
import { InputError, Refused, Unreachable } from "./errors.js";
import type { HttpTransport } from "./http_transport.js";
import { fetchedKey, uploaded } from "./report_upload.js";
import { readServerTask, type ServerTask } from "./server_task.js";

/** Seconds. */
const [ASK, LEAST, AGAIN, LONGEST, SWEEP, MOST_BACKOFF] = [30, 0.25, 0.5, 3_600, 3_600, 300];
/** Seconds: an answer to a recipe goes out so long after the question, or a multiple of it, whatever its query took. */
const HOLD = 4;
/** Seconds at most between questions after refusals in a row: each is a line in the person's log, which a server could fill. */
const MOST_AFTER_REFUSALS = 60;
/** Seconds at most after messages in a row that were answered before: to send again costs a battery. */
const MOST_AFTER_REPEATS = 300;
/** The stage of a round whose reports go to other servers. */
const ANNOUNCED = 0;
/** The stage that is paid for. */
const MASKED = 4;

const jittered = (seconds: number): number => seconds * (0.5 + Number(bigEndian(systemRandom(2))) / 65_536);

/** So many seconds, or until `signal` says to stop. */
function sleep(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, seconds * 1_000);
    signal.addEventListener("abort", end);
  });
}

/**
 * A device at work: it asks its server, answers, and waits, until a campaign of its has ended: its budget is paid and no
 * session is open. A campaign that asks for less than its budget says nothing at its end: so it has ended as well
 * if the server had no work for `idle` seconds after an answer.
 */
export class Agent {
  private signal: AbortSignal = new AbortController().signal;
  private failures = 0;
  private refused = 0;
  private repeated = 0;
  private swept = -Infinity;
  private ended: string | null = null;
  private answered = Infinity;

  constructor(
    private readonly device: Device,
    private readonly store: DeviceStore,
    private readonly http: HttpTransport,
    private readonly server: string,
    private readonly code: string,
    private readonly idle: number,
    private readonly log: Log,
    /** The servers that the person's rules name, each with the SHA-256 of its key, or nothing. */
    private readonly pins: ReadonlyMap<string, string> = new Map(),
  ) {}

  /** Returns when a campaign has nothing more to ask of this device, or `signal` says to stop. */
  async run(signal: AbortSignal): Promise<void> {
    this.signal = signal;
    while (this.ended === null && !signal.aborted) {
      const wait = Math.min(await this.turn(), LONGEST);
      if (this.ended !== null) break;
      await sleep(wait, signal);
    }
  }

  /**
   * One question and what follows from it; the seconds to wait. Whatever a server does, and whatever fails here, the next
   * question comes; only a device that was never enrolled stops where the server does not take it, for its owner to see.
   */
  private async turn(): Promise<number> {
    try {
      const wait = await this.asked();
      this.failures = 0;
      return wait;
    } catch (error) {
      if (error instanceof InputError || (error instanceof Refused && this.store.record.pinned === null)) throw error;
      this.log(error instanceof Error ? error.message : "something went wrong");
      this.failures++;
      const asked = error instanceof Unreachable ? (error.wait ?? 0) : 0;
      return Math.max(jittered(Math.min(MOST_BACKOFF, 2 ** Math.min(this.failures - 1, 20))), asked);
    }
  }

  private async asked(): Promise<number> {
    const now = Date.now();
    if (now - this.swept > SWEEP * 1_000) {
      this.swept = now;
      await this.device.sweep(now);
    }
    if (this.store.record.ticket === null) await this.enrolled();
    const found = await this.http.send("GET", "/v1/tasks", this.store.record.ticket);
    if (found.status === 204) {
      if (now - this.answered > this.idle * 1_000) this.ended = "";
      return found.wait === null ? jittered(ASK) : Math.max(found.wait, LEAST);
    }
    if (found.status === 401) {
      await this.enrolled();
      return jittered(AGAIN);
    }
    if (found.status !== 200) throw new Unreachable(`the server gave no work, but HTTP ${found.status}`, found.wait);
    const work = readServerTask(found.content);
    await this.device.putBack(work.head, now);
    if (work.stage === ANNOUNCED) return this.carried(work, now);
    const logged = await this.device.logged(work);
    if (logged)
      await this.device.recipes.log.read(
        (path) => this.http.send("GET", path, null),
        logged.task,
        this.device.recipes.seen,
      );
    const begun = performance.now();
    const answer = await this.device.answer(work, now);
    if (answer.held) await sleep(HOLD - (((performance.now() - begun) / 1_000) % HOLD), this.signal);
    const taken = await this.send(work, answer);
    return this.after(answer.refusal === null && taken, !answer.again);
  }

  /** The seconds to wait after an answer: more after some in a row that were refused, or given before. */
  private after(taken: boolean, fresh: boolean): number {
    this.refused = taken ? 0 : this.refused + 1;
    this.repeated = fresh ? 0 : this.repeated + 1;
    const [most, times] = this.refused ? [MOST_AFTER_REFUSALS, this.refused] : [MOST_AFTER_REPEATS, this.repeated];
    return jittered(Math.min(most, AGAIN * 2 ** Math.min(Math.max(times - 1, 0), 20)));
  }

  private async enrolled(): Promise<void> {
    await enrol(this.store.record, this.http, this.server, this.code);
    await this.store.save();
    this.log("enrolled");
  }

  /** A report that goes to other servers: made, charged and sent there; the server hears only that it was. */
  private async carried(work: ServerTask, now: number): Promise<number> {
    const fresh = this.store.report(work.session) === undefined;
    const key = (url: string) => fetchedKey(url, this.pins.get(url) ?? "");
    const path = `/v1/tasks/${work.session}`;
    const due = await this.device.report(work, now, {
      keys: async ({ carrier }) => [await key(carrier.leader), await key(carrier.helper)],
      credential: (asked) => this.credential(path, asked),
    });
    let refusal = typeof due === "string" ? due : null;
    if (typeof due !== "string") {
      try {
        await uploaded(due);
        await this.device.reported(work.session, null);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        refusal = error.message;
        await this.device.reported(work.session, refusal);
      }
    }
    if (refusal === null) {
      const { status } = await this.http.send("POST", await this.paid(path), this.store.record.ticket);
      this.log(`said that it has reported (HTTP ${status})`);
      this.answered = Date.now();
      if (typeof due !== "string" && this.device.ended(due.round.task.campaign)) this.ended = due.round.task.campaign;
    } else {
      await this.http.post(`${path}/refusal`, this.store.record.ticket, { reason: refusal });
    }
    return this.after(refusal === null, fresh);
  }

  /** The server's credential for a report to others, for a key that the device has signed. */
  private async credential(path: string, asked: Bytes): Promise<Bytes> {
    const { status, wait, content } = await this.http.send(
      "POST",
      `${path}/credentials`,
      this.store.record.ticket,
      asked,
      "application/octet-stream",
    );
    if (status === 200) return content;
    const why = `the server gave no credential for this report, but HTTP ${status}`;
    throw status === 401 || status === 409 ? new Unreachable(why, wait) : new Refused(why);
  }

  /** Where a message goes that was paid for: with it goes how far the account has come. */
  private async paid(path: string): Promise<string> {
    const head = await this.device.head();
    return head === null ? path : `${path}?head=${head}`;
  }

  /** What is in the store goes out; false where the server ends the session. A 409 may be about bytes that had arrived before, so the session stays open. */
  private async send(
    { session, stage }: ServerTask,
    { reply, refusal, campaign, last }: DeviceAnswer,
  ): Promise<boolean> {
    const path = `/v1/tasks/${session}`;
    const ticket = this.store.record.ticket;
    if (refusal !== null) await this.http.post(`${path}/refusal`, ticket, { reason: refusal });
    if (reply === null) return true;
    const { status } = await this.http.send(
      "POST",
      stage === MASKED ? await this.paid(path) : path,
      ticket,
      reply,
      "application/octet-stream",
    );
    this.log(`sent ${reply.length} bytes (HTTP ${status})`);
    if (status === 410 || status === 413 || status === 422 || (last && status === 204))
      await this.device.close(session);
    this.answered = Date.now();
    if (campaign !== null && this.device.ended(campaign)) this.ended = campaign;
    return status < 300 || status === 409;
  }
}
