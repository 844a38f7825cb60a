import type { Bytes } from "./bytes.js";

const WORD = (1n << 64n) - 1n;
const BLOCK = 128;
const IV = [
  0x6a09e667f3bcc908n,
  0xbb67ae8584caa73bn,
  0x3c6ef372fe94f82bn,
  0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n,
  0x9b05688c2b3e6c1fn,
  0x1f83d9abfb41bd6bn,
  0x5be0cd19137e2179n,
];
/** RFC 7693, section 2.7. */
const SIGMA = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const MIXED = [
  [0, 4, 8, 12],
  [1, 5, 9, 13],
  [2, 6, 10, 14],
  [3, 7, 11, 15],
  [0, 5, 10, 15],
  [1, 6, 11, 12],
  [2, 7, 8, 13],
  [3, 4, 9, 14],
] as const;

const words = (bytes: Bytes): bigint[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / 8 }, (_, i) => view.getBigUint64(8 * i, true));
};

/** Two words of BLAKE2b (RFC 7693) of at most 128 bytes, 16 bytes long, with this personalisation: WebCrypto has none. */
export function blake2bWords(message: Bytes, person: Bytes): [bigint, bigint] {
  if (message.length > BLOCK || person.length > 16)
    throw new RangeError("one block and 16 bytes of personalisation at most");
  const parameters = new Uint8Array(64);
  parameters.set([16, 0, 1, 1]);
  parameters.set(person, 48);
  const state = words(parameters).map((word, i) => word ^ IV[i]!);
  const padded = new Uint8Array(BLOCK);
  padded.set(message);
  const block = words(padded);
  const v = [...state, ...IV];
  v[12]! ^= BigInt(message.length);
  v[14]! ^= WORD; // the last block
  const turned = (x: bigint, by: bigint): bigint => ((x >> by) | (x << (64n - by))) & WORD;
  for (let round = 0; round < 12; round++) {
    const order = SIGMA[round % 10]!;
    MIXED.forEach(([a, b, c, d], i) => {
      for (const [word, first, second] of [
        [block[order[2 * i]!]!, 32n, 24n],
        [block[order[2 * i + 1]!]!, 16n, 63n],
      ] as const) {
        v[a] = (v[a]! + v[b]! + word) & WORD;
        v[d] = turned(v[d]! ^ v[a]!, first);
        v[c] = (v[c]! + v[d]!) & WORD;
        v[b] = turned(v[b]! ^ v[c]!, second);
      }
    });
  }
  return [state[0]! ^ v[0]! ^ v[8]!, state[1]! ^ v[1]! ^ v[9]!];
}
