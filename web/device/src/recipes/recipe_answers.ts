import type { Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import { type Bytes, joined, type RandomBytes, uint32 } from "../../../shared/src/bytes.js";
import type { Place } from "../cell_counts.js";
import { Refused } from "../errors.js";
import type { Cell } from "./features.js";
import { type AdmittedQuery, type EventSource, QuerySandbox } from "./query_sandbox.js";
import { report, uniform } from "./randomiser.js";
import { matchingBins, type Recipe } from "./recipe.js";
import type { AskedRecipe } from "./recipe_task.js";
import type { AnalysisBudget, ShippedPolicy } from "./shipped_policy.js";

const DAY = 86_400_000;
/** The stream of a device's places: the only one that has events here. */
const PLACES = "places";

/**
 * A person's places as a stream of events, until `keep` days after they were given to the device, and after their own time
 * where that is known. The oldest day first; those without a time before all.
 */
export function placesAsEvents(
  places: readonly Place[],
  given: number,
  policy: ShippedPolicy,
  now: number,
): EventSource {
  const keep = policy.streams.find(({ name }) => name === PLACES)?.keep ?? 0;
  const dayOf = ({ time }: Place): number => Math.floor((1_000 * (time ?? 0)) / DAY);
  const kept = ({ time }: Place): boolean => 1_000 * (time ?? Infinity) > now - keep * DAY;
  const there =
    given + keep * DAY > now
      ? places
          .filter(({ lon }) => !Number.isNaN(lon))
          .filter(kept)
          .sort((one, other) => dayOf(one) - dayOf(other))
      : [];
  return (stream, fields) => {
    if (stream !== PLACES) return [];
    return there.map(({ lon, lat, time }) => {
      const seconds = time === undefined || time === null ? null : BigInt(Math.floor(time));
      const known: Readonly<Record<string, Cell>> = { lon, lat, weight: 1, time: seconds, mark: null };
      return fields.map((name) => (Object.hasOwn(known, name) ? known[name]! : null));
    });
  };
}

function sandboxOf(sqlite: Sqlite3Static, recipe: Recipe, policy: ShippedPolicy): [QuerySandbox, AnalysisBudget] {
  const analysis = policy.analyses.get(recipe.analysis);
  if (!analysis) throw new Refused(`this device knows no analysis ${recipe.analysis}`);
  return [new QuerySandbox(sqlite, policy.streams, analysis.queries), analysis];
}

/** The recipe's query, if its analysis admits it; `Refused` says why not. */
export function admitted(sqlite: Sqlite3Static, recipe: Recipe, policy: ShippedPolicy): AdmittedQuery {
  const [sandbox] = sandboxOf(sqlite, recipe, policy);
  const found = sandbox.admit(recipe.query);
  if (found.columns !== recipe.columns) {
    throw new Refused(
      `the query gives rows of ${found.columns} columns, but the features of ${recipe.id} read ${recipe.columns}`,
    );
  }
  return found;
}

/**
 * What a device says, randomised, 1s and 0s: the bin of one matching row drawn uniformly, or of none, whatever goes wrong.
 * From here on there is an answer, for silence would tell. The query runs for who is not in the recipe's cohort, too.
 * `coins` follow from the bins of all matching rows.
 */
export async function answered(
  sqlite: Sqlite3Static,
  { recipe, law }: AskedRecipe,
  query: AdmittedQuery,
  policy: ShippedPolicy,
  source: EventSource,
  coins: (own: Bytes) => Promise<RandomBytes>,
): Promise<Uint32Array> {
  const own = matching(sqlite, recipe, query, policy, source);
  const random = await coins(joined(own.map(uint32)));
  return report(law, random, drawnBin(recipe, own, random), recipe.size);
}

/** The bins of the rows that match; none where anything goes wrong. */
export function matching(
  sqlite: Sqlite3Static,
  recipe: Recipe,
  query: AdmittedQuery,
  policy: ShippedPolicy,
  source: EventSource,
): number[] {
  try {
    const [sandbox, analysis] = sandboxOf(sqlite, recipe, policy);
    const bins = matchingBins(recipe, sandbox.run(query, source).rows);
    const latest = (field: string): Cell => {
      const [stream, name] = field.split(".") as [string, string];
      return source(stream, [name]).at(-1)?.[0] ?? null;
    };
    const inCohort = [...recipe.cohort].every(([name, values]) => {
      const value = latest(analysis.cohortFields.get(name)!);
      return typeof value === "string" && values.includes(value);
    });
    return inCohort ? bins : [];
  } catch {
    return []; // whatever it is, it may hold what an event says
  }
}

export function drawnBin(recipe: Recipe, own: readonly number[], random: RandomBytes): number {
  if (own.length) return own[uniform(random, own.length)]!;
  return recipe.noneBin ? recipe.bins : uniform(random, recipe.bins);
}
