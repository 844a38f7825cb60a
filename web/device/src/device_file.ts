import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { RandomBytes } from "../../shared/src/bytes.js";
import { createdRecord, type DeviceRecord, DeviceStore } from "./device_store.js";
import { InputError } from "./errors.js";

/** The device's one file: readable by its owner, written atomically, open in one process at a time. It holds secrets. */
export class DeviceFile extends DeviceStore {
  private constructor(
    private readonly path: string,
    random: RandomBytes,
  ) {
    super(existsSync(path) ? read(path) : createdRecord(random));
  }

  static open(path: string, random: RandomBytes): DeviceFile {
    lock(`${path}.lock`);
    return new DeviceFile(path, random);
  }

  /** On the disk before anything is sent: to a new file, flushed, then renamed over the old one. */
  override async save(): Promise<void> {
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
