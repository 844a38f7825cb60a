import { type CellTree, NOWHERE } from "../cell_tree.js";
import { cellsOf, LISTED } from "../counted_cells.js";
import { CodecError, UnknownKind } from "../errors.js";
import type { Json } from "../json_text.js";
import { fieldsOf, fieldsOfType, typed, whole } from "../typed_json.js";
import { checkName, checkText, checkValue, distinct, LONGEST_VALUE, type Value } from "./checked_text.js";

export const MOST_BINS = 1 << 20;
const [MOST_TOKENS, LONGEST_PREFIX, MOST_STEP, MOST_LETTERS] = [1 << 16, 16, 16, 256];
/** Cells of features that hazemap's own device knows besides. */
const PARTITIONS = ["Everything", "Sides", "Octaves", "Stretches", "AllSlots", "EachSlot", "SidesInSlots"];
const [OTHER, END] = ["(other)", "(end)"];

export type Cell = Value | null;

/** How values fall into buckets: `columns` of a row that it reads, and `size` buckets, of which 0 is all that is not covered. */
export interface BucketRule {
  readonly columns: number;
  readonly size: number;
  /** Whether a row in bucket 0 is not asked for. */
  readonly matching: boolean;
  /** Of places by their cell. */
  readonly tree?: CellTree;
  bucket(row: readonly Cell[]): number;
}

/** A named part of what a recipe asks. */
export interface Feature {
  readonly name: string;
  readonly rule: BucketRule;
}

export function readFeature(json: Json): Feature {
  const { name, rule } = fieldsOfType(json, "Feature", "a feature", "name", "rule");
  if (checkName(name, "the name of a feature") === "people")
    throw new CodecError("a feature is not called people: that is the column of numbers");
  return { name: name as string, rule: readRule(rule) };
}

function readRule(json: Json | undefined): BucketRule {
  const [kind, value] = typed(json, "the rule of a feature");
  switch (kind) {
    case "NumericEdges":
      return numericEdges(items(fieldsOf(value, kind, "edges")["edges"], "edges"));
    case "Categories":
      return categories(items(fieldsOf(value, kind, "values")["values"], "categories"));
    case "TokenPrefixTree": {
      const { prefixes, tokens } = fieldsOf(value, kind, "prefixes", "tokens");
      return prefixTree(texts(prefixes, "prefixes"), texts(tokens, "tokens"));
    }
    case "StringPrefixes": {
      const { alphabet, prefixes, step } = fieldsOf(value, kind, "alphabet", "prefixes", "step");
      return stringPrefixes(texts(prefixes, "prefixes"), alphabet, whole(step, "the step", 1, MOST_STEP));
    }
    case "MapCells":
      return mapCells(fieldsOf(value, kind, "cells")["cells"]);
  }
  throw new CodecError("there is no such rule of a feature");
}

/** Numbers by the interval they lie in: a bucket for each [edge, next edge). */
function numericEdges(found: readonly Json[]): BucketRule {
  if (found.length < 2 || found.length > MOST_BINS) throw new CodecError(`a feature has 2 to ${MOST_BINS} edges`);
  const edges = found.map((edge) => {
    if (typeof edge !== "number" || Object.is(edge, -0))
      throw new CodecError("the edges of a feature are numbers, written such as 1.0");
    return edge;
  });
  if (edges.some((edge, at) => at > 0 && edges[at - 1]! >= edge))
    throw new CodecError("the edges of a feature are in ascending order, each once");
  const bucket = ([value]: readonly Cell[]): number => {
    if (typeof value !== "number" && typeof value !== "bigint") return 0;
    let [low, high] = [0, edges.length]; // how many edges are at most the value; JavaScript compares a bigint and a double exactly
    while (low < high) {
      const middle = (low + high) >> 1;
      if (edges[middle]! <= value) low = middle + 1;
      else high = middle;
    }
    return low % edges.length;
  };
  return { columns: 1, size: edges.length, matching: false, bucket };
}

