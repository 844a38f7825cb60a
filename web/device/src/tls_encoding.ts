import { type Bytes, join, uint32 } from "../../shared/src/bytes.js";
import { CodecError } from "./errors.js";

/** Who of n clients: client 0 is the highest bit of the first byte. */
export class Bitmap {
  constructor(
    readonly size: number,
    readonly bits: Bytes,
  ) {}

  has(i: number): boolean {
    return i >= 0 && i < this.size && ((this.bits[i >> 3]! >> (7 - (i & 7))) & 1) === 1;
  }

  positions(): number[] {
    const found: number[] = [];
    for (let i = 0; i < this.size; i++) if (this.has(i)) found.push(i);
    return found;
  }

  within(other: Bitmap): boolean {
    return this.size === other.size && this.bits.every((byte, at) => (byte & ~other.bits[at]!) === 0);
  }
}

/** Reads the structures of RFC 8446, section 3, and refuses missing bytes and bytes left over. */
export class TlsReader {
  private at = 0;
  private readonly view: DataView;

  constructor(private readonly data: Bytes) {
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  }

  /** The next bytes: a copy, made after a look at whether they are there. */
  fixed(length: number): Bytes {
    if (length > this.data.length - this.at) throw new CodecError("bytes are missing");
    return this.data.slice(this.at, (this.at += length));
  }

  number(width: 1 | 2 | 4): number {
    if (width > this.data.length - this.at) throw new CodecError("bytes are missing");
    const at = this.at;
    this.at += width;
    return width === 1 ? this.view.getUint8(at) : width === 2 ? this.view.getUint16(at) : this.view.getUint32(at);
  }

  opaque(width: 1 | 2 | 4): Bytes {
    return this.fixed(this.number(width));
  }

  bitmap(): Bitmap {
    const size = this.number(4);
    const found = new Bitmap(size, this.fixed(Math.ceil(size / 8)));
    if (size % 8 && found.bits[found.bits.length - 1]! & (0xff >> (size % 8))) {
      throw new CodecError("a bitmap has a bit for a client that there is not");
    }
    return found;
  }

  /** `Counted` items, each a position and what `item` reads, the positions strictly ascending. */
  numbered<T>(item: () => T): Map<number, T> {
    const found = new Map<number, T>();
    let last = -1;
    for (let left = this.number(4); left > 0; left--) {
      const position = this.number(4);
      if (position <= last) throw new CodecError("positions do not ascend");
      found.set((last = position), item());
    }
    return found;
  }

  /** Bytes that were not read yet. */
  get left(): number {
    return this.data.length - this.at;
  }

  end(): void {
    if (this.at !== this.data.length) throw new CodecError("bytes are left over");
  }
}

/** `opaque x<…>`: the length in so many bytes, then the bytes. */
export const opaque = (width: 1 | 2 | 4, bytes: Bytes): Bytes => join(uint32(bytes.length).slice(4 - width), bytes);

/** `Counted` items, each a position and its bytes, ascending. */
export const numbered = (items: ReadonlyMap<number, Bytes>): Bytes => {
  const order = [...items.keys()].sort((a, b) => a - b);
  return join(uint32(order.length), ...order.flatMap((position) => [uint32(position), items.get(position)!]));
};
