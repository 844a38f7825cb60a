import type { Bytes } from "./bytes.js";
import { CodecError, Refused } from "./errors.js";
import type { Json } from "./json_text.js";
import { KeyedDraws } from "./keyed_draws.js";
import { NOWHERE, parent, Quadtree } from "./quadtree.js";
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

/** Counts of a person's rows in listed cells of a quadtree, bounded by one rule. */
export class CellCounts {
  private readonly position: ReadonlyMap<number, number>;

  constructor(
    readonly tree: Quadtree, readonly cells: readonly number[],
    readonly rule: Rule, readonly most: number, readonly outside: Outside,
  ) {
    if (!cells.every((cell) => cell === NOWHERE || tree.isCell(cell))) {
      throw new CodecError(`the cells of a question have levels 0 to ${tree.depth} of its quadtree`);
    }
    this.position = new Map(cells.map((cell, at) => [cell, at]));
    if (this.position.size !== cells.length) throw new CodecError("a question lists a cell twice");
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
    const [partition, listed] = typed(cells, "the cells");
    if (partition !== "Leaves") throw new Refused(`this device counts in listed cells, not in ${plain(partition)}`);
    const leaves = fieldsOf(listed, "Leaves", "cells", "tree");
    const [tree] = typed(leaves["tree"], "the tree");
    if (tree !== "Quadtree") throw new Refused(`this device knows the cells of quadtrees, not of ${plain(tree)}`);
    const square = fieldsOfType(leaves["tree"], "Quadtree", "the quadtree", "depth", "left", "side", "top");
    const [left, top, side] = (["left", "top", "side"] as const).map((name) => real(square[name], name));
    return new CellCounts(
      new Quadtree(left!, top!, side!, whole(square["depth"], "the depth", 0, 24)),
      wholes(leaves["cells"], "the cells"), rule, whole(most, "the most rows or cells", 1, MOST_VOTES), nowhere,
    );
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
    const words = this.rule === "AtMostRows" ? counted.map((_, rank) => rank) : [...new Set(counted)];
    const drawn = words.map((word) => ({ number: draws.number(word), cell: this.rule === "AtMostRows" ? counted[word]! : word }));
    drawn.sort((a, b) => (a.number < b.number ? -1 : a.number > b.number ? 1 : 0));
    const sums = new Uint32Array(this.size);
    for (const { cell } of drawn.slice(0, this.most)) {
      const at = this.locate(cell);
      if (at !== undefined) sums[at]!++;
    }
    return sums;
  }

  /** The position of the deepest listed cell that holds a base cell. */
  private locate(base: number): number | undefined {
    if (base === NOWHERE) return this.position.get(NOWHERE);
    for (let cell = base; cell >= 1; cell = parent(cell)) {
      const at = this.position.get(cell);
      if (at !== undefined) return at;
    }
    return undefined;
  }
}

/** A name that a server gave, safe to repeat. */
const plain = (name: string): string => (/^[A-Za-z0-9]{1,40}$/.test(name) ? name : "something else");
