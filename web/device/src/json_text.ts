import { CodecError } from "./errors.js";

/** What a JSON text is: a whole number is a bigint, any other a number, so that 1 and 1.0 differ. */
export type Json = null | boolean | string | number | bigint | Json[] | JsonObject;
export type JsonObject = { readonly [name: string]: Json };

export interface JsonLimits {
  /** Letters of the text. */
  readonly length: number;
  /** Lists, objects and commas. */
  readonly items: number;
  readonly depth: number;
  /** Objects; by default as many as hazemap's own device reads. */
  readonly things?: number;
}

/** The task of a session: a million numbers. */
export const TASK: JsonLimits = { length: 1 << 25, items: 1 << 21, depth: 64 };
/** A few fields, one of which is long. */
export const ENVELOPE: JsonLimits = { length: 1 << 26, items: 1 << 10, depth: 2 };

/** Objects, lists, and digits of a whole number, at most: as hazemap's own device reads them. */
const [MOST_THINGS, MOST_LISTS, MOST_DIGITS] = [1 << 14, 1 << 16, 4_300];
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const SPACE = /[ \t\n\r]*/y;
const ESCAPES: Record<string, string> = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** Reads one text and stops at the first thing that is beyond the limits, before it is made. */
class JsonReader {
  private at = 0;
  private items = 0;
  private things = 0;
  private lists = 0;

  constructor(
    protected readonly text: string,
    private readonly limits: JsonLimits,
  ) {}

  whole(): Json {
    const found = this.value(0);
    this.space();
    if (this.at !== this.text.length) throw new CodecError("there is something behind this JSON");
    return found;
  }

  private value(depth: number): Json {
    this.space();
    const letter = this.text[this.at];
    if (letter === "{") return this.object(depth + 1);
    if (letter === "[") return this.list(depth + 1);
    if (letter === '"') return this.string();
    for (const [word, meant] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return meant;
      }
    }
    const [digits, part, exponent] = this.match(NUMBER) ?? [];
    if (!digits) throw new CodecError("this is not JSON");
    if (part || exponent) {
      const found = Number(digits);
      if (!Number.isFinite(found)) throw new CodecError("a number of this JSON is not finite");
      this.checkNumber(digits, found);
      return found;
    }
    if (digits.length > MOST_DIGITS + Number(digits.startsWith("-")))
      throw new CodecError(`a number of this JSON has more than ${MOST_DIGITS} digits`);
    this.checkNumber(digits, null);
    return BigInt(digits);
  }

  private object(depth: number): JsonObject {
    const found = new Map<string, Json>();
    const most = this.limits.things ?? MOST_THINGS;
    if (++this.things > most) throw new CodecError(`this JSON holds more than ${most} objects`);
    this.open(depth);
    for (let before: string | null = null; !this.closes("}", found.size); ) {
      const name = this.string();
      this.checkOrder(before, name);
      before = name;
      this.space();
      if (this.text[this.at++] !== ":") throw new CodecError("this is not JSON");
      if (found.has(name)) throw new CodecError("an object of this JSON has two fields of one name");
      found.set(name, this.value(depth));
    }
    return Object.fromEntries(found);
  }

  private list(depth: number): Json[] {
    const found: Json[] = [];
    if (++this.lists > MOST_LISTS) throw new CodecError(`this JSON holds more than ${MOST_LISTS} lists`);
    this.open(depth);
    while (!this.closes("]", found.length)) found.push(this.value(depth));
    return found;
  }

  private open(depth: number): void {
    if (depth > this.limits.depth) throw new CodecError(`this JSON is nested more than ${this.limits.depth} deep`);
    this.at++;
    this.count();
  }

  /** Whether the bracket closes here; else the comma before all but the first item is read. */
  private closes(bracket: string, items: number): boolean {
    this.space();
    if (this.text[this.at] === bracket) {
      this.at++;
      return true;
    }
    if (items && this.text[this.at++] !== ",") throw new CodecError("this is not JSON");
    if (items) this.count();
    this.space();
    if (this.at >= this.text.length) throw new CodecError("this JSON ends too early");
    return false;
  }

  private count(): void {
    if (++this.items > this.limits.items) throw new CodecError(`this JSON holds more than ${this.limits.items} items`);
  }

  private string(): string {
    if (this.text[this.at] !== '"') throw new CodecError("this is not JSON");
    const begin = this.at++;
    const parts: string[] = [];
    for (;;) {
      parts.push(this.match(PLAIN)![0]);
      const letter = this.text[this.at++];
      if (letter === '"') break;
      if (letter !== "\\") throw new CodecError("a text of this JSON does not end");
      const escaped = this.text[this.at++] ?? "";
      if (escaped === "u") {
        const digits = this.text.slice(this.at, (this.at += 4));
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new CodecError("this is not JSON");
        parts.push(String.fromCharCode(parseInt(digits, 16)));
      } else {
        if (!Object.hasOwn(ESCAPES, escaped)) throw new CodecError("this is not JSON");
        parts.push(ESCAPES[escaped]!);
      }
    }
    const found = parts.join("");
    if (/[\ud800-\udfff]/u.test(found)) throw new CodecError("a text of this JSON holds half of a letter");
    this.checkText(begin, this.at, found);
    return found;
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  protected space(): void {
    this.match(SPACE);
  }

  // How values may be written: here in any way.
  protected checkNumber(_written: string, _real: number | null): void {}
  protected checkText(_begin: number, _end: number, _value: string): void {}
  protected checkOrder(_before: string | null, _name: string): void {}
}

