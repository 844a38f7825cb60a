/** How far noise reaches: `hazemap.estimate.confidence_margins` and `report_intervals`, number by number. */

import { erfc, logGamma, normalDistribution, normalQuantile, scaledErfc } from "./special_functions.js";

/** The noise of one number: its standard deviation and its excess kurtosis (Laplace 3, Gaussian 0). */
export interface Spread {
  readonly stddev: number;
  readonly kurtosis: number;
}

const LAPLACE = 3;
const STEPS = 64; // laws are tabulated at so many shares √(κ/3), from 0 to 1
const NEAR = 120; // standard deviations at which they are: 0, 0.05 … 5.95, 6, 6.25 … 29.75
const FAR = 216;

const known = new Map<string, number>();

/** Throws what Python says of a confidence that is no probability between 0 and 1. */
export function checkConfidence(confidence: number): void {
  if (!(confidence > 0 && confidence < 1)) {
    throw new RangeError(`a confidence level must be between 0 and 1, such as 0.95; found ${confidence}`);
  }
}

/** Standard deviations that hold noise of an excess kurtosis with this probability or more. */
export function reach(confidence: number, kurtosis: number): number {
  checkConfidence(confidence);
  const z = normalQuantile((1 + confidence) / 2);
  const place = Math.sqrt(Math.min(Math.max(kurtosis, 0), LAPLACE) / LAPLACE) * STEPS;
  const below = Math.min(Math.floor(place), STEPS - 1);
  const [low, high] = [knot(below, z), knot(below + 1, z)];
  const usual = low + (high - low) * (place - below);
  const beyond = (Math.max(kurtosis - LAPLACE, 0) * (z ** 3 - 3 * z)) / 24; // Cornish and Fisher
  return Math.min(Math.max(usual + beyond, 0), 1 / Math.sqrt(1 - confidence));
}

/** The same of a kurtosis that is only known to be no larger: below a confidence of 0.9 less of it reaches farther. */
export function reachAtMost(confidence: number, kurtosis: number): number {
  checkConfidence(confidence);
  const z = normalQuantile((1 + confidence) / 2);
  const place = Math.sqrt(Math.min(Math.max(kurtosis, 0), LAPLACE) / LAPLACE) * STEPS;
  const below = Math.min(Math.floor(place), STEPS - 1);
  let low = 0;
  for (let at = 0; at <= below; at++) low = Math.max(low, knot(at, z));
  const high = Math.max(low, knot(below + 1, z));
  const usual = low + (high - low) * (place - below);
  const beyond = (Math.max(kurtosis - LAPLACE, 0) * Math.max(z ** 3 - 3 * z, 0)) / 24;
  return Math.min(Math.max(usual + beyond, 0), 1 / Math.sqrt(1 - confidence));
}

/** The reach of a tabulated law, worked out once. */
function knot(at: number, z: number): number {
  const key = `${at} ${z}`;
  const found = known.get(key) ?? (at === 0 ? z : reachOf(at / STEPS, z));
  known.set(key, found);
  return found;
}

/** Where a law with a share of Laplace noise is as rare as a Gaussian one beyond z. */
function reachOf(share: number, z: number): number {
  let low = 0;
  let high = FAR - 1;
  const turned = (at: number) =>
    -normalQuantile(Math.min(Math.max(equal(share, far(at)), mixed(share, far(at))), 1) / 2);
  if (z >= turned(high)) return far(high);
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (turned(middle) <= z) low = middle;
    else high = middle;
  }
  const [before, after] = [turned(low), turned(high)];
  return far(low) + ((far(high) - far(low)) * (z - before)) / (after - before);
}

function far(at: number): number {
  return at < NEAR ? at * 0.05 : 6 + (at - NEAR) * 0.25;
}

/** P(|X| > x) of 1/share² Laplace numbers: a Gaussian one of a variance that is Gamma distributed. */
function equal(share: number, x: number): number {
  const number = share ** -2;
  const constant = number * Math.log(number) - logGamma(number);
  let tail = 0;
  for (let step = 0; step < 235; step++) {
    const log = (step * 0.2 - 35) * share;
    const weight = Math.exp(constant + number * (log - Math.exp(log))) * 0.2 * share;
    if (weight > 0) tail += weight * erfc((x * Math.exp(-log / 2)) / Math.SQRT2);
  }
  return tail;
}

/** P(|X| > x) of a Laplace number with a share of the variance and a Gaussian one with the rest. */
function mixed(share: number, x: number): number {
  const scale = Math.sqrt(share / 2);
  const rest = Math.sqrt(Math.max(1 - share, 1e-12));
  const [out, turn] = [x / rest, rest / scale];
  const near = Math.exp(-(out ** 2) / 2);
  const rising =
    turn > out
      ? (near * scaledErfc((turn - out) / Math.SQRT2)) / 2
      : Math.exp(Math.min(turn ** 2 / 2 - x / scale, 0)) * normalDistribution(out - turn);
  return 2 * normalDistribution(-out) + rising - (near * scaledErfc((turn + out) / Math.SQRT2)) / 2;
}

/** How much farther an interval has to reach for the skewed noise of reports with these chances. */
export function asymmetryMargin(chances: readonly [number, number], confidence: number): number {
  const [p, q] = chances;
  const square = normalQuantile((1 + confidence) / 2) ** 2;
  const covariance = (1 - p - q) / (p - q);
  const margins = [p, q].map((chance) =>
    Math.abs((covariance * square) / 2 - (((1 - 2 * chance) / (p - q)) * (square - 1)) / 6),
  );
  return Math.max(...margins);
}

/** The interval of a leading number, from that of the unbiased one: Python's `confidence_margins.leading`. */
export function leading(bestGuess: number, low: number, high: number): { low: number; high: number } {
  return { low: Math.min(Math.max(low, 0), bestGuess), high: Math.max(high, 0, bestGuess) };
}
