import { ascii, hex, sha256 } from "../../../shared/src/bytes.js";
import { checkRoots } from "../cell_tree.js";
import { CodecError } from "../errors.js";
import { Fraction } from "../fraction.js";
import type { Json } from "../json_text.js";
import { fieldsOfType, fraction, textOf, typed, whole } from "../typed_json.js";
import { canonicalJson } from "./canonical_json.js";
import { checkName, checkText, distinct } from "./checked_text.js";
import { type Cell, type Feature, MOST_BINS, readFeature } from "./features.js";
import { type Randomiser, readRandomiser } from "./randomiser.js";
import { ANALYSIS, CARRIERS } from "./shipped_policy.js";
import { type SqlQuery, sqlQuery } from "./sql_query.js";

const [MOST_FEATURES, MOST_COHORT_FIELDS, MOST_COHORT_VALUES, LONGEST_PURPOSE, LONGEST_LOCALE] = [
  16, 16, 1_024, 2_000, 200,
];
const [LARGEST_LOCAL, LARGEST_DELTA, LARGEST_COHORT] = [new Fraction(20), new Fraction(1, 1_000), 2 ** 40];
const FIELDS = [
  "analysis",
  "carrier",
  "cohort",
  "delta",
  "epsilon",
  "features",
  "id",
  "local_epsilon",
  "minimum_cohort",
  "no_match",
  "purpose",
  "query",
  "version",
];

/** Everything that a device is sent when it is asked about its events. */
export interface Recipe {
  readonly id: string;
  readonly version: number;
  readonly analysis: string;
  readonly purpose: string;
  readonly query: SqlQuery;
  /** Approved fields, each with the values that are asked for. */
  readonly cohort: ReadonlyMap<string, readonly string[]>;
  readonly features: readonly Feature[];
  readonly local: Fraction;
  readonly epsilon: Fraction;
  readonly delta: Fraction;
  readonly people: number;
  readonly carrier: string;
  /** Whether who has no match reports a bin of their own: the last one. */
  readonly noneBin: boolean;
  readonly randomiser: Randomiser | null;
  /** How many bins the features have together, and how many numbers a report has. */
  readonly bins: number;
  readonly size: number;
  /** How many columns the query's rows have. */
  readonly columns: number;
  /** SHA-256 of its canonical text, in hexadecimal digits. */
  readonly digest: string;
}

/** A recipe as the codec writes it; `CodecError` for what is none, `UnknownKind` for rules that this device does not know. */
export async function readRecipe(json: Json | undefined): Promise<Recipe> {
  const [, value] = typed(json, "the recipe");
  const named = value !== null && typeof value === "object" && Object.hasOwn(value, "randomiser");
  const found = fieldsOfType(json, "Recipe", "the recipe", ...FIELDS, ...(named ? ["randomiser"] : []));
  const [id, analysis] = [name(found["id"], "id"), name(found["analysis"], "analysis")];
  const purpose = checkText(found["purpose"], "the purpose of a recipe", LONGEST_PURPOSE);
  if (!purpose.trim()) throw new CodecError("a recipe says in its purpose what the answers are for: people read it");
  const features = list(found["features"], "features").map(readFeature);
  if (features.length < 1 || features.length > MOST_FEATURES || !distinct(features.map((each) => each.name))) {
    throw new CodecError(`a recipe has 1 to ${MOST_FEATURES} features, of different names`);
  }
  const noneBin = oneOf(found["no_match"], "NoMatch", ["none", "random"]) === "none";
  const bins = features.reduce((product, { rule }) => Math.min(product * rule.size, 2 * MOST_BINS), 1);
  if (bins + Number(noneBin) > MOST_BINS)
    throw new CodecError(`a recipe has at most ${MOST_BINS} bins: use fewer buckets`);
  const recipe: Recipe = {
    id,
    analysis,
    purpose,
    features,
    bins,
    noneBin,
    version: whole(found["version"], "the version of a recipe", 1, 2 ** 31 - 1),
    query: queryOf(found["query"]),
    cohort: cohortOf(found["cohort"]),
    local: price(found["local_epsilon"], "local_epsilon"),
    epsilon: price(found["epsilon"], "epsilon"),
    delta: price(found["delta"], "delta"),
    people: whole(found["minimum_cohort"], "the minimum cohort", 1, LARGEST_COHORT),
    carrier: oneOf(found["carrier"], "Carrier", CARRIERS),
    randomiser: named ? coins(found["randomiser"]) : null,
    size: bins + Number(noneBin),
    columns: features.reduce((sum, { rule }) => sum + rule.columns, 0),
    digest: hex(await sha256(ascii(canonicalJson(json!)))),
  };
  checkPrices(recipe);
  checkRoots(...features.flatMap(({ rule }) => rule.tree ?? []));
  return recipe;
}

