import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ascii, type Bytes, hex, join, sha256, systemRandom, uint32, unhex, utf8 } from "../../../shared/src/bytes.js";
import { dapTask, readCarriedRound } from "../carried_round.js";
import { makeReport, preferredKey, uploadError } from "../dap_messages.js";
import { Device } from "../device.js";
import { createdRecord, type DeviceRecord, DeviceStore } from "../device_store.js";
import { Identity } from "../ed25519.js";
import { CodecError, InputError, Refused, Unreachable } from "../errors.js";
import { Fraction } from "../fraction.js";
import { TurboShake128 } from "../hashes.js";
import { type HpkeConfig, seal } from "../hpke.js";
import { DEFAULT_POLICY, type Policy, readPolicy } from "../policy.js";
import { Prio3Multihot } from "../prio3_multihot.js";
import { askedKey, credentialStatement, readCredential, reportKey } from "../report_credential.js";
import { fetchedKey, uploaded } from "../report_upload.js";
import type { DueReport, ReportParts } from "../round_reports.js";
import type { ServerTask } from "../server_task.js";
import { vectors } from "./vectors.js";

const { reports } = vectors("device/reports");
const PUBLISHED = new URL("../../../../../../../../shared/vectors/", import.meta.url);
const SERVERS = ["https://one.example/", "https://two.example:8443/dap/"];
const POLICY: Policy = { ...DEFAULT_POLICY, aggregators: SERVERS, campaign: new Fraction(5), period: new Fraction(5) };

const published = (name: string): any | null => {
  const file = new URL(name, PUBLISHED);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : null;
};

const ISSUER = await Identity.of(new Uint8Array(32).fill(7));

class Memory extends DeviceStore {
  writes = 0;
  failing = false;
  constructor(record: DeviceRecord = createdRecord(systemRandom)) {
    super(record);
    record.pinned ??= hex(ISSUER.public);
  }
  override async save(): Promise<void> {
    if (this.failing) throw new InputError("the disk is full");
    this.writes++;
  }
}

const keysOf = (at: number): readonly [HpkeConfig, HpkeConfig] =>
  reports[at].keys.map((text: string) => preferredKey(unhex(text)));

/** The servers' keys, and a credential of the issuer that devices here have pinned, or of another. */
const known = (at: number, issuer = ISSUER): ReportParts => ({
  keys: async () => keysOf(at),
  credential: async (asked) => {
    const serial = new Uint8Array(32).fill(at);
    return join(serial, await issuer.sign(credentialStatement(unhex(reports[at].task), serial, asked.slice(0, 32))));
  },
});
const nothing = (): Promise<never> => Promise.reject(new Error("nothing was to be asked for"));
const never: ReportParts = { keys: nothing, credential: nothing };

function announced(at: number, text: string = reports[at].announcement): ServerTask {
  const batch = /"batch":"([0-9a-f]+)"/.exec(text)![1]!;
  return {
    session: batch,
    stage: 0,
    task: text,
    message: new Uint8Array(0),
    until: 1_000 * reports[at].seconds + 60_000,
    head: new Uint8Array(0),
  };
}

const changed = (at: number, from: string | RegExp, to: string): string => {
  const found = reports[at].announcement.replace(from, to);
  assert.notEqual(found, reports[at].announcement);
  return found;
};

test("the hash's stream is that of RFC 9861", () => {
  const first = "1e415f1c5983aff2169217277d17bb538cd945a397ddec541f1ce41af2c1b74c";
  assert.equal(hex(new TurboShake128(new Uint8Array(0), 0x1f).next(32)), first);
  const pattern = (length: number): Bytes => Uint8Array.from({ length }, (_, at) => at % 251);
  for (const length of [1, 167, 168, 169, 336, 5_000]) {
    const [whole, stream] = [new TurboShake128(pattern(length), 1).next(700), new TurboShake128(pattern(length), 1)];
    assert.deepEqual(join(...[1, 167, 168, 169, 195].map((part) => stream.next(part))), whole);
  }
});

test("shares and proofs are those of the published vectors", (context) => {
  const found = published("vdaf/Prio3MultihotCountVec_0.json");
  if (!found) return context.skip("the published vectors are not here");
  const vdaf = new Prio3Multihot(found.length, found.max_weight, found.chunk_length);
  for (const { measurement, nonce, rand, public_share, input_shares } of found.reports) {
    const shares = vdaf.shard(unhex(found.ctx), measurement.map(Boolean), unhex(nonce), unhex(rand));
    assert.deepEqual([hex(shares.public), hex(shares.leader), hex(shares.helper)], [public_share, ...input_shares]);
  }
});

