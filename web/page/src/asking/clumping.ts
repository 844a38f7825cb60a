/** How unevenly people lie inside cells: `hazemap.estimate.overdispersion`, number by number. */

import { type PackedArray, unpack } from "../payload/arrays.js";
import { positions } from "./packed_positions.js";

const EDGES = [0, 1.5, 3, 6, 12, 25, 50];
const FEWEST = 5; // families that tell the D of a kind
const DEEPER = 2; // how many times as much people may clump inside cells as in the families above them

/** D of the people in a cell, by how many there are, in kinds of so many `error`s. */
export interface Clumping {
  readonly error: number;
  readonly parts: readonly number[];
}

/** D of cells that hold this many people. */
export function clumpedAt(clumping: Clumping, people: number): number {
  const part = clumping.parts[Math.max(kindOf(clumping.error, people), 0)]!;
  return part + (1 - part) / Math.max(people, 1);
}

function kindOf(error: number, people: number): number {
  return EDGES.findLastIndex((edge) => edge * error <= people);
}

/** Cells of one level and those around others: the place of each one's parent, its place in the map (or −1), its area. */
export interface Generation {
  readonly parent: Int32Array;
  readonly leaf: Int32Array;
  readonly area: Float64Array;
}

/** A generation as the page's data holds it. */
export interface GenerationData {
  readonly parent: PackedArray<"int32">;
  readonly leaf: PackedArray<"int32">;
  readonly area: PackedArray<"int32" | "float64">;
}

export async function generation(data: GenerationData): Promise<Generation> {
  const [parent, leaf, area] = await Promise.all([positions(data.parent), positions(data.leaf), unpack(data.area)]);
  return { parent, leaf, area: Float64Array.from(area) };
}

/** Learnt from the numbers of a map, by its generations from the coarsest with a cell of the map down. */
export function clumpingOf(
  generations: readonly Generation[],
  unbiased: Float64Array,
  values: Float64Array,
  stddev: Float64Array,
): Clumping {
  const sorted = stddev.slice().sort();
  const half = sorted.length / 2;
  const error = (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2 || 1;
  const families = EDGES.map((): Family[] => []);
  let below = new Sums(0);
  for (const each of [...generations].reverse()) {
    const ours = new Sums(each.leaf.length);
    let next = 0;
    each.leaf.forEach((leaf, at) => {
      if (leaf < 0) ours.set(at, below.unbiased[next]!, below.people[next]!, below.variance[next++]!);
      else ours.set(at, unbiased[leaf]!, Math.max(values[leaf]!, 0), stddev[leaf]! ** 2);
    });
    below = familiesOf(each, ours, (family) => families[Math.max(kindOf(error, family.people), 0)]!.push(family));
  }
  return { error, parts: filled(families.map(told)) };
}

/** Of a cell with cells of the map among its parts: Σ (n_j − m_j P)² and P² Σ m_j (1 − m_j), beyond noise, and P. */
interface Family {
  readonly beyond: number;
  readonly even: number;
  readonly people: number;
}

/** Unbiased numbers, best guesses and variances of some cells. */
class Sums {
  readonly unbiased: Float64Array;
  readonly people: Float64Array;
  readonly variance: Float64Array;

  constructor(readonly size: number) {
    this.unbiased = new Float64Array(size);
    this.people = new Float64Array(size);
    this.variance = new Float64Array(size);
  }

  set(at: number, unbiased: number, people: number, variance: number): void {
    this.unbiased[at] = unbiased;
    this.people[at] = people;
    this.variance[at] = variance;
  }
}

/** Calls `tell` with each family that tells something; the sums of all of them. */
function familiesOf({ parent, leaf, area }: Generation, ours: Sums, tell: (family: Family) => void): Sums {
  const size = parent.reduce((most, each) => Math.max(most, each), -1) + 1;
  const whole = new Sums(size);
  const [ground, even, beyond] = [new Float64Array(size), new Float64Array(size), new Float64Array(size)];
  const [members, own] = [new Int32Array(size), new Uint8Array(size)];
  parent.forEach((above, at) => {
    whole.unbiased[above]! += ours.unbiased[at]!;
    whole.people[above]! += ours.people[at]!;
    whole.variance[above]! += ours.variance[at]!;
    ground[above]! += area[at]!;
    members[above]! += 1;
    if (leaf[at]! >= 0) own[above] = 1;
  });
  parent.forEach((above, at) => {
    const share = ground[above]! > 0 ? area[at]! / ground[above]! : 0;
    const noise = (1 - 2 * share) * ours.variance[at]! + share ** 2 * whole.variance[above]!;
    beyond[above]! += (ours.unbiased[at]! - share * whole.unbiased[above]!) ** 2 - noise;
    even[above]! += share * (1 - share);
  });
  const kept = Array.from(members.keys()).filter((at) => members[at]! > 0);
  const found = new Sums(kept.length);
  for (const [place, at] of kept.entries()) {
    const [unbiased, people, variance] = [whole.unbiased[at]!, whole.people[at]!, whole.variance[at]!];
    found.set(place, unbiased, people, variance);
    if (members[at]! > 1 && own[at]) {
      tell({ beyond: beyond[at]!, even: (unbiased ** 2 - variance) * even[at]!, people });
    }
  }
  return found;
}

/** What some families tell of D; undefined where they are too few. */
function told(families: readonly Family[]): number | undefined {
  const sum = (of: (family: Family) => number) => families.reduce((total, family) => total + of(family), 0);
  const even = sum((family) => family.even);
  if (families.length < FEWEST || !(even > 0)) return undefined;
  const found = sum((family) => family.beyond) / even;
  const doubt = Math.sqrt(sum((family) => (family.beyond - found * family.even) ** 2)) / even;
  return DEEPER * (Math.max(found, 0) + doubt);
}

/** Kinds that no families tell of, from the nearest kind, and at least half above it; 1 where nothing is known. */
function filled(parts: readonly (number | undefined)[]): number[] {
  const known = parts.flatMap((part, at) => (part === undefined ? [] : [at]));
  return parts.map((_, at) => {
    if (!known.length) return 1;
    const nearest = known.reduce((best, each) => (Math.abs(at - each) < Math.abs(at - best) ? each : best));
    const part = at > nearest ? Math.max(parts[nearest]!, 0.5) : parts[nearest]!;
    return Math.min(Math.max(part, 0.05), 1);
  });
}
