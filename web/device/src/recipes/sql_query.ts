import { CodecError } from "../errors.js";
import { checkName, checkText, checkValue, distinct, type Value } from "./checked_text.js";

export const LONGEST_SQL = 16_384;
export const MOST_PARAMETERS = 32;
/** Tokens of a query at most, times how often SQLite copies the parts of a WITH to where they are used. */
const MOST_COPIED = 1 << 17;

type Kind = "space" | "text" | "word" | "parameter" | "number" | "sign";
type Token = readonly [Kind | "comment", string];

const TOKEN = new RegExp(
  [
    String.raw`(?<space>\s+|--[^\n]*|/\*[^]*?(?:\*/|$))`,
    String.raw`(?<text>'(?:[^']|'')*'|"(?:[^"]|"")*"|\x60(?:[^\x60]|\x60\x60)*\x60|\[[^\]]*\])`,
    String.raw`(?<word>[\p{L}\p{Nl}\p{No}_][\p{L}\p{N}_$]*)`,
    String.raw`(?<parameter>[:@$?][\p{L}\p{N}_$:]*)`,
    String.raw`(?<number>[0-9][\p{L}\p{N}_.]*|\.[0-9][\p{L}\p{N}_.]*)`,
    "(?<sign>[^])",
  ].join("|"),
  "gu",
);

/** One SELECT over streams of events, with the values of its parameters. What it reads, the sandbox asks SQLite. */
export interface SqlQuery {
  readonly text: string;
  readonly parameters: ReadonlyMap<string, Value>;
}

/** A query that was checked; `CodecError` unless it is one SELECT that uses exactly these parameters. */
export function sqlQuery(text: unknown, parameters: readonly (readonly [unknown, unknown])[]): SqlQuery {
  const checked = checkText(text, "a query", LONGEST_SQL);
  if (parameters.length > MOST_PARAMETERS) throw new CodecError(`a query has at most ${MOST_PARAMETERS} parameters`);
  const handed = parameters.map(([name, value]) => {
    const named = checkName(name, "the name of a parameter");
    return [named, checkValue(value, `the parameter ${named}`)] as const;
  });
  checkShape(
    checked,
    handed.map(([name]) => name),
  );
  return { text: checked, parameters: new Map(handed) };
}

/** `CodecError` unless a text is one SELECT, without comments, that uses exactly these parameters. */
export function checkShape(text: string, names: readonly string[]): void {
  if (!distinct(names)) throw new CodecError("a query hands each parameter over once; two have the same name");
  const words = [...tokens(text)];
  if (!words.length || !["select", "with"].includes(words[0]![1].toLowerCase()))
    throw new CodecError("a query begins with SELECT or WITH");
  if (words.some(([kind, word]) => kind === "word" && ["natural", "using"].includes(word.toLowerCase()))) {
    throw new CodecError(
      "a query joins by ON one.field = other.field: NATURAL and USING read fields without naming them",
    );
  }
  if (
    words.some(
      ([kind, word]) =>
        (kind === "text" || kind === "sign") && "'\"`[".includes(word[0]!) && !/^'(?:[^']|'')*'$/.test(word),
    )
  ) {
    throw new CodecError("a query writes names without quotes, and texts in single ones");
  }
  if (words.some(([kind]) => kind === "comment"))
    throw new CodecError("a query holds no comments: what is read is what runs");
  if (words.some(([kind, word]) => kind === "sign" && word === ";"))
    throw new CodecError("a query is one statement, without a semicolon");
  if (copies(words) * BigInt(words.length) > BigInt(MOST_COPIED)) {
    throw new CodecError("the parts of a WITH are used so often that SQLite would copy them too long: use them less");
  }
  const used = new Set(words.filter(([kind]) => kind === "parameter").map(([, word]) => word));
  if (used.size !== names.length || !names.every((name) => used.has(`:${name}`))) {
    throw new CodecError("a query uses its parameters as :name, those that it is handed and no others");
  }
}

/** The tokens of SQL: comment, text (quoted by anything), word, parameter, number, sign. */
export function* tokens(text: string): Generator<Token> {
  for (const found of text.matchAll(TOKEN)) {
    const [kind, word] = Object.entries(found.groups!).find(([, part]) => part !== undefined) as [Kind, string];
    if (kind !== "space") yield [kind, word];
    else if (word[0] === "-" || word[0] === "/") yield ["comment", word];
  }
}

/** A bound on how often SQLite copies a part of a WITH: the product of the times that each is mentioned. */
export function copies(words: readonly Token[]): bigint {
  const plain = words.map(([, word]) => asName(word));
  const times = new Map<string, bigint>();
  for (const word of plain) times.set(word, (times.get(word) ?? 0n) + 1n);
  const parts = new Set<string>();
  plain.forEach((word, place) => {
    if (word === "as" && opens(plain, place)) parts.add(namedBefore(plain, place));
  });
  let product = 1n;
  for (const part of parts) {
    const mentioned = part ? times.get(part)! - 1n : 1n;
    product *= mentioned > 1n ? mentioned : 1n;
    if (product > BigInt(MOST_COPIED)) break;
  }
  return product;
}

/** A token as SQLite compares names: a text may stand for one. */
function asName(word: string): string {
  const name = word[0] === "'" ? word.slice(1, -1).replaceAll("''", "'") : word;
  const lower = name.toLowerCase();
  return word !== name && ["", "(", ")", "as", "not", "materialized"].includes(lower) ? word : lower;
}

/** Whether an AS is followed by a bracket, perhaps after MATERIALIZED. */
function opens(plain: readonly string[], place: number): boolean {
  let next = place + 1;
  while (plain[next] === "not" || plain[next] === "materialized") next++;
  return plain[next] === "(";
}

/** The name before an AS, or before a list of columns in brackets before it. */
function namedBefore(plain: readonly string[], place: number): string {
  const word = (at: number): string | undefined => plain[at < 0 ? at + plain.length : at];
  let at = place - 1;
  if (word(at) === ")") {
    for (let depth = 1; depth && at > 0; ) {
      at--;
      depth += plain[at] === ")" ? 1 : plain[at] === "(" ? -1 : 0;
    }
    at--;
  }
  return at >= 0 ? plain[at]! : "";
}