test("announcements become the tasks and the reports of the vectors, byte by byte", async () => {
  for (const [at, each] of reports.entries()) {
    const round = await readCarriedRound(each.announcement);
    const task = await dapTask(round, unhex(each.issuer));
    assert.deepEqual(
      [hex(round.digest), hex(task.id), hex(task.configuration)],
      [each.digest, each.task, each.configuration],
    );
    const key = await sha256(unhex(each.sampling), utf8(round.task.campaign));
    const bits = [...round.task.counts!.contribution(each.rows, key)].map((sum) => sum === 1);
    assert.equal(bits.map(Number).join(""), each.bits);
    const own = await reportKey(unhex(each.identity), task.id);
    assert.equal(hex(own.public), each.key);
    const identity = await Identity.of(unhex(each.identity));
    assert.equal(hex(await askedKey(identity, unhex(each.issuer), unhex(round.batch), own.public)), each.asked);
    const credential = await readCredential(unhex(each.credential), own, unhex(each.issuer), task.id);
    assert.equal(
      hex(await makeReport(task, keysOf(at), credential, bits, each.seconds, unhex(each.random))),
      each.report,
    );
    const late = each.seconds + 14 * 86_400;
    await assert.rejects(makeReport(task, keysOf(at), credential, bits, late, unhex(each.random)), Refused);
    const two = bits.map(() => true);
    await assert.rejects(
      makeReport(task, keysOf(at), credential, two, each.seconds, unhex(each.random)),
      InputError,
      "two 1s are no report",
    );
  }
});

test("a credential of another server, task, key or length is refused before anything is paid", async () => {
  const [task, other] = [unhex(reports[0].task), unhex(reports[1].task)];
  const [own, stranger] = [await reportKey(systemRandom(32), task), await Identity.of(systemRandom(32))];
  const given = unhex(reports[0].credential);
  const issuer = unhex(reports[0].issuer);
  const mine = await reportKey(unhex(reports[0].identity), task);
  await readCredential(given, mine, issuer, task);
  const wrong: [Bytes, Identity, Bytes, Bytes][] = [
    [given, own, issuer, task],
    [given, mine, stranger.public, task],
    [given, mine, issuer, other],
    [given.slice(1), mine, issuer, task],
    [join(given, given), mine, issuer, task],
    [new Uint8Array(0), mine, issuer, task],
    [given, mine, new Uint8Array(0), task],
  ];
  for (const each of wrong) await assert.rejects(readCredential(...each), Refused);
  const store = new Memory();
  const device = await Device.of(store, POLICY, reports[2].rows, () => undefined);
  assert.match(
    (await device.report(announced(2), 1_000 * reports[2].seconds, known(2, stranger))) as string,
    /credential is not of the server/,
  );
  assert.deepEqual(store.record.charges, []);
});

test("a device charges and keeps its report before it gives it, and gives the same again for nothing", async () => {
  const said: string[] = [];
  const store = new Memory();
  const device = await Device.of(store, POLICY, reports[2].rows, (line) => said.push(line));
  const now = 1_000 * reports[2].seconds;
  store.failing = true;
  for (const keys of [known(2), never])
    await assert.rejects(device.report(announced(2), now, keys), /disk is full/, "nothing is given that is not kept");
  const fresh = new Memory();
  const again = await Device.of(fresh, POLICY, reports[2].rows, (line) => said.push(line));
  const first = (await again.report(announced(2), now, known(2))) as DueReport;
  assert.equal(fresh.writes, 1);
  assert.deepEqual(
    fresh.record.charges.map(({ epsilon, session }) => [epsilon, session]),
    [["3", announced(2).session]],
  );
  const copy = await Device.of(new Memory(JSON.parse(JSON.stringify(fresh.record))), POLICY, [], () => undefined);
  const second = (await copy.report(announced(2), now, never)) as DueReport;
  assert.deepEqual(second.report, first.report);
  assert.equal(again.ended("homes é 2"), false, "its report is not there yet");
  await again.reported(announced(2).session, null);
  assert.equal(((await again.report(announced(2), now, never)) as DueReport).report, null);
  assert.equal(again.ended("homes é 2"), true);
  assert.equal(fresh.record.charges.length, 1);
  assert.ok(said.some((line) => line.startsWith("pays ε = 3 for round 1: its report has")));
  const lone = JSON.stringify(fresh.record);
  for (const { lon, lat } of reports[2].rows) assert.ok(!lone.includes(`${lon}`) && !lone.includes(`${lat}`));
});

test("a report is for the announcement that it was made for, and a round that was refused stays so", async () => {
  const store = new Memory();
  const device = await Device.of(store, POLICY, [], () => undefined);
  const now = 1_000 * reports[0].seconds;
  await device.report(announced(0), now, known(0));
  const other = changed(0, "https://one.example/", "https://two.example:8443/dapp/");
  assert.match((await device.report(announced(0, other), now, never)) as string, /in other words/);
  assert.match((await device.report(announced(0), now, never)) as string, /does not come back/);
  assert.equal(store.record.charges.length, 1, "what was paid stays paid");
  assert.ok(!JSON.stringify(store.record.reports).includes('"report":"'), "its bytes are gone");
});

