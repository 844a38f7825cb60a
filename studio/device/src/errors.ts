/** Bytes or JSON that nobody who follows the protocol wrote. */
export class CodecError extends Error {}

/** What this device does not take part in; the message is told to the server. */
export class Refused extends Error {}

/** What the person's own options or files say that cannot be. */
export class InputError extends Error {}

/** No answer, or one that means: not now. `wait` is how many seconds the server asks to be left alone. */
export class Unreachable extends Error {
  constructor(message: string, readonly wait: number | null = null) {
    super(message);
  }
}
