/** What may be asked about: boxes, and polygons whose rings neither cross nor overlap. */

import { orientation } from "./orientation.js";
import type { Point, Ring } from "./projection.js";

/** A GeoJSON polygon or multipolygon. */
export type PolygonJson =
  | { readonly type: "Polygon"; readonly coordinates: readonly (readonly (readonly number[])[])[] }
  | { readonly type: "MultiPolygon"; readonly coordinates: readonly (readonly (readonly (readonly number[])[])[])[] };

/** Degrees, or coordinates of the plane: west, south, east, north; or a polygon. */
export type Region = { readonly box: readonly [number, number, number, number] } | { readonly polygon: PolygonJson };

/** Why a question has no answer. */
export type Reason = "box" | "kind" | "degrees" | "crossing" | "outside" | "small";

/** A question that has no answer: the fault of whoever asks. */
export class RegionError extends Error {
  constructor(
    readonly reason: Reason,
    message: string,
  ) {
    super(message);
    this.name = "RegionError";
  }
}

const LARGEST = 1e9; // a coordinate of a plane is at most this far from 0

/** A number as Python's `:.6g` writes it. */
export function inSixDigits(number: number): string {
  const [digits, power] = number.toExponential(5).split("e") as [string, string];
  const size = Math.abs(Number(power));
  if (Number(power) >= -4 && Number(power) < 6) return String(Number(number.toPrecision(6)));
  return `${Number(digits)}e${power[0]}${String(size).padStart(2, "0")}`;
}

/** The edges of a box, if it is one. */
export function checkedBox(box: readonly number[], plane: boolean): [number, number, number, number] {
  const [west, south, east, north] = box as [number, number, number, number];
  const [width, height] = plane ? [LARGEST, LARGEST] : [180, 90];
  if (
    box.length === 4 &&
    box.every((edge) => typeof edge === "number") &&
    -width <= west &&
    west < east &&
    east <= width &&
    -height <= south &&
    south < north &&
    north <= height
  ) {
    return [west, south, east, north];
  }
  throw new RegionError(
    "box",
    plane
      ? `a box of a plane is x,y,x,y with the lesser x and y first, at most ${LARGEST} from 0; found ${box.join(",")}`
      : `a box is west,south,east,north in degrees with west < east and south < north; found ${box.join(",")}` +
          (Math.max(Math.abs(south), Math.abs(north)) > 90 ? " (are longitude and latitude swapped?)" : ""),
  );
}

/** The polygons of a region, each an outer ring and holes. */
export function checkedPolygons(polygon: PolygonJson, plane: boolean): Ring[][] {
  const kind = (polygon as { readonly type?: unknown } | null)?.type;
  if (kind !== "Polygon" && kind !== "MultiPolygon") {
    throw new RegionError("kind", `a region is a polygon or a multipolygon with an area; found a ${String(kind)}`);
  }
  if (!isNested(polygon.coordinates, polygon.type === "Polygon" ? 3 : 4)) {
    throw new RegionError("kind", "this mapping is not GeoJSON with polygons: its coordinates are no rings of points");
  }
  const polygons = (polygon.type === "Polygon" ? [polygon.coordinates] : [...polygon.coordinates])
    .filter((rings) => rings.length && rings[0]!.length)
    .map((rings) => rings.filter((ring) => ring.length).map(closed));
  if (!polygons.length) {
    throw new RegionError(
      "kind",
      `a region is a polygon or a multipolygon with an area; found a ${polygon.type} that is empty`,
    );
  }
  const points = polygons.flat(2);
  const [xs, ys] = [points.map((point) => point[0]), points.map((point) => point[1])];
  const [west, east, south, north] = [least(xs), most(xs), least(ys), most(ys)];
  if (!plane && !(-180 <= west && east <= 180 && -90 <= south && north <= 90)) {
    throw new RegionError(
      "degrees",
      "a region is in degrees of longitude and latitude (WGS 84, EPSG:4326); this one runs over" +
        ` ${[west, south, east, north].map(inSixDigits).join(",")}: transform it first`,
    );
  }
  if (!areValid(polygons)) {
    throw new RegionError(
      "crossing",
      "the rings of this polygon cross or overlap each other: mend it with shapely.make_valid",
    );
  }
  return polygons;
}

/** Whether these are lists of lists … so deep, the innermost of two numbers or more. */
function isNested(data: unknown, depth: number): boolean {
  if (!Array.isArray(data)) return false;
  if (depth > 1) return data.every((each) => isNested(each, depth - 1));
  return data.length > 1 && data.every((each) => typeof each === "number" && Number.isFinite(each));
}

/** A ring whose last point is like the first, and where no point stands twice in a row. */
function closed(points: readonly (readonly number[])[]): Ring {
  const ring = points.map(([x, y]): Point => [x!, y!]);
  const different = ring.filter((point, at) => at === 0 || !same(point, ring[at - 1]!));
  const [begin, end] = [different[0]!, different[different.length - 1]!];
  return same(begin, end) ? different : [...different, begin];
}

function same(a: Point, b: Point): boolean {
  return a[0] === b[0] && a[1] === b[1];
}

function least(numbers: readonly number[]): number {
  return numbers.reduce((found, each) => Math.min(found, each), Infinity);
}

function most(numbers: readonly number[]): number {
  return numbers.reduce((found, each) => Math.max(found, each), -Infinity);
}

/** An edge of a ring, numbered along it. */
interface Edge {
  readonly ring: number;
  readonly at: number;
  readonly of: number;
  readonly from: Point;
  readonly to: Point;
}

/**
 * Whether polygons are what OGC calls valid: rings do not cross, nor touch themselves, nor run along each other; holes
 * lie in their outer ring and polygons outside each other; and no touching rings cut what is inside apart.
 */
