import { ascii, type Bytes, type RandomBytes, sha256 } from "../../shared/src/bytes.js";
import { counterMode } from "./masks.js";

/** Members (ascending positions) by the words of a seed; by position where words tie. */
async function ordered(seed: Bytes, members: readonly number[]): Promise<number[]> {
  const last = members[members.length - 1] ?? 0;
  const stream = await counterMode(await sha256(ascii("hazemap 1 graph"), seed), 8 * (last + 1));
  const view = new DataView(stream.buffer);
  const word = (position: number): bigint => view.getBigUint64(8 * position, true);
  return [...members].sort((a, b) => (word(a) < word(b) ? -1 : word(a) > word(b) ? 1 : a - b));
}

/** The neighbours of a member on the ring of a seed, ascending. */
export async function ringNeighbours(
  seed: Bytes,
  members: readonly number[],
  degree: number,
  own: number,
): Promise<number[]> {
  if (degree >= members.length - 1) return members.filter((member) => member !== own);
  const ring = await ordered(seed, members);
  const at = ring.indexOf(own);
  const found: number[] = [];
  for (let step = 1; step <= degree / 2; step++) {
    found.push(ring[(at + step) % ring.length]!, ring[(at - step + ring.length) % ring.length]!);
  }
  return found.sort((a, b) => a - b);
}

/** So many other members, uniformly, ascending; all others if there are no more. */
export async function drawnNeighbours(
  random: RandomBytes,
  members: readonly number[],
  own: number,
  degree: number,
): Promise<number[]> {
  const others = members.filter((member) => member !== own);
  if (others.length <= degree) return others;
  const drawn = await ordered(random(32), others);
  return drawn.slice(0, degree).sort((a, b) => a - b);
}
