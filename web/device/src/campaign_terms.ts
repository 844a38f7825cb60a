import type { TwoServers } from "./carried_round.js";
import type { DeviceRecord } from "./device_store.js";
import { Refused } from "./errors.js";
import type { Task } from "./task.js";

/** What a campaign says first is what it may say: everything but the round and its question, with who carries its reports. */
function said({ purpose, budget, budgetDelta, asked, cohort }: Task, carrier: TwoServers | null): string {
  const about = asked ? { analysis: asked.recipe.analysis, delta: `${budgetDelta}` } : {};
  const terms = {
    ...about,
    budget: `${budget}`,
    purpose,
    cohort: { ...cohort, dropout: `${cohort.dropout}`, corrupt: `${cohort.corrupt}` },
  };
  return JSON.stringify(carrier ? { ...terms, carrier } : terms);
}

/** What is to be kept of a campaign that is new, and nothing for one that is known; `Refused` where it has changed. */
export function newTerms(record: DeviceRecord, task: Task, carrier: TwoServers | null = null): [string, string] | null {
  const [now, before] = [said(task, carrier), record.campaigns.find(([name]) => name === task.campaign)?.[1]];
  if (before !== undefined && before !== now) {
    throw new Refused(
      "the campaign has changed its purpose, budget, cohort or carrier since this device first agreed to it",
    );
  }
  return before === undefined ? [task.campaign, now] : null;
}
