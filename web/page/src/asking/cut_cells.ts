/** The doubt of where in cut cells people are: `hazemap.estimate.cut_cell_uncertainty`, number by number. */

import { reach, type Spread } from "./confidence_margins.js";
import { Fourier } from "./fourier.js";
import { betaDistribution } from "./special_functions.js";

const STEPS = 1024;
const MOST = 96;
const SMALL = 1 / 400;
const UNSEEN = 0.5;

/** A cell of which a part is inside: how many people it holds, their D, and the standard error of its number. */
export interface CutCell {
  readonly part: number;
  readonly people: number;
  readonly clumped: number;
  readonly stddev: number;
}

/** How far the number of people in a region may be from the guess. */
export interface RegionUncertainty {
  readonly stddev: number;
  readonly low: number;
  readonly high: number;
}

/** How many people a cell may hold, a root mean square: by its best guess, or by its own number if that says more. */
export function held(people: number, unbiased: number, stddev: number): number {
  const own = Math.max(unbiased, 0) ** 2 - stddev ** 2;
  return Math.sqrt(Math.max(people ** 2 + UNSEEN * stddev ** 2, own));
}

/** The doubt about cut cells and noise together; `inside` and `outside` are the people of whole cells. */
export function placed(
  cells: readonly CutCell[],
  noise: Spread,
  confidence: number,
  inside: number,
  outside: number,
): RegionUncertainty {
  const some = cells
    .filter((cell) => cell.part > 0 && cell.part < 1 && cell.people > 0)
    .map((cell) => ({ ...cell, clumped: Math.min(Math.max(cell.clumped, 1e-9), 1 - 1e-9) }));
  const variances = some.map((cell) => cell.people ** 2 * cell.clumped * cell.part * (1 - cell.part));
  const alone = Math.sqrt(total(variances));
  const guess = total(some.map((cell) => cell.part * cell.people));
  if (noise.stddev === 0 && alone === 0) return { stddev: 0, low: 0, high: 0 };
  const [low, high] = [false, true].map((within) => {
    const share = (cell: CutCell) => (within ? cell.part : 1 - cell.part);
    const around = total(some.map((cell) => share(cell) * cell.people));
    const everybody = 2 * Math.max((within ? inside : outside) + around, 1e-300);
    let more = 0;
    const chances = some.map((cell, at): Chance => {
      const chosen = (share(cell) * cell.people) / everybody;
      const most = within ? 1 - cell.part ** 2 : 0;
      more = Math.max(more, cell.stddev ** 2 * most * Math.min((2 * chosen) / (1 - confidence), 1));
      const doubt = variances[at]! + chosen * (cell.people * cell.clumped * (1 - share(cell))) ** 2;
      return { cell, chosen, doubt };
    });
    const louder = { stddev: Math.hypot(noise.stddev, Math.sqrt(more)), kurtosis: noise.kurtosis };
    return end(chances, louder, confidence, within);
  }) as [number, number];
  return { stddev: alone, low: Math.min(low - guess, 0), high: Math.max(high - guess, 0) };
}

/** How likely it is that a region was chosen for people of a cell, and the variance of how many of them are inside. */
interface Chance {
  readonly cell: CutCell;
  readonly chosen: number;
  readonly doubt: number;
}

const fourier = new Fourier(STEPS);

/** The upper end of the number of people in cut cells and noise if somebody was known to be `within`; or the lower. */
function end(every: readonly Chance[], noise: Spread, confidence: number, within: boolean): number {
  const whole = noise.stddev ** 2 + total(every.map((each) => each.doubt));
  let chances = every.filter((each) => each.doubt > SMALL * whole);
  if (chances.length > MOST) {
    const least = every.map((each) => each.doubt).sort((a, b) => b - a)[MOST - 1]!;
    chances = every.filter((each) => each.doubt >= least);
  }
  const chosen = new Set(chances);
  const others = every.filter((each) => !chosen.has(each));
  const rest = total(others.map((each) => each.doubt));
  const around = total(others.map((each) => each.cell.part * each.cell.people));
  const margin = (1.5 * reach(confidence, noise.kurtosis) + 5) * Math.hypot(noise.stddev, Math.sqrt(rest));
  const step = (total(chances.map((each) => each.cell.people)) + 2 * margin) / (STEPS - 2);
  const before = Math.trunc(margin / step) + 1;
  const law = noiseAndOthers(noise, rest, step);
  const miss = (1 - confidence) / 2;
  const ends = [betas, towers].map((parts) => {
    const re = law.slice();
    const im = new Float64Array(STEPS);
    const lawOf = ({ cell, chosen: likely }: Chance) => {
      const anywhere = parts(cell, step, 0, 0);
      const known = parts(cell, step, within ? 1 : 0, within ? 0 : 1);
      for (let at = 0; at < STEPS; at++) anywhere[at]! += likely * (known[at]! - anywhere[at]!);
      return anywhere;
    };
    for (let at = 0; at < chances.length; at += 2) {
      const next = chances[at + 1];
      multiply(re, im, lawOf(chances[at]!), next && lawOf(next));
    }
    return quantile(re, im, before, within ? 1 - miss : miss, within);
  });
  const found = (within ? Math.max(...ends) : Math.min(...ends)) - before;
  return found * step + around;
}

