import { hex, type RandomBytes } from "../../shared/src/bytes.js";

/** A round that was paid: ε as a fraction, the account's time in milliseconds since 1970. */
export interface Charge {
  readonly campaign: string;
  readonly round: number;
  readonly session: string;
  readonly epsilon: string;
  readonly time: number;
  /** Of a map: whether it counted by when its rows were. */
  readonly timed?: boolean;
  /** Of none of these: the number up to which charges were forgotten, when the record was put back from a copy. */
  readonly forgotten?: number;
  /** Of a report to a recipe: its analysis, the fields that its query read, δ and ε₀ as fractions, and SHA-256 of the recipe. */
  readonly recipe?: {
    readonly analysis: string;
    readonly fields: readonly string[];
    readonly delta: string;
    readonly local: string;
    readonly digest: string;
  };
}

/** A session that is open: its task, when it is over at the latest, and what the client remembers. */
export interface OpenSession {
  readonly task: string;
  readonly until: number;
  readonly state: Record<string, unknown>;
}

/** A report to other servers: to which announcement (SHA-256), and its bytes until they have it. */
export interface KeptReport {
  readonly campaign: string;
  readonly announcement: string;
  readonly until: number;
  readonly report: string | null;
}

/** All that a device keeps. `null` stands for a session that was answered or refused, and is closed for good. */
export interface DeviceRecord {
  version: 1;
  identity: string;
  /** The secret that draws which rows count. */
  sampling: string;
  server: string | null;
  name: string | null;
  ticket: string | null;
  /** The server's identity when the device first enrolled there. */
  pinned: string | null;
  /** By campaign, what it said first. */
  campaigns: [string, string][];
  charges: Charge[];
  sessions: [string, OpenSession | null][];
  /** By batch; `null` stands for a round that was refused. Records of before there were reports have none. */
  reports?: [string, KeptReport | null][];
  /** The policy for recipes that its owner accepted: the signed file. */
  shipped?: string;
  /** The last entry of its server's public log of recipes that it has seen. */
  log?: { readonly entries: number; readonly digest: string };
  /** When it was given its places, in milliseconds since 1970: events are not kept for ever. */
  given?: number;
  /** The account's time when it was last looked at. Older records have none. */
  clock?: number;
}

export const createdRecord = (random: RandomBytes): DeviceRecord => ({
  version: 1,
  identity: hex(random(32)),
  sampling: hex(random(32)),
  server: null,
  name: null,
  ticket: null,
  pinned: null,
  campaigns: [],
  charges: [],
  sessions: [],
});

/** Where a device keeps its record: a file, or a browser's database. One process, or tab, has it at a time. */
export abstract class DeviceStore {
  protected constructor(readonly record: DeviceRecord) {}

  /** Returns when all of the record is kept for good; throws where it cannot be, and then nothing may be sent. */
  abstract save(): Promise<void>;

  session(session: string): OpenSession | null | undefined {
    return this.record.sessions.find(([name]) => name === session)?.[1];
  }

  setSession(session: string, kept: OpenSession | null): void {
    const found = this.record.sessions.find(([name]) => name === session);
    if (found) found[1] = kept;
    else this.record.sessions.push([session, kept]);
  }

  report(batch: string): KeptReport | null | undefined {
    return this.record.reports?.find(([name]) => name === batch)?.[1];
  }

  setReport(batch: string, kept: KeptReport | null): void {
    const reports = (this.record.reports ??= []);
    const found = reports.find(([name]) => name === batch);
    if (found) found[1] = kept;
    else reports.push([batch, kept]);
  }
}
