import { ascii, type Bytes, hex, join, sha256, unhex } from "../../../shared/src/bytes.js";
import { verified } from "../ed25519.js";
import { CodecError, InputError, Refused, UnknownKind } from "../errors.js";
import { Fraction } from "../fraction.js";
import { isObject, type Json, type JsonLimits, type JsonObject, parseJson } from "../json_text.js";
import { fits } from "../name_pattern.js";
import { canonicalJson } from "./canonical_json.js";
import { checkName, checkText, checkValue, distinct, LONGEST_VALUE, type Value } from "./checked_text.js";
import {
  byName,
  checkClass,
  checkSchema,
  checkTemplate,
  FIELD_TYPES,
  fieldName,
  MOST_STREAMS,
  type QueryClass,
  type StreamSchema,
} from "./query_class.js";
import { sqlQuery } from "./sql_query.js";

export const LIMITS: JsonLimits = { length: 1 << 20, items: 1 << 16, depth: 14 };
const [MOST_REPORTS, MOST_DAYS, LARGEST_COHORT, LONGEST_KEPT, MOST_VALUES] = [1_000_000, 36_525, 1e9, 3_660, 1_024];
const LARGEST_EPSILON = new Fraction(1_000);
const DIGITS = 10n ** 64n;
const [ZERO, ONE] = [new Fraction(0), new Fraction(1)];
export const ANALYSIS = /^[a-z0-9][a-z0-9._-]{0,99}$/;
export const CARRIERS: readonly string[] = ["secure sums", "two servers"];

/** All that something may cost a person in one period: ε, δ and reports. */
export interface Budget {
  readonly epsilon: Fraction;
  readonly delta: Fraction;
  readonly reports: number;
}
/** What a field may cost, and the largest ε₀ of one report that reads it. */
export interface FieldBudget extends Budget {
  readonly field: string;
  readonly local: Fraction;
}
/** Everything in so many days. A δ of 1 says that ε alone is limited. */
export interface DeviceLimit extends Budget {
  readonly days: number;
}
export interface AnalysisBudget extends Budget {
  readonly name: string;
  readonly purpose: string;
  readonly queries: QueryClass;
  readonly cohort: number;
  readonly carriers: readonly string[];
  /** Names that recipes may choose people by, each with its field. */
  readonly cohortFields: ReadonlyMap<string, string>;
}
export interface EventStream extends StreamSchema {
  readonly keep: number;
  /** The document's fields, in one text: what may not change. */
  readonly written: string;
}

/** The policy that a device accepts: which analyses may ask what of which fields, and at which price. */
export interface ShippedPolicy {
  readonly name: string;
  readonly version: bigint;
  readonly days: number;
  readonly limits: readonly DeviceLimit[];
  readonly streams: readonly EventStream[];
  readonly fields: ReadonlyMap<string, FieldBudget>;
  readonly analyses: ReadonlyMap<string, AnalysisBudget>;
}

/** A policy as a device keeps it: the file, and the key that its owner pinned with the first one. */
export interface SignedPolicy {
  readonly policy: ShippedPolicy;
  readonly key: string;
}

/** The policy in a signed file; `InputError` for any other, and where its signature does not fit. */
export async function readSignedPolicy(text: string): Promise<SignedPolicy> {
  try {
    const { policy, key, signature } = fields(parseJson(text, LIMITS), "a signed policy", [
      "key",
      "policy",
      "signature",
    ]);
    const made = shippedPolicy(policy!);
    const [signer, seal] = [digits(key, 32), digits(signature, 64)];
    const statement = join(ascii("hazemap policy 1"), await sha256(ascii(canonicalJson(policy!))));
    if (!(await verified(signer, seal, statement)))
      throw new CodecError("the signature does not fit: it was changed, or damaged on its way");
    return { policy: made, key: hex(signer) };
  } catch (error) {
    if (error instanceof CodecError || error instanceof UnknownKind)
      throw new InputError(`this is no signed policy: ${error.message}`);
    throw error;
  }
}

function digits(json: Json | undefined, length: number): Bytes {
  if (typeof json !== "string" || json.length !== 2 * length || !/^[0-9a-f]*$/.test(json))
    throw new CodecError("a key and a signature are hexadecimal digits");
  return unhex(json);
}

