import type { CarriedRound } from "./carried_round.js";
import type { CellCounts } from "./cell_counts.js";
import { InputError, Refused, UnknownKind } from "./errors.js";
import { Fraction } from "./fraction.js";
import { checkedAddress } from "./http_transport.js";
import { isObject, type Json, parseJson } from "./json_text.js";
import { checkMinimum, type MinimumParameters } from "./minimum_parameters.js";
import { fits } from "./name_pattern.js";
import { CARRIERS } from "./recipes/shipped_policy.js";
import { MALICIOUS, type Mode, SEMI_HONEST, type SessionParameters } from "./session_parameters.js";
import { checkTerms, type Task } from "./task.js";

const LONGEST_NAME = 200;
const LONGEST_PURPOSE = 2_000;
const MOST_POINTS = 1 << 20;
const NAMES: Readonly<Record<CellCounts["rule"], string>> = { AtMostRows: "rows", AtMostCells: "cells" };
const MODES: Readonly<Record<string, Mode>> = { malicious: MALICIOUS, "semi-honest": SEMI_HONEST };

/** What a person agrees to. ε's are exact; `days` is the length of the `period`. */
export interface Policy {
  readonly people: number;
  readonly survivors: number;
  readonly corrupt: Fraction;
  readonly campaign: Fraction;
  readonly period: Fraction;
  readonly days: number;
  /** The least ε of a round or report, and the most of them in so many `days`: cheaper or more would only fill a disk. */
  readonly least: Fraction;
  readonly rounds: number;
  readonly longest: number;
  /** The side in metres of the smallest cell in which rows are counted. */
  readonly finest: number;
  readonly modes: readonly Mode[];
  /** Whether rows may be counted by when they were. */
  readonly times: boolean;
  /** What one person may contribute: `rows` or `cells`. */
  readonly rules: readonly string[];
  /** Patterns of campaigns, or analyses, and of purposes that are answered, and of those that are not although they are. */
  readonly campaigns: readonly string[];
  readonly no_campaigns: readonly string[];
  readonly purposes: readonly string[];
  readonly no_purposes: readonly string[];
  /** Patterns of fields that no recipe may read, what may carry reports, and the days that an event is kept at most. */
  readonly no_fields: readonly string[];
  readonly carriers: readonly string[];
  readonly keep: number;
  /** The most ε₀ of one report to a recipe, against whoever sees it alone, and the most reports in so many `days`. */
  readonly local: Fraction;
  readonly reports: number;
  /** Servers that may carry reports: addresses that end in a slash, each with `#` and the SHA-256 of its key where that is pinned. */
  readonly aggregators: readonly string[];
}

export const DEFAULT_POLICY: Policy = {
  people: 100,
  survivors: 50,
  corrupt: new Fraction(1, 10),
  campaign: new Fraction(1),
  period: new Fraction(2),
  days: 30,
  least: new Fraction(1, 1_000),
  rounds: 1_000,
  longest: 1 << 16,
  finest: 5,
  modes: [MALICIOUS],
  times: true,
  rules: ["rows", "cells"],
  campaigns: ["*"],
  no_campaigns: [],
  purposes: ["*"],
  no_purposes: [],
  no_fields: [],
  carriers: CARRIERS,
  keep: 365,
  local: new Fraction(8),
  reports: 1_000,
  aggregators: [],
};

