import { AccountClock } from "../../device/src/account_clock.js";
import { Agent } from "../../device/src/agent.js";
import type { Place } from "../../device/src/cell_counts.js";
import { Device } from "../../device/src/device.js";
import { CodecError, InputError, Refused } from "../../device/src/errors.js";
import { Fraction } from "../../device/src/fraction.js";
import { checkedAddress, HttpTransport } from "../../device/src/http_transport.js";
import { DEFAULT_POLICY, type Policy, pinned, readPolicy } from "../../device/src/policy.js";
import { RecipeLog } from "../../device/src/recipes/recipe_log.js";
import { acceptPolicy } from "../../device/src/recipes/recipe_side.js";
import { readSignedPolicy, type ShippedPolicy } from "../../device/src/recipes/shipped_policy.js";
import { systemRandom, utf8 } from "../../shared/src/bytes.js";
import { readPlaces, writtenPlaces } from "./kept_places.js";
import { SealedDatabase } from "./sealed_database.js";
import { bindTo } from "./server_bond.js";
import { tabSqlite } from "./tab_sqlite.js";
import { TabStore } from "./tab_store.js";

const [PLACES, POLICY] = ["places", "policy"];
const DAY = 86_400_000;

/** The device of a browser profile: what it keeps, and whether it answers. */
export class TabDevice {
  private readonly clock: AccountClock;
  private readonly log = new RecipeLog();
  private shippedPolicy: ShippedPolicy | null = null;
  private when: { places: readonly Place[]; timed: number } | null = null;
  private running: { stop: AbortController; ended: Promise<void> } | null = null;

  private constructor(
    private readonly database: SealedDatabase,
    readonly store: TabStore,
    private known: readonly Place[],
    private rules: Policy,
  ) {
    this.clock = new AccountClock(store.record);
  }

  static async open(): Promise<TabDevice> {
    const database = await SealedDatabase.open();
    const store = await TabStore.open(database, systemRandom);
    const [places, policy] = [await database.get(PLACES), await database.get(POLICY)];
    const rules = policy ? readPolicy(new TextDecoder().decode(policy)) : DEFAULT_POLICY;
    const found = new TabDevice(database, store, places ? readPlaces(places) : [], rules);
    if (store.record.shipped !== undefined) found.shippedPolicy = (await readSignedPolicy(store.record.shipped)).policy;
    const reports = (store.record.reports ?? []).filter(([, kept]) => kept?.report).length;
    const open = reports + store.record.sessions.filter(([, session]) => session !== null).length;
    store.log(
      open ? `this page was opened; ${open} answers were under way when it was closed` : "this page was opened",
    );
    await store.save();
    return found;
  }

  get places(): readonly Place[] {
    return this.known;
  }

  /** Of how many places the time is known. */
  get timed(): number {
    const { known } = this;
    if (this.when?.places !== known)
      this.when = { places: known, timed: known.filter(({ time }) => time !== undefined).length };
    return this.when.timed;
  }

  get policy(): Policy {
    return this.rules;
  }

  /** The policy for recipes that its owner has accepted. */
  get shipped(): ShippedPolicy | null {
    return this.shippedPolicy;
  }

  /** Take a signed policy for recipes; the first one with the key that it is to be signed by. */
  async acceptPolicy(text: string, key: string): Promise<void> {
    this.shippedPolicy = await acceptPolicy(this.store.record, text, key);
    this.store.log(`accepts the policy ${this.shippedPolicy.name}, version ${this.shippedPolicy.version}, for recipes`);
    await this.store.save();
  }

  get answering(): boolean {
    return this.running !== null;
  }

  /** The time by which budgets come back: it passes while a page is open, and never faster than time. */
  get accountTime(): number {
    return this.clock.now(Date.now());
  }

  /** Somebody knows what day it is, and the machine's clock agrees: budgets go on from there. */
  async confirmDay(today: string): Promise<void> {
    this.clock.confirmed(Date.now(), today);
    this.store.log(`goes by ${new Date(this.accountTime).toISOString().slice(0, 10)}, as its owner says`);
    await this.store.save();
  }

  /** ε that was paid within the policy's period. */
  get spent(): Fraction {
    const since = this.accountTime - this.rules.days * DAY;
    const charges = this.store.record.charges.filter(({ time }) => time > since);
    return charges.reduce((sum, { epsilon }) => sum.plus(Fraction.written(epsilon)), new Fraction(0));
  }

  async keepPlaces(places: readonly Place[], from: string): Promise<void> {
    await this.database.put(PLACES, writtenPlaces(places));
    this.known = places;
    this.store.record.given = Date.now();
    this.store.log(places.length ? `keeps ${places.length} places ${from}` : `forgets its places ${from}`);
  }

  async keepPolicy(text: string): Promise<void> {
    const policy = readPolicy(text);
    await this.database.put(POLICY, utf8(text));
    this.rules = policy;
    this.store.log(`goes by other rules: ${text}`);
  }

  /** Enrols where it has not, and answers until `stop`, or until `over` is told why not. */
  start(server: string, code: string, over: (reason: string | null) => void): void {
    if (this.running) return;
    const address = checkedAddress(server.trim());
    bindTo(address, ...pinned(this.rules).keys());
    const stop = new AbortController();
    const ended = this.answer(address, code.trim(), stop.signal).then(
      () => this.over("stops answering", null, over),
      (error: unknown) => {
        const ours = error instanceof InputError || error instanceof Refused || error instanceof CodecError;
        const reason = ours
          ? error.message
          : `something went wrong (${error instanceof Error ? error.message : "unknown"})`;
        this.over(`stops answering: ${reason}`, reason, over);
      },
    );
    this.running = { stop, ended };
    this.store.log(`answers ${address}`);
  }

  async stop(): Promise<void> {
    this.running?.stop.abort();
    await this.running?.ended;
  }

  private async answer(address: string, code: string, signal: AbortSignal): Promise<void> {
    const log = this.store.log;
    if (!(await navigator.storage.persist())) log("the browser may delete what is kept here when it needs room");
    const device = await Device.of(this.store, this.rules, this.known, log, {
      clock: this.clock,
      recipes: { sqlite: tabSqlite, given: (this.store.record.given ??= Date.now()), log: this.log },
    });
    const http = new HttpTransport(address);
    while (!signal.aborted)
      await new Agent(device, this.store, http, address, code, Infinity, log, pinned(this.rules)).run(signal);
  }

  private over(line: string, reason: string | null, tell: (reason: string | null) => void): void {
    this.running = null;
    this.store.log(line);
    tell(reason);
  }
}