/** The characteristic function of noise and of small cells, which is real, at each multiple of 2π / (STEPS · step). */
function noiseAndOthers(noise: Spread, others: number, step: number): Float64Array {
  return Float64Array.from({ length: STEPS }, (_, k) => {
    const turn = (2 * Math.PI * Math.min(k, STEPS - k)) / STEPS / step;
    const energy = (noise.stddev * turn) ** 2 / 2;
    const number = 3 / noise.kurtosis;
    const law = noise.kurtosis < 1e-3 ? Math.exp(-energy) : (1 + energy / number) ** -number;
    return law * Math.exp((-others * turn ** 2) / 2);
  });
}

/** Multiply a characteristic function with those of two laws, or of one: the real and the imaginary part of one array. */
function multiply(re: Float64Array, im: Float64Array, one: Float64Array, other: Float64Array | undefined): void {
  const second = other ?? new Float64Array(STEPS);
  fourier.forward(one, second);
  for (let k = 0; k < STEPS; k++) {
    // With Z = A + iB of real laws, A is the half sum of Z and its mirrored conjugate, and B their half difference.
    const mirror = (STEPS - k) % STEPS;
    const a = (one[k]! + one[mirror]!) / 2;
    const b = (second[k]! - second[mirror]!) / 2;
    const c = other ? (second[k]! + second[mirror]!) / 2 : 1;
    const d = other ? (one[mirror]! - one[k]!) / 2 : 0;
    const x = a * c - b * d;
    const y = a * d + b * c;
    const before = re[k]!;
    re[k] = before * x - im[k]! * y;
    im[k] = before * y + im[k]! * x;
  }
}

/** The step beside the quantile of the law that a characteristic function is of, that begins `before` steps below 0. */
function quantile(re: Float64Array, im: Float64Array, before: number, level: number, above: boolean): number {
  fourier.forward(
    re,
    im.map((number) => -number),
  ); // the law itself, but for a factor
  const until = new Float64Array(STEPS);
  let sum = 0;
  for (let at = 0; at < STEPS; at++) {
    sum += Math.max(re[(at - before + STEPS) % STEPS]!, 0);
    until[at] = sum;
  }
  const beyond = until.findIndex((each) => (above ? each / sum >= level : each / sum > level));
  return (beyond < 0 ? STEPS : beyond) + (above ? 1 : -1);
}

/** The law of n F at 0, 1, 2 … steps if F is Beta; `inside` and `outside` are people who are known to be there. */
function betas(cell: CutCell, step: number, inside: number, outside: number, clumped = cell.clumped): Float64Array {
  const alike = 1 / clumped - 1;
  const until = betaDistribution(cell.part * alike + inside, (1 - cell.part) * alike + outside);
  const law = new Float64Array(STEPS);
  let before = 0;
  for (let at = 0; at < STEPS && before < 1; at++) {
    const place = ((at + 0.5) * step) / cell.people;
    const now = place >= 1 ? 1 : until(place);
    law[at] = now - before;
    before = now;
  }
  return law;
}

/** The same if all are in one place in some cells, and everybody is anywhere on their own in the others. */
function towers(cell: CutCell, step: number, inside: number, outside: number): Float64Array {
  const own = Math.min(1 / Math.max(cell.people, 1), 1 - 1e-9);
  const together = Math.min(Math.max((cell.clumped - own) / (1 - own), 0), 1);
  const law = betas(cell, step, inside, outside, own);
  for (let at = 0; at < STEPS; at++) law[at]! *= 1 - together;
  const within = inside + outside ? inside : cell.part;
  law[0] = law[0]! + together * (1 - within);
  const top = halfEven(cell.people / step);
  law[top] = law[top]! + together * within;
  return law;
}

function halfEven(number: number): number {
  const rounded = Math.round(number);
  return number % 1 === 0.5 && rounded % 2 ? rounded - 1 : rounded;
}

function total(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
