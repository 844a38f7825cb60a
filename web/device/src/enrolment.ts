import { ascii, type Bytes, hex, join, uint32, unhex, utf8 } from "../../shared/src/bytes.js";
import type { DeviceRecord } from "./device_store.js";
import { Identity, verified } from "./ed25519.js";
import { CodecError, Refused, Unreachable } from "./errors.js";
import { type HttpReply, type HttpTransport, originOf } from "./http_transport.js";
import { parseJsonBytes, texts } from "./json_text.js";

const VERSION = 2;
const [KEY, CHALLENGE, SIGNATURE] = [32, 56, 64];
const WORD = { length: 1 << 14, items: 16, depth: 1 };

const sized = (text: string): Bytes => {
  const bytes = utf8(text);
  return join(uint32(bytes.length), bytes);
};

/** What a server signs: its challenge, under this origin, for this device. */
export const challengeStatement = (origin: string, identity: Bytes, challenge: Bytes): Bytes =>
  join(ascii("hazemap challenge 2"), sized(origin), identity, challenge);

/** What a device signs. */
export const enrolmentStatement = (
  origin: string,
  server: Bytes,
  challenge: Bytes,
  identity: Bytes,
  token: string,
): Bytes => join(ascii("hazemap enrol 2"), sized(origin), server, challenge, identity, sized(token));

/** Enrol, or enrol again: the record then has a ticket. `Refused` where the server or the device does not agree. */
export async function enrol(record: DeviceRecord, http: HttpTransport, server: string, token: string): Promise<void> {
  const identity = await Identity.of(unhex(record.identity));
  const origin = originOf(server);
  const about = { version: VERSION, identity: hex(identity.public), origin };
  const asked = await http.post("/v1/challenge", null, about);
  if (asked.status === 404 || asked.status === 405) throw new Refused("this is no hazemap server, or an older one");
  if (asked.status === 421) throw new Refused(`the server does not go by the name ${origin}`);
  if (asked.status !== 200) throw new Unreachable(`the server gave no challenge (HTTP ${asked.status})`, asked.wait);
  const [key, challenge, signature] = fields(asked, "server", "challenge", "signature") as [string, string, string];
  const [theirs, nonce] = [digits(key, KEY), digits(challenge, CHALLENGE)];
  if (!(await verified(theirs, digits(signature, SIGNATURE), challengeStatement(origin, identity.public, nonce)))) {
    throw new Refused(`the server's challenge is not signed for ${origin}: another server may stand between`);
  }
  if (record.server !== null && originOf(record.server) !== origin)
    throw new Refused("this device is enrolled at another server");
  if (record.pinned !== null && record.pinned !== hex(theirs)) {
    throw new Refused(`${origin} shows another identity than when this device enrolled there first`);
  }
  const signed = hex(await identity.sign(enrolmentStatement(origin, theirs, nonce, identity.public, token)));
  const answer = await http.post("/v1/enrol", null, { ...about, token, challenge, signature: signed });
  if (answer.status === 403) throw new Refused("the server does not enrol this device: ask for a code");
  if (answer.status !== 201)
    throw new Unreachable(`the server did not enrol this device (HTTP ${answer.status})`, answer.wait);
  const [name, ticket] = fields(answer, "device", "ticket") as [string, string];
  if (!/^[!-~]{1,4096}$/.test(ticket)) throw new CodecError("the server's ticket is not one word of plain letters");
  Object.assign(record, { server, name, ticket, pinned: hex(theirs) });
}

const fields = (reply: HttpReply, ...names: string[]): string[] => texts(parseJsonBytes(reply.content, WORD), ...names);

function digits(text: string, length: number): Bytes {
  if (text.length !== 2 * length || !/^[0-9a-f]*$/.test(text))
    throw new CodecError("the server's word on the enrolment is not as agreed");
  return unhex(text);
}
