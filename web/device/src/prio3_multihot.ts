import { type Bytes, join, uint32 } from "../../shared/src/bytes.js";
import { InputError } from "./errors.js";
import { ELEMENT, element, elements, PRIME, reduced, Transform } from "./field128.js";
import { TurboShake128 } from "./hashes.js";

const VERSION = 18;
const ALGORITHM = 5;
const [SEED, DOMAIN, PROOFS] = [32, 1, 1];
const [LEADER, HELPER] = [0, 1];
/** What an output of the XOF is for. */
const USAGE = { measurement: 1, proof: 2, joint: 3, prove: 4, jointSeed: 6, jointPart: 7 } as const;

/** Seeds of the randomness of a report: the helper's share and its blind, the leader's blind, the proof's. */
export const RANDOM_BYTES = 4 * SEED;

/** A measurement in shares: what both aggregators see, and what each of them alone does. */
export interface Shares {
  readonly public: Bytes;
  readonly leader: Bytes;
  readonly helper: Bytes;
}

/**
 * Prio3MultihotCountVec of draft-irtf-cfrg-vdaf-20 (7.4.5) in the client's part: bits of which so many at most are 1, in
 * two shares with a proof. O(length · log chunk) multiplications modulo a prime of 128 bits.
 */
export class Prio3Multihot {
  private readonly calls: number;

  constructor(
    readonly length: number,
    readonly most: number,
    readonly chunk: number,
  ) {
    this.calls = Math.ceil((length + weightBits(0, most).length) / chunk);
  }

  shard(context: Bytes, bits: readonly boolean[], nonce: Bytes, random: Bytes): Shares {
    const ones = bits.filter(Boolean).length;
    if (bits.length !== this.length || ones > this.most)
      throw new InputError("these are not bits of which few enough are 1");
    const [seed, helperBlind, leaderBlind, proveSeed] = [0, 1, 2, 3].map((at) =>
      random.slice(SEED * at, SEED * (at + 1)),
    );
    const encoded = [...bits.map((bit) => (bit ? 1n : 0n)), ...weightBits(ones, this.most)];
    const stream = (usage: number, key: Bytes, binder: Bytes): TurboShake128 => xof(context, usage, key, binder);
    const part = (who: number, blind: Bytes, share: readonly bigint[]): Bytes =>
      stream(USAGE.jointPart, blind, join(Uint8Array.of(who), nonce, elements(share))).next(SEED);

    const helper = vector(stream(USAGE.measurement, seed!, Uint8Array.of(HELPER)), encoded.length);
    const leader = less(encoded, helper);
    const parts = join(part(LEADER, leaderBlind!, leader), part(HELPER, helperBlind!, helper));
    const joint = stream(USAGE.jointSeed, new Uint8Array(SEED), parts).next(SEED);
    const proof = this.prove(
      encoded,
      vector(stream(USAGE.prove, proveSeed!, Uint8Array.of(PROOFS)), 2 * this.chunk),
      vector(stream(USAGE.joint, joint, Uint8Array.of(PROOFS)), this.calls),
    );
    const masked = less(proof, vector(stream(USAGE.proof, seed!, Uint8Array.of(PROOFS, HELPER)), proof.length));
    return {
      public: parts,
      leader: join(elements(leader), elements(masked), leaderBlind!),
      helper: join(seed!, helperBlind!),
    };
  }

  /**
   * The wires' random values, and the values of the gadget polynomial: Σ of products of two wires each (7.3.2). A wire is r^j · x
   * or x − 1 of the j-th bit of each chunk.
   */
  private prove(encoded: readonly bigint[], wires: readonly bigint[], joint: readonly bigint[]): bigint[] {
    const short = new Transform(2 ** Math.ceil(Math.log2(1 + this.calls)));
    const long = new Transform(2 * short.size);
    const extended = (seed: bigint, inputs: readonly bigint[]): bigint[] =>
      long.values(
        short.coefficients(Array.from({ length: short.size }, (_, at) => (at === 0 ? seed : (inputs[at - 1] ?? 0n)))),
      );
    const found = new Array<bigint>(long.size).fill(0n);
    const powers = joint.map(() => 1n);
    for (let j = 0; j < this.chunk; j++) {
      const [scaled, shifted]: [bigint[], bigint[]] = [[], []];
      for (let call = 0; call < this.calls; call++) {
        powers[call] = (powers[call]! * joint[call]!) % PRIME;
        const x = encoded[call * this.chunk + j] ?? 0n;
        scaled.push((powers[call]! * x) % PRIME);
        shifted.push(reduced(x - 1n));
      }
      const [left, right] = [extended(wires[2 * j]!, scaled), extended(wires[2 * j + 1]!, shifted)];
      for (let at = 0; at < long.size; at++) found[at] = (found[at]! + left[at]! * right[at]!) % PRIME;
    }
    return [...wires, ...found.slice(0, long.size - 1)];
  }
}

/** A number from 0 to `most` as bits whose weights add up to `most`: the last is 1 only where it must be. */
function weightBits(value: number, most: number): bigint[] {
  const bits = most.toString(2).length;
  const half = 2 ** (bits - 1);
  const above = value >= half;
  const rest = value - (above ? most - half + 1 : 0);
  return [...Array.from({ length: bits - 1 }, (_, at) => BigInt((rest >> at) & 1)), above ? 1n : 0n];
}

/** XofTurboShake128 (6.2.1), kept apart by what it is for. */
function xof(context: Bytes, usage: number, seed: Bytes, binder: Bytes): TurboShake128 {
  const tag = join(Uint8Array.of(VERSION, 0), uint32(ALGORITHM), Uint8Array.of(0, usage), context);
  const length = Uint8Array.of(tag.length & 0xff, tag.length >> 8);
  return new TurboShake128(join(length, tag, Uint8Array.of(seed.length), seed, binder), DOMAIN);
}

/** The next elements: numbers that are not below the prime are passed over. */
function vector(stream: TurboShake128, length: number): bigint[] {
  const found: bigint[] = [];
  while (found.length < length) {
    const x = element(stream.next(ELEMENT));
    if (x !== undefined) found.push(x);
  }
  return found;
}

const less = (left: readonly bigint[], right: readonly bigint[]): bigint[] =>
  left.map((x, at) => reduced(x - right[at]!));

/** The chunk length with the shortest proof for so many bits. */
export function shortestChunk(bits: number): number {
  let [best, found] = [9 * bits, bits];
  for (let points = 2; points <= 2 * bits + 2; points *= 2) {
    const chunk = Math.ceil(bits / (points - 1));
    const length = 2 * chunk + 2 * (points - 1) + 1;
    if (length < best) [best, found] = [length, chunk];
  }
  return found;
}