function coins(json: Json | undefined): Randomiser {
  const found = readRandomiser(json);
  if (found.kind !== "UnaryEncoding") throw new CodecError("a recipe names its two chances, or nothing");
  return found;
}

function checkPrices({ local, epsilon, delta, randomiser }: Recipe): void {
  if (local.numerator <= 0n || local.compare(LARGEST_LOCAL) > 0)
    throw new CodecError("the local ε is above 0 and at most 20");
  if (randomiser && randomiser.replacement.compare(local) > 0)
    throw new CodecError("these reports tell more than the local ε that the recipe states");
  if (epsilon.numerator <= 0n || epsilon.compare(local) > 0)
    throw new CodecError("the ε of the sum is above 0, and at most that of one report");
  if (delta.numerator < 0n || delta.compare(LARGEST_DELTA) > 0) throw new CodecError("δ lies between 0 and 1/1000");
}

/** The law of its reports: the one that it names, or the asymmetric one with its ε₀. */
export function matchesLaw(recipe: Recipe, law: Randomiser): boolean {
  const named = recipe.randomiser;
  return (
    named === null ||
    (law.kind === named.kind && law.keep.compare(named.keep) === 0 && law.turnOn.compare(named.turnOn) === 0)
  );
}

/** The bins of the rows that a recipe asks for; those that begin with none of its prefixes are not. */
export function matchingBins({ features, columns }: Recipe, rows: readonly (readonly Cell[])[]): number[] {
  const found: number[] = [];
  for (const row of rows) {
    if (row.length !== columns) throw new RangeError("the query gives another number of columns");
    let [bin, at, matches] = [0, 0, true];
    for (const { rule } of features) {
      const bucket = rule.bucket(row.slice(at, (at += rule.columns)));
      bin = bin * rule.size + bucket;
      if (rule.matching && bucket === 0) matches = false;
    }
    if (matches) found.push(bin);
  }
  return found;
}

function name(json: Json | undefined, what: string): string {
  if (typeof json !== "string" || !ANALYSIS.test(json))
    throw new CodecError(`the ${what} of a recipe is lower-case letters, digits, '.', '_' and '-' (100 at most)`);
  return json;
}

function list(json: Json | undefined, what: string): readonly Json[] {
  if (!Array.isArray(json)) throw new CodecError(`the ${what} of a recipe are a list`);
  return json;
}

function oneOf(json: Json | undefined, type: string, known: readonly string[]): string {
  const [kind, value] = typed(json, type);
  if (kind !== type || typeof value !== "string" || !known.includes(value))
    throw new CodecError(`a ${type} is one of ${known.join(", ")}`);
  return value;
}

function price(json: Json | undefined, what: string): Fraction {
  const found = fraction(json, what);
  const absolute = found.numerator < 0n ? -found.numerator : found.numerator;
  if (absolute >= 1n << 64n || found.denominator >= 1n << 64n)
    throw new CodecError(`${what} of a recipe has at most 19 digits above and below its bar`);
  return found;
}

function queryOf(json: Json | undefined): SqlQuery {
  const { text, parameters } = fieldsOfType(json, "SqlQuery", "the query", "parameters", "text");
  return sqlQuery(
    text,
    list(parameters, "parameters").map((each) => {
      const { name: own, value } = fieldsOfType(each, "Parameter", "a parameter", "name", "value");
      return [own, value] as const;
    }),
  );
}

function cohortOf(json: Json | undefined): Map<string, readonly string[]> {
  const found = list(json, "cohort's fields").map((each) => {
    const { name: own, values } = fieldsOfType(each, "CohortField", "a cohort's field", "name", "values");
    const known = checkName(own, "the name of a cohort's field");
    const texts = list(values, "cohort's values").map((value) =>
      checkText(textOf(value, "a value"), `a value of ${known}`, LONGEST_LOCALE),
    );
    if (texts.length < 1 || texts.length > MOST_COHORT_VALUES || !distinct(texts))
      throw new CodecError(`a cohort asks for 1 to ${MOST_COHORT_VALUES} values of ${known}, each once`);
    return [known, texts] as const;
  });
  if (found.length > MOST_COHORT_FIELDS || !distinct(found.map(([own]) => own)))
    throw new CodecError(`a recipe has 0 to ${MOST_COHORT_FIELDS} fields of its cohort, of different names`);
  return new Map(found);
}
