/** What the cells of a map own on the equal-area plane, and how much of each piece lies in a region. */

import { cellToBoundary } from "h3-js";

import { type PackedArray, unpack } from "../payload/arrays.js";
import { positions } from "./packed_positions.js";
import { equalArea, type Point, type Ring, signedArea, turned } from "./projection.js";

/** What the page is told of the ground: `owner` is the cell of each piece; most numbers are differences. */
export type GroundData = { readonly owner: PackedArray<"int32"> } & (
  | {
      readonly kind: "rectangles";
      readonly x: PackedArray<"float64">;
      readonly y: PackedArray<"float64">;
      readonly west: PackedArray<"int32">;
      readonly wide: PackedArray<"int32">;
      readonly south: PackedArray<"int32">;
      readonly high: PackedArray<"int32">;
    }
  | { readonly kind: "hexagons"; readonly cells: PackedArray<"uint64"> }
  | {
      readonly kind: "rings";
      readonly corners: PackedArray<"int32">;
      readonly piece: PackedArray<"int32">;
      readonly steps?: PackedArray<"uint64">;
      readonly degrees?: PackedArray<"float64">;
    }
);

const GRAIN = 1e10; // corners are whole numbers of 1/GRAIN degrees
const SLIVER = 1e-9; // an overlap below this part of the cell and of the region is rounding

/** Edges that go up or down, from (x, low) to (to, high); `sign` is 1 where what they bound is on their left. */
class Edges {
  readonly low: Float64Array;
  readonly high: Float64Array;
  readonly x: Float64Array;
  readonly to: Float64Array;
  readonly sign: Int8Array;
  readonly size: number;

  /** Of rings against the clock, and of holes with the clock. */
  constructor(rings: readonly Ring[]) {
    const count = rings.reduce((sum, ring) => sum + ring.length, 0);
    this.low = new Float64Array(count);
    this.high = new Float64Array(count);
    this.x = new Float64Array(count);
    this.to = new Float64Array(count);
    this.sign = new Int8Array(count);
    let size = 0;
    for (const ring of rings) {
      for (let at = 1; at < ring.length; at++) {
        const [[a, b], [c, d]] = [ring[at - 1]!, ring[at]!];
        if (b === d) continue;
        const up = b < d;
        this.low[size] = up ? b : d;
        this.high[size] = up ? d : b;
        this.x[size] = up ? a : c;
        this.to[size] = up ? c : a;
        this.sign[size++] = up ? 1 : -1;
      }
    }
    this.size = size;
  }

  /** Where an edge is at a height. */
  at(edge: number, y: number): number {
    const low = this.low[edge]!;
    return this.x[edge]! + ((y - low) / (this.high[edge]! - low)) * (this.to[edge]! - this.x[edge]!);
  }
}

/** The area left of a line that runs from x = a to b while y rises by `height`, and right of 0, up to `most`. */
function areaLeft(a: number, b: number, height: number, most: number): number {
  return minimum(a, b, most, most, height) - minimum(a, b, 0, 0, height);
}

/** ∫ min of two lines, from a to b and from c to d, while y rises by `height`. */
function minimum(a: number, b: number, c: number, d: number, height: number): number {
  const begin = a - c;
  const end = b - d;
  if (begin <= 0 && end <= 0) return ((a + b) / 2) * height;
  if (begin >= 0 && end >= 0) return ((c + d) / 2) * height;
  const turn = begin / (begin - end);
  const middle = a + turn * (b - a);
  const first = begin < 0 ? a : c;
  const last = begin < 0 ? d : b;
  return (((first + middle) / 2) * turn + ((middle + last) / 2) * (1 - turn)) * height;
}

/** A region of the equal-area plane, its edges sorted into slabs of equal height. */
export class FlatRegion {
  readonly area: number;
  readonly bounds: readonly [number, number, number, number];
  private readonly edges: Edges;
  private readonly start: Int32Array;
  private readonly member: Int32Array;
  private readonly slabs: number;

