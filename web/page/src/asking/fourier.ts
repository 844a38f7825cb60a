/** The discrete Fourier transform of 2^k complex numbers. */
export class Fourier {
  private readonly cosine: Float64Array;
  private readonly sine: Float64Array;
  private readonly reversed: Uint32Array;

  constructor(readonly size: number) {
    const half = size / 2;
    this.cosine = Float64Array.from({ length: half }, (_, k) => Math.cos((2 * Math.PI * k) / size));
    this.sine = Float64Array.from({ length: half }, (_, k) => Math.sin((2 * Math.PI * k) / size));
    this.reversed = new Uint32Array(size);
    for (let at = 1; at < size; at++) this.reversed[at] = (this.reversed[at >> 1]! >> 1) | (at & 1 ? half : 0);
  }

  /** Σ_n (re + i·im)_n e^(−2πi kn/size) in place. */
  forward(re: Float64Array, im: Float64Array): void {
    const { size, cosine, sine, reversed } = this;
    for (let at = 0; at < size; at++) {
      const to = reversed[at]!;
      if (to > at) {
        const x = re[at]!;
        const y = im[at]!;
        re[at] = re[to]!;
        im[at] = im[to]!;
        re[to] = x;
        im[to] = y;
      }
    }
    for (let half = 1; half < size; half *= 2) {
      const stride = size / (2 * half);
      for (let start = 0; start < size; start += 2 * half) {
        for (let k = 0; k < half; k++) {
          const even = start + k;
          const odd = even + half;
          const c = cosine[k * stride]!;
          const s = sine[k * stride]!;
          const x = re[odd]! * c + im[odd]! * s;
          const y = im[odd]! * c - re[odd]! * s;
          re[odd] = re[even]! - x;
          im[odd] = im[even]! - y;
          re[even] = re[even]! + x;
          im[even] = im[even]! + y;
        }
      }
    }
  }
}
