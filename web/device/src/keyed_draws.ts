import { ascii, type Bytes } from "../../shared/src/bytes.js";
import { blake2bWords } from "./hashes.js";

const WORD = (1n << 64n) - 1n;

/** The finaliser of SplitMix64: a bijection of 64-bit words. */
function mix(z: bigint): bigint {
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & WORD;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & WORD;
  return z ^ (z >> 31n);
}

/** Numbers, one for each word, by which a device chooses what counts of its own rows; `rule` is the bounding rule's name. */
export class KeyedDraws {
  private readonly seed: bigint;

  constructor(key: Bytes, rule: string) {
    const [first, second] = blake2bWords(key, ascii(rule));
    this.seed = mix(mix(first) ^ second); // a device knows one person, whose code is 0
  }

  number(word: bigint): bigint {
    return mix((mix(word ^ this.seed) + this.seed) & WORD);
  }
}
