import assert from "node:assert/strict";
import { test } from "node:test";

import { reach } from "./confidence_margins.js";
import { Fourier } from "./fourier.js";
import { orientation } from "./orientation.js";
import {
  betaDistribution,
  erfc,
  logGamma,
  normalDistribution,
  normalQuantile,
  scaledErfc,
} from "./special_functions.js";

function near(found: number, wanted: number, most = 1e-12): void {
  assert.ok(Math.abs(found - wanted) <= most * Math.abs(wanted), `${found} is not ${wanted}`);
}

test("functions of statistics have known values", () => {
  near(logGamma(10.3), 13.48203678613836);
  near(erfc(3), 2.209049699858544e-5);
  near(scaledErfc(2), 0.25539567631050575);
  near(normalQuantile(0.975), 1.959963984540054);
  near(normalQuantile(normalDistribution(-7.5)), -7.5);
  near(betaDistribution(2, 3)(0.4), 0.5248); // 1 − 0.6⁴ − 4 · 0.4 · 0.6³
  near(betaDistribution(1e-7, 1)(0.5), 0.5 ** 1e-7);
  near(betaDistribution(5e5, 5e5)(0.5), 0.5);
});

test("noise reaches as far as the tables of the library say", () => {
  near(reach(0.95, 0), 1.959963984540054);
  near(reach(0.95, 3), 2.118368818567102);
  assert.throws(() => reach(1, 0), /confidence/);
});

test("a transform turned back is the same", () => {
  const fourier = new Fourier(8);
  const [re, im] = [Float64Array.of(1, 2, 3, 4, 5, 6, 7, 9), new Float64Array(8)];
  fourier.forward(re, im);
  near(re[0]!, 37);
  const back = im.map((number) => -number);
  fourier.forward(re, back);
  re.forEach((number, at) => near(number / 8, [1, 2, 3, 4, 5, 6, 7, 9][at]!));
});

test("a point beside a line by less than rounding is beside it", () => {
  assert.equal(orientation([0, 0], [3, 3], [1, 1]), 0);
  assert.equal(orientation([0.1, 0.1], [0.3, 0.3], [0.2, 0.2 + 2 ** -55]), 1);
  assert.equal(orientation([12, 12], [24, 24], [0.5, 0.5000000000000001]), 1);
  assert.equal(orientation([12, 12], [24, 24], [0.5, 0.49999999999999994]), -1);
});
