import assert from "node:assert/strict";
import { test } from "node:test";
import type { RandomBytes } from "../../../shared/src/bytes.js";
import { expBounds } from "../exponential_bounds.js";
import { Fraction } from "../fraction.js";
import { counterMode } from "../masks.js";
import { poisson, polyaDifference, stayBounds, uniformBelow } from "../polya_noise.js";

/** The same bytes every time: a test that passes once passes always. */
async function fixed(seed: number): Promise<RandomBytes> {
  const stream = await counterMode(new Uint8Array(16).fill(seed), 1 << 22);
  let at = 0;
  return (length) => {
    assert.ok(at + length <= stream.length, "the stream is too short for this test");
    return stream.slice(at, (at += length));
  };
}

const WIDE = 400;

/** P(X − Y = d) for d = 0 … of Pólya(shape, e^(−1/scale)), in floats. */
function law(shape: number, scale: number): number[] {
  const r = Math.exp(-1 / scale);
  const one = [(1 - r) ** shape];
  for (let x = 1; x < WIDE; x++) one.push((one[x - 1]! * (x - 1 + shape) * r) / x);
  return one.map((_, d) => one.slice(d).reduce((sum, p, y) => sum + p * one[y]!, 0));
}

/** χ² of draws of a symmetric law over −4, …, 4 and the two tails: 10 degrees of freedom. */
function statistic(draws: readonly number[], one: readonly number[]): number {
  const expected = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map((d) => one[Math.abs(d)]!);
  const tail = (1 - expected.reduce((a, b) => a + b)) / 2;
  const found = new Array<number>(11).fill(0);
  for (const draw of draws) found[Math.min(Math.max(draw, -5), 5) + 5]!++;
  return [tail, ...expected, tail].reduce(
    (sum, p, i) => sum + (found[i]! - draws.length * p) ** 2 / (draws.length * p),
    0,
  );
}

/** A χ² variable of 10 degrees of freedom is beyond with probability 1.2e-7. */
const CRITICAL = 54;
const SIZE = 12_000;

async function together(shares: number, parties: number, scale: Fraction, seed: number): Promise<number[]> {
  const sums = new Array<number>(SIZE).fill(0);
  for (let i = 0; i < shares; i++) {
    for (const [place, jump] of polyaDifference(await fixed(seed + i), parties, scale, SIZE))
      sums[place]! += Number(jump);
  }
  return sums;
}

test("a share has Pólya's law, shares of all are discrete Laplace, and those of too few are found out", async () => {
  const scale = new Fraction(7, 2);
  assert.ok(statistic(await together(1, 3, scale, 1), law(1 / 3, 3.5)) < CRITICAL);
  const all = await together(3, 3, scale, 10);
  assert.ok(statistic(all, law(1, 3.5)) < CRITICAL);
  assert.ok(statistic(all, law(4 / 3, 3.5)) > CRITICAL, "a twin that must fail");
  assert.ok(statistic(await together(2, 3, scale, 20), law(1, 3.5)) > CRITICAL, "another");
});

test("noise of a scale near 0 is nothing, and far jumps are drawn too", async () => {
  assert.equal(polyaDifference(await fixed(3), 22, new Fraction(1, 2_000), 5_000).size, 0);
  const far = polyaDifference(await fixed(4), 1, new Fraction(1n << 40n), 40);
  assert.ok([...far.values()].some((jump) => jump > 1n << 38n || -jump > 1n << 38n));
});

test("a Poisson number has its law", async () => {
  const random = await fixed(5);
  const [draws, mean] = [20_000, 2.5];
  const found = new Array<number>(9).fill(0);
  for (let i = 0; i < draws; i++) found[Math.min(poisson(random, new Fraction(5, 2)), 8)]!++;
  let [p, rest, sum] = [Math.exp(-mean), 1, 0];
  for (let k = 0; k < 8; k++) {
    sum += (found[k]! - draws * p) ** 2 / (draws * p);
    rest -= p;
    p *= mean / (k + 1);
  }
  assert.ok(sum + (found[8]! - draws * rest) ** 2 / (draws * rest) < 49, "beyond 49 with 8 degrees: 6e-8");
});

test("bounds enclose what they bound, and close in as digits grow", () => {
  for (const [x, value] of [
    [new Fraction(1, 3), Math.exp(-1 / 3)],
    [new Fraction(50), Math.exp(-50)],
    [new Fraction(1, 2_000), Math.exp(-1 / 2_000)],
  ] as const) {
    const [low, high] = expBounds(x, 120);
    assert.ok(low < high && high - low <= 8n, `${high - low}`);
    assert.ok(Math.abs(Number(low) / 2 ** 120 / value - 1) < 1e-12);
    const [coarse, above] = expBounds(x, 60);
    assert.ok(coarse <= low >> 60n && above >= high >> 60n);
  }
  for (const [level, bonus, length] of [
    [0, 0, 1n],
    [3, 0, 13n],
    [5, 1, 40n],
    [7, 3, 200n],
  ] as const) {
    const scale = new Fraction(20);
    const p = (Math.exp(-Number(length) / 20) * 2 ** (level + bonus)) / Number(length);
    const [low, high] = stayBounds(scale, level, bonus, length, 64);
    assert.ok(Number(low) / 2 ** 64 <= p * (1 + 1e-14) && Number(high) / 2 ** 64 >= p * (1 - 1e-14) && high - low < 8n);
    assert.ok(high <= (1n << 64n) + 8n || length < 14n, "no point stays with more than certainty");
  }
});

test("uniform numbers reach every place and no other", async () => {
  const random = await fixed(6);
  const found = new Set(Array.from({ length: 400 }, () => uniformBelow(random, 11n)));
  assert.deepEqual(
    [...found].sort((a, b) => Number(a - b)),
    [0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n],
  );
  assert.equal(uniformBelow(random, 1n), 0n);
});