/** Values that are listed, all texts or all whole numbers. */
function categories(found: readonly Json[]): BucketRule {
  if (found.length < 1 || found.length >= MOST_BINS)
    throw new CodecError(`a feature has 1 to ${MOST_BINS - 1} categories`);
  const values = found.map((value) => {
    if (typeof value === "number") throw new CodecError("a category is a text or a whole number");
    return checkValue(value, "a category");
  });
  if (!distinct(values) || new Set(values.map((value) => typeof value)).size !== 1) {
    throw new CodecError("the categories of a feature are all texts or all whole numbers, each once");
  }
  if (values.includes(OTHER) || values.includes(""))
    throw new CodecError("a category is neither empty nor (other), which means all others");
  const places = new Map(values.map((value, at) => [value, at + 1]));
  const bucket = ([value]: readonly Cell[]): number =>
    value === null || value === undefined
      ? 0
      : (places.get(typeof value === "string" ? value.normalize("NFC") : value) ?? 0);
  return { columns: 1, size: values.length + 1, matching: false, bucket };
}

const split = (text: string): string[] => (text ? text.split(" ") : []);

function checkTokens(text: string, most: number, what: string): void {
  checkText(text, what, LONGEST_VALUE);
  const words = split(text);
  if (words.length > most || (!words.length && most === 1) || words.some((word) => !word || /\s/u.test(word))) {
    throw new CodecError(`${what} is at most ${most} words that single spaces part`);
  }
}

/** Texts of tokens, by a prefix that they begin with and the token after it. */
function prefixTree(prefixes: readonly string[], tokens: readonly string[]): BucketRule {
  if ([prefixes, tokens].some((some) => some.length < 1 || some.length > MOST_TOKENS))
    throw new CodecError(`a prefix tree has 1 to ${MOST_TOKENS} prefixes, and as many tokens`);
  for (const each of tokens) checkTokens(each, 1, "a token");
  for (const each of prefixes) checkTokens(each, LONGEST_PREFIX, "a prefix");
  const places = new Map(prefixes.map((prefix, at) => [prefix, at]));
  if (!distinct(tokens) || places.size !== prefixes.length)
    throw new CodecError("a prefix tree has each token and each prefix once");
  const begun = (words: readonly string[], length: number): string => words.slice(0, length).join(" ");
  for (const prefix of prefixes) {
    const words = split(prefix);
    if (words.some((_, length) => places.has(begun(words, length))))
      throw new CodecError("a prefix of a tree begins another one: ask for them in different rounds");
  }
  if (tokens.includes(OTHER) || tokens.includes(END))
    throw new CodecError("(other) and (end) are no tokens: they mean all others, and none");
  const width = 2 + tokens.length;
  const size = 1 + prefixes.length * width;
  if (size >= MOST_BINS) throw new CodecError(`a prefix tree has below ${MOST_BINS} buckets`);
  const [lengths, known] = [
    [...new Set(prefixes.map((prefix) => split(prefix).length))].sort((a, b) => a - b),
    new Map(tokens.map((token, at) => [token, at + 2])),
  ];
  const bucket = ([value]: readonly Cell[]): number => {
    if (typeof value !== "string") return 0;
    const words = split(value.normalize("NFC"));
    for (const length of lengths) {
      const place = length <= words.length ? places.get(begun(words, length)) : undefined;
      if (place !== undefined)
        return 1 + place * width + (length === words.length ? 0 : (known.get(words[length]!) ?? 1));
    }
    return 0;
  };
  return { columns: 1, size, matching: true, bucket };
}

