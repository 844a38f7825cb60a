import { type Bytes, equal, sha256 } from "../../shared/src/bytes.js";

/** Whether a path proves that this identity is at this position of so many clients (RFC 9162, section 2.1.3.2). */
export async function belongs(
  root: Bytes,
  clients: number,
  position: number,
  identity: Bytes,
  path: readonly Bytes[],
): Promise<boolean> {
  if (position >= clients) return false;
  let [found, at, last, used] = [await sha256(Uint8Array.of(0), identity), position, clients - 1, 0];
  while (last > 0) {
    if (at % 2 || at < last) {
      const step = path[used++];
      if (!step) return false;
      found = await (at % 2 ? sha256(Uint8Array.of(1), step, found) : sha256(Uint8Array.of(1), found, step));
    }
    [at, last] = [Math.floor(at / 2), Math.floor(last / 2)];
  }
  return used === path.length && equal(found, root);
}