const AGGREGATOR = /^([^#]+\/)(?:#([0-9a-f]{64}))?$/;

/** The servers that may carry reports, each with the SHA-256 of its key, or nothing. */
export const pinned = ({ aggregators }: Policy): ReadonlyMap<string, string> =>
  new Map(aggregators.map((entry) => AGGREGATOR.exec(entry)).map((found) => [found![1]!, found![2] ?? ""]));

/** The rules in a JSON file, such as `{"people": 200, "campaign": "0.5", "modes": ["malicious"]}`; the rest by default. */
export function readPolicy(text: string): Policy {
  const found = parseJson(text, { length: 1 << 16, items: 1 << 8, depth: 4 });
  if (!isObject(found)) throw new InputError("a policy is a JSON object");
  const rules: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(found)) rules[name] = rule(name, value);
  const policy = { ...DEFAULT_POLICY, ...rules };
  if (policy.corrupt.compare(new Fraction(1)) >= 0) throw new InputError("corrupt is a part below 1");
  return policy;
}

function rule(name: string, value: Json): unknown {
  switch (name) {
    case "people":
    case "survivors":
    case "days":
    case "rounds":
    case "longest":
    case "reports":
    case "keep":
      if (typeof value !== "bigint" || value < 1n || value > 1n << 31n)
        throw new InputError(`${name} is a whole number of at least 1`);
      return Number(value);
    case "corrupt":
    case "campaign":
    case "period":
    case "least":
    case "local":
      if (typeof value !== "string" && typeof value !== "bigint")
        throw new InputError(`${name} is a text such as "0.5" or "1/3"`);
      return Fraction.parse(`${value}`);
    case "finest":
      if (
        (typeof value !== "number" && typeof value !== "bigint") ||
        !(value >= 0) ||
        !Number.isFinite(Number(value))
      ) {
        throw new InputError("finest is the side of the smallest cell in metres: a number of 0 or more");
      }
      return Number(value);
    case "rules":
    case "carriers":
    case "campaigns":
    case "no_campaigns":
    case "purposes":
    case "no_purposes":
    case "no_fields":
      return texts(name, value, name === "rules" ? Object.values(NAMES) : name === "carriers" ? CARRIERS : null);
    case "times":
      if (typeof value !== "boolean") break;
      return value;
    case "modes":
      if (!Array.isArray(value)) break;
      return value.map((mode) => {
        if (typeof mode !== "string" || !Object.hasOwn(MODES, mode))
          throw new InputError("modes are malicious and semi-honest");
        return MODES[mode]!;
      });
    case "aggregators":
      if (!Array.isArray(value)) break;
      return value.map((entry) => {
        const found = typeof entry === "string" && entry.length <= 1_100 ? AGGREGATOR.exec(entry) : null;
        if (!found) throw new InputError("aggregators are addresses that end in a slash, such as https://one.example/");
        checkedAddress(found[1]!);
        return entry;
      });
  }
  throw new InputError(`a policy says nothing about ${name.slice(0, 40)}, or says it otherwise`);
}

function texts(name: string, value: Json, known: readonly string[] | null): readonly string[] {
  if (!Array.isArray(value)) throw new InputError(`${name} is a list of texts`);
  return value.map((each) => {
    if (typeof each !== "string" || (known && !known.includes(each)))
      throw new InputError(`${name} is a list of texts${known ? `, of ${known.join(", ")}` : ""}`);
    return each;
  });
}

export const minimumOf = (policy: Policy): MinimumParameters => ({
  clients: Math.max(policy.people, policy.survivors),
  survivors: policy.survivors,
  corrupt: policy.corrupt,
  longest: policy.longest,
  modes: policy.modes,
});

/** `Refused` where a round costs nearly nothing: many such would fill the device's disk. */
export function checkLeast({ least }: Policy, price: Fraction): void {
  if (price.compare(least) < 0) {
    throw new Refused(
      `this round costs ε = ${price.toNumber()}, but on this device a round costs ε = ${least.toNumber()} or more`,
    );
  }
}

/** `Refused` where this person does not answer a task, whoever carries the answer. What was spent is not looked at. */
function checkOrder(policy: Policy, task: Task): void {
  if (longer(task.campaign, LONGEST_NAME) || longer(task.purpose, LONGEST_PURPOSE)) {
    throw new Refused(`a campaign's name has at most ${LONGEST_NAME} letters, its purpose ${LONGEST_PURPOSE}`);
  }
  if (/[\p{C}\p{Z}]/u.test((task.campaign + task.purpose).replaceAll(" ", ""))) {
    throw new Refused("the campaign's name or purpose holds characters that cannot be printed");
  }
  for (const [what, named, yes, no] of [
    ["campaign", task.campaign, policy.campaigns, policy.no_campaigns],
    ["purpose", task.purpose, policy.purposes, policy.no_purposes],
  ] as const) {
    if (!fits(named, yes) || fits(named, no)) throw new Refused(`this device does not answer the ${what} “${named}”`);
  }
  if (!task.asked) checkLeast(policy, task.price);
  if (!task.asked && task.price.compare(policy.campaign) > 0) {
    // what a recipe costs is the shipped policy's to judge
    throw new Refused(
      `this round costs ε = ${task.price.toNumber()}, but one campaign may cost ${policy.campaign.toNumber()} in all`,
    );
  }
  if (task.cohort.corrupt.compare(policy.corrupt) < 0) {
    throw new Refused(
      `the campaign assumes that at most ${percent(task.cohort.corrupt)} of the others work with the server, but this device assumes ${percent(policy.corrupt)}`,
    );
  }
}

const percent = (part: Fraction): string => `${Number((100 * part.toNumber()).toPrecision(3))} %`;

/** Whether a text has more letters than so many. */
const longer = (text: string, most: number): boolean => text.length > 2 * most || [...text].length > most;

/** `Refused` where this person's rows are not counted in such cells, or by when they were. */
function checkQuestion(policy: Policy, counts: CellCounts): void {
  let side: number;
  try {
    side = Math.sqrt(counts.cells.smallest());
  } catch (error) {
    if (error instanceof RangeError)
      throw new Refused(`this device cannot tell how large these cells are: ${error.message}`);
    throw error;
  }
  if (!policy.rules.includes(NAMES[counts.rule]))
    throw new Refused(`the rule ${NAMES[counts.rule]} is not one of: ${policy.rules.join(", ")}`);
  if (!(side >= policy.finest)) {
    throw new Refused(
      `the smallest cell is ${Number(side.toPrecision(3))} m wide, but cells must be at least ${policy.finest} m wide`,
    );
  }
  if (counts.slots && !policy.times) throw new Refused("this device does not reveal when its rows were");
}

/** `Refused` where this person does not answer this task in a session of these terms. */
export function checkPolicy(policy: Policy, task: Task, terms: SessionParameters): void {
  checkOrder(policy, task);
  checkMinimum(minimumOf(policy), terms, task.asked !== null);
  if (!task.counts) {
    checkTerms(task, terms);
    return;
  }
  checkQuestion(policy, task.counts);
  const digits = (number: bigint): number => number.toString(2).length;
  const levels = 2 + Math.max(0, digits(terms.scale.numerator) - digits(terms.scale.denominator) + 1);
  if ((2 * levels * terms.size) / terms.parties > MOST_POINTS) {
    throw new UnknownKind(
      "work",
      "a share of the noise takes more work than this device does: ask for fewer cells or more people",
    );
  }
  checkTerms(task, terms);
}

/** `Refused` where this person does not report to these servers, or not on these terms. */
export function checkCarried(policy: Policy, { task, carrier }: CarriedRound): void {
  if (task.size > policy.longest) {
    throw new Refused(`an answer would have ${task.size} numbers, but at most ${policy.longest} are allowed`);
  }
  checkOrder(policy, task);
  if (task.counts) checkQuestion(policy, task.counts);
  if (task.cohort.people < policy.people) {
    throw new Refused(`only ${task.cohort.people} people are asked together, but ${policy.people} must be`);
  }
  if (carrier.minimum < policy.survivors) {
    throw new Refused(`sums of ${carrier.minimum} reports would be opened, but ${policy.survivors} must be in them`);
  }
  if (!policy.carriers.includes("two servers")) throw new Refused("this device does not report to two servers");
  for (const url of [carrier.leader, carrier.helper]) {
    if (!pinned(policy).has(url)) {
      throw new Refused(`this device reports only to servers that its rules name, and ${url} is none of them`);
    }
  }
}
