import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { type NumberType, unpack } from "./arrays.js";

function packed<T extends NumberType>(type: T, length: number, bytes: Uint8Array) {
  return { type, length, data: deflateRawSync(bytes).toString("base64") };
}

test("numbers come back as they were", async () => {
  const numbers = Float64Array.of(0, -1.5, Infinity, 1e-300);
  const bytes = new Uint8Array(numbers.buffer);
  assert.deepEqual(await unpack(packed("float64", 4, bytes)), numbers);
  const cells = BigUint64Array.of(0x871f18b24ffffffn, 2n ** 64n - 1n);
  assert.deepEqual(await unpack(packed("uint64", 2, new Uint8Array(cells.buffer))), cells);
  assert.equal((await unpack({ type: "int32", length: 0, data: "" })).length, 0);
});

test("an array that is too short, damaged or of no type is refused", async () => {
  await assert.rejects(unpack(packed("int32", 3, new Uint8Array(8))), /3 numbers has 8 bytes/);
  await assert.rejects(unpack({ type: "int32", length: 3, data: "AAAA" }));
  await assert.rejects(unpack(packed("text" as NumberType, 3, new Uint8Array(8))), /of type text/);
});
