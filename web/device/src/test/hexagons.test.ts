import assert from "node:assert/strict";
import { test } from "node:test";
import { hex, join, sha256, unhex, utf8 } from "../../../shared/src/bytes.js";
import { checkRoots } from "../cell_tree.js";
import { CodecError } from "../errors.js";
import { Box, Hexagons } from "../hexagons.js";
import { readTask } from "../task.js";
import { vectors } from "./vectors.js";

const POINTS = 12_500;
const { pentagons, points, tasks } = vectors("device/hexagons");
const EARTH = new Box(-180, -90, 180, 90);

/** SplitMix64 from a seed: the highest 53 bits of each word, from 0 to below 1. */
function uniforms(seed: number, count: number): number[] {
  const word = (1n << 64n) - 1n;
  return Array.from({ length: count }, (_, at) => {
    let z = (BigInt(seed) + BigInt(at + 1) * 0x9e3779b97f4a7c15n) & word;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & word;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & word;
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  });
}

/** A quarter anywhere, a quarter about pentagons, by the antimeridian, and by the poles. */
function* pointsOf(resolution: number): Generator<[number, number]> {
  const drawn = uniforms(resolution, 2 * POINTS);
  const width = 40 / 2 ** resolution;
  for (let at = 0; at < POINTS; at++) {
    const [u, v] = [drawn[at]!, drawn[POINTS + at]!];
    const [kind, centre] = [at % 4, pentagons[Math.floor(at / 4) % pentagons.length]];
    let [lon, lat] = [u * 360 - 180, v * 180 - 90];
    if (kind === 1) [lon, lat] = [centre[0] + (u - 0.5) * width, centre[1] + (v - 0.5) * width];
    if (kind === 2) lon = u < 0.5 ? -180 + (u * width) / 40 : 180 - ((u - 0.5) * width) / 40;
    if (kind === 3) lat = v < 0.5 ? -90 + (v * width) / 40 : 90 - ((v - 0.5) * width) / 40;
    yield [lon, lat];
  }
}

test("a hundred thousand points lie in the cells of the vectors, about pentagons, poles and the antimeridian too", async () => {
  for (const { resolution, cells, first } of points) {
    const tree = new Hexagons(EARTH, 0, resolution);
    const found = [...pointsOf(resolution)].map(([lon, lat]) => tree.baseCell(lon, lat));
    assert.deepEqual(
      found.slice(0, 8).map((cell) => cell.toString(16)),
      first,
    );
    const words = found.map((cell) => unhex(cell.toString(16).padStart(16, "0")));
    assert.equal(hex(await sha256(join(...words))), cells, `resolution ${resolution}`);
  }
});

test("rows become counts of hexagons as in the vectors", async () => {
  for (const { task: text, rows, sampling, contribution } of tasks) {
    const task = await readTask(text);
    const sums = task.counts!.contribution(rows, await sha256(unhex(sampling), utf8(task.campaign)));
    assert.deepEqual(
      [...sums.entries()].filter(([, sum]) => sum),
      contribution,
      task.campaign,
    );
  }
});

test("points that are none lie nowhere, and hexagons that are none are refused", async () => {
  const tree = new Hexagons(new Box(2.2, 48.8, 2.4, 48.9), 7, 9);
  for (const [lon, lat] of [
    [NaN, 48.8],
    [2.3, NaN],
    [181, 48.8],
    [2.3, 91],
    [Infinity, 0],
    [100, 48.85],
    [2.3, -48.85],
  ] as const) {
    assert.equal(tree.baseCell(lon, lat), 0n);
  }
  assert.throws(() => new Hexagons(new Box(2.2, 48.8, 2.4, 48.9), 9, 7), CodecError);
  assert.throws(() => checkRoots(new Hexagons(EARTH, 6, 7)), CodecError);
  checkRoots(new Hexagons(EARTH, 3, 7));
  assert.throws(
    () => checkRoots(new Hexagons(EARTH, 3, 7), new Hexagons(EARTH, 3, 7)),
    CodecError,
    "of all trees together",
  );
  const written: string = tasks[9].task;
  const cell = /"uint64",\[([0-9]+),/.exec(written)![1]!;
  const changes: [string, string][] = [
    ['"west":2.2', '"west":2.5'],
    ['"west":2.2', '"west":-181'],
    ['"west":2.2', '"west":"2.2"'],
    ['"coarsest":7', '"coarsest":10'],
    ['"finest":9', '"finest":16'],
    ['"finest":9', '"finest":9.0'],
    ['"finest":9', '"finest":7'],
    [`[${cell},`, "[1,"],
    [`[${cell},`, "[18446744073709551616,"],
    [`[${cell},`, "[-1,"],
  ];
  for (const [from, to] of changes) {
    assert.ok(written.includes(from), from);
    await assert.rejects(readTask(written.replace(from, to)), CodecError, `${from} → ${to}`);
  }
  const none = BigInt(cell) | (7n << 42n); // no point lies in it, and nobody can tell its size
  assert.throws(() => tree.area(none), RangeError);
});
