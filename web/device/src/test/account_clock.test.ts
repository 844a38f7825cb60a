import assert from "node:assert/strict";
import { test } from "node:test";
import { systemRandom } from "../../../shared/src/bytes.js";
import { AccountClock } from "../account_clock.js";
import { createdRecord, type DeviceRecord } from "../device_store.js";
import { InputError } from "../errors.js";
import { Fraction } from "../fraction.js";
import { DEFAULT_POLICY } from "../policy.js";
import { checkSpending } from "../spending.js";
import { readTask } from "../task.js";
import { vectors } from "./vectors.js";

const DAY = 86_400_000;
const START = Date.parse("2026-05-01T12:00:00Z");
const task = await readTask(vectors("device/tasks").tasks[0].task);
const policy = { ...DEFAULT_POLICY, period: task.price.times(new Fraction(3)), campaign: new Fraction(100) };

/** A machine: its true time, what its clock says, and the uptime of a page or process that begins anew. */
class Machine {
  true = START;
  clock = START;
  record: DeviceRecord = createdRecord(systemRandom);
  private begun = START;
  account = this.opened();

  opened(): AccountClock {
    this.begun = this.true;
    this.record = JSON.parse(JSON.stringify(this.record));
    return (this.account = new AccountClock(this.record, () => this.true - this.begun));
  }

  pass(time: number): void {
    this.true += time;
    this.clock += time;
  }

  pay(): boolean {
    try {
      checkSpending(
        { ...this.record, campaigns: [] },
        policy,
        { ...task, campaign: `${this.true} ${this.record.charges.length}` },
        this.account.now(this.clock),
      );
    } catch {
      return false;
    }
    this.record.charges.push({
      campaign: "",
      round: 1,
      session: "",
      epsilon: task.price.toString(),
      time: this.account.charged(this.clock),
    });
    return true;
  }
}

test("whatever a clock says, no true period costs more than its cap", () => {
  const machine = new Machine();
  const paid: number[] = [];
  const bytes = systemRandom(3_000);
  for (let at = 0; at < 3_000; at += 3) {
    const [what, one, two] = [bytes[at]! % 4, bytes[at + 1]!, bytes[at + 2]!];
    if (what === 0) machine.pass((one / 256) * 9 * DAY);
    if (what === 1) machine.clock = START + (one - 128) * two * DAY;
    if (what === 2) machine.opened();
    if (what === 3 && machine.pay()) paid.push(machine.true);
    const within = paid.filter((time) => time > machine.true - policy.days * DAY);
    assert.ok(within.length <= 3, `${within.length} times in ${policy.days} days`);
  }
  assert.ok(paid.length >= 3);
});

test("a budget comes back when so much time has passed while the page was open, or its owner says the date", () => {
  const machine = new Machine();
  for (let time = 0; time < 3; time++) assert.ok(machine.pay());
  machine.clock += 31 * DAY;
  assert.ok(!machine.pay(), "a clock that was set forward gives nothing back");
  machine.clock -= 31 * DAY;
  machine.pass(31 * DAY);
  machine.opened();
  machine.record.clock = START;
  machine.opened();
  assert.ok(!machine.pay(), "what passed while it was closed does not count by itself");
  for (const wrong of ["2026-05-01", "yes", "2026-13-01", "1 June", ""])
    assert.throws(() => machine.account.confirmed(machine.clock, wrong), InputError);
  machine.account.confirmed(machine.clock, "2026-06-02");
  assert.ok(machine.pay());
  const first = new Machine();
  for (let time = 0; time < 3; time++) assert.ok(first.pay());
  first.pass(31 * DAY);
  assert.ok(first.pay(), "an open page counts by itself");
});

test("charges of before there was this clock count on, and none is dated before another", () => {
  const record = createdRecord(systemRandom);
  record.charges.push({ campaign: "", round: 1, session: "", epsilon: "1", time: START });
  const clock = new AccountClock(record, () => 0);
  assert.equal(clock.now(START + 99 * DAY), START);
  record.charges.push({ campaign: "", round: 2, session: "", epsilon: "1", time: START + DAY });
  assert.equal(clock.charged(START), START + DAY);
});
