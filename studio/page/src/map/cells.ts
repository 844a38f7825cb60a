/** The cells of a release in the page: their numbers, the parts that are painted, and the colours of those. */

import { unpack } from "../payload/arrays.js";
import type { PagePayload, Places } from "../payload/release.js";
import { type Layer, type Palette, position, relativeError, word } from "./colours.js";
import { Shapes } from "./shapes.js";
import type { Projection } from "./sheet.js";

/** What is known of one cell. */
export interface CellFacts {
  readonly index: number;
  readonly name: string;
  readonly count: number;
  readonly unbiased: number;
  readonly stddev: number;
  readonly low: number;
  readonly high: number;
  readonly area: number;
  /** Per ground unit, of the part that is looked at. */
  readonly density: number;
  readonly relative: number;
}

export class MapCells {
  private constructor(
    private readonly payload: PagePayload, readonly shapes: Shapes, private readonly owner: Int32Array | null,
    private readonly density: Float32Array, private readonly numbers: Record<Column, Float32Array>,
    private readonly names: (index: number) => string,
  ) {}

  static async of(payload: PagePayload, projection: Projection): Promise<MapCells> {
    const { cells } = payload, { fine } = cells;
    const columns = await Promise.all(COLUMNS.map((name) => unpack(cells[name])));
    const numbers = Object.fromEntries(COLUMNS.map((name, i) => [name, columns[i]!])) as Record<Column, Float32Array>;
    const [count, area] = fine ? await Promise.all([unpack(fine.count), unpack(fine.area)]) : [numbers.count, numbers.area];
    const density = count.map((number, i) => (area[i]! > 0 ? Math.max(number, 0) / area[i]! : 0));
    const [shapes, owner, names] = await Promise.all([
      Shapes.of(fine?.places ?? cells.places, projection), fine ? unpack(fine.cell) : null,
      namesOf(cells.places, cells.names),
    ]);
    return new MapCells(payload, shapes, owner, density, numbers, names);
  }

  /** How many cells have an interval each. */
  get count(): number {
    return this.numbers.count.length;
  }

  /** What is known of the cell that a painted part is of. */
  facts(part: number): CellFacts {
    const index = this.owner ? this.owner[part]! : part;
    const of = (name: Column) => this.numbers[name][index]!;
    return {
      index, name: this.names(index), count: of("count"), unbiased: of("unbiased"), stddev: of("stddev"),
      low: of("low"), high: of("high"), area: of("area"), density: this.density[part]!,
      relative: relativeError(of("count"), of("stddev")),
    };
  }

  /** A painted part of a cell. */
  partOf(cell: number): number {
    return this.owner ? this.owner.indexOf(cell) : cell;
  }

  /** The colour of each painted part in a layer; first that of no cell. */
  colours(layer: Layer, palette: Palette): Uint32Array {
    const colours = new Uint32Array(this.shapes.count + 1);
    const { count, stddev } = this.numbers;
    const { scales } = this.payload;
    const shades = Uint32Array.from({ length: 512 }, (_, i) => word(palette.shade(i / 511)));
    const errors = palette.errors.map((colour) => word(colour));
    for (let part = 0; part < this.shapes.count; part++) {
      const cell = this.owner ? this.owner[part]! : part;
      if (layer === "certainty") {
        colours[part + 1] = errors[palette.errorClass(relativeError(count[cell]!, stddev[cell]!))]!;
      } else {
        const place = layer === "density" ? position(scales.density, this.density[part]!)
          : position(scales.count, Math.max(count[cell]!, 0));
        colours[part + 1] = shades[Math.round(place * 511)]!;
      }
    }
    return colours;
  }

  /** Which painted parts are of a cell whose noise is larger than its number; first that of no cell, 0. */
  uncertain(): Uint8Array {
    const found = new Uint8Array(this.shapes.count + 1);
    for (let part = 0; part < this.shapes.count; part++) {
      const cell = this.owner ? this.owner[part]! : part;
      found[part + 1] = Number(relativeError(this.numbers.count[cell]!, this.numbers.stddev[cell]!) > 1);
    }
    return found;
  }
}

const COLUMNS = ["count", "unbiased", "stddev", "low", "high", "area"] as const;
type Column = (typeof COLUMNS)[number];

async function namesOf(places: Places, names: readonly string[] | null): Promise<(index: number) => string> {
  if (names !== null) return (index) => names[index] ?? "";
  if (places.shape === "rings" && places.h3) {
    const cells = await unpack(places.h3);
    return (index) => cells[index]!.toString(16).padStart(15, "0");
  }
  if (places.shape !== "squares") return () => "";
  const [level, column, row] = await Promise.all([unpack(places.level), unpack(places.column), unpack(places.row)]);
  const prefix = places.left === 0 && places.top === 0 && places.side === 1 && !places.plane ? "" : "root-";
  return (index) => {
    let digits = "";
    for (let bit = level[index]! - 1; bit >= 0; bit--) {
      digits += String(((column[index]! >>> bit) & 1) | (((row[index]! >>> bit) & 1) << 1));
    }
    return digits === "" ? "root" : prefix + digits;
  };
}
