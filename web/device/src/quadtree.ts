import { type CellTree, NOWHERE } from "./cell_tree.js";
import { CodecError } from "./errors.js";

const DEEPEST = 24;
const FINEST_SIDE = 2 ** -44;
const LIMIT = 85.05112877980659;

const SQUARE = (1 / 298.257223563) * (2 - 1 / 298.257223563);
const [ECCENTRICITY, SEMI_MINOR] = [Math.sqrt(SQUARE), 6378137.0 * (1 - 1 / 298.257223563)];

const longitude = (x: number): number => (x - 0.5) * 360;
const latitude = (y: number): number =>
  y <= 0 ? LIMIT : y >= 1 ? -LIMIT : Math.atan(Math.sinh(2 * Math.PI * (0.5 - y))) * (180 / Math.PI);

/** A square of unit Web Mercator (x east, y south), cut in four, `depth` times. Cells are numbers below 2^49. */
export class Quadtree implements CellTree {
  readonly rootsAbout = 1;

  constructor(
    readonly left: number,
    readonly top: number,
    readonly side: number,
    readonly depth: number,
  ) {
    if (!Number.isInteger(depth) || depth < 0 || depth > DEEPEST)
      throw new CodecError(`a quadtree has a depth of 0 to ${DEEPEST}`);
    if (!(left >= 0 && top >= 0 && side > 0 && left + side <= 1 && top + side <= 1)) {
      throw new CodecError("the square of a quadtree lies in the world");
    }
    if (side / 2 ** depth < FINEST_SIDE) throw new CodecError("a quadtree's cells are finer than a few micrometres");
  }

  get name(): string {
    return `squares ${this.left} ${this.top} ${this.side} ${this.depth}`;
  }

  get numbers(): readonly [bigint, bigint] {
    const first = 1n << BigInt(2 * this.depth);
    return [first, 2n * first - 1n];
  }

  number(base: bigint): bigint {
    return base;
  }

  numbered(number: bigint): bigint {
    return number;
  }

  /** The cells of a level are 4^level … 2 · 4^level − 1. */
  isCell(cell: bigint): boolean {
    if (cell < 1n || cell >= 1n << BigInt(2 * this.depth + 1)) return false;
    const high = Math.floor(Number(cell) / 2 ** 32); // a cell has at most 49 bits
    return (high ? 64 - Math.clz32(high) : 32 - Math.clz32(Number(cell))) % 2 === 1;
  }

  /** On the WGS 84 ellipsoid (Snyder 1987, equation 3-12), without subtracting near numbers. */
  area(cell: bigint): number {
    if (!this.isCell(cell)) throw new RangeError("this is no cell of the quadtree");
    let [row, level] = [0, 0];
    for (let rest = cell; rest > 1n; rest >>= 2n, level++) if (rest & 2n) row += 2 ** level;
    const side = this.side * 2 ** -level;
    const y = this.top + this.side * (row * 2 ** -level);
    const [north, south] = [2 * Math.PI * (0.5 - y), 2 * Math.PI * (0.5 - y - side)];
    const rise = Math.sinh(2 * Math.PI * side) / (Math.cosh(north) * Math.cosh(south));
    const [sinNorth, sinSouth] = [Math.tanh(north), Math.tanh(south)];
    const product = SQUARE * sinNorth * sinSouth;
    const fraction = (rise * (1 + product)) / ((1 - SQUARE * sinNorth ** 2) * (1 - SQUARE * sinSouth ** 2));
    const logarithm = Math.atanh((ECCENTRICITY * rise) / (1 - product)) / ECCENTRICITY;
    return (SEMI_MINOR ** 2 / 2) * (2 * Math.PI * side) * (fraction + logarithm);
  }

  wholeArea(): number {
    return this.area(1n);
  }

  /** A cell owns its west and north edge. */
  baseCell(lon: number, lat: number): bigint {
    const { left, top, side, depth } = this;
    if (!(longitude(left) <= lon && lon <= longitude(left + side))) return NOWHERE;
    if (!(latitude(top + side) <= lat && lat <= latitude(top))) return NOWHERE;
    const count = 2 ** depth;
    const clamp = (place: number): number => Math.min(Math.max(Math.trunc(place), 0), count - 1);
    let column = clamp(((lon / 360 + 0.5 - left) / side) * count);
    const west = (at: number): number => longitude(left + side * (at / count));
    while (column > 0 && lon < west(column)) column--;
    while (column < count - 1 && lon >= west(column + 1)) column++;
    const sine = Math.sin(lat * (Math.PI / 180));
    let row = clamp(((0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI) - top) / side) * count);
    const north = (at: number): number => latitude(top + side * (at / count));
    while (row > 0 && lat > north(row)) row--;
    while (row < count - 1 && lat <= north(row + 1)) row++;
    let cell = 1;
    for (let bit = depth - 1; bit >= 0; bit--)
      cell = 4 * cell + (Math.floor(column / 2 ** bit) % 2) + 2 * (Math.floor(row / 2 ** bit) % 2);
    return BigInt(cell);
  }

  *holders(base: bigint): Iterable<bigint> {
    for (let cell = base; cell >= 1n; cell >>= 2n) yield cell;
  }
}
