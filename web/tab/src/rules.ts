import { InputError } from "../../device/src/errors.js";
import { DEFAULT_POLICY, type Policy, readPolicy } from "../../device/src/policy.js";

/** A rule that a person may change: its name, its words, and how it is written. */
export interface Rule {
  readonly name: "people" | "survivors" | "campaign" | "period" | "days" | "finest" | "times" | "local" | "aggregators";
  readonly label: string;
  readonly help: string;
}

export const RULES: readonly Rule[] = [
  {
    name: "people",
    label: "People asked together, at least",
    help: "Your answer is added to those of so many others before anybody can read the sum.",
  },
  { name: "survivors", label: "Of whom must answer, at least", help: "With fewer the sum is never opened." },
  {
    name: "campaign",
    label: "ε that one campaign may cost you, at most",
    help: "A smaller ε hides you better. Write 0.5 or 1/2.",
  },
  {
    name: "period",
    label: "ε that all may cost you together, at most",
    help: "What you pay is lost to others for as long as the next line says.",
  },
  { name: "days", label: "… in so many days", help: "After them, what was paid is free again." },
  {
    name: "finest",
    label: "Smallest cell to be counted in, in metres",
    help: "In finer cells a map shows where somebody stood.",
  },
  {
    name: "times",
    label: "Whether maps may count by when you were where",
    help: "Write yes or no. Maps of every hour ask for it. What it costs is the same.",
  },
  {
    name: "local",
    label: "ε₀ that one report to a recipe may tell by itself, at most",
    help: "Against whoever would see your report alone, which masks hide. A smaller one hides you better.",
  },
  {
    name: "aggregators",
    label: "Two servers that may share your report, if any",
    help: "Their addresses, with a space between. Each gets half of it, unreadable alone. Name them if you trust that they do not work together.",
  },
];

/** What no field changes. */
export const ALWAYS: readonly string[] = [
  "The server is never trusted: this device answers only where no server can see one person's answer, whatever it does, or where two " +
    "that you name would have to work together.",
  "A tenth of the others may work with the server: the noise of the rest is enough.",
  "Every question must follow from the campaign that was announced, and the campaign must keep its first word.",
  "Only counts of places in cells are answered, and recipes that a policy allows which you accepted: no words, no paths.",
];

export const written = (policy: Policy): Record<Rule["name"], string> => ({
  people: `${policy.people}`,
  survivors: `${policy.survivors}`,
  campaign: `${policy.campaign}`,
  period: `${policy.period}`,
  days: `${policy.days}`,
  finest: `${policy.finest}`,
  times: policy.times ? "yes" : "no",
  local: `${policy.local}`,
  aggregators: policy.aggregators.join(" "),
});

/** A policy as JSON from what was written into the fields; `InputError` where it is none. */
export function policyText(fields: Readonly<Record<Rule["name"], string>>): string {
  const whole = (text: string): number | string => (/^[0-9]{1,9}$/.test(text.trim()) ? Number(text) : text);
  const { people, survivors, campaign, period, days, finest, times, local, aggregators } = fields;
  const said = new Map([
    ["yes", true],
    ["no", false],
  ]).get(times.trim().toLowerCase());
  if (said === undefined) throw new InputError("whether maps may count by when you were where is yes or no");
  const text = JSON.stringify({
    people: whole(people),
    survivors: whole(survivors),
    days: whole(days),
    campaign: campaign.trim(),
    period: period.trim(),
    local: local.trim(),
    times: said,
    finest: /^[0-9]{1,9}(\.[0-9]{1,9})?$/.test(finest.trim()) ? Number(finest) : finest,
    aggregators: aggregators.split(/\s+/).filter(Boolean),
  });
  readPolicy(text);
  return text;
}

/** The rules that protect less than hazemap's own. */
export function looser(policy: Policy): Rule[] {
  const [own, usual] = [policy, DEFAULT_POLICY];
  const less: Record<Rule["name"], boolean> = {
    people: own.people < usual.people,
    survivors: own.survivors < usual.survivors,
    campaign: own.campaign.compare(usual.campaign) > 0,
    period: own.period.compare(usual.period) > 0,
    days: own.days < usual.days,
    finest: own.finest < usual.finest,
    times: own.times && !usual.times,
    local: own.local.compare(usual.local) > 0,
    aggregators: own.aggregators.length > 0,
  };
  return RULES.filter(({ name }) => less[name]);
}
