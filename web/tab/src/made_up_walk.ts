import type { Place } from "../../device/src/cell_counts.js";
import type { RandomBytes } from "../../shared/src/bytes.js";

const [STEPS, HOUR] = [48, 3_600];
/** Degrees: some hundred metres. */
const [AWAY, STRIDE] = [0.03, 0.002];

/** Places of a walk that nobody walked, near a place, one an hour until `now`, in seconds since 1970: for demonstrations. */
export function madeUpWalk(near: Place, random: RandomBytes, now: number): Place[] {
  const bytes = new DataView(random(4 * (STEPS + 1)).buffer);
  const drawn = (at: number): [number, number] => [
    bytes.getUint16(4 * at) / 32_768 - 1,
    bytes.getUint16(4 * at + 2) / 32_768 - 1,
  ];
  const [east, north] = drawn(STEPS);
  let [lon, lat] = [near.lon + AWAY * east, near.lat + AWAY * north];
  return Array.from({ length: STEPS }, (_, at) => {
    const [right, up] = drawn(at);
    lon = Math.min(180, Math.max(-180, lon + STRIDE * right));
    lat = Math.min(90, Math.max(-90, lat + STRIDE * up));
    return { lon, lat, time: Math.floor(now) - HOUR * (STEPS - 1 - at) };
  });
}
