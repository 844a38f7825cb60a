import { CodecError } from "../errors.js";
import { checkName, checkSqlName, checkText, checkValue, distinct, type Value } from "./checked_text.js";
import { checkShape, LONGEST_SQL, MOST_PARAMETERS, type SqlQuery } from "./sql_query.js";

export const [MOST_STREAMS, MOST_FIELDS, MOST_QUERIES, MOST_CHOICES] = [64, 64, 256, 1_024];
const TABLES = ["sqlite", "pragma", "json", "fts", "rtree", "dbstat", "bytecode", "tables_used", "generate_series"];
const ROW_NUMBERS = ["rowid", "oid", "_rowid_"];

/** Functions that queries use unless a class says otherwise. */
const FUNCTIONS: readonly string[] = (
  "abs avg coalesce count ifnull length lower max min nullif round sign substr substring sum total typeof unicode upper " +
  "row_number rank dense_rank first_value last_value lag lead nth_value ntile"
).split(" ");
/** Functions that a class may name besides. */
const SEARCHES = "glob instr like ltrim replace rtrim trim".split(" ");

export type FieldType = "integer" | "real" | "text";
export const FIELD_TYPES: readonly FieldType[] = ["integer", "real", "text"];

/** A stream as queries see it: the fields of each event, in order. */
export interface StreamSchema {
  readonly name: string;
  readonly fields: readonly { readonly name: string; readonly type: FieldType }[];
}

/** `CodecError` unless SQLite can have a table of this name with these fields. */
export function checkSchema({ name, fields }: StreamSchema): void {
  const found = checkSqlName(name, "the name of a stream");
  if (TABLES.some((each) => found.startsWith(each)))
    throw new CodecError("the name of a stream does not begin as those of SQLite's own tables do");
  if (fields.length < 1 || fields.length > MOST_FIELDS) throw new CodecError(`a stream has 1 to ${MOST_FIELDS} fields`);
  for (const each of fields) {
    if (ROW_NUMBERS.includes(checkSqlName(each.name, "the name of a field")))
      throw new CodecError("a field is not called as SQLite calls the number of a row");
  }
  if (!distinct(fields.map((each) => each.name)))
    throw new CodecError(`the stream ${found} has two fields of one name`);
}

/** A field as budgets and classes name it, `keyboard.ngram`, checked. */
export function fieldName(text: unknown): string {
  const dot = typeof text === "string" ? text.indexOf(".") : -1;
  if (typeof text !== "string" || dot < 0)
    throw new CodecError("a field is named with its stream, as in keyboard.ngram");
  checkName(text.slice(0, dot), "the name of a stream");
  checkName(text.slice(dot + 1), "the name of a field");
  return text;
}

/** The order of streams, then of fields: `.` stands below every letter of a name. */
export const byName = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** What a parameter of a template may be: one of `choices`, or a number from `low` to `high`. */
export interface ParameterRange {
  readonly name: string;
  readonly type: FieldType;
  readonly low: Value | null;
  readonly high: Value | null;
  readonly choices: readonly Value[];
}

export const typeOfValue = (value: Value): FieldType =>
  typeof value === "bigint" ? "integer" : typeof value === "number" ? "real" : "text";

export function checkRange(range: ParameterRange): void {
  const name = checkName(range.name, "the name of a parameter");
  const ends = [range.low, range.high].filter((each): each is Value => each !== null);
  if (range.choices.length > MOST_CHOICES)
    throw new CodecError(`a parameter has at most ${MOST_CHOICES} values to choose from`);
  for (const each of [...ends, ...range.choices]) {
    if (typeOfValue(checkValue(each, `a limit of the parameter ${name}`)) !== range.type)
      throw new CodecError(`the parameter ${name} is ${range.type}`);
  }
  if (ends.some((each) => typeof each === "string")) throw new CodecError(`the parameter ${name} lies between numbers`);
  if (!!range.choices.length === !!ends.length || ends.length === 1 || (ends.length && ends[0]! > ends[1]!)) {
    throw new CodecError(`the parameter ${name} has choices, or a low and a high end in ascending order`);
  }
}

function outOfRange(range: ParameterRange, value: Value): string | null {
  if (typeOfValue(value) !== range.type) return `the parameter ${range.name} is to be ${range.type}`;
  if (range.choices.length)
    return range.choices.includes(value) ? null : `the parameter ${range.name} is none of the values to choose from`;
  return range.low! <= value && value <= range.high!
    ? null
    : `the parameter ${range.name} lies between ${range.low} and ${range.high}`;
}

export interface QueryTemplate {
  readonly text: string;
  readonly parameters: readonly ParameterRange[];
}

export function checkTemplate({ text, parameters }: QueryTemplate): void {
  checkText(text, "a template", LONGEST_SQL);
  if (parameters.length < 1 || parameters.length > MOST_PARAMETERS)
    throw new CodecError(`a template has 1 to ${MOST_PARAMETERS} parameters`);
  parameters.forEach(checkRange);
  checkShape(
    text,
    parameters.map(({ name }) => name),
  );
}

/** Which queries a device lets run. `fields` and `functions` are the most that any of them may use. */
export interface QueryClass {
  readonly fields: readonly string[];
  readonly functions: readonly string[];
  readonly listed: readonly SqlQuery[] | null;
  readonly templates: readonly QueryTemplate[] | null;
}

export function checkClass({ fields, functions, listed, templates }: QueryClass): void {
  const queries = listed ?? templates;
  if (queries && (queries.length < 1 || queries.length > MOST_QUERIES))
    throw new CodecError(`a query class lists 1 to ${MOST_QUERIES} queries`);
  if (fields.length < 1 || fields.length > MOST_STREAMS * MOST_FIELDS || !distinct(fields)) {
    throw new CodecError("a query class names the fields that may be read, each once");
  }
  const strange = functions.find((each) => !FUNCTIONS.includes(each) && !SEARCHES.includes(each));
  if (strange !== undefined) throw new CodecError(`queries cannot use the function ${strange.slice(0, 40)}`);
}

/** Why a query is not of this class, as far as its text tells; null where it may be. */
export function classRefusal({ listed, templates }: QueryClass, query: SqlQuery): string | null {
  if (listed) return listed.some((each) => same(query, each)) ? null : "this query is not on the list";
  if (!templates) return null;
  const found = templates.filter(({ text }) => text === query.text);
  if (!found.length) return "this query is made from none of the templates";
  const reasons = found.map(
    ({ parameters }) =>
      parameters.map((each) => outOfRange(each, query.parameters.get(each.name)!)).find((why) => why !== null) ?? null,
  );
  return reasons.includes(null) ? null : reasons[0]!;
}

/** The same text, and the same values of the same types: 1 is not 1.0. */
function same(one: SqlQuery, other: SqlQuery): boolean {
  if (one.text !== other.text || one.parameters.size !== other.parameters.size) return false;
  return [...one.parameters].every(
    ([name, value]) =>
      other.parameters.has(name) &&
      typeof other.parameters.get(name) === typeof value &&
      other.parameters.get(name) === value,
  );
}
