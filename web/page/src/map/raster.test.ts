import assert from "node:assert/strict";
import { test } from "node:test";

import { colourPixels, NONE, paintCells } from "./raster.js";
import { type Rings, Shapes } from "./shapes.js";

function shapes(bounds: number[][], rings: Rings | null = null): Shapes {
  const [west, north, east, south] = [0, 1, 2, 3].map((i) => Float64Array.from(bounds.map((each) => each[i]!)));
  return new Shapes(west!, north!, east!, south!, rings);
}

function painted(found: Shapes, width: number, height: number, scale: number, west = 0, north = 0): number[][] {
  const cells = new Int32Array(width * height + 3).fill(99);
  paintCells(found, { west, north, scale, width, height }, cells);
  assert.deepEqual([...cells.slice(width * height)], [99, 99, 99]);
  return Array.from({ length: height }, (_, y) => [...cells.slice(y * width, (y + 1) * width)]);
}

test("a sample is of the last cell around its middle", () => {
  const two = shapes([
    [0, 0, 1, 1],
    [0.25, 0.25, 0.75, 0.5],
  ]);
  assert.deepEqual(painted(two, 4, 4, 4), [
    [0, 0, 0, 0],
    [0, 1, 1, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ]);
  assert.deepEqual(painted(two, 2, 2, 4, 0.5, 0.75), [
    [0, 0],
    [NONE, NONE],
  ]);
  assert.deepEqual(painted(two, 2, 1, 1e-6), [[NONE, NONE]]);
});

test("neighbours leave no gap and share no sample, wherever their edges are", () => {
  const random = (seed: number) => () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const next = random(7);
  for (let turn = 0; turn < 50; turn++) {
    const x = 0.2 + 0.6 * next(),
      y = 0.2 + 0.6 * next();
    const corners = [
        [0, 0],
        [1, 0],
        [1, 1],
        [0, 1],
      ],
      bounds = [],
      points: number[] = [],
      ring = [0],
      cell = [0];
    for (let i = 0; i < 4; i++) {
      // four triangles around a point
      const [a, b] = [corners[i]!, corners[(i + 1) % 4]!];
      points.push(x, y, a[0]!, a[1]!, b[0]!, b[1]!);
      bounds.push([
        Math.min(x, a[0]!, b[0]!),
        Math.min(y, a[1]!, b[1]!),
        Math.max(x, a[0]!, b[0]!),
        Math.max(y, a[1]!, b[1]!),
      ]);
      ring.push(ring.at(-1)! + 3);
      cell.push(cell.at(-1)! + 1);
    }
    const rings = { points: Float64Array.from(points), ring: Int32Array.from(ring), cell: Int32Array.from(cell) };
    const found = painted(shapes(bounds, rings), 40, 40, 40).flat();
    assert.ok(found.every((one) => one !== NONE));
    for (let i = 0; i < 4; i++) {
      const [a, b] = [corners[i]!, corners[(i + 1) % 4]!];
      const area = Math.abs((a[0]! - x) * (b[1]! - y) - (a[1]! - y) * (b[0]! - x)) / 2;
      assert.ok(Math.abs(found.filter((one) => one === i).length / 1600 - area) < 0.03);
    }
  }
});

test("a hole shows what is beneath, and many corners are sorted right", () => {
  const ring = (radius: number, corners: number) =>
    Array.from({ length: corners }, (_, i) => [
      0.5 + radius * Math.cos((i / corners) * 2 * Math.PI),
      0.5 + radius * Math.sin((i / corners) * 2 * Math.PI),
    ]).flat();
  const points = Float64Array.from([...ring(0.5, 500), ...ring(0.25, 100)]);
  const rings = { points, ring: Int32Array.of(0, 500, 600), cell: Int32Array.of(0, 2) };
  const found = painted(shapes([[0, 0, 1, 1]], rings), 200, 200, 200);
  assert.equal(found[100]![100], NONE);
  assert.equal(found[100]![20], 0);
  const area = found.flat().filter((one) => one === 0).length / 40000;
  assert.ok(Math.abs(area - Math.PI * (0.25 - 0.0625)) < 0.005);
});

test("a pixel has the mean colour of its samples, and what is no cell makes it clear, not dark", () => {
  const colours = Uint32Array.of(0, 0xff0000ff, 0xff00ff00); // none, red, green
  const mean = (cells: number[]) => {
    const into = new Uint32Array(1);
    colourPixels(Int32Array.from(cells), 1, 1, 2, colours, into);
    return into[0]!;
  };
  assert.equal(mean([0, 0, 0, 0]), 0xff0000ff);
  assert.equal(mean([0, 0, 1, 1]), 0xff008080);
  assert.equal(mean([NONE, NONE, NONE, NONE]), 0);
  assert.equal(mean([NONE, NONE, 0, NONE]), 0x3f0000ff);
});
