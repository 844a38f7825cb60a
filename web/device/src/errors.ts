/** Bytes or JSON that nobody who follows the protocol wrote. */
export class CodecError extends Error {}

/** What this device does not take part in; the message is told to the server. */
export class Refused extends Error {}

/** A kind of question that hazemap's own device may answer, and this one does not: it looks no further. */
export class UnknownKind extends Refused {
  constructor(
    readonly kind: string,
    message: string,
  ) {
    super(message);
  }
}

/** What the person's own options or files say that cannot be. */
export class InputError extends Error {}

/** No answer, or one that means: not now. `wait` is how many seconds the server asks to be left alone. */
export class Unreachable extends Error {
  constructor(
    message: string,
    readonly wait: number | null = null,
  ) {
    super(message);
  }
}
