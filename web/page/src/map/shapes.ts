/** Cells on the sheet: their bounds, and the rings of those that are no rectangles. */

import { unpack } from "../payload/arrays.js";
import type { Places } from "../payload/release.js";
import type { Extent, Projection } from "./sheet.js";

/** Rings of cells: points (x, y, x, y …), the first point of each ring, the first ring of each cell; with the ends. */
export interface Rings {
  readonly points: Float64Array;
  readonly ring: Int32Array;
  readonly cell: Int32Array;
}

export class Shapes {
  constructor(
    readonly west: Float64Array,
    readonly north: Float64Array,
    readonly east: Float64Array,
    readonly south: Float64Array,
    readonly rings: Rings | null,
  ) {}

  get count(): number {
    return this.west.length;
  }

  get extent(): Extent {
    const all = { west: Infinity, north: Infinity, east: -Infinity, south: -Infinity };
    for (let i = 0; i < this.count; i++) {
      all.west = Math.min(all.west, this.west[i]!);
      all.north = Math.min(all.north, this.north[i]!);
      all.east = Math.max(all.east, this.east[i]!);
      all.south = Math.max(all.south, this.south[i]!);
    }
    return all;
  }

  static async of(places: Places, projection: Projection): Promise<Shapes> {
    if (places.shape === "squares") return squares(places);
    if (places.shape === "boxes") return boxes(places, projection);
    return ofRings(places, projection);
  }
}

async function squares(places: Extract<Places, { shape: "squares" }>): Promise<Shapes> {
  const [level, column, row] = await Promise.all([unpack(places.level), unpack(places.column), unpack(places.row)]);
  const edges = fourArrays(level.length);
  for (let i = 0; i < level.length; i++) {
    const share = 0.5 ** level[i]!;
    edges[0][i] = places.left + places.side * (column[i]! * share);
    edges[1][i] = places.top + places.side * (row[i]! * share);
    edges[2][i] = places.left + places.side * ((column[i]! + 1) * share);
    edges[3][i] = places.top + places.side * ((row[i]! + 1) * share);
  }
  return new Shapes(...edges, null);
}

async function boxes(places: Extract<Places, { shape: "boxes" }>, projection: Projection): Promise<Shapes> {
  const parts = [places.west, places.north, places.east, places.south] as const;
  const [west, north, east, south] = await Promise.all(parts.map((each) => unpack(each)));
  const x = (lon: number) => projection.x(lon),
    y = (lat: number) => projection.y(lat);
  return new Shapes(west!.map(x), north!.map(y), east!.map(x), south!.map(y), null);
}

async function ofRings(places: Extract<Places, { shape: "rings" }>, projection: Projection): Promise<Shapes> {
  const [steps, ring, cell] = await Promise.all([unpack(places.points), unpack(places.ring), unpack(places.cell)]);
  for (const lag of places.lags) for (let i = lag; i < steps.length; i++) steps[i]! += steps[i - lag]!;
  const points = new Float64Array(steps.length);
  for (let i = 0; i < steps.length; i += 2) {
    points[i] = projection.x(steps[i]! * places.unit);
    points[i + 1] = projection.y(steps[i + 1]! * places.unit);
  }
  const edges = fourArrays(cell.length - 1);
  edges[0].fill(Infinity);
  edges[1].fill(Infinity);
  edges[2].fill(-Infinity);
  edges[3].fill(-Infinity);
  for (let i = 0; i + 1 < cell.length; i++) {
    for (let at = ring[cell[i]!]! * 2; at < ring[cell[i + 1]!]! * 2; at += 2) {
      const x = points[at]!,
        y = points[at + 1]!;
      if (x < edges[0][i]!) edges[0][i] = x;
      if (y < edges[1][i]!) edges[1][i] = y;
      if (x > edges[2][i]!) edges[2][i] = x;
      if (y > edges[3][i]!) edges[3][i] = y;
    }
  }
  return new Shapes(...edges, { points, ring, cell });
}

function fourArrays(length: number): [Float64Array, Float64Array, Float64Array, Float64Array] {
  return [new Float64Array(length), new Float64Array(length), new Float64Array(length), new Float64Array(length)];
}
