import { cellArea, cellToChildren, cellToLatLng, getRes0Cells, isValidCell, latLngToCell, UNITS } from "h3-js";
import { type CellTree, NOWHERE } from "./cell_tree.js";
import { CodecError } from "./errors.js";

const FINEST = 15;
/** No point of a cell of resolution r, or of its descendants, is further from its centre than REACH / √7^r radians. */
const REACH = 0.25;
const RADIAN = Math.PI / 180;

/** A rectangle in degrees that does not cross the antimeridian. */
export class Box {
  constructor(
    readonly west: number,
    readonly south: number,
    readonly east: number,
    readonly north: number,
  ) {
    if (!(west >= -180 && west < east && east <= 180 && south >= -90 && south < north && north <= 90)) {
      throw new CodecError("a box has a west below its east and a south below its north, in degrees");
    }
  }

  /** How far a point in degrees is from the box, in radians on the sphere; 0 inside. */
  distance(lon: number, lat: number): number {
    const [x, y, south, north] = [lon * RADIAN, lat * RADIAN, this.south * RADIAN, this.north * RADIAN];
    const within = (phi: number): number => Math.min(Math.max(phi, south), north);
    let nearest = this.west <= lon && lon <= this.east ? Math.abs(y - within(y)) : Math.PI;
    for (const meridian of [this.west, this.east]) {
      const turn = x - meridian * RADIAN;
      const foot = within(Math.atan2(Math.sin(y), Math.cos(y) * Math.cos(turn)));
      for (const end of [foot, south, north]) {
        const haversine = Math.sin((y - end) / 2) ** 2 + Math.cos(y) * Math.cos(end) * Math.sin(turn / 2) ** 2;
        nearest = Math.min(nearest, 2 * Math.asin(Math.sqrt(Math.min(haversine, 1))));
      }
    }
    return nearest;
  }

  /** How many cells of a resolution it takes, about: those inside and those along its edges. */
  cellsAbout(resolution: number): number {
    const square = (4 * Math.PI) / (2 + 120 * 7 ** resolution);
    const [width, height] = [(this.east - this.west) * RADIAN, (this.north - this.south) * RADIAN];
    const [south, north] = [this.south * RADIAN, this.north * RADIAN];
    const along = width * (Math.cos(south) + Math.cos(north)) + 2 * height;
    return (width * (Math.sin(north) - Math.sin(south))) / square + along / Math.sqrt(square);
  }
}

/**
 * The H3 cells that may hold a point of a box, from the coarsest to the finest resolution. The cell of a point at any
 * level is the ancestor, by the index, of its finest cell.
 */
export class Hexagons implements CellTree {
  private readonly near = new Map<bigint, boolean>();
  private ends: readonly [bigint, bigint] | null = null;
  /** How many bits of a base cell stand for digits that are not used. */
  private readonly unused: bigint;
  readonly rootsAbout: number;

  constructor(
    readonly box: Box,
    readonly coarsest: number,
    readonly finest: number,
  ) {
    if (!(coarsest >= 0 && coarsest <= finest && finest <= FINEST)) {
      throw new CodecError(`H3 resolutions are 0 to ${FINEST}, the coarsest before the finest`);
    }
    this.rootsAbout = Math.floor(box.cellsAbout(coarsest));
    this.unused = BigInt(3 * (FINEST - finest));
  }

  get depth(): number {
    return this.finest - this.coarsest;
  }

  get name(): string {
    const { west, south, east, north } = this.box;
    return `hexagons ${west} ${south} ${east} ${north} ${this.coarsest} ${this.finest}`;
  }

  /** From the first to the last root: their paths, with every digit that a root leaves open. O(roots), once. */
  get numbers(): readonly [bigint, bigint] {
    return (this.ends ??= this.rootEnds());
  }

  number(base: bigint): bigint {
    return base >> this.unused;
  }

  numbered(number: bigint): bigint {
    return (number << this.unused) | ((1n << this.unused) - 1n);
  }

  /**
   * Whether a number is written as the cells of the tree's resolutions are. It may be no cell of H3: then no point lies in it,
   * and it has no area.
   */
  isCell(cell: bigint): boolean {
    const resolution = resolutionOf(cell);
    return this.coarsest <= resolution && resolution <= this.finest && cell === ancestor(cell, resolution);
  }

  /** As H3 gives it: on the sphere of the earth's area. */
  area(cell: bigint): number {
    const name = cell.toString(16);
    if (!isValidCell(name)) throw new RangeError("this is no cell of H3");
    return cellArea(name, UNITS.m2);
  }

  wholeArea(): number {
    return this.roots().reduce((sum, root) => sum + this.area(root), 0);
  }

  /** A point beside the box may lie in a cell. Some 10 µs. */
  baseCell(lon: number, lat: number): bigint {
    if (!(Math.abs(lon) <= 180 && Math.abs(lat) <= 90)) return NOWHERE;
    const cell = BigInt(`0x${latLngToCell(lat, lon, this.finest)}`);
    return this.isNear(ancestor(cell, this.coarsest)) ? cell : NOWHERE;
  }

  *holders(base: bigint): Iterable<bigint> {
    for (let resolution = this.finest; resolution >= this.coarsest; resolution--) yield ancestor(base, resolution);
  }

  /** Whether a cell of the coarsest resolution, and all that hold it, may have a descendant in the box. */
  private isNear(root: bigint): boolean {
    const known = this.near.get(root);
    if (known !== undefined) return known;
    let near = true;
    for (let resolution = 0; near && resolution <= this.coarsest; resolution++)
      near = this.isClose(ancestor(root, resolution), resolution);
    this.near.set(root, near);
    return near;
  }

  private isClose(cell: bigint, resolution: number): boolean {
    const [lat, lon] = cellToLatLng(cell.toString(16));
    return this.box.distance(lon, lat) <= REACH / 7 ** (resolution / 2);
  }

  private roots(): bigint[] {
    let cells = getRes0Cells().map((cell) => BigInt(`0x${cell}`));
    for (let resolution = 0; ; resolution++) {
      cells = cells.filter((cell) => this.isClose(cell, resolution));
      if (resolution === this.coarsest) return cells;
      cells = cells.flatMap((cell) =>
        cellToChildren(cell.toString(16), resolution + 1).map((child) => BigInt(`0x${child}`)),
      );
    }
  }

  private rootEnds(): [bigint, bigint] {
    const cells = this.roots();
    const open = (1n << BigInt(3 * (FINEST - this.coarsest))) - 1n;
    const base = (cell: bigint): bigint => MODE | (BigInt(this.finest) << 52n) | (cell & PATH);
    const [least, most] = [
      cells.reduce((one, other) => (one < other ? one : other)),
      cells.reduce((one, other) => (one > other ? one : other)),
    ];
    return [this.number(base(least) & ~open), this.number(base(most) | open)];
  }
}

// An H3 index: mode 1 in bits 59 to 62, the resolution in bits 52 to 55, the base cell in bits 45 to 51, then fifteen
// digits of three bits each, coarse to fine; 7 stands for a digit that is not used.
const MODE = 1n << 59n;
const PATH = (1n << 52n) - 1n;

const resolutionOf = (cell: bigint): number => Number((cell >> 52n) & 15n);

/** The cell of a coarser resolution on the same path. */
const ancestor = (cell: bigint, resolution: number): bigint =>
  MODE | (BigInt(resolution) << 52n) | (cell & PATH) | ((1n << BigInt(3 * (FINEST - resolution))) - 1n);
