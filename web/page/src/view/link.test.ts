import assert from "node:assert/strict";
import { test } from "node:test";

import { readLink, writeLink } from "./link.js";

test("a link holds the view", () => {
  const link = {
    middle: [13.4, 52.5],
    zoom: 11.5,
    layer: "count",
    beside: "share:a&b=c",
    slot: "22:00-06:00",
    language: "de",
    theme: "dark",
    hatch: false,
  } as const;
  assert.deepEqual(readLink(writeLink(link), ["count", "share:a&b=c"], ["22:00-06:00"]), link);
});

test("what a link does not say, or says wrongly, is left out", () => {
  const none = {
    middle: null,
    zoom: null,
    layer: null,
    beside: null,
    slot: null,
    language: null,
    theme: null,
    hatch: null,
  };
  assert.deepEqual(readLink("", []), none);
  assert.deepEqual(readLink("#at=1,2&layer=<b>&language=xx&theme=__proto__&slot=x", ["density"]), none);
  assert.deepEqual(readLink("#at=,,", []), none);
  assert.equal(readLink("#at=1,2,1e9", []).zoom, 32);
});
