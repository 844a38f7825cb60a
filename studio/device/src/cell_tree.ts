/** The cell of what lies in no cell. */
export const NOWHERE = 0n;

/** Cells that hold others: numbers of 64 bits. A *base* cell is one of the finest. */
export interface CellTree {
  readonly depth: number;
  /** Whether a number is a cell of a level from 0 to the depth. */
  isCell(cell: bigint): boolean;
  /** The base cell of a point in degrees; `NOWHERE` outside of all, and for NaN. */
  baseCell(lon: number, lat: number): bigint;
  /** A base cell and the cells that hold it, the finest first. */
  holders(base: bigint): Iterable<bigint>;
}
