/** What the page is given of a release: JSON that `hazemap.releases.page` writes. */

import type { Estimand } from "../../../shared/src/estimand.js";
import type { Leading } from "../words/words.js";
import type { PackedArray } from "./arrays.js";

/** The version of the data that this page reads. */
export const VERSION = 1;

/**
 * Where cells are. Squares are on a sheet of side 1 (Web Mercator, or the plane); boxes in degrees; rings in `unit`
 * degrees, as differences: adding to each number the one `lag` before it, for each of the lags in turn, undoes them.
 * `ring` says which point each ring begins, `cell` which ring each cell, both with the end. Hexagons have `h3` too.
 */
export type Places =
  | {
      readonly shape: "squares";
      readonly level: PackedArray<"uint8">;
      readonly column: PackedArray<"uint32">;
      readonly row: PackedArray<"uint32">;
      readonly left: number;
      readonly top: number;
      readonly side: number;
      readonly plane: boolean;
    }
  | {
      readonly shape: "boxes";
      readonly west: PackedArray<"float64">;
      readonly south: PackedArray<"float64">;
      readonly east: PackedArray<"float64">;
      readonly north: PackedArray<"float64">;
    }
  | {
      readonly shape: "rings";
      readonly points: PackedArray<"int32">;
      readonly unit: number;
      readonly lags: readonly number[];
      readonly ring: PackedArray<"int32">;
      readonly cell: PackedArray<"int32">;
      readonly h3?: PackedArray<"uint64">;
    };

/** A plane that is not the ground: its unit and where its square lies. */
export interface Plane {
  readonly unit: string;
  readonly crs: string;
  readonly down: boolean;
  readonly x: number;
  readonly y: number;
  readonly size: number;
}

/** Colour at asinh(d / low) / asinh(high / low). */
export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly densest: number;
}

/** Numbers of cells, in the order of their places. */
export interface Cells {
  readonly places: Places;
  readonly names: readonly string[] | null;
  readonly best_guess: PackedArray<"float32">;
  readonly unbiased: PackedArray<"float32">;
  readonly stddev: PackedArray<"float32">;
  readonly low: PackedArray<"float32">;
  readonly high: PackedArray<"float32">;
  /** In the ground unit. */
  readonly area: PackedArray<"float32">;
  /** The map cut finer, as pictures show it; `cell` is the position of the cell that each part is of. */
  readonly fine: {
    readonly places: Places;
    readonly cell: PackedArray<"int32">;
    readonly best_guess: PackedArray<"float32">;
    readonly area: PackedArray<"float32">;
  } | null;
}

type Ring = readonly (readonly [number, number])[];

/** Areas, lines and names of places, in degrees: what `hazemap.base_map` gives. */
export interface Base {
  readonly land: readonly (readonly Ring[])[];
  readonly lakes: readonly (readonly Ring[])[];
  readonly rivers: readonly Ring[];
  readonly borders: readonly Ring[];
  readonly states: readonly Ring[];
  readonly places: readonly (readonly [number, number, string, number])[];
  readonly source: string;
}

/** What a page is told of every kind of release. */
export interface Facts {
  readonly page: number;
  readonly title: string;
  readonly estimand: Estimand;
  readonly line: string;
  readonly text: string;
  readonly statement: { readonly [field: string]: unknown };
  readonly method: string;
  readonly unit: string;
  readonly plane: Plane | null;
  readonly colours: {
    readonly density: readonly string[];
    readonly error: readonly string[];
    readonly breaks: readonly number[];
    readonly unknown: string;
  };
  readonly base: Base | null;
  /** Lines that somebody drew over it, and the part to show at first: west, south, east, north. */
  readonly outlines?: readonly Ring[];
  readonly box?: readonly [number, number, number, number];
}

/** The densest cells, with intervals that hold although these cells were chosen; `cell` is a position among cells. */
export type Densest = readonly (Leading & { readonly cell: number })[];

export interface Scales {
  readonly density: Scale;
  readonly count: Scale;
}

/** What a page is told of a map of counts. */
export interface CountFacts extends Facts {
  readonly total: Leading;
  readonly nowhere: Leading | null;
  readonly said: string;
  readonly densest: Densest;
  readonly scales: Scales;
  readonly cells: Cells;
  readonly asking: unknown;
}

