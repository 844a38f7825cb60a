/** The cell of what lies in no cell. */
export const NOWHERE = 0n;

/**
 * Cells that hold others: numbers of 64 bits. A *base* cell is one of the finest. It also has a shorter number, of which those
 * of a tree leave out few.
 */
export interface CellTree {
  readonly depth: number;
  /** The tree in words: trees of one name are the same. */
  readonly name: string;
  /** The first and the last of the short numbers. */
  readonly numbers: readonly [bigint, bigint];
  /** Whether a number is a cell of a level from 0 to the depth. */
  isCell(cell: bigint): boolean;
  /** The base cell of a point in degrees; `NOWHERE` outside of all, and for NaN. */
  baseCell(lon: number, lat: number): bigint;
  /** A base cell and the cells that hold it, the finest first. */
  holders(base: bigint): Iterable<bigint>;
  /** The short number of a base cell, and back. */
  number(base: bigint): bigint;
  numbered(number: bigint): bigint;
}
