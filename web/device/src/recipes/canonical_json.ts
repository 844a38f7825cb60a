import { inPoints, isObject, type Json, writtenReal, writtenText } from "../json_text.js";

/** JSON as hazemap writes what it hashes: keys sorted, ASCII alone, no spaces, numbers as Python writes them. */
export function canonicalJson(json: Json): string {
  if (Array.isArray(json)) return `[${json.map(canonicalJson).join(",")}]`;
  if (isObject(json)) {
    const names = Object.keys(json)
      .map((name) => [inPoints(name), name] as const)
      .sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${names.map(([, name]) => `${writtenText(name)}:${canonicalJson(json[name]!)}`).join(",")}}`;
  }
  if (typeof json === "string") return writtenText(json);
  return typeof json === "number" ? writtenReal(json) : `${json}`;
}
