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

  constructor(private readonly text: string, private readonly limits: JsonLimits) {}

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
    for (const [word, meant] of [["true", true], ["false", false], ["null", null]] as const) {
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
      return found;
    }
    if (digits.length > MOST_DIGITS + Number(digits.startsWith("-"))) throw new CodecError(`a number of this JSON has more than ${MOST_DIGITS} digits`);
    return BigInt(digits);
  }

  private object(depth: number): JsonObject {
    const found = new Map<string, Json>();
    const most = this.limits.things ?? MOST_THINGS;
    if (++this.things > most) throw new CodecError(`this JSON holds more than ${most} objects`);
    this.open(depth);
    while (!this.closes("}", found.size)) {
      const name = this.string();
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
    this.at++;
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
    return found;
  }

  private match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  private space(): void {
    this.match(SPACE);
  }
}

/** The values of a JSON text; `CodecError` for any other text, one beyond the limits, and a field that comes twice. */
export function parseJson(text: string, limits: JsonLimits): Json {
  if (text.length > limits.length) throw new CodecError(`this JSON is longer than ${limits.length} letters`);
  return new JsonReader(text, limits).whole();
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
