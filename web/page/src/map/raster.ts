/** Which cell is at each pixel: painted once for a view, then coloured as often as one likes. */

import type { Shapes } from "./shapes.js";

/** No cell. */
export const NONE = -1;

/** A grid of samples on the sheet: where its first corner is, and how many samples the sheet's side is long. */
export interface Grid {
  readonly west: number;
  readonly north: number;
  readonly scale: number;
  readonly width: number;
  readonly height: number;
}

/** The cell at the middle of each sample; later cells lie on earlier ones. */
export function paintCells(shapes: Shapes, grid: Grid, into: Int32Array): void {
  const { west, north, scale, width, height } = grid;
  into.fill(NONE, 0, width * height);
  const crossings = new Crossings();
  for (let i = 0; i < shapes.count; i++) {
    const left = first((shapes.west[i]! - west) * scale),
      right = first((shapes.east[i]! - west) * scale);
    if (right <= 0 || left >= width || left >= right) continue;
    const top = first((shapes.north[i]! - north) * scale),
      bottom = first((shapes.south[i]! - north) * scale);
    if (bottom <= 0 || top >= height || top >= bottom) continue;
    if (shapes.rings === null) {
      const from = Math.max(left, 0),
        to = Math.min(right, width);
      for (let y = Math.max(top, 0); y < Math.min(bottom, height); y++) into.fill(i, y * width + from, y * width + to);
    } else crossings.paint(shapes.rings, i, grid, into);
  }
}

/** The first sample whose middle is not before a place. */
function first(at: number): number {
  return Math.ceil(at - 0.5);
}

const ROW = 2 ** 20; // no picture is wider

/** Where the edges of one cell cross the middles of rows: between every two of them lies the cell (even-odd rule). */
class Crossings {
  private found = new Float64Array(1024);
  private size = 0;

  paint({ points, ring, cell }: NonNullable<Shapes["rings"]>, which: number, grid: Grid, into: Int32Array): void {
    const { west, north, scale, width, height } = grid;
    this.size = 0;
    for (let r = cell[which]!; r < cell[which + 1]!; r++) {
      const begin = ring[r]! * 2,
        end = ring[r + 1]! * 2;
      let x0 = (points[end - 2]! - west) * scale,
        y0 = (points[end - 1]! - north) * scale;
      for (let at = begin; at < end; at += 2) {
        const x1 = (points[at]! - west) * scale,
          y1 = (points[at + 1]! - north) * scale;
        const from = Math.max(first(Math.min(y0, y1)), 0),
          to = Math.min(first(Math.max(y0, y1)), height);
        if (from < to) {
          const slope = (x1 - x0) / (y1 - y0);
          if (this.size + to - from > this.found.length) this.grow(this.size + to - from);
          for (let y = from; y < to; y++) {
            const x = first(x0 + (y + 0.5 - y0) * slope);
            this.found[this.size++] = y * ROW + (x < 0 ? 0 : x > width ? width : x);
          }
        }
        x0 = x1;
        y0 = y1;
      }
    }
    this.sort();
    for (let at = 0; at + 1 < this.size; at += 2) {
      const y = Math.floor(this.found[at]! / ROW);
      const from = this.found[at]! - y * ROW,
        to = this.found[at + 1]! - y * ROW;
      if (to - from > 8) into.fill(which, y * width + from, y * width + to);
      else for (let x = from; x < to; x++) into[y * width + x] = which;
    }
  }

  private grow(size: number): void {
    const found = new Float64Array(2 * size);
    found.set(this.found);
    this.found = found;
  }

  private sort(): void {
    const { found, size } = this;
    if (size > 48) {
      found.subarray(0, size).sort();
      return;
    }
    for (let i = 1; i < size; i++) {
      const one = found[i]!;
      let at = i;
      for (; at > 0 && found[at - 1]! > one; at--) found[at] = found[at - 1]!;
      found[at] = one;
    }
  }
}

/** Colours of samples, `fine` × `fine` of which are a pixel: their mean, so that edges are smooth. */
export function colourPixels(
  cells: Int32Array,
  width: number,
  height: number,
  fine: number,
  colours: Uint32Array,
  into: Uint32Array,
): void {
  const across = width * fine;
  if (fine === 1) {
    for (let i = 0; i < width * height; i++) into[i] = colours[cells[i]! + 1]!;
    return;
  }
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = (y * across + x) * 2;
      const a = cells[at]!,
        b = cells[at + 1]!,
        c = cells[at + across]!,
        d = cells[at + across + 1]!;
      into[y * width + x] = a === b && c === d && a === c ? colours[a + 1]! : mean(colours, a, b, c, d);
    }
  }
}

function mean(colours: Uint32Array, a: number, b: number, c: number, d: number): number {
  let even = 0,
    odd = 0,
    opaque = 0;
  for (const cell of [a, b, c, d]) {
    const colour = colours[cell + 1]!;
    if (colour >>> 24 === 0) continue;
    even += colour & 0xff00ff;
    odd += (colour >>> 8) & 0xff;
    opaque++;
  }
  if (opaque === 0) return 0;
  const red = Math.round((even & 0xffff) / opaque),
    blue = Math.round((even >>> 16) / opaque);
  const alpha = (opaque * 255) >> 2;
  return ((alpha << 24) | (blue << 16) | (Math.round(odd / opaque) << 8) | red) >>> 0;
}
