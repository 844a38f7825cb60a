import type { Bytes } from "./bytes.js";

const RATE = 168;
/** The last twelve round constants of Keccak-p[1600], the low half of each before the high one. */
const CONSTANTS = Uint32Array.of(
  0x8000808b,
  0x00000000,
  0x0000008b,
  0x80000000,
  0x00008089,
  0x80000000,
  0x00008003,
  0x80000000,
  0x00008002,
  0x80000000,
  0x00000080,
  0x80000000,
  0x0000800a,
  0x00000000,
  0x8000000a,
  0x80000000,
  0x80008081,
  0x80000000,
  0x00008080,
  0x80000000,
  0x80000001,
  0x00000000,
  0x80008008,
  0x80000000,
);
/** ρ and π along the one cycle of lanes that begins with lane 1: by how much each is turned, and where it goes. */
const TURNS = [1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44];
const PLACES = [10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1];

/** Keccak-p[1600, 12] (FIPS 202) on 25 lanes, each a low and a high half. */
function permute(lanes: Uint32Array): void {
  const columns = new Uint32Array(10);
  for (let round = 0; round < CONSTANTS.length; round += 2) {
    for (let x = 0; x < 10; x++) {
      columns[x] = lanes[x]! ^ lanes[x + 10]! ^ lanes[x + 20]! ^ lanes[x + 30]! ^ lanes[x + 40]!;
    }
    for (let x = 0; x < 10; x += 2) {
      const [left, right] = [(x + 8) % 10, (x + 2) % 10];
      const low = columns[left]! ^ ((columns[right]! << 1) | (columns[right + 1]! >>> 31));
      const high = columns[left + 1]! ^ ((columns[right + 1]! << 1) | (columns[right]! >>> 31));
      for (let y = x; y < 50; y += 10) {
        lanes[y]! ^= low;
        lanes[y + 1]! ^= high;
      }
    }
    let [low, high] = [lanes[2]!, lanes[3]!];
    for (let step = 0; step < 24; step++) {
      const turn = TURNS[step]!;
      if (turn >= 32) [low, high] = [high, low];
      const by = turn % 32;
      const [turned, other] = [(low << by) | (high >>> (32 - by)), (high << by) | (low >>> (32 - by))];
      const place = 2 * PLACES[step]!;
      [low, high] = [lanes[place]!, lanes[place + 1]!];
      lanes[place] = turned;
      lanes[place + 1] = other;
    }
    for (let row = 0; row < 50; row += 10) {
      for (let x = 0; x < 10; x++) columns[x] = lanes[row + x]!;
      for (let x = 0; x < 10; x++) lanes[row + x]! ^= ~columns[(x + 2) % 10]! & columns[(x + 4) % 10]!;
    }
    lanes[0]! ^= CONSTANTS[round]!;
    lanes[1]! ^= CONSTANTS[round + 1]!;
  }
}

/** TurboSHAKE128 (RFC 9861): a message's endless stream, for a domain of 1 to 127. */
export class TurboShake128 {
  private readonly lanes = new Uint32Array(50);
  private readonly block: Uint8Array;
  private at = 0;

  constructor(message: Bytes, domain: number) {
    if (new Uint8Array(Uint32Array.of(1).buffer)[0] !== 1)
      throw new Error("this machine's numbers have their big end first");
    this.block = new Uint8Array(this.lanes.buffer);
    const whole = message.length - (message.length % RATE);
    for (let start = 0; start < whole; start += RATE) {
      this.mix(message.subarray(start, start + RATE));
      permute(this.lanes);
    }
    this.mix(message.subarray(whole));
    this.block[message.length - whole]! ^= domain;
    this.block[RATE - 1]! ^= 0x80;
    permute(this.lanes);
  }

  private mix(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at++) this.block[at]! ^= bytes[at]!;
  }

  next(length: number): Bytes {
    const found = new Uint8Array(length);
    for (let done = 0; done < length; ) {
      if (this.at === RATE) {
        permute(this.lanes);
        this.at = 0;
      }
      const part = this.block.subarray(this.at, Math.min(RATE, this.at + length - done));
      found.set(part, done);
      done += part.length;
      this.at += part.length;
    }
    return found;
  }
}
