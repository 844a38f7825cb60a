import assert from "node:assert/strict";
import { test } from "node:test";

import { degreesName } from "./decorations.js";

test("longitudes beyond the antimeridian are named as on the ground", () => {
  const names = [-160, 200, -200, 180, -180, 0, 360, 40.75].map((each) =>
    degreesName(each, each === 40.75 ? 2 : 0, "E", "W"),
  );
  assert.deepEqual(names, ["160° W", "160° W", "160° E", "180°", "180°", "0°", "0°", "40.75° E"]);
});
