import type { DeviceRecord } from "./device_store.js";
import { InputError } from "./errors.js";

const DAY = 86_400_000;

/**
 * The time by which budgets come back: what has passed for certain, whatever the machine's clock says.
 *
 * It begins with that clock, or with the last charge where there is one, and goes on with a time that nobody sets: that of
 * this page, or program. It stands still while there is none, for then nothing here knows for how long. So between two
 * charges it never goes further than time itself, unless the person has said the date.
 */
export class AccountClock {
  private readonly begun: number;

  /** `uptime` is in milliseconds that never go back. */
  constructor(
    private readonly record: DeviceRecord,
    private readonly uptime: () => number = () => performance.now(),
  ) {
    this.begun = uptime();
    this.line =
      record.clock ?? record.charges.reduce<number | null>((last, { time }) => Math.max(last ?? time, time), null);
  }

  /** The account's time when it began; null before anything has asked for it. */
  private line: number | null;

  /** In milliseconds since 1970. `clock`, what the machine says, tells only the beginning. The caller saves the record. */
  now(clock: number): number {
    const passed = Math.max(0, this.uptime() - this.begun);
    this.line ??= clock - passed;
    return (this.record.clock = Math.floor(this.line + passed));
  }

  /** The time of a charge that is made now: no earlier than that of any charge before it. */
  charged(clock: number): number {
    return this.record.charges.reduce((last, { time }) => Math.max(last, time), this.now(clock));
  }

  /** Go on from what the machine says, if that is the day, such as `2026-11-23`, that somebody knows it to be. */
  confirmed(clock: number, today: string): void {
    const day = /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(today.trim()) ? Date.parse(`${today.trim()}T12:00:00Z`) : NaN;
    if (Number.isNaN(day)) throw new InputError("a date is written such as 2026-11-23");
    if (Math.abs(Math.floor(clock / DAY) - Math.floor(day / DAY)) > 1) {
      throw new InputError(
        `the clock of this machine says ${new Date(clock).toISOString().slice(0, 10)}: put it right first`,
      );
    }
    this.line = Math.max(clock, this.now(clock)) - Math.max(0, this.uptime() - this.begun);
    this.now(clock);
  }
}
