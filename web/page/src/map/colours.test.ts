import assert from "node:assert/strict";
import { test } from "node:test";

import { evenPosition, evenTicks } from "./colours.js";

test("an even scale has round numbers within it, few enough to be read", () => {
  assert.deepEqual(evenTicks({ low: 10.2, high: 31 }), [15, 20, 25, 30]);
  assert.deepEqual(evenTicks({ low: 0, high: 1 }), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(evenTicks({ low: -3e-7, high: 3e-7 }), [-2e-7, 0, 2e-7]);
  assert.deepEqual(evenTicks({ low: 5, high: 5 }), [5]);
  for (let turn = 1; turn < 200; turn++) {
    const low = Math.sin(turn) * 10 ** (turn % 7),
      high = low + Math.abs(Math.cos(turn * 7)) * 10 ** (turn % 5) + 1e-6;
    const found = evenTicks({ low, high });
    assert.ok(
      found.length <= 6 &&
        found.every((each) => each >= low - 1e-9 * Math.abs(low) && each <= high + 1e-9 * Math.abs(high)),
      `${low} ${high} ${found}`,
    );
  }
});

test("beyond the ends of a scale colours stay as they are", () => {
  assert.deepEqual(
    [-1, 0, 5, 10, 99].map((each) => evenPosition({ low: 0, high: 10 }, each)),
    [0, 0, 0.5, 1, 1],
  );
  assert.equal(evenPosition({ low: 3, high: 3 }, 4), 0);
});
