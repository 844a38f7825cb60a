import { utf8 } from "../../../shared/src/bytes.js";
import { CodecError } from "../errors.js";

/** What an event holds, or a query is handed: a whole number is a bigint, any other a number, so that 1 and 1.0 differ. */
export type Value = bigint | number | string;

export const LONGEST_VALUE = 1_024;
const NAME = /^[a-z][a-z0-9_]{0,62}$/;
const LARGEST = 1n << 63n;

const RESERVED = new Set(
  (
    "add all alter and as autoincrement between case cast check collate commit constraint create current_date " +
    "current_time current_timestamp default deferrable delete distinct drop else escape except exists false foreign " +
    "from group having if in index insert intersect into is isnull join limit natural not nothing notnull null on or " +
    "order primary raise references returning select set table then to transaction true union unique update using " +
    "values when where"
  ).split(" "),
);

/** A name of ours, lower-case and in ASCII, as SQL takes it unquoted. */
export function checkName(name: unknown, what: string): string {
  if (typeof name !== "string" || !NAME.test(name))
    throw new CodecError(`${what} is lower-case letters, digits and _ (63 at most, a letter first)`);
  return name;
}

/** A name as `checkName` takes it that SQL has no other meaning for. */
export function checkSqlName(name: unknown, what: string): string {
  const found = checkName(name, what);
  if (RESERVED.has(found)) throw new CodecError(`${what} is not ${found}: SQL has another meaning for that word`);
  return found;
}

/** A text that is printable, in Unicode's normal form C and no longer than so many bytes in UTF-8. */
export function checkText(text: unknown, what: string, longest: number): string {
  if (typeof text !== "string") throw new CodecError(`${what} is a text`);
  if (text.length > longest || utf8(text).length > longest)
    throw new CodecError(`${what} has at most ${longest} bytes`);
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(text.replace(/[\n\t]/g, ""))) {
    throw new CodecError(`${what} holds a character that cannot be printed: write it without`);
  }
  if (text.normalize("NFC") !== text)
    throw new CodecError(`${what} is not in Unicode's normal form C: two texts that look alike would differ`);
  return text;
}

/** A number that SQLite holds exactly, or a short text. */
export function checkValue(value: unknown, what: string): Value {
  if (typeof value === "bigint" && -LARGEST <= value && value < LARGEST) return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value === "string") return checkText(value, what, LONGEST_VALUE);
  throw new CodecError(`${what} is a whole number of 64 bits, a finite number or a text`);
}

export const distinct = (items: readonly unknown[]): boolean => new Set(items).size === items.length;
