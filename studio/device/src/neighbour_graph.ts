import { ascii, type Bytes, type RandomBytes, sha256 } from "./bytes.js";
import { counterMode } from "./masks.js";

/** Members (ascending positions) by the words of a seed; by position where words tie. */
function ordered(seed: Bytes, members: readonly number[]): number[] {
  const last = members[members.length - 1] ?? 0;
  const stream = counterMode(sha256(ascii("hazemap 1 graph"), seed), 8 * (last + 1));
  const view = new DataView(stream.buffer, stream.byteOffset, stream.byteLength);
  const word = (position: number): bigint => view.getBigUint64(8 * position, true);
  return [...members].sort((a, b) => (word(a) < word(b) ? -1 : word(a) > word(b) ? 1 : a - b));
}

/** The neighbours of a member on the ring of a seed, ascending. */
export function ringNeighbours(seed: Bytes, members: readonly number[], degree: number, own: number): number[] {
  if (degree >= members.length - 1) return members.filter((member) => member !== own);
  const ring = ordered(seed, members);
  const at = ring.indexOf(own);
  const found: number[] = [];
  for (let step = 1; step <= degree / 2; step++) {
    found.push(ring[(at + step) % ring.length]!, ring[(at - step + ring.length) % ring.length]!);
  }
  return found.sort((a, b) => a - b);
}

/** So many other members, uniformly, ascending; all others if there are no more. */
export function drawnNeighbours(random: RandomBytes, members: readonly number[], own: number, degree: number): number[] {
  const others = members.filter((member) => member !== own);
  if (others.length <= degree) return others;
  return ordered(random(32), others).slice(0, degree).sort((a, b) => a - b);
}
