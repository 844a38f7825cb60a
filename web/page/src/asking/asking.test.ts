import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Asking, type AskingData, type Estimate, type Region, RegionError, sentence } from "./asking.js";

interface Vectors {
  readonly asking: AskingData;
  readonly questions: readonly {
    readonly region: Region;
    readonly confidence: number;
    readonly said: string;
    readonly found?: Partial<Estimate>;
  }[];
}

/** Written by the library: see tests/releases/page/vectors.py. */
const vectors = JSON.parse(
  readFileSync(new URL("../../../../../src/asking/vectors.json", import.meta.url), "utf8"),
) as Vectors;

test("regions have the numbers and words that the library gives them", async () => {
  const map = await Asking.of(vectors.asking);
  for (const { region, confidence, said, found } of vectors.questions) {
    if (!found) {
      assert.throws(() => map.count(region, confidence), { name: "RegionError", message: said });
      continue;
    }
    const answer = map.count(region, confidence);
    for (const [name, number] of Object.entries(found)) {
      const own = answer[name as keyof Estimate] as number;
      assert.ok(
        Math.abs(own - (number as number)) <= 1e-9 * Math.max(Math.abs(number as number), 1),
        `${name}: ${own}`,
      );
    }
    assert.equal(sentence(answer), said);
  }
});

test("what is no region is refused, whatever it is", async () => {
  const map = await Asking.of(vectors.asking);
  const odd = [
    {},
    { box: [] },
    { box: [1, 2, NaN, 3] },
    { box: ["1", 2, 3, 4] },
    { polygon: null },
    { polygon: { type: "Point" } },
    { polygon: { type: "Polygon" } },
    { polygon: { type: "Polygon", coordinates: [[["a", 1]]] } },
    {
      polygon: {
        type: "Polygon",
        coordinates: [
          [
            [1, 2],
            [3, 4],
            [Infinity, 0],
          ],
        ],
      },
    },
    { polygon: { type: "MultiPolygon", coordinates: [] } },
    { polygon: { type: "Polygon", coordinates: [[]] } },
    { polygon: { type: "Polygon", coordinates: [[[13.3, 52.5]]] } },
  ];
  for (const region of odd)
    assert.throws(() => map.count(region as unknown as Region), RegionError, JSON.stringify(region));
  const whole = vectors.questions.find((each) => each.found)!.region;
  for (const confidence of [0, 1, -1, NaN, 2]) assert.throws(() => map.count(whole, confidence), /confidence/);
});
