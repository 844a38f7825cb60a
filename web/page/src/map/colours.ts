/** Colours of cells, as hazemap's pictures have them: shades of density and of counts, classes of certainty. */

import type { EvenScale, Facts, Scale } from "../payload/release.js";

type Colour = readonly [number, number, number];

/** Colours of a theme: those of pictures, from light to dark; on dark ground from dark to light. */
export class Palette {
  private readonly shades: Colour[];
  readonly errors: readonly Colour[];
  readonly unknown: Colour;

  constructor(
    private readonly colours: Facts["colours"],
    private readonly dark: boolean,
  ) {
    const steps = colours.density.map(rgb);
    this.shades = dark ? [...steps].reverse() : steps;
    this.errors = (dark ? DARK_ERRORS : colours.error).map(rgb);
    this.unknown = rgb(dark ? "#4a4d55" : colours.unknown);
  }

  /** From losses by nothing to gains. */
  get diverging(): Palette {
    return new Palette({ ...this.colours, density: this.dark ? DARK_DIVERGING : DIVERGING }, false);
  }

  /** The colour at a place of the scale, 0 to 1. */
  shade(place: number): Colour {
    const at = Math.max(0, Math.min(1, place)) * (this.shades.length - 1);
    const low = Math.min(Math.floor(at), this.shades.length - 2),
      share = at - low;
    return [0, 1, 2].map((i) =>
      Math.round(this.shades[low]![i]! * (1 - share) + this.shades[low + 1]![i]! * share),
    ) as unknown as Colour;
  }

  /** So many colours from one end of the scale to the other, as words of a picture's memory. */
  table(size: number): Uint32Array {
    return Uint32Array.from({ length: size }, (_, i) => word(this.shade(i / (size - 1))));
  }

  /** The class of a relative standard error: 0 is the surest. */
  errorClass(relative: number): number {
    const { breaks } = this.colours;
    let found = 0;
    while (found < breaks.length && relative > breaks[found]!) found++;
    return found;
  }
}

const DIVERGING = ["#4b2a8c", "#a89bd0", "#f5f4f1", "#f3b267", "#b35806"];
const DARK_DIVERGING = ["#c3b5f7", "#6d58b5", "#2a2d35", "#b0681d", "#ffc98a"];
const DARK_ERRORS = ["#d9f2f0", "#8fd0d0", "#4f9aa3", "#2c616c", "#1c2c33"]; // sure … unsure

/** Where a number is on a scale, 0 to 1: proportional at first, then logarithmic. */
export function position(scale: Scale, number: number): number {
  return Math.max(0, Math.min(1, Math.asinh(number / scale.low) / Math.asinh(scale.high / scale.low)));
}

/** Round numbers for a scale, powers of ten first, so far apart as parts of its length. */
export function ticks(scale: Scale, apart = 0.16): number[] {
  const chosen = [0];
  const least = Math.floor(Math.log10(scale.low)) - 1,
    most = Math.floor(Math.log10(scale.high));
  for (const digit of [1, 5, 2]) {
    for (let exponent = most; exponent >= least; exponent--) {
      const value = digit * 10 ** exponent,
        place = position(scale, value);
      if (
        value <= scale.high * (1 + 1e-9) &&
        chosen.every((other) => Math.abs(position(scale, other) - place) >= apart)
      ) {
        chosen.push(value);
      }
    }
  }
  return chosen.sort((a, b) => a - b);
}

/** Where a number is on an even scale, 0 to 1. */
export function evenPosition({ low, high }: EvenScale, number: number): number {
  return high > low ? Math.max(0, Math.min(1, (number - low) / (high - low))) : 0;
}

/** Round numbers on an even scale, at most so many. */
export function evenTicks({ low, high }: EvenScale, most = 5): number[] {
  const rough = (high - low) / most;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= rough * (1 - 1e-9))!;
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Standard error over number: 0 where both are exactly 0, infinite for a number of 0 with noise. */
export function relativeError(count: number, stddev: number): number {
  return stddev === 0 ? 0 : count > 0 ? stddev / count : Infinity;
}

export function rgb(hex: string): Colour {
  const number = Number.parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/** As a word of a picture's memory: alpha, blue, green, red from the highest byte. */
export function word([red, green, blue]: Colour, alpha = 255): number {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

export function css([red, green, blue]: Colour): string {
  return `rgb(${red} ${green} ${blue})`;
}
