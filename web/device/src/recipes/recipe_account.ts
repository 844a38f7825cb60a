import type { Charge, DeviceRecord } from "../device_store.js";
import { Refused } from "../errors.js";
import { Fraction } from "../fraction.js";
import { checkForgotten } from "../spending.js";
import type { Task } from "../task.js";
import type { Recipe } from "./recipe.js";
import type { AnalysisBudget, Budget, ShippedPolicy } from "./shipped_policy.js";

const DAY = 86_400_000;
const ONE = new Fraction(1);
/** What a map of places reads, in the order of names: when they were only where it counts by that. */
export const placesRead = (timed: boolean): readonly string[] => [
  "places.lat",
  "places.lon",
  ...(timed ? ["places.time"] : []),
];

/** What a report to a recipe reads, and which sum of at least how many people it is for. */
export interface AskedReport {
  readonly recipe: Recipe;
  readonly fields: readonly string[];
  readonly people: number;
  /** The study, and all that it said it would cost: ε and δ. */
  readonly study: string;
  readonly whole: readonly [Fraction, Fraction];
}

const NOTHING_LEFT = "this device has nothing left to spend on this round";

/** `Refused` where this report may not be asked at all; what was spent is not looked at. Its sum's price was checked before. */
export function checkAsked({ recipe, fields, people }: AskedReport, policy: ShippedPolicy): AnalysisBudget {
  const analysis = policy.analyses.get(recipe.analysis);
  if (!analysis) throw new Refused(`this device knows no analysis ${recipe.analysis}`);
  if (recipe.purpose !== analysis.purpose)
    throw new Refused(`the analysis ${analysis.name} was approved for another purpose: ${analysis.purpose}`);
  if (!analysis.carriers.includes(recipe.carrier))
    throw new Refused(
      `answers of ${analysis.name} are carried by ${analysis.carriers.join(", ")}, not by ${recipe.carrier}`,
    );
  const told = [...recipe.cohort.keys()].find((name) => !analysis.cohortFields.has(name));
  if (told !== undefined)
    throw new Refused(`${told} is no approved cohort field of ${analysis.name}: it is not told in the clear`);
  const strange = fields.find((name) => !analysis.queries.fields.includes(name));
  if (strange !== undefined) throw new Refused(`the analysis ${analysis.name} may not read ${strange}`);
  if (people < analysis.cohort)
    throw new Refused(
      `sums of ${analysis.name} are over at least ${analysis.cohort} people; this one would be opened with ${people}`,
    );
  for (const name of fields) {
    const budget = policy.fields.get(name);
    if (!budget) throw new Refused(`the field ${name} has no budget on this device, so no query reads it`);
    if (recipe.local.compare(budget.local) > 0)
      throw new Refused(`one report that reads ${name} may have ε₀ = ${budget.local.toNumber()} at most`);
  }
  return analysis;
}

/** `Refused` where a report costs more than is left. The reason is for its owner alone: `tell` has it. */
export function checkAccount(
  record: DeviceRecord,
  asked: AskedReport,
  policy: ShippedPolicy,
  now: number,
  tell: (reason: string) => void,
): void {
  checkForgotten(record, longest(policy), now);
  const analysis = checkAsked(asked, policy);
  const { recipe, fields, study, whole } = asked;
  const own = spending(record.charges.filter(({ campaign, recipe: about }) => about && campaign === study));
  const reasons: (string | null)[] = [
    own.epsilon.plus(recipe.epsilon).compare(whole[0]) > 0 || own.delta.plus(recipe.delta).compare(whole[1]) > 0
      ? `with this report the study ${study} would cost more than it said that it would cost in all`
      : null,
  ];
  const passes = (
    whose: string,
    budget: Budget,
    days: number,
    counts: (charge: Charge) => boolean,
    reports: (charge: Charge) => boolean,
  ): void => {
    const chosen = within(record, days, now).filter(counts);
    const spent = spending(chosen);
    const after = {
      epsilon: spent.epsilon.plus(recipe.epsilon),
      delta: spent.delta.plus(recipe.delta),
      reports: chosen.filter(reports).length + 1,
    };
    reasons.push(passed(whose, after, budget, days));
  };
  const ofRecipes = (charge: Charge): boolean => charge.recipe !== undefined;
  passes(
    `the analysis ${analysis.name}`,
    analysis,
    policy.days,
    ({ recipe: about }) => about?.analysis === analysis.name,
    ofRecipes,
  );
  for (const name of fields)
    passes(
      `the field ${name}`,
      policy.fields.get(name)!,
      policy.days,
      (charge) => touchedBy(charge).includes(name),
      () => true,
    );
  for (const limit of policy.limits) passes("this device", limit, limit.days, () => true, ofRecipes);
  refuse(reasons, tell);
}

