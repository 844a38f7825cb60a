import { CodecError } from "../errors.js";
import { isObject, type Json, type JsonLimits, parseJson } from "../json_text.js";

/** As `parseJson`; `CodecError` for a text that is not the one that hazemap writes of these values. */
export function parseCanonicalJson(text: string, limits: JsonLimits): Json {
  const found = parseJson(text, limits);
  if (canonicalJson(found) !== text) throw new CodecError("this JSON is not written as hazemap writes it: keys sorted, in ASCII, without spaces");
  return found;
}

/** JSON as hazemap writes what it hashes: keys sorted, ASCII alone, no spaces, numbers as Python writes them. */
export function canonicalJson(json: Json): string {
  if (Array.isArray(json)) return `[${json.map(canonicalJson).join(",")}]`;
  if (isObject(json)) {
    const names = Object.keys(json).sort((one, other) => (inPoints(one) < inPoints(other) ? -1 : 1));
    return `{${names.map((name) => `${quoted(name)}:${canonicalJson(json[name]!)}`).join(",")}}`;
  }
  if (typeof json === "string") return quoted(json);
  return typeof json === "number" ? real(json) : `${json}`;
}

/** Text that sorts by code points. */
const inPoints = (text: string): string => [...text].map((letter) => letter.codePointAt(0)!.toString(16).padStart(6, "0")).join("");

const SHORT: Readonly<Record<string, string>> = { '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b" };

const quoted = (text: string): string =>
  `"${text.replace(/[^\x20-\x7e]|["\\]/g, (unit) => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;

/** The shortest digits of a double, as Python's repr has them. */
function real(x: number): string {
  const [digits, exponent] = x.toExponential().split("e") as [string, string];
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}e${power < 0 ? "-" : "+"}${`${Math.abs(power)}`.padStart(2, "0")}`;
  const plain = Object.is(x, -0) ? "-0" : x.toString();
  return plain.includes(".") ? plain : `${plain}.0`;
}
