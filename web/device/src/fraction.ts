import { CodecError } from "./errors.js";

/** An exact rational in lowest terms, its denominator 1 or more. */
export class Fraction {
  readonly numerator: bigint;
  readonly denominator: bigint;

  constructor(numerator: bigint | number, denominator: bigint | number = 1n) {
    let [top, bottom] = [BigInt(numerator), BigInt(denominator)];
    if (bottom === 0n) throw new CodecError("a fraction has the denominator 0");
    if (bottom < 0n) [top, bottom] = [-top, -bottom];
    let [a, b] = [top < 0n ? -top : top, bottom];
    while (b) [a, b] = [b, a % b];
    this.numerator = top / a;
    this.denominator = bottom / a;
  }

  /** From `3`, `3/4` or `-3/4` as the codec writes them: lowest terms, at most 640 digits a side. */
  static written(text: string): Fraction {
    const found = /^(0|-?[1-9][0-9]{0,639})(?:\/([1-9][0-9]{0,639}))?$/.exec(text);
    if (!found) throw new CodecError("a fraction is written such as 1/20");
    const made = new Fraction(BigInt(found[1]!), BigInt(found[2] ?? "1"));
    if (made.toString() !== text) throw new CodecError("a fraction is not in lowest terms");
    return made;
  }

  /** From what a person writes: `0.05`, `3`, `1/3`. */
  static parse(text: string): Fraction {
    const found = /^([0-9]{1,30})(?:\.([0-9]{1,30}))?(?:\/([0-9]{1,30}))?$/.exec(text.trim());
    if (!found || (found[2] && found[3]))
      throw new CodecError(`a number is such as 0.05 or 1/3, not ${text.slice(0, 40)}`);
    const scale = 10n ** BigInt(found[2]?.length ?? 0);
    return new Fraction(BigInt(found[1]! + (found[2] ?? "")), scale * BigInt(found[3] ?? "1"));
  }

  plus(other: Fraction): Fraction {
    const { numerator: a, denominator: b } = this;
    return new Fraction(a * other.denominator + other.numerator * b, b * other.denominator);
  }

  minus(other: Fraction): Fraction {
    return this.plus(new Fraction(-other.numerator, other.denominator));
  }

  times(other: Fraction): Fraction {
    return new Fraction(this.numerator * other.numerator, this.denominator * other.denominator);
  }

  over(other: Fraction): Fraction {
    return new Fraction(this.numerator * other.denominator, this.denominator * other.numerator);
  }

  /** Below 0, 0 or above 0 as this is below, equal to or above the other. */
  compare(other: Fraction): number {
    const difference = this.numerator * other.denominator - other.numerator * this.denominator;
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  }

  floor(): bigint {
    const whole = this.numerator / this.denominator;
    return this.numerator < 0n && whole * this.denominator !== this.numerator ? whole - 1n : whole;
  }

  toString(): string {
    return this.denominator === 1n ? `${this.numerator}` : `${this.numerator}/${this.denominator}`;
  }

  /** For people. */
  toNumber(): number {
    return Number(this.numerator) / Number(this.denominator);
  }
}

/** ⌊count · part⌋. */
export const floorOf = (count: number, part: Fraction): number => Number(new Fraction(count).times(part).floor());