/** `Refused` where a map's round is not within what the policy lets everything cost, or a field of places. */
export function checkCampaign(
  record: DeviceRecord,
  { price, counts }: Task,
  policy: ShippedPolicy,
  now: number,
  tell: (reason: string) => void,
): void {
  checkForgotten(record, longest(policy), now);
  const after = (charges: readonly Charge[], reports: number) => {
    const spent = spending(charges);
    return { epsilon: spent.epsilon.plus(price), delta: spent.delta, reports };
  };
  const reasons: (string | null)[] = [];
  for (const name of placesRead(!!counts?.slots)) {
    const budget = policy.fields.get(name);
    if (!budget) continue;
    const read = within(record, policy.days, now).filter((charge) => touchedBy(charge).includes(name));
    reasons.push(passed(`the field ${name}`, after(read, read.length + 1), budget, policy.days));
  }
  for (const limit of policy.limits) {
    const charges = within(record, limit.days, now);
    reasons.push(
      passed("this device", after(charges, charges.filter(({ recipe }) => recipe).length), limit, limit.days),
    );
  }
  refuse(reasons, tell);
}

/** The longest period, in days, for which a budget holds. */
const longest = ({ days, limits }: ShippedPolicy): number => Math.max(days, ...limits.map((limit) => limit.days));

function refuse(reasons: readonly (string | null)[], tell: (reason: string) => void): void {
  const reason = reasons.find((each) => each !== null);
  if (!reason) return;
  tell(reason);
  throw new Refused(NOTHING_LEFT);
}

const touchedBy = ({ recipe, timed }: Charge): readonly string[] =>
  recipe ? recipe.fields : placesRead(timed === true);

const within = ({ charges }: DeviceRecord, days: number, now: number): Charge[] =>
  charges.filter(({ time }) => time > now - days * DAY);

function spending(charges: readonly Charge[]): { epsilon: Fraction; delta: Fraction } {
  let [epsilon, delta] = [new Fraction(0), new Fraction(0)];
  for (const charge of charges) {
    epsilon = epsilon.plus(Fraction.written(charge.epsilon));
    if (charge.recipe) delta = delta.plus(Fraction.written(charge.recipe.delta));
  }
  return { epsilon, delta };
}

function passed(
  whose: string,
  after: { epsilon: Fraction; delta: Fraction; reports: number },
  budget: Budget,
  days: number,
): string | null {
  if (after.reports > budget.reports)
    return `${whose} may be told of by ${budget.reports} reports in ${days} days; this would be one more`;
  if (after.epsilon.compare(budget.epsilon) > 0)
    return `${whose} may cost ε = ${budget.epsilon} in ${days} days; with this it would be ${after.epsilon}`;
  const onlyEpsilon = budget.delta.compare(ONE) === 0;
  if (!onlyEpsilon && after.delta.compare(budget.delta) > 0)
    return `${whose} may cost δ = ${budget.delta} in ${days} days; with this it would be ${after.delta}`;
  return null;
}
