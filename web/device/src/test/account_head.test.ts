import assert from "node:assert/strict";
import { test } from "node:test";
import { hex, systemRandom, unhex, utf8 } from "../../../shared/src/bytes.js";
import { AccountClock } from "../account_clock.js";
import { forgotten, headOf, lastNumber, openedHead, sealedHead } from "../account_head.js";
import { Agent } from "../agent.js";
import { Device } from "../device.js";
import { createdRecord, type DeviceRecord, DeviceStore } from "../device_store.js";
import { Identity } from "../ed25519.js";
import { Fraction } from "../fraction.js";
import type { HttpReply, HttpTransport } from "../http_transport.js";
import { DEFAULT_POLICY, type Policy } from "../policy.js";
import { invited, NOW } from "./invitations.js";
import { vectors } from "./vectors.js";

const POLICY: Policy = { ...DEFAULT_POLICY, corrupt: new Fraction(1, 20) };
const TEXT: string = vectors("device/tasks").tasks[1].task;
const DAY = 86_400_000;

class Memory extends DeviceStore {
  constructor(record: DeviceRecord) {
    super(record);
  }

  override async save(): Promise<void> {}
}

const copyOf = (record: DeviceRecord): DeviceRecord => JSON.parse(JSON.stringify(record)) as DeviceRecord;

const enrolled = (): DeviceRecord => ({ ...createdRecord(systemRandom), ticket: "ticket", pinned: "5e".repeat(32) });

const paid = (time = NOW) => ({ campaign: "other", round: 1, session: "", epsilon: "1/1000", time });

test("heads are those of the vectors, and nobody else's are opened", async () => {
  const { heads } = vectors("device/heads");
  for (const { key, server, number, head } of heads) {
    assert.equal(hex(await sealedHead(unhex(key), unhex(server), BigInt(number))), head);
    assert.equal(await openedHead(unhex(key), unhex(server), unhex(head)), BigInt(number));
    const changed = unhex(head).map((byte, at) => (at === 20 ? byte ^ 1 : byte));
    for (const other of [changed, changed.slice(1), new Uint8Array(0)])
      assert.equal(await openedHead(unhex(key), unhex(server), other), null);
  }
  const [one, two] = heads;
  assert.equal(await openedHead(unhex(two.key), unhex(one.server), unhex(one.head)), null);
  assert.equal(await openedHead(unhex(one.key), unhex(two.server), unhex(one.head)), null);
});

test("in any small history a copy is noticed where its server knows more, and never else", async () => {
  const ops = ["pays", "pays, and the message is lost", "copies", "is put back", "asks"] as const;
  let noticed = 0;
  for (let history = 0; history < ops.length ** 4; history++) {
    let [record, kept, known, backs] = [enrolled(), "", 0, 0];
    const copies = [copyOf(record)];
    for (let at = 0, rest = history; at < 5; at++, rest = Math.floor(rest / ops.length)) {
      const op = at < 4 ? ops[rest % ops.length]! : "asks";
      if (op.startsWith("pays")) record.charges.push(paid());
      if (op === "pays") [kept, known] = [(await headOf(record))!, lastNumber(record)];
      if (op === "copies") copies.push(copyOf(record));
      if (op === "is put back") [record, backs] = [copyOf(copies.at(-1)!), backs + 1];
      if (op !== "asks") continue;
      const found = await forgotten(record, unhex(kept));
      assert.equal(found, known > lastNumber(record) ? known : null, `${history}`);
      if (found === null) continue;
      assert.ok(backs > 0);
      noticed++;
      record.charges.push({ ...paid(), forgotten: found });
      assert.equal(lastNumber(record), known);
    }
  }
  assert.ok(noticed > 20);
});

test("after a copy the period is spent, in words, and comes back when it has passed", async () => {
  const record = enrolled();
  const copy = copyOf(record);
  record.charges.push(paid(), paid());
  const head = unhex((await headOf(record))!);
  const [store, said] = [new Memory(copy), [] as string[]];
  const identity = await Identity.of(unhex(copy.identity));
  let passed = 0;
  const clock = new AccountClock(copy, () => passed);
  const device = await Device.of(store, POLICY, [], (line) => said.push(line), { clock });
  await device.putBack(head, NOW);
  await device.putBack(head, NOW);
  assert.equal(said.length, 1);
  assert.match(said[0]!, /put back from a copy; charges that it has forgotten: 2; .* counts as spent/);
  assert.deepEqual(
    copy.charges.map(({ forgotten: number }) => number),
    [2],
  );
  assert.equal(await device.head(), hex(head), "nothing new was paid");
  const asked = async (nonce: number) => {
    const work = await invited(identity, TEXT, nonce);
    return device.answer({ ...work, until: NOW + passed + 60_000 }, NOW + passed);
  };
  assert.match((await asked(1)).refusal!, /nothing left to spend/);
  passed = POLICY.days * DAY - 1;
  assert.match((await asked(2)).refusal!, /nothing left to spend/);
  passed = POLICY.days * DAY;
  assert.ok((await asked(3)).reply);
});

/** What an agent posts, to a server that keeps the last head and gives it back. */
async function posted(store: DeviceStore, work: readonly object[], kept: string | null): Promise<[string[], string[]]> {
  const [stop, posts, said] = [new AbortController(), [] as string[], [] as string[]];
  const device = await Device.of(store, POLICY, [], (line) => said.push(line));
  const answer = async (): Promise<{ reply: Uint8Array; refusal: null; campaign: null; last: false }> => ({
    reply: new Uint8Array(8),
    refusal: null,
    campaign: null,
    last: false,
  });
  const report = async () => ({ round: { task: { campaign: "" } }, report: null }); // the servers have it
  const paying = Object.assign(Object.create(device) as Device, { answer, report, ended: () => false });
  const rest = [...work];
  const reply = (status: number, content = ""): HttpReply => ({
    status,
    wait: 0.001,
    kind: "",
    content: utf8(content),
  });
  const http = {
    async send(method: string, path: string): Promise<HttpReply> {
      if (method === "POST") {
        posts.push(path);
        if (!rest.length) stop.abort();
        return reply(204);
      }
      return reply(200, JSON.stringify({ ...rest.shift(), head: kept }));
    },
  } as unknown as HttpTransport;
  await new Agent(paying, store, http, "https://maps.example", "", Infinity, () => undefined).run(stop.signal);
  return [posts, said];
}

test("a head goes with what was paid for alone, and the one that comes back is read before the answer", async () => {
  const record = enrolled();
  const older = copyOf(record);
  record.charges.push(paid());
  const head = (await headOf(record))!;
  const session = "ab".repeat(32);
  const work = [3, 4, 0].map((stage) => ({
    session,
    stage,
    task: null,
    message: "",
    until: "2099-01-02T03:04:05+00:00",
  }));
  const [posts, said] = await posted(new Memory(record), work, head);
  assert.deepEqual(posts, [
    `/v1/tasks/${session}`,
    `/v1/tasks/${session}?head=${head}`,
    `/v1/tasks/${session}?head=${head}`,
  ]);
  assert.deepEqual(said, [], "its own head is no surprise");
  const [, noticed] = await posted(new Memory(older), work.slice(0, 1), head);
  assert.equal(noticed.length, 1);
  assert.equal(lastNumber(older), 1);
});
