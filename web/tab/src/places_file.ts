import type { Place } from "../../device/src/cell_counts.js";
import { InputError } from "../../device/src/errors.js";

/** Letters of a file, and places of a person. */
export const [LONGEST, MOST] = [256 << 20, 1_000_000];
/** The year 9998, in seconds since 1970. */
const LATEST = 253_338_000_000;

/**
 * The places in a file that a person chose, with their times where it says them: GPX, Google Takeout (Records, Semantic
 * Location History, Timeline), or our own `[{"lon": 13.4, "lat": 52.5, "time": "2026-01-01T09:30:00Z"}]`. A visit has the time
 * at which it began. `InputError` for any other file, and for one without places.
 */
export function placesOf(text: string): Place[] {
  if (text.length > LONGEST) throw new InputError("this file is too large: choose one of at most 256 MB");
  const start = text.slice(0, 4_096);
  const found = /^[\s\ufeff]*</.test(start) ? gpxPlaces(text) : jsonPlaces(text);
  if (!found.length)
    throw new InputError("no place was found in this file: choose a GPX file, or JSON of Google Takeout");
  if (found.length > MOST) throw new InputError(`this file holds more than ${MOST} places`);
  return found;
}

const onEarth = (lon: unknown, lat: unknown, time: number | null): Place | null =>
  typeof lon === "number" && typeof lat === "number" && Math.abs(lon) <= 180 && Math.abs(lat) <= 90
    ? { lon, lat, ...(time === null ? {} : { time }) }
    : null;

