import type { Place } from "./cell_counts.js";
import { type CellTree, checkRoots, NOWHERE } from "./cell_tree.js";
import { CodecError, UnknownKind } from "./errors.js";
import { Box, Hexagons } from "./hexagons.js";
import type { Json } from "./json_text.js";
import { Quadtree } from "./quadtree.js";
import { readSlots, type TimeSlots } from "./time_slots.js";
import { fieldsOf, fieldsOfType, real, typed, whole, wholes } from "./typed_json.js";

const MOST_NUMBERS = 1 << 25;
/** Trees of places that hazemap's own device knows, and others that it refuses. */
const TREES = [
  "Grids",
  "Cuts",
  "Districts",
  "Marked",
  "Parcels",
  "CutDistricts",
  "Measured",
  "Magnitudes",
  "Valued",
  "TimedTree",
];
/** How the codec calls a list of cells. */
export const LISTED = "Leaves";

/** The cells in which rows are counted. A row lies in one *base* cell, which has one position of the answer at most. */
export interface CountedCells {
  readonly size: number;
  /** Where it matters when a row was. */
  readonly slots: TimeSlots | null;
  /** Square metres of the smallest cell; `RangeError` for cells that are none. */
  smallest(): number;
  baseCell(place: Place): bigint;
  position(base: bigint): number | undefined;
}

/** Cells of a question as the codec writes them; `Refused` for kinds that this device does not count in. */
export function readCountedCells(json: Json | undefined): CountedCells {
  const [kind, value] = typed(json, "the cells");
  return kind === "AllSlots" || kind === "EachSlot" ? timed(value, kind) : untimed(json);
}

function untimed(json: Json | undefined): CountedCells & { readonly tree: CellTree } {
  const [kind, value] = typed(json, "the cells");
  if (kind === LISTED) return listed(cellsOf(json));
  if (kind === "Everything") {
    const tree = treeOf(fieldsOf(value, "everything", "tree")["tree"]);
    checkRoots(tree);
    return everything(tree);
  }
  if (kind === "Sides") throw new UnknownKind(kind, "this device keeps no marks");
  throw new CodecError(`a question asks about listed cells, or about all of them, not about ${plain(kind)}`);
}

/** The deepest listed cell that holds a base cell. */
function listed({ tree, cells }: ListedCells): CountedCells & ListedCells {
  const positions = new Map(cells.map((cell, at) => [cell, at]));
  const position = (base: bigint): number | undefined => {
    if (base === NOWHERE) return positions.get(NOWHERE);
    for (const cell of tree.holders(base)) {
      const at = positions.get(cell);
      if (at !== undefined) return at;
    }
    return undefined;
  };
  const smallest = (): number =>
    cells.reduce((least, cell) => (cell === NOWHERE ? least : Math.min(least, tree.area(cell))), Infinity);
  return {
    tree,
    cells,
    size: cells.length,
    slots: null,
    smallest,
    baseCell: ({ lon, lat }) => tree.baseCell(lon, lat),
    position,
  };
}

/** All cells of a tree together. */
function everything(tree: CellTree): CountedCells & { readonly tree: CellTree } {
  return {
    tree,
    size: 1,
    slots: null,
    smallest: () => tree.wholeArea(),
    baseCell: ({ lon, lat }) => tree.baseCell(lon, lat),
    position: (base) => (base === NOWHERE ? undefined : 0),
  };
}

/** Places in slots: in all of them together, or the slots of each cell one after another. A base cell is a place in a slot. */
function timed(value: Json, kind: "AllSlots" | "EachSlot"): CountedCells {
  const { cells, tree } = fieldsOf(value, kind, "cells", "tree");
  const own = fieldsOfType(tree, "TimedTree", "the tree of slots", "slots", "tree");
  const [inner, outer, slots] = [untimed(cells), treeOf(own["tree"]), readSlots(own["slots"])];
  checkRoots(inner.tree, outer);
  if (inner.tree.name !== outer.name)
    throw new CodecError("cells that are asked for in slots are of the tree that the slots are about");
  const many = BigInt(slots.many);
  const [first, last] = outer.numbers;
  if ((last - first + 1n) * many >= 1n << 63n) throw new CodecError("places in slots are more than 63 bits hold");
  const each = kind === "EachSlot";
  const size = each ? inner.size * slots.many : inner.size;
  if (each && inner.position(NOWHERE) !== undefined) throw new CodecError("who is nowhere is in no slot either");
  if (size > MOST_NUMBERS) throw new CodecError(`cells in slots are more than ${MOST_NUMBERS} numbers`);
  const baseCell = ({ lon, lat, time }: Place): bigint => {
    const [cell, slot] = [outer.baseCell(lon, lat), slots.at(time)];
    return cell === NOWHERE || slot < 0 ? NOWHERE : 1n + (outer.number(cell) - first) * many + BigInt(slot);
  };
  const position = (base: bigint): number | undefined => {
    if (base === NOWHERE) return inner.position(NOWHERE);
    const at = inner.position(outer.numbered((base - 1n) / many + first));
    return each && at !== undefined ? at * slots.many + Number((base - 1n) % many) : at;
  };
  return { size, slots, smallest: inner.smallest, baseCell, position };
}

interface ListedCells {
  readonly tree: CellTree;
  readonly cells: readonly bigint[];
}

/** Listed cells of a tree, as the codec writes them; `Refused` for trees that this device does not know. */
export function cellsOf(json: Json | undefined): ListedCells {
  const leaves = fieldsOfType(json, LISTED, "the cells", "cells", "tree");
  const [tree, cells] = [treeOf(leaves["tree"]), wholes(leaves["cells"], "the cells")];
  checkRoots(tree);
  if (!cells.every((cell) => cell === NOWHERE || tree.isCell(cell))) {
    throw new CodecError(`the cells of a question have levels 0 to ${tree.depth} of its tree`);
  }
  if (new Set(cells).size !== cells.length) throw new CodecError("a question lists a cell twice");
  return { tree, cells };
}

function treeOf(json: Json | undefined): CellTree {
  const [kind, value] = typed(json, "the tree");
  switch (kind) {
    case "Quadtree": {
      const square = fieldsOf(value, "the quadtree", "depth", "left", "side", "top");
      const [left, top, side] = (["left", "top", "side"] as const).map((name) => real(square[name], name));
      return new Quadtree(left!, top!, side!, whole(square["depth"], "the depth", 0, 24));
    }
    case "Hexagons": {
      const { box, coarsest, finest } = fieldsOf(value, "the hexagons", "box", "coarsest", "finest");
      const edges = fieldsOfType(box, "Box", "the box", "east", "north", "south", "west");
      const [west, south, east, north] = (["west", "south", "east", "north"] as const).map((name) =>
        real(edges[name], name),
      );
      return new Hexagons(
        new Box(west!, south!, east!, north!),
        whole(coarsest, "the coarsest", 0, 15),
        whole(finest, "the finest", 0, 15),
      );
    }
  }
  if (TREES.includes(kind))
    throw new UnknownKind(kind, `this device knows the cells of quadtrees and hexagons, not of ${plain(kind)}`);
  throw new CodecError(`there is no tree of cells called ${plain(kind)}`);
}

/** A name that a server gave, safe to repeat. */
export const plain = (name: string): string => (/^[A-Za-z0-9]{1,40}$/.test(name) ? name : "something else");
