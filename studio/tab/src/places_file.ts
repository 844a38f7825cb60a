import type { Place } from "../../device/src/cell_counts.js";
import { InputError } from "../../device/src/errors.js";

/** Letters of a file, and places of a person. */
export const [LONGEST, MOST] = [256 << 20, 1_000_000];

/**
 * The places in a file that a person chose: GPX, Google Takeout (Records, Semantic Location History, Timeline), or our own
 * `[{"lon": 13.4, "lat": 52.5}]`. `InputError` for any other, and for one without places.
 */
export function placesOf(text: string): Place[] {
  if (text.length > LONGEST) throw new InputError("this file is too large: choose one of at most 256 MB");
  const start = text.slice(0, 4_096);
  const found = /^[\s\ufeff]*</.test(start) ? gpxPlaces(text) : jsonPlaces(text);
  if (!found.length) throw new InputError("no place was found in this file: choose a GPX file, or JSON of Google Takeout");
  if (found.length > MOST) throw new InputError(`this file holds more than ${MOST} places`);
  return found;
}

const onEarth = (lon: unknown, lat: unknown): Place | null =>
  typeof lon === "number" && typeof lat === "number" && Math.abs(lon) <= 180 && Math.abs(lat) <= 90 ? { lon, lat } : null;

/** Way, track and route points of GPX 1.0 and 1.1, which have their coordinates as attributes. */
function gpxPlaces(text: string): Place[] {
  const bare = markupOf(text);
  if (!/<(?:[\w.-]+:)?gpx[\s>]/.test(bare)) throw new InputError("this file is XML, but no GPX");
  const found: Place[] = [];
  for (const [, attributes] of bare.matchAll(/<(?:[\w.-]+:)?(?:wpt|trkpt|rtept)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*\/?>/g)) {
    const number = (name: string): number | null => {
      const digits = new RegExp(`\\s${name}\\s*=\\s*["']\\s*([+-]?[0-9]+(?:\\.[0-9]*)?)\\s*["']`).exec(attributes!)?.[1];
      return digits === undefined ? null : Number(digits);
    };
    const place = onEarth(number("lon"), number("lat"));
    if (!place) throw new InputError("a point of this GPX file is not on earth");
    found.push(place);
  }
  return found;
}

/** XML without comments and character data: no point in them is one. */
function markupOf(text: string): string {
  const parts: string[] = [];
  const opening = /<!--|<!\[CDATA\[/g;
  for (let at = 0; ; opening.lastIndex = at) {
    const found = opening.exec(text);
    parts.push(text.slice(at, found?.index));
    const closing = found?.[0] === "<!--" ? "-->" : "]]>";
    const end = found ? text.indexOf(closing, opening.lastIndex) : -1;
    if (end < 0) return parts.join("");
    at = end + closing.length;
  }
}

function jsonPlaces(text: string): Place[] {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new InputError("this file is neither GPX nor JSON");
  }
  const found: Place[] = [];
  const waiting: unknown[] = typeof data === "object" ? [data] : [];
  while (waiting.length && found.length <= MOST) {
    const each = waiting.pop();
    if (typeof each === "string") {
      const place = written(each);
      if (place) found.push(place);
    } else if (Array.isArray(each)) {
      for (let at = each.length - 1; at >= 0; at--) if (typeof each[at] === "object" || Array.isArray(each[at])) waiting.push(each[at]);
    } else if (typeof each === "object" && each !== null) {
      visit(each as Record<string, unknown>, found, waiting);
    }
  }
  return found;
}

/** Guesses at where somebody was besides, or raw radio measurements: none of these is a place of theirs. */
const NOT_THEIRS = new Set([
  "otherCandidateLocations", "otherCandidates", "candidateLocations", "rawSignals", "userLocationProfile", "simplifiedRawPath",
  "waypointPath", "parkingEvent", "bounds", "accessPoints", "locationMetadata",
]);
/** Texts such as `52.5°, 13.4°` and `geo:52.5,13.4`. */
const WRITTEN = new Set(["point", "latLng", "LatLng", "placeLocation", "start", "end"]);

function visit(object: Record<string, unknown>, found: Place[], waiting: unknown[]): void {
  const { latitudeE7, longitudeE7, lon, lat } = object;
  const place = typeof latitudeE7 === "number" && typeof longitudeE7 === "number"
    ? onEarth(longitudeE7 / 1e7, latitudeE7 / 1e7)
    : onEarth(lon, lat);
  if (place) found.push(place);
  for (const [name, value] of Object.entries(object).reverse()) {
    if (NOT_THEIRS.has(name)) continue;
    if (typeof value === "object" || (typeof value === "string" && WRITTEN.has(name))) waiting.push(value);
  }
}

function written(text: string): Place | null {
  const [, lat, lon] = /^(?:geo:)?\s*(-?[0-9]{1,2}(?:\.[0-9]+)?)°?\s*,\s*(-?[0-9]{1,3}(?:\.[0-9]+)?)°?$/.exec(text) ?? [];
  return lat === undefined ? null : onEarth(Number(lon), Number(lat));
}