/** Seconds since 1970 of a date with its time and its offset from UTC (`missing` stands for one); null for any other text. */
function moment(text: string, missing = ""): number | null {
  const found =
    /^\s*([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?)(Z|[+-][0-9]{2}:?[0-9]{2})?\s*$/.exec(
      text,
    );
  const milliseconds = found
    ? Date.parse(`${found[1]}${(found[2] ?? missing).replace(/([0-9]{2}):?([0-9]{2})$/, "$1:$2")}`)
    : NaN;
  return Number.isNaN(milliseconds) || (found![2] ?? missing) === "" ? null : milliseconds / 1_000;
}

const GPX_POINT = "(?:wpt|trkpt|rtept)";
/** A point as it begins (its attributes, and a slash where that is all of it), as it ends, or a time. */
const GPX_PARTS = new RegExp(
  `<(?:[\\w.-]+:)?${GPX_POINT}((?:\\s+[\\w.:-]+\\s*=\\s*(?:"[^"<]*"|'[^'<]*'))*)\\s*(/?)>|</(?:[\\w.-]+:)?${GPX_POINT}\\s*>|` +
    "<(?:[\\w.-]+:)?time\\s*>([^<]{0,80})</",
  "g",
);

/** Way, track and route points of GPX 1.0 and 1.1, which have their coordinates as attributes, and their time inside, in UTC. */
function gpxPlaces(text: string): Place[] {
  const bare = markupOf(text);
  if (!/<(?:[\w.-]+:)?gpx[\s>]/.test(bare)) throw new InputError("this file is XML, but no GPX");
  const found: Place[] = [];
  let open = false;
  for (const [, attributes, alone, time] of bare.matchAll(GPX_PARTS)) {
    if (time !== undefined) {
      const when = open ? moment(time, "Z") : null;
      if (when !== null) found.push({ ...found.pop()!, time: when });
      open = false;
    } else if (attributes === undefined) {
      open = false;
    } else {
      const number = (name: string): number | null => {
        const digits = new RegExp(`\\s${name}\\s*=\\s*["']\\s*([+-]?[0-9]+(?:\\.[0-9]*)?)\\s*["']`).exec(
          attributes,
        )?.[1];
        return digits === undefined ? null : Number(digits);
      };
      const place = onEarth(number("lon"), number("lat"), null);
      if (!place) throw new InputError("a point of this GPX file is not on earth");
      found.push(place);
      open = alone !== "/";
    }
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

/** When something in a file began and ended, as far as what stands around it says. */
interface Span {
  readonly begins: number | null;
  readonly ends: number | null;
}

function jsonPlaces(text: string): Place[] {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new InputError("this file is neither GPX nor JSON");
  }
  const found: Place[] = [];
  const nowhen: Span = { begins: null, ends: null };
  const waiting: [unknown, Span][] = typeof data === "object" ? [[data, nowhen]] : [];
  while (waiting.length && found.length <= MOST) {
    const [each, span] = waiting.pop()!;
    if (typeof each === "string") {
      const place = written(each, span.begins);
      if (place) found.push(place);
    } else if (Array.isArray(each)) {
      for (let at = each.length - 1; at >= 0; at--)
        if (typeof each[at] === "object" || Array.isArray(each[at])) waiting.push([each[at], span]);
    } else if (typeof each === "object" && each !== null) {
      visit(each as Record<string, unknown>, spanOf(each as Record<string, unknown>, span), found, waiting);
    }
  }
  return found;
}

const [BEGINS, ENDS] = [
  ["time", "timestamp", "startTime", "startTimestamp"],
  ["endTime", "endTimestamp"],
];

/** What an object says of when it was, or else what stands around it. */
function spanOf(object: Record<string, unknown>, around: Span): Span {
  const { duration, durationMinutesOffsetFromStartTime: offset } = object;
  const inside = typeof duration === "object" && duration !== null ? (duration as Record<string, unknown>) : {};
  const said = (names: readonly string[]): number | null => {
    for (const name of names) {
      for (const [key, by] of [
        [name, 1],
        [`${name}Ms`, 1_000],
      ] as const) {
        const value = object[key] ?? inside[key];
        const digits =
          typeof value === "number" || (by > 1 && typeof value === "string" && /^-?[0-9]{1,15}$/.test(value))
            ? Number(value) / by
            : NaN;
        const found =
          Number.isFinite(digits) && Math.abs(digits) <= LATEST
            ? digits
            : typeof value === "string"
              ? moment(value)
              : null;
        if (found !== null) return found;
      }
    }
    return null;
  };
  const [begins, ends] = [said(BEGINS), said(ENDS)];
  const minutes = typeof offset === "string" && /^[0-9]{1,6}$/.test(offset) ? Number(offset) : null;
  if (begins === null && minutes !== null && around.begins !== null)
    return { begins: around.begins + 60 * minutes, ends: around.ends };
  return begins === null ? around : { begins, ends };
}

/** Guesses at where somebody was besides, or raw radio measurements: none of these is a place of theirs. */
const NOT_THEIRS = new Set([
  "otherCandidateLocations",
  "otherCandidates",
  "candidateLocations",
  "rawSignals",
  "userLocationProfile",
  "simplifiedRawPath",
  "waypointPath",
  "parkingEvent",
  "bounds",
  "accessPoints",
  "locationMetadata",
]);
/** Texts such as `52.5°, 13.4°` and `geo:52.5,13.4`. */
const WRITTEN = new Set(["point", "latLng", "LatLng", "placeLocation", "start", "end"]);

/** Of these it is the end that says when somebody was there. */
const AT_THE_END = new Set(["end", "endLocation"]);

function visit(object: Record<string, unknown>, span: Span, found: Place[], waiting: [unknown, Span][]): void {
  const { latitudeE7, longitudeE7, lon, lat } = object;
  const place =
    typeof latitudeE7 === "number" && typeof longitudeE7 === "number"
      ? onEarth(longitudeE7 / 1e7, latitudeE7 / 1e7, span.begins)
      : onEarth(lon, lat, span.begins);
  if (place) found.push(place);
  for (const [name, value] of Object.entries(object).reverse()) {
    if (NOT_THEIRS.has(name)) continue;
    if (typeof value === "object" || (typeof value === "string" && WRITTEN.has(name))) {
      waiting.push([value, AT_THE_END.has(name) ? { begins: span.ends, ends: span.ends } : span]);
    }
  }
}

function written(text: string, time: number | null): Place | null {
  const [, lat, lon] =
    /^(?:geo:)?\s*(-?[0-9]{1,2}(?:\.[0-9]+)?)°?\s*,\s*(-?[0-9]{1,3}(?:\.[0-9]+)?)°?$/.exec(text) ?? [];
  return lat === undefined ? null : onEarth(Number(lon), Number(lat), time);
}
