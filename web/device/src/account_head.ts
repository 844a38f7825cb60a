import { ascii, type Bytes, bigEndian, equal, hex, join, toBigEndian, unhex } from "../../shared/src/bytes.js";
import type { DeviceRecord } from "./device_store.js";
import { derive } from "./key_derivation.js";

const [TAG, NUMBER] = [16, 8];
export const HEAD = TAG + NUMBER;

/** The number of the last charge of a record; that of one which stands for forgotten ones is what it says. */
export const lastNumber = ({ charges }: DeviceRecord): number =>
  charges.reduce((last, { forgotten }) => forgotten ?? last + 1, 0);

/** The head of an account, by its device's secret and its server's identity: 24 bytes, the same for the same number. */
export async function sealedHead(key: Bytes, server: Bytes, number: bigint): Promise<Bytes> {
  const plain = toBigEndian(number, NUMBER);
  const tag = await derive(server, key, join(ascii("head tag "), plain), TAG);
  return join(tag, await padded(key, server, tag, plain));
}

/** The number in a head; null for anything that was not sealed by this device for this server. */
export async function openedHead(key: Bytes, server: Bytes, head: Bytes): Promise<bigint | null> {
  if (head.length !== HEAD) return null;
  const number = bigEndian(await padded(key, server, head.slice(0, TAG), head.slice(TAG)));
  return equal(await sealedHead(key, server, number), head) ? number : null;
}

/**
 * What a device gives its server with what it has paid for, once that is in its store. The server gives the last one back:
 * a record that was put back from a copy has not come so far. It is null where the device has no server.
 */
export async function headOf(record: DeviceRecord): Promise<string | null> {
  return (
    record.pinned && hex(await sealedHead(unhex(record.sampling), unhex(record.pinned), BigInt(lastNumber(record))))
  );
}

/** The number of the charge that a record has forgotten, by what its server keeps; null where it has forgotten none. */
export async function forgotten(record: DeviceRecord, head: Bytes): Promise<number | null> {
  const found = record.pinned ? await openedHead(unhex(record.sampling), unhex(record.pinned), head) : null;
  return found !== null && found > lastNumber(record) ? Number(found) : null;
}

async function padded(key: Bytes, server: Bytes, tag: Bytes, text: Bytes): Promise<Bytes> {
  const pad = await derive(server, key, join(ascii("head pad "), tag), NUMBER);
  return text.map((byte, at) => byte ^ pad[at]!);
}
