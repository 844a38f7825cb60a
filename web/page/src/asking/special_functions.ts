/** Functions of statistics, to about 13 digits. */

const ROOT_2_PI = Math.sqrt(2 * Math.PI);

/** log Γ(x) for x > 0 (Lanczos, g = 7). */
export function logGamma(x: number): number {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  let sum = 0.99999999999980993;
  for (const [at, part] of LANCZOS.entries()) sum += part / (x + at);
  const base = x + 6.5;
  return Math.log(ROOT_2_PI * sum) + (x - 0.5) * Math.log(base) - base;
}

const LANCZOS = [
  676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
  -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** log Γ(x + 1) less Stirling's formula for it. */
function stirlingError(x: number): number {
  if (x < 16) return logGamma(x + 1) - (x + 0.5) * Math.log(x) + x - Math.log(ROOT_2_PI);
  const square = x * x;
  return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / x;
}

/** x log(x / y) + y − x, without loss where x and y are near (Loader 2000). */
function deviance(x: number, y: number): number {
  if (Math.abs(x - y) >= 0.1 * (x + y)) return x * Math.log(x / y) + y - x;
  const v = (x - y) / (x + y);
  let sum = (x - y) * v;
  let power = 2 * x * v;
  for (let odd = 3; ; odd += 2) {
    power *= v * v;
    const next = sum + power / odd;
    if (next === sum) return sum;
    sum = next;
  }
}

/** The distribution function of a Beta(a, b) number, by a continued fraction (DLMF 8.17.22). */
export function betaDistribution(a: number, b: number): (x: number) => number {
  const both = a + b;
  const errors = stirlingError(both) - stirlingError(a) - stirlingError(b);
  const scale = Math.sqrt((a * b) / both) / ROOT_2_PI;
  return (x) => {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    // x^a (1 − x)^b / B(a, b)
    const front = scale * Math.exp(errors - deviance(a, both * x) - deviance(b, both * (1 - x)));
    const lower = x < (a + 1) / (both + 2);
    if (front < 1e-300) return lower ? 0 : 1;
    return lower ? (front * fraction(a, b, x)) / a : 1 - (front * fraction(b, a, 1 - x)) / b;
  };
}

/** 1/(1 + d₁/(1 + d₂/(1 + …))), by Lentz's way. */
function fraction(a: number, b: number, x: number): number {
  let up = 1;
  let down = 1 / (1 - ((a + b) * x) / (a + 1));
  let found = down;
  for (let m = 1; m < 100_000; m++) {
    const place = a + 2 * m;
    const even = (m * (b - m) * x) / ((place - 1) * place);
    down = 1 / (1 + even * down);
    up = 1 + even / up;
    found *= up * down;
    const odd = (-(a + m) * (a + b + m) * x) / (place * (place + 1));
    down = 1 / (1 + odd * down);
    up = 1 + odd / up;
    found *= up * down;
    if (Math.abs(up * down - 1) < 3e-16) break;
  }
  return found;
}

/** e^(x²) erfc(x) for x ≥ 0. */
export function scaledErfc(x: number): number {
  if (x < 2) return Math.exp(x * x) * erfc(x);
  let rest = x;
  for (let k = 60; k > 0; k--) rest = x + k / 2 / rest;
  return 1 / (Math.sqrt(Math.PI) * rest);
}

/** 1 − erf(x). */
export function erfc(x: number): number {
  if (x < 0) return 2 - erfc(-x);
  if (x >= 2) return Math.exp(-x * x) * scaledErfc(x);
  let term = (2 / Math.sqrt(Math.PI)) * x * Math.exp(-x * x);
  let sum = 0;
  for (let k = 1; sum + term !== sum; k++) {
    sum += term;
    term *= (2 * x * x) / (2 * k + 1);
  }
  return 1 - sum;
}

/** P(Z ≤ z) of a Gaussian number. */
export function normalDistribution(z: number): number {
  return erfc(-z / Math.SQRT2) / 2;
}

/** The z that a Gaussian number stays below with a probability: a rough start, and Halley's steps from it. */
export function normalQuantile(probability: number): number {
  if (probability > 0.5) return -normalQuantile(1 - probability);
  const t = Math.sqrt(-2 * Math.log(probability));
  let z = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (let step = 0; step < 3; step++) {
    const off = (normalDistribution(z) / probability - 1) * probability * ROOT_2_PI * Math.exp((z * z) / 2);
    z -= off / (1 + (z * off) / 2);
  }
  return z;
}
