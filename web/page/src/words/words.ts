/** Sentences and numbers in one language. */

import { countedOf, type Estimand, nounOf } from "../../../shared/src/estimand.js";
import { fill, LANGUAGES, type Language } from "../../../shared/src/texts.js";
import { CATALOGUE, type Key } from "./catalogue.js";

/** The number that leads and the interval it lies in, as `hazemap.estimate.confidence_margins` makes them. */
export interface Leading {
  readonly best_guess: number;
  readonly stddev: number;
  readonly low: number;
  readonly high: number;
}

export type Parts = { readonly [name: string]: string };

/** How many decimals a number deserves: two digits of its standard error. */
export function decimals(stddev: number): number {
  return stddev > 0 && stddev < Infinity ? Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(stddev)))) : 0;
}

export class Words {
  constructor(readonly language: Language) {}

  /** The language that a browser's user prefers among those of the page. */
  static preferred(wanted: readonly string[]): Language {
    for (const each of wanted) {
      const found = LANGUAGES.find((language) => each.toLowerCase().split("-")[0] === language);
      if (found) return found;
    }
    return "en";
  }

  say(key: Key, parts: Parts = {}): string {
    return fill(CATALOGUE[this.language][key], parts);
  }

  /** What a count of 1 is; a word that is not known stays as it is. */
  noun(estimand: Estimand): string {
    return nounOf(estimand, this.language);
  }

  /** The same, and how much of it each person gives at most: `hazemap.privacy.statement_facts`. */
  counted(estimand: Estimand): string {
    return countedOf(estimand, this.language, (value) => this.number(value));
  }

  number(value: number, digits = 0): string {
    const plain = Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value; // no "-0"
    return new Intl.NumberFormat(this.language, {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
    }).format(plain);
  }

  /** A number to so many digits. */
  short(value: number, digits = 3): string {
    return new Intl.NumberFormat(this.language, { maximumSignificantDigits: digits }).format(value);
  }

  /** A number to so many digits, rounded up: what is promised must not sound like less than it is. */
  roundedUp(value: number, digits: number): string {
    const step = 10 ** (digits - 1 - Math.floor(Math.log10(value)));
    return this.short(Math.ceil(value * step * (1 - 1e-12)) / step, digits);
  }

  /** A number to two digits as a label: 0.5, 200, 53k. */
  compact(value: number): string {
    return new Intl.NumberFormat(this.language, { notation: "compact", maximumSignificantDigits: 2 }).format(value);
  }

  /** The ends of an interval, rounded outwards to so many digits. */
  ends(low: number, high: number, digits: number): { low: string; high: string } {
    const step = 10 ** digits,
      slack = 1e-6; // what single precision has lost
    return {
      low: this.number(Math.floor(low * step + slack) / step, digits),
      high: this.number(Math.ceil(high * step - slack) / step, digits),
    };
  }

  /** What a statistic is called: mean, variance, or a quantile such as q0.9. */
  statistic(name: string): string {
    if (name === "mean" || name === "variance") return this.say(name);
    return name === "q0.5"
      ? this.say("median")
      : this.say("quantile", { percent: this.short(100 * Number(name.slice(1))) });
  }

  /** The leading number and its interval, with as many digits as the standard error deserves. */
  interval(found: Leading): Parts {
    const digits = decimals(found.stddev);
    return {
      value: this.number(found.best_guess, digits),
      stddev: this.number(found.stddev, digits),
      low: this.number(found.low, digits),
      high: this.number(found.high, digits),
    };
  }
}

/** A share and its interval in per cent, with as many digits as its width deserves: as `hazemap ask` writes them. */
export function percent({ value, low, high }: { value: number; low: number; high: number }, words: Words): Parts {
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(100 * Math.max(high - low, 1e-9)) - 0.7)));
  const text = (part: number) => (Number.isNaN(part) ? "" : words.number(100 * part, digits));
  return { share: text(value), low: text(low), high: text(high) };
}