/** `Refused` where a device that has accepted a policy does not take this one after it. */
export function checkUpdate(fresh: SignedPolicy, before: SignedPolicy): void {
  const [policy, old] = [fresh.policy, before.policy];
  if (fresh.key !== before.key)
    throw new Refused("this policy is signed by another key than the one that was accepted first");
  if (policy.name !== old.name) throw new Refused(`this device has the policy ${old.name}, and takes no other`);
  if (policy.version <= old.version)
    throw new Refused(`this device has had version ${old.version} and needs a later one`);
  if (policy.days < old.days) throw new Refused(`the period was ${old.days} days: it may grow only`);
  const gone = old.limits.find(({ days }) => !policy.limits.some((limit) => limit.days === days));
  if (gone) throw new Refused(`the limit over ${gone.days} days is gone: its numbers may change, but it stays`);
  for (const stream of policy.streams) {
    const known = old.streams.find(({ name }) => name === stream.name);
    if (known && known.written !== stream.written)
      throw new Refused(`the stream ${stream.name} has other fields than before`);
  }
}

/** The policy in plain values, as it is signed; `CodecError` unless each is known, of its type, and written in its one way. */
export function shippedPolicy(json: Json): ShippedPolicy {
  const page = fields(json, "a policy", [
    "name",
    "version",
    "days",
    "limits",
    "streams",
    "fields",
    "analyses",
    "accounting",
  ]);
  const accounting = page["accounting"];
  if (accounting === "zcdp")
    throw new UnknownKind("zcdp", "this device adds ε and δ up: it takes no policy that counts in zCDP");
  if (accounting !== "basic") throw new CodecError("the accounting of a policy is basic or zcdp");
  const policy: ShippedPolicy = {
    name: checkName(page["name"], "the name of a policy"),
    version: BigInt(whole(page["version"], "the version of a policy", 1, Number.MAX_SAFE_INTEGER)),
    days: whole(page["days"], "the period of a policy", 1, MOST_DAYS),
    limits: list(page["limits"], "the limits").map(limit),
    streams: entries(page["streams"], "the streams").map(stream),
    fields: new Map(
      entries(page["fields"], "the fields").map(([name, found]) => [fieldName(name), fieldBudget(name, found)]),
    ),
    analyses: new Map(entries(page["analyses"], "the analyses").map(([name, found]) => [name, analysis(name, found)])),
  };
  if (policy.limits.length < 1 || policy.limits.length > 16)
    throw new CodecError("a policy has 1 to 16 limits over everything that a device answers");
  if (policy.analyses.size > 256) throw new CodecError("a policy has at most 256 analyses");
  checkNames(policy);
  return policy;
}

function checkNames({ streams, fields: budgets, analyses }: ShippedPolicy): void {
  const known = new Set(streams.flatMap(({ name, fields: own }) => own.map((field) => `${name}.${field.name}`)));
  const strange = [...budgets.keys()].find((field) => !known.has(field));
  if (strange !== undefined)
    throw new CodecError(`the field ${strange} has a budget, but no stream of this policy has it`);
  for (const { name, queries, cohortFields } of analyses.values()) {
    if (streams.length < 1 || streams.length > MOST_STREAMS)
      throw new CodecError(`a device has 1 to ${MOST_STREAMS} streams`);
    const free = queries.fields.find((field) => !budgets.has(field));
    if (free !== undefined)
      throw new CodecError(`the analysis ${name} may read ${free}, which has no budget: give it one`);
    for (const told of cohortFields.values()) {
      if (!known.has(told)) throw new CodecError(`the cohort field ${told} of ${name} is in no stream of this policy`);
      if (budgets.has(told))
        throw new CodecError(`${told} is told in the clear as a cohort field, so it cannot have a budget as well`);
    }
  }
}

function limit(json: Json): DeviceLimit {
  const page = fields(json, "a limit", ["days", "epsilon", "delta", "reports"]);
  return { days: whole(page["days"], "the days of a limit", 1, MOST_DAYS), ...budget(page, "a limit", true) };
}

function stream([name, json]: readonly [string, Json]): EventStream {
  const page = fields(json, "a stream", ["keep", "fields"]);
  const own = list(page["fields"], "the fields of a stream").map((field) => eventField(field));
  const made = {
    name,
    keep: whole(page["keep"], "the days that events are kept", 1, LONGEST_KEPT),
    fields: own,
    written: canonicalJson(page["fields"]!),
  };
  checkSchema(made);
  return made;
}

function eventField(json: Json): StreamSchema["fields"][number] {
  const { name, type, values, optional } = fields(
    json,
    "a field of a stream",
    ["name", "type", "values", "optional"],
    ["values", "optional"],
  );
  const texts = some(values, "the values of a category").map((value) =>
    checkText(value, "a value of a category", LONGEST_VALUE),
  );
  if (optional !== undefined && optional !== true)
    throw new CodecError("a field is optional: true, or says nothing of it");
  if ((type === "category") !== texts.length > 0 || texts.length > MOST_VALUES || !distinct(texts)) {
    throw new CodecError("a category lists its values, each once, and nothing else does");
  }
  const kinds: Readonly<Record<string, "integer" | "real" | "text">> = {
    integer: "integer",
    real: "real",
    text: "text",
    time: "integer",
    category: "text",
  };
  if (typeof type !== "string" || !Object.hasOwn(kinds, type))
    throw new CodecError("the type of a field is integer, real, text, time or category");
  return { name: checkName(name, "the name of a field"), type: kinds[type]! };
}