export interface MapPayload extends CountFacts {
  readonly kind: "map";
}

/** A map with time: all slots together, and the numbers of every slot, one slot after another. */
export interface SlotsPayload extends CountFacts {
  readonly kind: "slots";
  readonly slots: {
    readonly names: readonly string[];
    /** The cells that are counted in every slot; all slots have the same `stddev`. */
    readonly cells: Omit<Cells, "fine">;
    /** Which of these each of the total's cells lies in. */
    readonly holder: PackedArray<"int32">;
    readonly totals: readonly Leading[];
    readonly densest: readonly Densest[];
    readonly scales: Scales;
  };
}

/** A map with marks: which share of the people of each cell carries each of them, as parts of 1. */
export interface MarksPayload extends CountFacts {
  readonly kind: "marks";
  readonly marks: readonly {
    readonly name: string;
    readonly share: PackedArray<"float32">;
    readonly low: PackedArray<"float32">;
    readonly high: PackedArray<"float32">;
    readonly whole: { readonly value: number | null; readonly low: number; readonly high: number };
  }[];
  /** The ends of the colour scale; and how wide an interval is that says too little to be shown. */
  readonly shares: EvenScale;
  readonly wide: number;
}

/** Even steps of colour from one number to another. */
export interface EvenScale {
  readonly low: number;
  readonly high: number;
}

/** Statistics of a value: numbers of every cell, one slot after another, NaN where too few people are. */
export interface ValuesPayload extends Facts {
  readonly kind: "values";
  /** The name of what was measured, and the ends that it was clipped to. */
  readonly value: string;
  readonly bounds: readonly [number, number];
  readonly slots: readonly string[];
  readonly threshold: number;
  /** For how many records a person counts in a mean: 1 in one of people's own means; null in one of all records. */
  readonly records: number | null;
  /** How wide the finest bins of quantiles are; null without quantiles. */
  readonly bin_width: number | null;
  readonly said: string;
  readonly cells: Pick<Cells, "places" | "names" | "area">;
  readonly people: {
    readonly count: PackedArray<"float32">;
    readonly stddev: number;
    readonly margin: number;
    readonly most: number;
  };
  readonly statistics: readonly {
    readonly name: string;
    readonly value: PackedArray<"float32">;
    readonly stddev: PackedArray<"float32">;
    readonly low: PackedArray<"float32">;
    readonly high: PackedArray<"float32">;
    readonly bias: PackedArray<"float32"> | null;
    readonly scale: EvenScale;
  }[];
  /** The best guess of the mean, between a place's own and what its cell and its slot are like elsewhere. */
  readonly guess: {
    readonly value: PackedArray<"float32">;
    readonly stddev: PackedArray<"float32">;
    readonly scale: EvenScale;
  };
  readonly histogram: {
    readonly edges: readonly number[];
    readonly people: PackedArray<"float32">;
    readonly margin: number;
  } | null;
}

/** What changed since another release: of each cell the difference, its interval, and 1 where noise does not explain it. */
export interface DifferencePayload extends Facts {
  readonly kind: "difference";
  readonly before: { readonly title: string; readonly line: string };
  readonly cells: Pick<Cells, "places" | "names">;
  readonly difference: PackedArray<"float32">;
  readonly stddev: PackedArray<"float32">;
  readonly low: PackedArray<"float32">;
  readonly high: PackedArray<"float32">;
  readonly area: PackedArray<"float32">;
  readonly changed: PackedArray<"uint8">;
  /** Where the colours end, to either side: of counts, and of counts in the ground unit. */
  readonly most: number;
  readonly most_density: number;
}

export type PagePayload = MapPayload | SlotsPayload | MarksPayload | ValuesPayload | DifferencePayload;

/** The data in the document; throws, in words, where there is none or of another version. */
export function readPayload(text: string): PagePayload {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Error("this page holds no release: hazemap show map.parquet -o map.html makes one that does");
  }
  const payload = data as PagePayload;
  if (payload === null || typeof payload !== "object" || payload.page !== VERSION) {
    throw new Error("the data in this page is of another version: make the page anew with hazemap show");
  }
  return payload;
}
