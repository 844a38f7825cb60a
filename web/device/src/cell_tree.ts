import { CodecError } from "./errors.js";

/** The cell of what lies in no cell. */
export const NOWHERE = 0n;
/** Cells of level 0 that a question may ask a device to find, of all its trees together. */
const MOST_ROOTS = 67_108;

/**
 * Cells that hold others: numbers of 64 bits. A *base* cell is one of the finest. It also has a shorter number, of which those
 * of a tree leave out few.
 */
export interface CellTree {
  readonly depth: number;
  /** How many cells of level 0 there are, about. */
  readonly rootsAbout: number;
  /** The tree in words: trees of one name are the same. */
  readonly name: string;
  /** The first and the last of the short numbers. */
  readonly numbers: readonly [bigint, bigint];
  /** Whether a number is a cell of a level from 0 to the depth. */
  isCell(cell: bigint): boolean;
  /** The base cell of a point in degrees; `NOWHERE` outside of all, and for NaN. */
  baseCell(lon: number, lat: number): bigint;
  /** Square metres of a cell; `RangeError` for a number that is none. */
  area(cell: bigint): number;
  /** Square metres of all cells of level 0 together. */
  wholeArea(): number;
  /** A base cell and the cells that hold it, the finest first. */
  holders(base: bigint): Iterable<bigint>;
  /** The short number of a base cell, and back. */
  number(base: bigint): bigint;
  numbered(number: bigint): bigint;
}

/** `CodecError` where the trees of one question have too many cells of level 0 to find. */
export function checkRoots(...trees: readonly CellTree[]): void {
  if (trees.reduce((sum, { rootsAbout }) => sum + rootsAbout, 0) > MOST_ROOTS)
    throw new CodecError("this task cuts its boxes into too many cells at once");
}