/** Strings by a prefix that they begin with and the next `step` characters of an alphabet. */
function stringPrefixes(prefixes: readonly string[], written: Json | undefined, step: number): BucketRule {
  const alphabet = [...checkText(written, "an alphabet", LONGEST_VALUE)];
  if (alphabet.length < 1 || alphabet.length > MOST_LETTERS || !distinct(alphabet))
    throw new CodecError(`an alphabet has 1 to ${MOST_LETTERS} characters, each once`);
  const composed = (pair: string): boolean => pair.normalize("NFC") === pair;
  if (
    alphabet.some((letter) => letter > "\x7f") &&
    !alphabet.every((one) => alphabet.every((other) => composed(one + other)))
  ) {
    throw new CodecError("the characters of an alphabet do not combine with each other: write them composed");
  }
  if (alphabet.length ** step >= MOST_BINS)
    throw new CodecError("a prefix grows by fewer characters in a round: these are too many");
  if (prefixes.length < 1 || prefixes.length > MOST_TOKENS || !distinct(prefixes))
    throw new CodecError(`strings have 1 to ${MOST_TOKENS} different prefixes`);
  for (const each of prefixes) checkText(each, "a prefix", LONGEST_VALUE);
  const places = new Map(prefixes.map((prefix, at) => [prefix, at]));
  const ordered = [...prefixes].sort();
  if (ordered.some((prefix, at) => at > 0 && prefix.startsWith(ordered[at - 1]!))) {
    throw new CodecError("a prefix of strings begins another one: ask for them in different rounds");
  }
  const before = [0]; // how many strings are shorter than 0, 1, … characters
  for (let length = 0; length <= step; length++) before.push(before[length]! + alphabet.length ** length);
  const width = 1 + before[step + 1]!;
  const size = 1 + prefixes.length * width;
  if (size >= MOST_BINS) throw new CodecError(`strings fall into less than ${MOST_BINS} buckets`);
  const letters = new Map(alphabet.map((letter, at) => [letter, at]));
  const bucket = ([value]: readonly Cell[]): number => {
    if (typeof value !== "string") return 0;
    const text = value.normalize("NFC");
    let [low, high] = [0, ordered.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ordered[middle]! <= text) low = middle + 1;
      else high = middle;
    }
    const prefix = ordered[low - 1]; // no prefix begins another, so only this one can begin the text
    if (prefix === undefined || !text.startsWith(prefix)) return 0;
    const first = 1 + places.get(prefix)! * width;
    const rest = [...text.slice(prefix.length)].slice(0, step);
    let number = 0;
    for (const letter of rest) {
      const place = letters.get(letter);
      if (place === undefined) return first;
      number = number * alphabet.length + place;
    }
    return first + 1 + before[rest.length]! + number;
  };
  return { columns: 1, size, matching: true, bucket };
}

/** Places by the cell of a map they lie in: two columns, longitude and latitude in degrees. */
function mapCells(json: Json | undefined): BucketRule {
  const [partition] = typed(json, "the cells of a feature");
  if (PARTITIONS.includes(partition))
    throw new UnknownKind(partition, "this device counts in listed cells of quadtrees and hexagons alone");
  if (partition !== LISTED) throw new CodecError("the cells of a feature are a partition");
  const { tree, cells } = cellsOf(json);
  if (cells.length < 1 || cells.length >= MOST_BINS) throw new CodecError(`a feature has 1 to ${MOST_BINS - 1} cells`);
  const position = new Map(cells.map((cell, at) => [cell, at + 1]));
  const degrees = (value: Cell | undefined): number =>
    typeof value === "number" || typeof value === "bigint" ? Number(value) : NaN;
  const bucket = ([x, y]: readonly Cell[]): number => {
    const [lon, lat] = [degrees(x), degrees(y)];
    if (!(Math.abs(lon) <= 180 && Math.abs(lat) <= 90)) return 0;
    const base = tree.baseCell(lon, lat);
    if (base === NOWHERE) return 0;
    for (const cell of tree.holders(base)) {
      const at = position.get(cell);
      if (at !== undefined) return at;
    }
    return 0;
  };
  return { columns: 2, size: cells.length + 1, matching: false, tree, bucket };
}

function items(json: Json | undefined, what: string): readonly Json[] {
  if (!Array.isArray(json)) throw new CodecError(`the ${what} of a feature are a list`);
  return json;
}

const texts = (json: Json | undefined, what: string): string[] =>
  items(json, what).map((each) => {
    if (typeof each !== "string") throw new CodecError(`the ${what} of a feature are texts`);
    return each;
  });
