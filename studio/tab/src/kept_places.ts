import type { Bytes } from "../../device/src/bytes.js";
import type { Place } from "../../device/src/cell_counts.js";

/** Places as doubles, longitude first: what is sealed and kept. */
export function writtenPlaces(places: readonly Place[]): Bytes {
  return new Uint8Array(Float64Array.from(places.flatMap(({ lon, lat }) => [lon, lat])).buffer);
}

export function readPlaces(kept: Bytes): Place[] {
  const numbers = new Float64Array(kept.slice().buffer);
  return Array.from({ length: numbers.length >> 1 }, (_, at) => ({ lon: numbers[2 * at]!, lat: numbers[2 * at + 1]! }));
}
