/** The cells of a map of counts in the page: their numbers, the parts that are painted, and the colours of those. */

import { unpack } from "../payload/arrays.js";
import type { Cells, Scales } from "../payload/release.js";
import { namesOf } from "./cell_names.js";
import { type Palette, position, relativeError, word } from "./colours.js";

/** Layers of counts. */
export type CountLayer = "density" | "count" | "certainty";
export const COUNT_LAYERS: readonly CountLayer[] = ["density", "count", "certainty"];

/** What is known of one cell. */
export interface CellFacts {
  readonly index: number;
  readonly name: string;
  readonly best_guess: number;
  readonly unbiased: number;
  readonly stddev: number;
  readonly low: number;
  readonly high: number;
  readonly area: number;
  /** Per ground unit, of the part that is looked at. */
  readonly density: number;
  readonly relative: number;
}

const COLUMNS = ["best_guess", "unbiased", "stddev", "low", "high", "area"] as const;
export type Column = (typeof COLUMNS)[number];

export class MapCells {
  private doubtful: Uint8Array | undefined;

  /** `owner` is the cell of each painted part where these are not the cells themselves; `density` is of parts. */
  constructor(
    private readonly scales: Scales,
    private readonly owner: Int32Array | null,
    private readonly density: Float32Array,
    readonly numbers: Readonly<Record<Column, Float32Array>>,
    private readonly names: (index: number) => string,
  ) {}

  static async of(cells: Cells, scales: Scales): Promise<MapCells> {
    const { fine } = cells;
    const columns = await Promise.all(COLUMNS.map((name) => unpack(cells[name])));
    const numbers = Object.fromEntries(COLUMNS.map((name, i) => [name, columns[i]!])) as Record<Column, Float32Array>;
    const [count, area] = fine
      ? await Promise.all([unpack(fine.best_guess), unpack(fine.area)])
      : [numbers.best_guess, numbers.area];
    const owner = fine ? await unpack(fine.cell) : null;
    return new MapCells(scales, owner, densities(count, area), numbers, await namesOf(cells.places, cells.names));
  }

  /** What is known of the cell that a painted part is of. */
  facts(part: number): CellFacts {
    const index = this.cellOf(part);
    const of = (name: Column) => this.numbers[name][index]!;
    return {
      index,
      name: this.names(index),
      best_guess: of("best_guess"),
      unbiased: of("unbiased"),
      stddev: of("stddev"),
      low: of("low"),
      high: of("high"),
      area: of("area"),
      density: this.density[part]!,
      relative: relativeError(of("best_guess"), of("stddev")),
    };
  }

  /** The cell that a painted part is of. */
  cellOf(part: number): number {
    return this.owner ? this.owner[part]! : part;
  }

  /** A painted part of a cell. */
  partOf(cell: number): number {
    return this.owner ? this.owner.indexOf(cell) : cell;
  }

  /** The colour of each painted part in a layer; first that of no cell. */
  colours(layer: CountLayer, palette: Palette): Uint32Array {
    const { scales, density } = this,
      { best_guess: count, stddev } = this.numbers;
    const colours = new Uint32Array(density.length + 1);
    const shades = palette.table(512);
    const errors = palette.errors.map((colour) => word(colour));
    for (let part = 0; part < density.length; part++) {
      const cell = this.cellOf(part);
      if (layer === "certainty") {
        colours[part + 1] = errors[palette.errorClass(relativeError(count[cell]!, stddev[cell]!))]!;
      } else {
        const place =
          layer === "density"
            ? position(scales.density, density[part]!)
            : position(scales.count, Math.max(count[cell]!, 0));
        colours[part + 1] = shades[Math.round(place * 511)]!;
      }
    }
    return colours;
  }

  /** Which painted parts are of a cell whose noise is larger than its number; first that of no cell, 0. */
  get uncertain(): Uint8Array {
    if (this.doubtful) return this.doubtful;
    const found = new Uint8Array(this.density.length + 1);
    for (let part = 0; part < this.density.length; part++) {
      const cell = this.cellOf(part);
      found[part + 1] = Number(relativeError(this.numbers.best_guess[cell]!, this.numbers.stddev[cell]!) > 1);
    }
    return (this.doubtful = found);
  }
}

/** Numbers per area; 0 where there is no ground. */
export function densities(count: Float32Array, area: Float32Array): Float32Array {
  return count.map((number, i) => (area[i]! > 0 ? Math.max(number, 0) / area[i]! : 0));
}