  /** Of rings against the clock and holes with the clock. */
  constructor(rings: readonly Ring[]) {
    const edges = (this.edges = new Edges(rings));
    const box: [number, number, number, number] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const [x, y] of rings.flat()) {
      box[0] = Math.min(box[0], x);
      box[1] = Math.min(box[1], y);
      box[2] = Math.max(box[2], x);
      box[3] = Math.max(box[3], y);
    }
    this.bounds = box;
    let [rise, area] = [0, 0];
    for (let at = 0; at < edges.size; at++) {
      const height = edges.high[at]! - edges.low[at]!;
      rise += height;
      area += (edges.sign[at]! * height * (edges.x[at]! - box[0] + (edges.to[at]! - box[0]))) / 2;
    }
    this.area = area;
    const few = (4 * edges.size * (box[3] - box[1])) / rise;
    this.slabs = Math.min(Math.max(Math.floor(few), 1), 4096);
    const counts = new Int32Array(this.slabs + 1);
    const each = (visit: (slab: number, edge: number) => void) => {
      for (let at = 0; at < edges.size; at++) {
        const last = this.slabOf(edges.high[at]!);
        for (let slab = this.slabOf(edges.low[at]!); slab <= last; slab++) visit(slab, at);
      }
    };
    each((slab) => counts[slab + 1]!++);
    for (let slab = 0; slab < this.slabs; slab++) counts[slab + 1]! += counts[slab]!;
    this.start = counts.slice();
    this.member = new Int32Array(counts[this.slabs]!);
    each((slab, edge) => (this.member[counts[slab]!++] = edge));
  }

  private slabOf(y: number): number {
    const [, south, , north] = this.bounds;
    return Math.min(Math.max(Math.floor(((y - south) / (north - south)) * this.slabs), 0), this.slabs - 1);
  }

  /** Calls `visit` with each stretch of an edge between two heights: where it begins and ends, its sign. */
  private between(
    south: number,
    north: number,
    visit: (low: number, high: number, x: number, to: number, sign: number) => void,
  ): void {
    const { edges, start, member, bounds, slabs } = this;
    const tall = (bounds[3] - bounds[1]) / slabs;
    const last = this.slabOf(north);
    for (let slab = this.slabOf(south); slab <= last; slab++) {
      // Slabs cut edges, so that none counts twice; the outermost ones have no end.
      const floor = slab ? Math.max(south, bounds[1] + slab * tall) : south;
      const ceiling = slab < slabs - 1 ? Math.min(north, bounds[1] + (slab + 1) * tall) : north;
      for (let place = start[slab]!; place < start[slab + 1]!; place++) {
        const edge = member[place]!;
        const low = Math.max(edges.low[edge]!, floor);
        const high = Math.min(edges.high[edge]!, ceiling);
        if (low < high) visit(low, high, edges.at(edge, low), edges.at(edge, high), edges.sign[edge]!);
      }
    }
  }

  /** The area inside a rectangle. */
  inRectangle(west: number, south: number, east: number, north: number): number {
    let sum = 0;
    this.between(south, north, (low, high, x, to, sign) => {
      sum += sign * areaLeft(x - west, to - west, high - low, east - west);
    });
    return sum;
  }

  /** The area inside rings, whose points have no x below `west`. */
  inEdges(own: Edges, west: number, south: number, north: number): number {
    let sum = 0;
    this.between(south, north, (low, high, x, to, sign) => {
      const edge = (y: number) => x + ((y - low) / (high - low)) * (to - x) - west;
      for (let at = 0; at < own.size; at++) {
        const bottom = Math.max(own.low[at]!, low);
        const top = Math.min(own.high[at]!, high);
        if (bottom >= top) continue;
        const [a, b] = [own.at(at, bottom) - west, own.at(at, top) - west];
        sum += sign * own.sign[at]! * minimum(edge(bottom), edge(top), a, b, top - bottom);
      }
    });
    return sum;
  }
}

/** The pieces that the cells of a map own: their bounds on the equal-area plane, their areas, those of the cells. */
export class Pieces {
  private readonly owned: Float64Array;

  private constructor(
    readonly owner: Int32Array,
    cells: number,
    private readonly west: Float64Array,
    private readonly south: Float64Array,
    private readonly east: Float64Array,
    private readonly north: Float64Array,
    private readonly areas: Float64Array,
    private readonly edges: readonly Edges[] | undefined,
  ) {
    this.owned = new Float64Array(cells);
    owner.forEach((cell, at) => (this.owned[cell]! += areas[at]!));
  }