test("reports for which nobody came back are forgotten, and other bytes of a message are none", async () => {
  const store = new Memory();
  const device = await Device.of(store, POLICY, [], () => undefined);
  const now = 1_000 * reports[0].seconds;
  await device.report(announced(0), now, known(0));
  await device.sweep(now + 86_400_000);
  assert.equal(store.record.reports!.filter(([, kept]) => kept).length, 1);
  await device.sweep(now + 87_000_000);
  assert.equal(store.record.reports!.filter(([, kept]) => kept).length, 0);
});

test("what a device does not report to is refused in words, before a key is asked for", async () => {
  const now = 1_000 * reports[0].seconds;
  const judged = async (text: string, policy: Policy = POLICY, later = 0): Promise<string> => {
    const store = new Memory();
    const device = await Device.of(store, policy, reports[0].rows, () => undefined);
    const found = await device.report(announced(0, text), now + later, never);
    assert.equal(typeof found, "string", text.slice(0, 200));
    assert.deepEqual([store.record.charges, store.record.campaigns], [[], []]);
    return found as string;
  };
  const text: string = reports[0].announcement;
  assert.match(await judged(text, { ...POLICY, aggregators: [] }), /none of them/);
  assert.match(await judged(text, { ...POLICY, aggregators: [SERVERS[0]!] }), /two\.example/);
  assert.match(await judged(text, { ...POLICY, people: 200 }), /only 120 people/);
  assert.match(await judged(text, { ...POLICY, survivors: 101 }), /sums of 100 reports/);
  assert.match(await judged(text, { ...POLICY, longest: 3 }), /4 numbers/);
  assert.match(
    await judged(text, { ...POLICY, corrupt: new Fraction(1, 5) }),
    /10 % of the others work with the server, but this device assumes 20 %/,
  );
  assert.match(await judged(text, { ...POLICY, campaign: new Fraction(1, 21) }), /may cost/);
  assert.match(await judged(text, { ...POLICY, period: new Fraction(1, 21) }), /nothing left/);
  assert.match(await judged(text, POLICY, 200_000), /time for this report is over/);
  assert.match(await judged(changed(0, '"most":1', '"most":2')), /single 1/);
  assert.match(await judged(changed(0, '"minimum":100', '"minimum":121')), /more reports than people/);
  assert.match(await judged(changed(0, "https://two.example:8443/dap/", "https://one.example/")), /same address/);
  assert.match(await judged(changed(0, "https://one.example/", "https://one.example")), /ends in a slash/);
  assert.match(await judged(changed(0, "https://one.example/", "javascript:alert(1)/")), /ends in a slash/);
  assert.match(await judged(changed(0, "ByTwoServers", "ByOneReport")), /no other carrier/);
  assert.match(await judged(changed(0, "ByTwoServers", "ByShuffler")), /no other carrier/);
  assert.match(
    await judged(changed(0, /"fraction":"1\/20"\}\}\},"purpose"/, '"fraction":"1/19"}}},"purpose"')),
    /not its share/,
  );
  assert.match(await judged(changed(0, '"begun":1777000000', '"begun":-1')), /when the round began/);
  assert.match(await judged(changed(0, '"CarriedTask"', '"Task"')), /CarriedTask/);
  assert.match(await judged(changed(0, /"1\/20"/g, '"1000003/36893488147419103233"')), /cannot be written/);
  assert.match(await judged(changed(0, /"1\/20"/g, '"1/1125899906842625"')), /cannot be drawn/);
  assert.match(await judged(changed(0, /"1\/20"/g, '"36893488147419103233"')), /may cost/);
  assert.match(await judged(changed(0, '"begun":1777000000', '"begun":1')), /by now/);
});

test("whatever a person's rows are, there is a report of the same length", async () => {
  const now = 1_000 * reports[1].seconds;
  const lengths = new Set<number>();
  for (const rows of [
    [],
    reports[2].rows,
    [{ lon: NaN, lat: Infinity }],
    [{ lon: 1e308, lat: -1e308 }],
    null as never,
  ]) {
    const device = await Device.of(new Memory(), POLICY, rows, () => undefined);
    lengths.add(((await device.report(announced(1), now, known(1))) as DueReport).report!.length);
  }
  assert.equal(lengths.size, 1);
});