function fieldBudget(name: string, json: Json): FieldBudget {
  const page = fields(json, `the budget of ${name.slice(0, 80)}`, ["local_epsilon", "epsilon", "delta", "reports"]);
  const local = number(page["local_epsilon"], "a local ε₀");
  if (local.compare(LARGEST_EPSILON) > 0) throw new CodecError("a local ε₀ lies between 0 and 1000");
  return { field: name, local, ...budget(page, name, false) };
}

function analysis(name: string, json: Json): AnalysisBudget {
  if (!ANALYSIS.test(name))
    throw new CodecError("an analysis is called by lower-case letters, digits, '.', '_' and '-' (100 at most)");
  const what = `the analysis ${name}`;
  const names = ["purpose", "epsilon", "delta", "reports", "queries", "minimum_cohort", "carriers", "cohort_fields"];
  const page = fields(json, what, names);
  const purpose = checkText(page["purpose"], `the purpose of ${what}`, 500);
  if (!purpose.trim()) throw new CodecError(`${what} says what it is for; its purpose is empty`);
  const carriers = list(page["carriers"], `the carriers of ${what}`).map((each) => {
    if (typeof each !== "string" || !CARRIERS.includes(each))
      throw new CodecError(`a carrier of ${what} is one of ${CARRIERS.join(", ")}`);
    return each;
  });
  if (!carriers.length || !distinct(carriers))
    throw new CodecError(`${what} names who may carry its answers, each once`);
  return {
    name,
    purpose,
    carriers,
    ...budget(page, what, false),
    queries: queryClass(page["queries"]!),
    cohort: whole(page["minimum_cohort"], `the minimum cohort of ${what}`, 1, LARGEST_COHORT),
    cohortFields: new Map(
      entries(page["cohort_fields"], "the cohort fields").map(([own, field]) => [
        checkName(own, "a cohort field"),
        fieldName(field),
      ]),
    ),
  };
}

function queryClass(json: Json): QueryClass {
  const page = fields(json, "a query class", ["fields", "functions", "listed", "templates"], ["listed", "templates"]);
  if ("listed" in page && "templates" in page)
    throw new CodecError("a query class has listed queries or templates, not both");
  const texts = (found: Json | undefined, what: string): string[] =>
    list(found, what).map((each) => {
      if (typeof each !== "string") throw new CodecError(`${what} are a list of texts`);
      return each;
    });
  const made: QueryClass = {
    fields: texts(page["fields"], "the fields of a query class").map(fieldName),
    functions: texts(page["functions"], "the functions of a query class"),
    listed:
      "listed" in page
        ? list(page["listed"], "the listed queries").map((each) => {
            const query = fields(each, "a listed query", ["text", "parameters"]);
            return sqlQuery(query["text"], entries(query["parameters"], "the parameters"));
          })
        : null,
    templates: "templates" in page ? list(page["templates"], "the templates").map(template) : null,
  };
  checkClass(made);
  return made;
}

function template(json: Json): { text: string; parameters: ReturnType<typeof range>[] } {
  const page = fields(json, "a template", ["text", "parameters"]);
  const made = {
    text: checkText(page["text"], "a template", 16_384),
    parameters: entries(page["parameters"], "the parameters").map(range),
  };
  checkTemplate(made);
  return made;
}

function range([name, json]: readonly [string, Json]) {
  const page = fields(json, "a parameter", ["type", "low", "high", "choices"], ["low", "high", "choices"]);
  const type = FIELD_TYPES.find((each) => each === page["type"]);
  if (!type) throw new CodecError("the type of a parameter is integer, real or text");
  const end = (found: Json | undefined): Value | null =>
    found === undefined ? null : checkValue(found, "a limit of a parameter");
  return {
    name,
    type,
    low: end(page["low"]),
    high: end(page["high"]),
    choices: some(page["choices"], "the choices").map((each) => checkValue(each, "a choice")),
  };
}