function areValid(polygons: readonly (readonly Ring[])[]): boolean {
  const rings = polygons.flat();
  if (rings.some((ring) => ring.length < 4)) return false;
  const touches = touchesOf(rings);
  if (!touches) return false;
  let first = 0;
  for (const part of polygons) {
    const own = part.map((_, at) => first + at);
    if (!isConnected(own, touches)) return false;
    const [outer, ...holes] = part;
    if (!holes.every((hole) => lies(hole, outer!) !== "outside")) return false;
    if (holes.some((hole, at) => holes.some((other, to) => at !== to && lies(hole, other) === "inside"))) return false;
    first += part.length;
  }
  // A polygon inside another has to be in one of its holes.
  return polygons.every((part, at) =>
    polygons.every(
      (other, to) =>
        at === to ||
        lies(part[0]!, other[0]!) === "outside" ||
        other.slice(1).some((hole) => lies(part[0]!, hole) === "inside"),
    ),
  );
}

/** Where rings touch each other: ring, ring, point. Undefined where they cross or overlap, or one touches itself. */
function touchesOf(rings: readonly Ring[]): [number, number, Point][] | undefined {
  const edges = rings.flatMap((ring, number) =>
    ring.slice(1).map((to, at): Edge => ({ ring: number, at, of: ring.length - 1, from: ring[at]!, to })),
  );
  edges.sort((a, b) => Math.min(a.from[0], a.to[0]) - Math.min(b.from[0], b.to[0]));
  const touches: [number, number, Point][] = [];
  for (const [number, edge] of edges.entries()) {
    const [until, low, high] = [Math.max(edge.from[0], edge.to[0]), ...ordered(edge.from[1], edge.to[1])];
    for (let next = number + 1; next < edges.length; next++) {
      const other = edges[next]!;
      if (Math.min(other.from[0], other.to[0]) > until) break;
      const [bottom, top] = ordered(other.from[1], other.to[1]);
      if (bottom > high || top < low) continue;
      const met = meeting(edge, other);
      if (met === "apart") continue;
      if (met === "crossing") return undefined;
      if (edge.ring === other.ring) {
        const apart = Math.abs(edge.at - other.at);
        if (apart !== 1 && apart !== edge.of - 1) return undefined;
      } else touches.push([edge.ring, other.ring, met]);
    }
  }
  return touches;
}

function ordered(a: number, b: number): [number, number] {
  return a < b ? [a, b] : [b, a];
}

/** The one point that two edges share; or whether they cross, or share more than a point. */
function meeting(a: Edge, b: Edge): Point | "apart" | "crossing" {
  const [c, d] = [side(a, b.from), side(a, b.to)];
  const [e, f] = [side(b, a.from), side(b, a.to)];
  if (c * d < 0 && e * f < 0) return "crossing";
  const shared = [
    ...(c === 0 && spans(a, b.from) ? [b.from] : []),
    ...(d === 0 && spans(a, b.to) ? [b.to] : []),
    ...(e === 0 && spans(b, a.from) ? [a.from] : []),
    ...(f === 0 && spans(b, a.to) ? [a.to] : []),
  ];
  if (!shared.length) return "apart";
  return shared.every((point) => same(point, shared[0]!)) ? shared[0]! : "crossing";
}

function side(edge: Edge, point: Point): number {
  return orientation(edge.from, edge.to, point);
}

/** Whether a point of an edge's line lies on the edge. */
function spans({ from, to }: Edge, [x, y]: Point): boolean {
  return (
    Math.min(from[0], to[0]) <= x &&
    x <= Math.max(from[0], to[0]) &&
    Math.min(from[1], to[1]) <= y &&
    y <= Math.max(from[1], to[1])
  );
}

/** Whether the inside of a polygon stays in one piece: its rings and the points where they touch make no circle. */
function isConnected(own: readonly number[], touches: readonly (readonly [number, number, Point])[]): boolean {
  const group = new Map<string, string>();
  const found = (name: string): string => {
    const up = group.get(name) ?? name;
    return up === name ? name : found(up);
  };
  const some = new Set(own);
  const joined = new Set<string>();
  for (const [one, other, [x, y]] of touches) {
    if (!some.has(one) || !some.has(other)) continue;
    const place = `${x},${y}`;
    for (const ring of [one, other]) {
      if (joined.has(`${ring}:${place}`)) continue;
      joined.add(`${ring}:${place}`);
      const [a, b] = [found(`${ring}`), found(place)];
      if (a === b) return false;
      group.set(a, b);
    }
  }
  return true;
}

/** Where a ring lies that does not cross another: by its first corner, or middle of an edge, that is not on it. */
function lies(ring: Ring, other: Ring): "inside" | "outside" {
  const middles = ring.slice(1).map(([x, y], at): Point => [(x + ring[at]![0]) / 2, (y + ring[at]![1]) / 2]);
  for (const point of [...ring, ...middles]) {
    const at = placeOf(point, other);
    if (at !== "on") return at;
  }
  return "inside";
}

function placeOf([x, y]: Point, ring: Ring): "inside" | "outside" | "on" {
  let odd = false;
  for (let at = 1; at < ring.length; at++) {
    const [from, to] = [ring[at - 1]!, ring[at]!];
    if (Math.max(from[1], to[1]) < y || Math.min(from[1], to[1]) > y) continue;
    const edge = { ring: 0, at: 0, of: 0, from, to };
    const turn = side(edge, [x, y]);
    if (turn === 0 && spans(edge, [x, y])) return "on";
    if (from[1] > y !== to[1] > y && turn > 0 === to[1] > from[1]) odd = !odd; // to the right of the point
  }
  return odd ? "inside" : "outside";
}
