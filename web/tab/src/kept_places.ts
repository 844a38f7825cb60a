import type { Place } from "../../device/src/cell_counts.js";
import { type Bytes, join } from "../../shared/src/bytes.js";

/** A first byte that says: longitude, latitude and time of each, the time NaN where it is not known. */
const WITH_TIMES = 1;

/** Places as doubles: what is sealed and kept. */
export function writtenPlaces(places: readonly Place[]): Bytes {
  const numbers = new Float64Array(3 * places.length);
  places.forEach(({ lon, lat, time }, at) => numbers.set([lon, lat, time ?? NaN], 3 * at));
  return join(Uint8Array.of(WITH_TIMES), new Uint8Array(numbers.buffer));
}

/** What was kept; an older page kept longitude and latitude alone, and no first byte. */
export function readPlaces(kept: Bytes): Place[] {
  const timed = kept.length % 8 === 1 && kept[0] === WITH_TIMES;
  const numbers = new Float64Array(kept.slice(timed ? 1 : 0).buffer);
  const each = timed ? 3 : 2;
  return Array.from({ length: Math.floor(numbers.length / each) }, (_, at) => {
    const [lon, lat, time] = numbers.subarray(each * at, each * (at + 1)) as unknown as [number, number, number?];
    return time === undefined || Number.isNaN(time) ? { lon, lat } : { lon, lat, time };
  });
}