/** Reads the one text that hazemap writes of these values: what it hashes, and what is signed. */
class CanonicalReader extends JsonReader {
  protected override space(): void {}

  protected override checkNumber(written: string, real: number | null): void {
    if (written === "-0" || (real !== null && writtenReal(real) !== written)) throw this.otherwise();
  }

  protected override checkText(begin: number, end: number, value: string): void {
    const escaped = end - begin !== value.length + 2 || UNUSUAL.test(value);
    if (escaped && writtenText(value) !== this.text.slice(begin, end)) throw this.otherwise();
  }

  protected override checkOrder(before: string | null, name: string): void {
    if (before !== null && !(inPoints(before) < inPoints(name))) throw this.otherwise();
  }

  private otherwise(): CodecError {
    return new CodecError("this JSON is not written as hazemap writes it: keys sorted, in ASCII, without spaces");
  }
}

const SHORT: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\f": "\\f",
  "\b": "\\b",
};
const UNUSUAL = /[^\x20-\x7e]|["\\]/;
const EACH_UNUSUAL = new RegExp(UNUSUAL, "g");

/** A text in ASCII, as Python's json writes it. */
export const writtenText = (text: string): string =>
  `"${text.replace(EACH_UNUSUAL, (unit) => SHORT[unit] ?? `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;

/** The shortest digits of a double, as Python's repr has them. */
export function writtenReal(x: number): string {
  const [digits, exponent] = x.toExponential().split("e") as [string, string];
  const power = Number(exponent);
  if (power < -4 || power >= 16) return `${digits}e${power < 0 ? "-" : "+"}${`${Math.abs(power)}`.padStart(2, "0")}`;
  const plain = Object.is(x, -0) ? "-0" : x.toString();
  return plain.includes(".") ? plain : `${plain}.0`;
}

/** Text that sorts by code points. */
export const inPoints = (text: string): string =>
  /[\ud800-\uffff]/.test(text)
    ? [...text].map((letter) => String.fromCodePoint(...points(letter.codePointAt(0)!))).join("")
    : text;

/** A letter as units that sort as it does: above all letters of one unit, if it has two. */
const points = (letter: number): number[] =>
  letter > 0xffff ? [0xffff, letter >> 8, letter & 0xff] : letter === 0xffff ? [0xffff, 0, 0] : [letter];

/** The values of a JSON text; `CodecError` for any other text, one beyond the limits, and a field that comes twice. */
export function parseJson(text: string, limits: JsonLimits): Json {
  if (text.length > limits.length) throw new CodecError(`this JSON is longer than ${limits.length} letters`);
  return new JsonReader(text, limits).whole();
}

/** As `parseJson`; `CodecError` for a text that is not the one that hazemap writes of these values. */
export function parseCanonicalJson(text: string, limits: JsonLimits): Json {
  if (text.length > limits.length) throw new CodecError(`this JSON is longer than ${limits.length} letters`);
  return new CanonicalReader(text, limits).whole();
}

/** As `parseJson`, of bytes in UTF-8. */
export function parseJsonBytes(content: Uint8Array, limits: JsonLimits): Json {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    throw new CodecError("this is not JSON: its text is not UTF-8");
  }
  return parseJson(text, limits);
}

export const isObject = (json: Json | undefined): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json);

/** The texts of these fields of an object. */
export function texts(json: Json, ...names: string[]): string[] {
  return names.map((name) => {
    const found = isObject(json) && Object.hasOwn(json, name) ? json[name] : undefined;
    if (typeof found !== "string") throw new CodecError(`the server's answer has no text ${name}`);
    return found;
  });
}
