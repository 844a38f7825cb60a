/** What a page shows of a release: layers of colours for its cells, and words about each of them. */

import type { Palette } from "../map/colours.js";
import type { Shapes } from "../map/shapes.js";
import type { Key } from "../words/catalogue.js";
import type { Words } from "../words/words.js";

/** The number of a slot of time; null for all of them together, and where there are none. */
export type Slot = number | null;

/** One of the cells that a list names. */
export interface Listed {
  readonly text: string;
  readonly part: number;
}

/** A release of some kind, as the page takes it. Painted parts are its `shapes`, those of all slots the same. */
export interface Subject {
  readonly shapes: Shapes;
  readonly layers: readonly string[];
  /** The layer that another one is compared with unless somebody chooses. */
  readonly certainty: string;
  readonly slots: readonly string[];
  /** Whether all slots together are a choice. */
  readonly together: boolean;
  name(layer: string, words: Words): string;
  /** The colour of each painted part; first that of no part. */
  colours(layer: string, slot: Slot, palette: Palette): Uint32Array;
  /** Which painted parts are hatched, first that of no part; null where none can be. */
  hatched(layer: string, slot: Slot): Uint8Array | null;
  /** What is said of hatched cells, and of the choice to hatch them. */
  hatching(layer: string): { readonly choice: Key; readonly legend: Key };
  legend(layer: string, slot: Slot, palette: Palette, words: Words): HTMLElement;
  /** What is known of a painted part: paragraphs and pictures. */
  facts(part: number, layer: string, slot: Slot, words: Words): readonly HTMLElement[];
  /** Of the whole map. */
  whole(slot: Slot, words: Words): readonly HTMLElement[];
  /** The densest cells; empty where the kind has no such list. */
  largest(slot: Slot, words: Words): readonly Listed[];
}