function budget(page: JsonObject, what: string, wide: boolean): Budget {
  const [epsilon, delta] = [number(page["epsilon"], `ε of ${what}`), number(page["delta"], `δ of ${what}`)];
  if (epsilon.compare(LARGEST_EPSILON) > 0) throw new CodecError(`ε of ${what} lies between 0 and 1000`);
  if (delta.compare(ONE) >= (wide ? 1 : 0)) throw new CodecError(`δ of ${what} is 0 or more, and below 1`);
  return { epsilon, delta, reports: whole(page["reports"], `the reports of ${what}`, 0, MOST_REPORTS) };
}

/** An exact number as a policy that is signed has it: in lowest terms, of 64 digits at most. */
function number(json: Json | undefined, what: string): Fraction {
  if (typeof json !== "string") throw new CodecError(`${what} is a text such as '1/3'`);
  const found = Fraction.written(json);
  if (found.compare(ZERO) < 0 || found.numerator >= DIGITS || found.denominator >= DIGITS)
    throw new CodecError(`${what} is 0 or more, of 64 digits at most`);
  return found;
}

/** A table with these names and no others; those that may be missing are `optional`. */
function fields(
  json: Json | undefined,
  what: string,
  known: readonly string[],
  optional: readonly string[] = [],
): JsonObject {
  if (!isObject(json)) throw new CodecError(`${what} is a table of names and values`);
  const strange = Object.keys(json).find((name) => !known.includes(name));
  if (strange !== undefined) throw new CodecError(`${what} says nothing about ${strange.slice(0, 80)}`);
  const missing = known.find((name) => !Object.hasOwn(json, name) && !optional.includes(name));
  if (missing !== undefined) throw new CodecError(`${what} says ${missing}; it is missing`);
  return json;
}

function list(json: Json | undefined, what: string): readonly Json[] {
  if (!Array.isArray(json)) throw new CodecError(`${what} are a list`);
  return json;
}

/** A list that is left out where it has no items. */
function some(json: Json | undefined, what: string): readonly Json[] {
  if (Array.isArray(json) && !json.length) throw new CodecError(`${what} are left out where there are none`);
  return json === undefined ? [] : list(json, what);
}

/** In the order of names: a table has none of its own. */
function entries(json: Json | undefined, what: string): (readonly [string, Json])[] {
  if (!isObject(json)) throw new CodecError(`${what} are a table`);
  return Object.entries(json).sort(([one], [other]) => byName(one, other));
}

function whole(json: Json | undefined, what: string, least: number, most: number): number {
  if (typeof json !== "bigint" || json < BigInt(least) || json > BigInt(most))
    throw new CodecError(`${what} is a whole number from ${least} to ${most}`);
  return Number(json);
}

/** The person's own limits of recipes. */
export interface OwnLimits {
  readonly people: number;
  readonly campaign: Fraction;
  readonly period: Fraction;
  readonly days: number;
  readonly local: Fraction;
  readonly reports: number;
  readonly campaigns: readonly string[];
  readonly no_campaigns: readonly string[];
  readonly purposes: readonly string[];
  readonly no_purposes: readonly string[];
  readonly no_fields: readonly string[];
  readonly carriers: readonly string[];
  readonly keep: number;
}

/** What both allow: a person's own rules tighten a policy, and never widen it. */
export function allowed(policy: ShippedPolicy, own: OwnLimits): ShippedPolicy {
  const least = (one: Fraction, other: Fraction): Fraction => (one.compare(other) < 0 ? one : other);
  const denied = (field: string): boolean => fits(field, own.no_fields);
  const welcome = (text: string, yes: readonly string[], no: readonly string[]): boolean =>
    fits(text, yes) && !fits(text, no);
  const analyses = [...policy.analyses.values()]
    .map((each) => ({
      ...each,
      epsilon: least(own.campaign, each.epsilon),
      cohort: Math.max(each.cohort, own.people),
      queries: { ...each.queries, fields: each.queries.fields.filter((field) => !denied(field)) },
      carriers: each.carriers.filter((carrier) => own.carriers.includes(carrier)),
      cohortFields: new Map([...each.cohortFields].filter(([, field]) => !denied(field))),
    }))
    .filter(
      ({ name, purpose, queries, carriers }) =>
        queries.fields.length &&
        carriers.length &&
        welcome(name, own.campaigns, own.no_campaigns) &&
        welcome(purpose, own.purposes, own.no_purposes),
    );
  return {
    ...policy,
    streams: policy.streams.map((each) => ({ ...each, keep: Math.min(each.keep, own.keep) })),
    limits: [...policy.limits, { days: own.days, epsilon: own.period, delta: ONE, reports: own.reports }],
    fields: new Map(
      [...policy.fields]
        .filter(([name]) => !denied(name))
        .map(([name, each]) => [name, { ...each, local: least(own.local, each.local) }]),
    ),
    analyses: new Map(analyses.map((each) => [each.name, each])),
  };
}