test("rules name servers, each with its key where that is pinned", () => {
  const pin = "ab".repeat(32);
  assert.deepEqual(readPolicy(`{"aggregators": ["https://one.example/#${pin}"]}`).aggregators, [
    `https://one.example/#${pin}`,
  ]);
  for (const wrong of [
    '"https://one.example/"',
    "[1]",
    '["https://one.example"]',
    '["http://one.example/"]',
    `["https://one.example/#${pin}0"]`,
  ]) {
    assert.throws(() => readPolicy(`{"aggregators": ${wrong}}`), InputError, wrong);
  }
});

test("keys of no use, or two of one number, are refused", async () => {
  const config = (id: number, kem = 0x20, key = new Uint8Array(32).fill(9)): Bytes =>
    join(Uint8Array.of(id), ...[kem, 1, 1, key.length].map((x) => Uint8Array.of(x >> 8, x & 255)), key);
  const list = (...configs: Bytes[]): Bytes => {
    const all = join(...configs);
    return join(Uint8Array.of(all.length >> 8, all.length & 255), all);
  };
  assert.equal(preferredKey(list(config(1, 0x10), config(2))).id, 2);
  assert.throws(() => preferredKey(list()), Refused);
  assert.throws(() => preferredKey(list(config(1), config(1))), /one number/);
  assert.throws(() => preferredKey(list(config(1, 0x20, new Uint8Array(31)))), Refused);
  for (const cut of [list(config(1)).slice(0, 9), join(list(config(1)), Uint8Array.of(0))])
    assert.throws(() => preferredKey(cut), CodecError);
  const low = preferredKey(list(config(1, 0x20, new Uint8Array(32))));
  await assert.rejects(seal(low, ascii("i"), ascii("a"), ascii("p"), systemRandom(32)), Refused, "a key of low order");
});

test("a leader's answers to a report are told apart", async () => {
  const [report, due] = [
    unhex(reports[0].report),
    await dapTask(await readCarriedRound(reports[0].announcement), unhex(reports[0].issuer)),
  ];
  const id = report.slice(0, 16);
  for (const [error, meant] of [
    [2, "taken"],
    [9, "early"],
    [11, "outdated"],
    [3, "refused"],
    [250, "refused"],
  ] as const) {
    assert.equal(uploadError(join(id, Uint8Array.of(error)), report), meant);
  }
  assert.throws(() => uploadError(join(new Uint8Array(16), Uint8Array.of(2)), report), CodecError);
  const answers: [number, string, Bytes][] = [];
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    const [status, kind, content] = answers.shift()!;
    request.resume().on("end", () => response.writeHead(status, { "content-type": kind }).end(content));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const round = await readCarriedRound(changed(0, "https://one.example/", url));
    const sent = (status: number, kind = "", content: Bytes = new Uint8Array(0)): Promise<void> => {
      answers.push([status, kind, content]);
      return uploaded({ round, task: due, report });
    };
    const [errors, problem] = ["application/ppm-dap; message=upload-errors", "application/problem+json"];
    await sent(200);
    await sent(201, errors, join(id, Uint8Array.of(2)));
    assert.equal(asked[0]!.headers["content-type"], "application/ppm-dap;message=upload-req");
    assert.match(asked[0]!.url!, /^\/tasks\/[A-Za-z0-9_-]{43}\/reports$/);
    assert.equal(asked[0]!.headers["authorization"], undefined, "no ticket of the coordinator goes to a leader");
    await assert.rejects(sent(200, errors, join(id, Uint8Array.of(9))), Unreachable);
    await assert.rejects(sent(200, "text/html", id), Unreachable);
    await assert.rejects(sent(200, errors, uint32(1)), Unreachable);
    await assert.rejects(sent(200, errors, join(id, Uint8Array.of(3))), Refused);
    await assert.rejects(sent(503), Unreachable);
    await assert.rejects(
      sent(400, problem, utf8('{"type": "urn:ietf:params:ppm:dap:error:reportTooEarly"}')),
      Unreachable,
    );
    await assert.rejects(
      sent(400, problem, utf8('{"type": "urn:ietf:params:ppm:dap:error:outdatedConfig"}')),
      /new report would be charged/,
    );
    await assert.rejects(sent(404), Refused);
    answers.push([200, "application/ppm-dap;message=hpke-config-list", unhex(reports[0].keys[0])]);
    assert.equal((await fetchedKey(url, "")).id, 7);
    answers.push([200, "application/ppm-dap;message=hpke-config-list", unhex(reports[0].keys[0])]);
    await assert.rejects(fetchedKey(url, "00".repeat(32)), /another key/);
    answers.push([200, "text/html", unhex(reports[0].keys[0])]);
    await assert.rejects(fetchedKey(url, ""), Refused);
    answers.push([404, "text/html", unhex("")]);
    await assert.rejects(fetchedKey(url, ""), Refused);
  } finally {
    server.close();
  }
});
