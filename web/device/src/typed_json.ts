import { CodecError } from "./errors.js";
import { Fraction } from "./fraction.js";
import { isObject, type Json, type JsonObject } from "./json_text.js";

/** The one type an object is of, and its value: `{"Quadtree": …}`. */
export function typed(json: Json | undefined, where: string): [string, Json] {
  const names = isObject(json) ? Object.keys(json) : [];
  if (names.length !== 1) throw new CodecError(`${where} is not an object with the name of one type`);
  return [names[0]!, (json as JsonObject)[names[0]!]!];
}

/** The fields of a value, these and no others. */
export function fieldsOf(json: Json, where: string, ...names: string[]): JsonObject {
  const found = isObject(json) ? Object.keys(json) : [];
  if (!isObject(json) || found.length !== names.length || !names.every((name) => Object.hasOwn(json, name))) {
    throw new CodecError(`${where} has the fields ${names.join(", ")}`);
  }
  return json;
}

/** The fields of an object of this very type. */
export function fieldsOfType(json: Json | undefined, type: string, where: string, ...names: string[]): JsonObject {
  const [found, value] = typed(json, where);
  if (found !== type) throw new CodecError(`${where} is to be a ${type}`);
  return fieldsOf(value, where, ...names);
}

export function whole(json: Json | undefined, where: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  if (typeof json !== "bigint" || json < BigInt(least) || json > BigInt(most)) {
    throw new CodecError(`${where} is a whole number from ${least} to ${most}`);
  }
  return Number(json);
}

const LARGEST = 1n << 64n;

/** A finite double; a whole number below 2^64 stands for one that is exactly it. */
export function real(json: Json | undefined, where: string): number {
  const whole = typeof json === "bigint" && -LARGEST < json && json < LARGEST;
  const found = whole ? Number(json) : json;
  if (typeof found !== "number" || !Number.isFinite(found) || (whole && BigInt(found) !== json)) {
    throw new CodecError(`${where} is a finite number`);
  }
  return found;
}

export function textOf(json: Json | undefined, where: string): string {
  if (typeof json !== "string") throw new CodecError(`${where} is a text`);
  return json;
}

export function fraction(json: Json | undefined, where: string): Fraction {
  const [type, value] = typed(json, where);
  if (type !== "fraction" || typeof value !== "string") throw new CodecError(`${where} is a fraction`);
  return Fraction.written(value);
}

/** The numbers of a `uint64` array. */
export function wholes(json: Json | undefined, where: string): bigint[] {
  const [type, value] = typed(json, where);
  if (
    type !== "array" ||
    !Array.isArray(value) ||
    value.length !== 2 ||
    value[0] !== "uint64" ||
    !Array.isArray(value[1])
  ) {
    throw new CodecError(`${where} is an array of uint64`);
  }
  return value[1].map((number) => {
    if (typeof number !== "bigint" || number < 0n || number >= 1n << 64n)
      throw new CodecError(`${where} is an array of uint64`);
    return number;
  });
}
