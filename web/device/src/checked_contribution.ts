import type { Bytes, RandomBytes } from "../../shared/src/bytes.js";
import type { CellCounts, Place } from "./cell_counts.js";
import { polyaDifference } from "./polya_noise.js";
import type { SessionParameters } from "./session_parameters.js";

/**
 * A person's counts; zeros where anything goes wrong with their rows, for silence would tell that they were read.
 * `trouble` is for the person's own eyes.
 */
export function checkedContribution(
  counts: CellCounts,
  places: readonly Place[],
  key: Bytes,
): { sums: Uint32Array; trouble: string | null } {
  try {
    const sums = counts.contribution(places, key);
    if (sums.reduce((total, each) => total + each, 0) > counts.sensitivity)
      throw new RangeError("more votes than the rule allows");
    return { sums, trouble: null };
  } catch (error) {
    return { sums: new Uint32Array(counts.size), trouble: error instanceof Error ? error.name : "error" };
  }
}

/** The counts with this person's share of the noise, modulo 2^bits. */
export function noisy(sums: Uint32Array, terms: SessionParameters, random: RandomBytes): Uint32Array {
  const vector = Uint32Array.from(sums);
  for (const [place, jump] of polyaDifference(random, terms.parties, terms.scale, terms.size)) {
    vector[place] = Number(BigInt.asUintN(terms.bits, BigInt(vector[place]!) + jump));
  }
  return vector;
}
