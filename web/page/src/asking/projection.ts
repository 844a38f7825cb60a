/** The cylindrical equal-area projection of WGS 84, in metres (Snyder 1987, equation 3-12). */

const FLATTENING = 1 / 298.257223563;
const SEMI_MINOR = 6378137 * (1 - FLATTENING);
const ECCENTRICITY = Math.sqrt(FLATTENING * (2 - FLATTENING));
const RADIAN = Math.PI / 180;

/** Longest edge in degrees of a polygon that stays straight in the plane; longer ones are cut. */
const STRAIGHT = 0.25;

export type Point = readonly [number, number];

/** A ring of points, the last like the first. */
export type Ring = readonly Point[];

/** Of a ring, positive against the clock. */
export function signedArea(ring: Ring): number {
  const [x0, y0] = ring[0]!;
  let sum = 0;
  for (let at = 1; at < ring.length; at++) {
    const [[a, b], [c, d]] = [ring[at - 1]!, ring[at]!];
    sum += (a - x0) * (d - y0) - (c - x0) * (b - y0);
  }
  return sum / 2;
}

/** The ring against the clock where it is an outer one; with the clock where it is a hole. */
export function turned(ring: Ring, outer: boolean): Ring {
  return signedArea(ring) > 0 === outer ? ring : [...ring].reverse();
}

/** A point in degrees, on a plane where areas are true. */
export function equalArea([lon, lat]: Point): Point {
  const sine = Math.sin(lat * RADIAN);
  const height = sine / (1 - ECCENTRICITY ** 2 * sine ** 2) + Math.atanh(ECCENTRICITY * sine) / ECCENTRICITY;
  return [SEMI_MINOR * (lon * RADIAN), (SEMI_MINOR * height) / 2];
}

/** A ring with points on its edges, so that none is longer than `STRAIGHT`; the first point stands at the end too. */
export function densified(ring: Ring): Point[] {
  const found: Point[] = [];
  for (const [at, from] of ring.slice(0, -1).entries()) {
    const to = ring[at + 1]!;
    const pieces = Math.max(Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / STRAIGHT), 1);
    for (let piece = 0; piece < pieces; piece++) {
      const part = piece / pieces;
      found.push([from[0] + part * (to[0] - from[0]), from[1] + part * (to[1] - from[1])]);
    }
  }
  return [...found, ring[ring.length - 1]!];
}
