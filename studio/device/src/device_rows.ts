import type { Place } from "./cell_counts.js";
import { InputError } from "./errors.js";
import { isObject, parseJson } from "./json_text.js";
import { real } from "./typed_json.js";

const ROWS = { length: 1 << 28, items: 1 << 24, depth: 4, things: 1 << 24 };

/** A person's rows: `[{"lon": 13.4, "lat": 52.5, "time": 1767225600}, …]`, in degrees, and seconds since 1970 where they are known. */
export function readRows(text: string): Place[] {
  const found = parseJson(text, ROWS);
  if (!Array.isArray(found)) throw new InputError("rows are a JSON list of objects with lon and lat");
  return found.map((row, at) => {
    if (!isObject(row)) throw new InputError(`row ${at + 1} is no object with lon and lat`);
    const given = row["time"] ?? null;
    const time = given === null ? {} : { time: real(given, `time of row ${at + 1}`) };
    const place = { lon: real(row["lon"], `lon of row ${at + 1}`), lat: real(row["lat"], `lat of row ${at + 1}`), ...time };
    if (Math.abs(place.lon) > 180 || Math.abs(place.lat) > 90) throw new InputError(`row ${at + 1} is not on earth`);
    return place;
  });
}
