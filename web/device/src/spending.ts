import type { Charge, DeviceRecord } from "./device_store.js";
import { Refused } from "./errors.js";
import { Fraction } from "./fraction.js";
import type { Policy } from "./policy.js";
import type { Task } from "./task.js";

const DAY = 86_400_000;

/** ε of the charges that count. */
export function spent(record: DeviceRecord, counts: (charge: Charge) => boolean): Fraction {
  return record.charges
    .filter(counts)
    .reduce((sum, { epsilon }) => sum.plus(Fraction.written(epsilon)), new Fraction(0));
}

/** `Refused` where the record was put back from a copy in the last `days`: all that may be spent in them counts as spent. */
export function checkForgotten(record: DeviceRecord, days: number, now: number): void {
  if (record.charges.some(({ forgotten, time }) => forgotten !== undefined && time > now - days * DAY)) {
    throw new Refused("this device has nothing left to spend on this round");
  }
}

/** `Refused` where as many rounds and reports were answered in the period as its person lets it. */
export function checkRounds(record: DeviceRecord, { rounds, days }: Policy, now: number): void {
  checkForgotten(record, days, now);
  if (record.charges.filter(({ time }) => time > now - days * DAY).length >= rounds) {
    throw new Refused("this device has nothing left to spend on this round");
  }
}

/** `Refused` where a round costs more than is left of its campaign, or of the person's period. */
export function checkSpending(record: DeviceRecord, policy: Policy, task: Task, now: number): void {
  checkRounds(record, policy, now);
  const campaign = spent(record, (charge) => charge.campaign === task.campaign).plus(task.price);
  const period = spent(record, (charge) => charge.time > now - policy.days * DAY).plus(task.price);
  const most = task.budget.compare(policy.campaign) < 0 ? task.budget : policy.campaign;
  if (campaign.compare(most) > 0 || period.compare(policy.period) > 0) {
    throw new Refused("this device has nothing left to spend on this round");
  }
}
