import { createdRecord, type DeviceRecord, DeviceStore } from "../../device/src/device_store.js";
import { InputError } from "../../device/src/errors.js";
import { type Bytes, type RandomBytes, utf8 } from "../../shared/src/bytes.js";

const RECORD = "device";
const MOST_LINES = 5_000;

/** When, in milliseconds since 1970, and what. */
export type LogLine = readonly [number, string];

/** What keeps named bytes: a browser's database, or a test's. */
export interface Keeper {
  get(name: string): Promise<Bytes | null>;
  put(name: string, plain: Bytes): Promise<void>;
}

interface Kept {
  readonly record: DeviceRecord;
  readonly lines: LogLine[];
}

/** A tab's record and its log in one write: no charge without its line, no line without its charge. */
export class TabStore extends DeviceStore {
  private last: Promise<void> = Promise.resolve();
  private due = false;
  /** Called after each line. */
  heard: () => void = () => undefined;

  private constructor(
    private readonly keeper: Keeper,
    record: DeviceRecord,
    readonly lines: LogLine[],
    private readonly clock: () => number,
  ) {
    super(record);
  }

  static async open(keeper: Keeper, random: RandomBytes, clock: () => number = Date.now): Promise<TabStore> {
    const found = await keeper.get(RECORD);
    if (!found) return new TabStore(keeper, createdRecord(random), [], clock);
    const { record, lines } = JSON.parse(new TextDecoder().decode(found)) as Kept;
    if (record.version !== 1) throw new InputError("a newer version of this page has written what is kept here");
    return new TabStore(keeper, record, lines, clock);
  }

  /** All of it as it stands now, after all that was to be kept before. */
  override save(): Promise<void> {
    this.due = false;
    const kept = utf8(JSON.stringify({ record: this.record, lines: this.lines } satisfies Kept));
    const done = this.last.then(() => this.keeper.put(RECORD, kept));
    this.last = done.catch(() => undefined);
    return done;
  }

  /** A line for the person's own eyes. It is kept with the next change, or soon. */
  readonly log = (line: string): void => {
    this.lines.push([this.clock(), line]);
    if (this.lines.length > MOST_LINES) this.lines.splice(0, this.lines.length - MOST_LINES);
    this.heard();
    if (this.due) return;
    this.due = true;
    setTimeout(() => {
      if (this.due) void this.save().catch(() => undefined);
    });
  };
}
