import type { Bytes } from "./bytes.js";
import { type CellTree, NOWHERE } from "./cell_tree.js";
import { CodecError, Refused } from "./errors.js";
import { Box, Hexagons } from "./hexagons.js";
import type { Json } from "./json_text.js";
import { KeyedDraws } from "./keyed_draws.js";
import { Quadtree } from "./quadtree.js";
import { fieldsOf, fieldsOfType, real, typed, whole, wholes } from "./typed_json.js";

/** Where somebody was, in degrees. */
export interface Place {
  readonly lon: number;
  readonly lat: number;
}

type Rule = "AtMostRows" | "AtMostCells";
/** What becomes of rows in no cell: dropped, counted, or counted for who has no other. */
type Outside = boolean | "people";

const MOST_VOTES = 2 ** 31;

/** Counts of a person's rows in listed cells of a tree, bounded by one rule. */
export class CellCounts {
  private readonly position: ReadonlyMap<bigint, number>;

  constructor(
    readonly tree: CellTree, readonly cells: readonly bigint[],
    readonly rule: Rule, readonly most: number, readonly outside: Outside,
  ) {
    this.position = new Map(cells.map((cell, at) => [cell, at]));
  }

  /** As the codec writes it; `Refused` for questions of other kinds. */
  static read(json: Json | undefined): CellCounts {
    const [encoder, counts] = typed(json, "the encoder");
    if (encoder !== "Counts") throw new Refused(`this device answers counts of rows in cells, not ${plain(encoder)}`);
    const { cells, bounding } = fieldsOf(counts, "Counts", "bounding", "cells");
    const [rule, bound] = typed(bounding, "the bounding rule");
    if (rule !== "AtMostRows" && rule !== "AtMostCells") {
      throw new Refused(`this device bounds its rows by AtMostRows or AtMostCells, not by ${plain(rule)}`);
    }
    const { most, nowhere } = fieldsOf(bound, rule, "most", "nowhere");
    if (nowhere !== "people" && typeof nowhere !== "boolean") throw new CodecError("'nowhere' is true, false or \"people\"");
    const [partition] = typed(cells, "the cells");
    if (partition !== LISTED) throw new Refused(`this device counts in listed cells, not in ${plain(partition)}`);
    const found = cellsOf(cells);
    return new CellCounts(found.tree, found.cells, rule, whole(most, "the most rows or cells", 1, MOST_VOTES), nowhere);
  }

  get size(): number {
    return this.cells.length;
  }

  /** How far one person can move the sums: Δ₁. */
  get sensitivity(): number {
    return this.most;
  }

  /** What a person adds to each sum. O(rows · (depth + log rows)). */
  contribution(places: readonly Place[], key: Bytes): Uint32Array {
    const every = places.map(({ lon, lat }) => this.tree.baseCell(lon, lat));
    const inside = every.filter((cell) => cell !== NOWHERE);
    const counted = this.outside === true || (this.outside === "people" && !inside.length) ? every : inside;
    const draws = new KeyedDraws(key, this.rule);
    const words = this.rule === "AtMostRows" ? counted.map((_, rank) => BigInt(rank)) : [...new Set(counted)];
    const drawn = words.map((word) => ({ number: draws.number(word), cell: this.rule === "AtMostRows" ? counted[Number(word)]! : word }));
    drawn.sort((a, b) => (a.number < b.number ? -1 : a.number > b.number ? 1 : 0));
    const sums = new Uint32Array(this.size);
    for (const { cell } of drawn.slice(0, this.most)) {
      const at = this.locate(cell);
      if (at !== undefined) sums[at]!++;
    }
    return sums;
  }

  /** The position of the deepest listed cell that holds a base cell. */
  private locate(base: bigint): number | undefined {
    if (base === NOWHERE) return this.position.get(NOWHERE);
    for (const cell of this.tree.holders(base)) {
      const at = this.position.get(cell);
      if (at !== undefined) return at;
    }
    return undefined;
  }
}

/** How the codec calls a list of cells. */
export const LISTED = "Leaves";

/** Listed cells of a tree, as the codec writes them; `Refused` for trees that this device does not know. */
export function cellsOf(json: Json | undefined): { readonly tree: CellTree; readonly cells: readonly bigint[] } {
  const leaves = fieldsOfType(json, LISTED, "the cells", "cells", "tree");
  const [tree, cells] = [treeOf(leaves["tree"]), wholes(leaves["cells"], "the cells")];
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
      const [west, south, east, north] = (["west", "south", "east", "north"] as const).map((name) => real(edges[name], name));
      return new Hexagons(new Box(west!, south!, east!, north!), whole(coarsest, "the coarsest", 0, 15), whole(finest, "the finest", 0, 15));
    }
  }
  throw new Refused(`this device knows the cells of quadtrees and hexagons, not of ${plain(kind)}`);
}

/** A name that a server gave, safe to repeat. */
const plain = (name: string): string => (/^[A-Za-z0-9]{1,40}$/.test(name) ? name : "something else");