  /** From what the page is told; `plane` where coordinates are as they are. */
  static async of(data: GroundData, cells: number, plane: boolean): Promise<Pieces> {
    const owner = await positions(data.owner);
    if (data.kind === "rectangles") {
      const [x, y, wide, high] = await Promise.all([
        unpack(data.x),
        unpack(data.y),
        unpack(data.wide),
        unpack(data.high),
      ]);
      const [column, row] = await Promise.all([positions(data.west), positions(data.south)]);
      const [west, south] = [Float64Array.from(column, (at) => x[at]!), Float64Array.from(row, (at) => y[at]!)];
      const east = Float64Array.from(column, (at, place) => x[at + wide[place]!]!);
      const north = Float64Array.from(row, (at, place) => y[at + high[place]!]!);
      const areas = west.map((least, at) => (east[at]! - least) * (north[at]! - south[at]!));
      return new Pieces(owner, cells, west, south, east, north, areas, undefined);
    }
    const flat = (point: Point) => (plane ? point : equalArea(point));
    const rings = data.kind === "hexagons" ? await hexagons(data.cells, flat) : await ringsOf(data, owner.length, flat);
    const bounds = [Infinity, Infinity, -Infinity, -Infinity].map((none) => new Float64Array(owner.length).fill(none));
    const [west, south, east, north] = bounds as [Float64Array, Float64Array, Float64Array, Float64Array];
    const areas = new Float64Array(owner.length);
    for (const [at, some] of rings.entries()) {
      for (const ring of some) {
        for (const [x, y] of ring) {
          west[at] = Math.min(west[at]!, x);
          south[at] = Math.min(south[at]!, y);
          east[at] = Math.max(east[at]!, x);
          north[at] = Math.max(north[at]!, y);
        }
      }
      areas[at] = some.reduce((sum, ring) => sum + signedArea(ring), 0);
    }
    return new Pieces(
      owner,
      cells,
      west,
      south,
      east,
      north,
      areas,
      rings.map((some) => new Edges(some)),
    );
  }

  /** The share of each cell that lies in a box of the plane. */
  inBox(west: number, south: number, east: number, north: number): Float64Array {
    if (this.edges) {
      return this.inRegion(
        new FlatRegion([
          [
            [west, south],
            [east, south],
            [east, north],
            [west, north],
            [west, south],
          ],
        ]),
      );
    }
    return this.shares([west, south, east, north], (east - west) * (north - south), (at) => {
      const width = Math.min(this.east[at]!, east) - Math.max(this.west[at]!, west);
      return width * (Math.min(this.north[at]!, north) - Math.max(this.south[at]!, south));
    });
  }

  /** The share of each cell that lies in a region of the plane. */
  inRegion(region: FlatRegion): Float64Array {
    return this.shares(region.bounds, region.area, (at) => {
      const west = this.west[at]!;
      const south = this.south[at]!;
      const east = this.east[at]!;
      const north = this.north[at]!;
      const around = region.inRectangle(west, south, east, north);
      if (!this.edges) return around;
      const whole = (east - west) * (north - south);
      if (around <= 1e-14 * whole) return 0;
      if (around >= (1 - 1e-14) * whole) return this.areas[at]!;
      return region.inEdges(this.edges[at]!, west, south, north);
    });
  }

  private shares(
    bounds: readonly [number, number, number, number],
    area: number,
    inside: (piece: number) => number,
  ): Float64Array {
    const [least, bottom, most, top] = bounds;
    const { west, south, east, north, areas, owner, owned } = this;
    const shares = new Float64Array(owned.length);
    for (let at = 0; at < owner.length; at++) {
      if (!(west[at]! < most && east[at]! > least && south[at]! < top && north[at]! > bottom)) continue;
      const part = inside(at);
      if (part > SLIVER * Math.min(areas[at]!, area)) shares[owner[at]!]! += part;
    }
    for (let cell = 0; cell < shares.length; cell++) {
      if (!shares[cell]) continue;
      const share = shares[cell]! / owned[cell]!;
      shares[cell] = share > 1 - SLIVER ? 1 : share;
    }
    return shares;
  }
}

async function hexagons(packed: PackedArray<"uint64">, flat: (point: Point) => Point): Promise<Ring[][]> {
  let index = 0n;
  return Array.from(await unpack(packed), (step) => {
    index = BigInt.asUintN(64, index + step);
    return [turned((cellToBoundary(index.toString(16), true) as Point[]).map(flat), true)];
  });
}

async function ringsOf(
  data: GroundData & { readonly kind: "rings" },
  pieces: number,
  flat: (point: Point) => Point,
): Promise<Ring[][]> {
  const [corners, piece] = await Promise.all([unpack(data.corners), positions(data.piece)]);
  const degrees = data.steps ? summed(await unpack(data.steps)) : await unpack(data.degrees!);
  const found = Array.from({ length: pieces }, (): Ring[] => []);
  let at = 0;
  for (const [number, count] of corners.entries()) {
    const ring: Point[] = [];
    for (const end = at + Math.abs(count); at < end; at++) ring.push(flat([degrees[2 * at]!, degrees[2 * at + 1]!]));
    found[piece[number]!]!.push(turned(ring, count > 0));
  }
  return found;
}

/** Points from differences between them, of either sign: 0, −1, 1, −2 … are 0, 1, 2, 3 … */
function summed(steps: BigUint64Array): Float64Array {
  const last: [number, number] = [0, 0];
  return Float64Array.from(steps, (step, at) => {
    const half = Number(step >> 1n);
    last[at % 2] = last[at % 2]! + (step & 1n ? -half - 1 : half);
    return last[at % 2]! / GRAIN;
  });
}
