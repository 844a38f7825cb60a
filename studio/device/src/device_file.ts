import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { hex, type RandomBytes } from "./bytes.js";
import { InputError } from "./errors.js";

/** A round that was paid: ε as a fraction, the time in milliseconds since 1970. */
export interface Charge {
  readonly campaign: string;
  readonly round: number;
  readonly session: string;
  readonly epsilon: string;
  readonly time: number;
}

/** A session that is open: its task, when it is over at the latest, and what the client remembers. */
export interface OpenSession {
  readonly task: string;
  readonly until: number;
  readonly state: Record<string, unknown>;
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
}

/** The device's one file: readable by its owner, written atomically, open in one process at a time. It holds secrets. */
export class DeviceFile {
  readonly record: DeviceRecord;

  private constructor(private readonly path: string, random: RandomBytes) {
    this.record = existsSync(path) ? read(path) : created(random);
  }

  static open(path: string, random: RandomBytes): DeviceFile {
    lock(`${path}.lock`);
    return new DeviceFile(path, random);
  }

  session(session: string): OpenSession | null | undefined {
    return this.record.sessions.find(([name]) => name === session)?.[1];
  }

  setSession(session: string, kept: OpenSession | null): void {
    const found = this.record.sessions.find(([name]) => name === session);
    if (found) found[1] = kept;
    else this.record.sessions.push([session, kept]);
  }

  /** On the disk before anything is sent: to a new file, flushed, then renamed over the old one. */
  save(): void {
    const fresh = `${this.path}.new`;
    const file = openSync(fresh, "w", 0o600);
    try {
      writeSync(file, JSON.stringify(this.record));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(fresh, this.path);
    const folder = openSync(dirname(this.path), "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  }

  close(): void {
    unlinkSync(`${this.path}.lock`);
  }
}

function read(path: string): DeviceRecord {
  try {
    const found = JSON.parse(readFileSync(path, "utf8")) as DeviceRecord;
    if (found.version === 1) return found;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new InputError(`${path} is not a device's file of this version`);
}

const created = (random: RandomBytes): DeviceRecord => ({
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

/** A file that only one living process has; one of a process that died is taken over. */
function lock(path: string): void {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const file = openSync(path, "wx", 0o600);
      writeSync(file, `${process.pid}`);
      closeSync(file);
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (alive(Number(readFileSync(path, "utf8")))) break;
    unlinkSync(path);
  }
  throw new InputError(`another process uses this device: ${path} names it`);
}

function alive(process_: number): boolean {
  if (!Number.isInteger(process_) || process_ < 1 || process_ === process.pid) return false;
  try {
    process.kill(process_, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
