/** Long arrays as the page's data holds them: base64 of raw deflate of little-endian numbers. */

import { ascii } from "../../../shared/src/bytes.js";

const KINDS = {
  uint8: Uint8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
  uint64: BigUint64Array,
} as const;

export type NumberType = keyof typeof KINDS;
export type Numbers<T extends NumberType = NumberType> = InstanceType<(typeof KINDS)[T]>;

/** An array as JSON holds it. */
export interface PackedArray<T extends NumberType = NumberType> {
  readonly type: T;
  readonly length: number;
  readonly data: string;
}

/** The numbers; throws where they are not as many, or not of the type, that the array says. */
export async function unpack<T extends NumberType>(packed: PackedArray<T>): Promise<Numbers<T>> {
  const kind = KINDS[packed.type];
  if (kind === undefined) throw new Error(`no array has numbers of type ${String(packed.type)}`);
  if (packed.length === 0) return new kind(0) as Numbers<T>;
  const squeezed = new Blob([ascii(atob(packed.data))]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const bytes = await new Response(squeezed).arrayBuffer();
  if (bytes.byteLength !== packed.length * kind.BYTES_PER_ELEMENT) {
    throw new Error(`an array of ${packed.length} numbers has ${bytes.byteLength} bytes`);
  }
  return new kind(bytes) as Numbers<T>;
}
