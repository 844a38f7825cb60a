import type { Place } from "./cell_counts.js";
import { InputError } from "./errors.js";
import { isObject, type Json, parseJson } from "./json_text.js";
import { known } from "./time_slots.js";

const ROWS = { length: 1 << 28, items: 1 << 24, depth: 4, things: 1 << 24 };
const NOWHERE: Place = { lon: NaN, lat: NaN };

/**
 * A person's rows: `[{"lon": 13.4, "lat": 52.5, "time": 1767225600}, …]`, in degrees, and seconds since 1970 where they are known.
 * A row of numbers that are no place on earth lies nowhere, and a moment that no clock shows is not known: whether a device
 * takes part must not depend on them.
 */
export function readRows(text: string): Place[] {
  const found = parseJson(text, ROWS);
  if (!Array.isArray(found)) throw new InputError("rows are a JSON list of objects with lon and lat");
  return found.map((row, at) => {
    if (!isObject(row)) throw new InputError(`row ${at + 1} is no object with lon and lat`);
    const given = row["time"] ?? null;
    const time = given === null ? NaN : number(given, `time of row ${at + 1}`);
    const [lon, lat] = [number(row["lon"], `lon of row ${at + 1}`), number(row["lat"], `lat of row ${at + 1}`)];
    const place = Math.abs(lon) <= 180 && Math.abs(lat) <= 90 ? { lon, lat } : NOWHERE;
    return known(time) ? { ...place, time } : place;
  });
}

function number(json: Json | undefined, what: string): number {
  if (typeof json !== "number" && typeof json !== "bigint") throw new InputError(`${what} is a number`);
  return Number(json);
}
