import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as path } from "node:path";
import { test } from "node:test";
import { ascii, type Bytes, hex, sha256, systemRandom, unhex } from "../../../shared/src/bytes.js";
import { Device } from "../device.js";
import { DeviceFile } from "../device_file.js";
import { readRows } from "../device_rows.js";
import { createdRecord, DeviceStore } from "../device_store.js";
import { Identity } from "../ed25519.js";
import { CodecError, InputError } from "../errors.js";
import { Fraction } from "../fraction.js";
import { checkedAddress, originOf } from "../http_transport.js";
import { ENVELOPE, parseCanonicalJson, parseJson } from "../json_text.js";
import { fits } from "../name_pattern.js";
import { DEFAULT_POLICY, type Policy, readPolicy } from "../policy.js";
import { canonicalJson } from "../recipes/canonical_json.js";
import { readServerTask } from "../server_task.js";
import { invited, NOW } from "./invitations.js";
import { vectors } from "./vectors.js";

const POLICY: Policy = { ...DEFAULT_POLICY, corrupt: new Fraction(1, 20) };
const TEXT: string = vectors("device/tasks").tasks[1].task;

const folder = (): string => mkdtempSync(path(tmpdir(), "hazemap-device-"));

test("a device keeps its answer in its file before it gives it, and gives the same after a crash", async () => {
  const name = path(folder(), "device.json");
  const said: string[] = [];
  const file = DeviceFile.open(name, systemRandom);
  const identity = await Identity.of(unhex(file.record.identity));
  const device = await Device.of(file, POLICY, [], (line) => said.push(line));
  const work = await invited(identity, TEXT, 1);
  const { reply, refusal } = await device.answer(work, NOW);
  assert.equal(refusal, null);
  assert.equal(reply![1], 2);
  assert.equal(statSync(name).mode & 0o777, 0o600);
  assert.ok(readFileSync(name, "utf8").includes(hex(reply!)));
  writeFileSync(`${name}.lock`, `${process.ppid}`);
  assert.throws(() => DeviceFile.open(name, systemRandom), InputError, "one process at a time");
  file.close();
  const again = DeviceFile.open(name, systemRandom);
  const resumed = await Device.of(again, POLICY, [], () => undefined);
  assert.deepEqual((await resumed.answer(work, NOW)).reply, reply);
  again.close();
});

/** A store that can be full, as a browser's may be. */
class FullStore extends DeviceStore {
  full = true;

  constructor() {
    super(createdRecord(systemRandom));
  }

  override async save(): Promise<void> {
    if (this.full) throw new InputError("full");
  }
}

test("a device gives no answer that could not be kept, and says what it has ready before it is kept", async () => {
  const store = new FullStore();
  const identity = await Identity.of(unhex(store.record.identity));
  const said: string[] = [];
  const device = await Device.of(store, POLICY, [], (line) => said.push(line));
  const work = await invited(identity, TEXT, 1);
  await assert.rejects(device.answer(work, NOW), InputError);
  store.full = false;
  const { reply } = await device.answer(work, NOW);
  assert.ok(
    said.some((line) => line === `has its keys for round 1 ready: ${reply!.length} bytes`),
    said.join("\n"),
  );
});

test("a device refuses another purpose, a late message, a task that is not the terms', and a session that it left", async () => {
  const file = DeviceFile.open(path(folder(), "device.json"), systemRandom);
  const identity = await Identity.of(unhex(file.record.identity));
  const device = await Device.of(file, POLICY, [], () => undefined);
  const work = await invited(identity, TEXT, 1);
  assert.match((await device.answer({ ...work, until: NOW - 121_000 }, NOW)).refusal!, /over/);
  assert.match((await device.answer(work, NOW)).refusal!, /does not come back/);
  const second = await invited(identity, TEXT, 2);
  assert.ok((await device.answer(second, NOW)).reply);
  const other = TEXT.replace("a map", "another map");
  assert.match((await device.answer(await invited(identity, other, 3), NOW)).refusal!, /changed its purpose/);
  const third = await invited(identity, TEXT, 4);
  assert.match((await device.answer({ ...third, task: other }, NOW)).refusal!, /follow from its task/);
  assert.match(
    (await device.answer({ ...(await invited(identity, TEXT, 5)), session: "00".repeat(32) }, NOW)).refusal!,
    /its terms name/,
  );
  assert.match(
    (await device.answer({ ...(await invited(identity, TEXT, 6)), task: null }, NOW)).refusal!,
    /begins with a task/,
  );
  assert.match(
    (await device.answer(await invited(await Identity.of(await sha256(ascii("x"))), TEXT, 7), NOW)).refusal!,
    /roster/,
  );
  const open = await device.answer(second, NOW);
  assert.ok(open.reply, "and the session that is open stays open");
  await device.sweep(NOW + 10 * 86_400_000);
  assert.match((await device.answer(second, NOW)).refusal!, /does not come back/);
  assert.ok(!JSON.stringify(file.record.sessions).includes("masking"));
  file.close();
});

test("what is asked of a device at once is done one after the other", async () => {
  const file = DeviceFile.open(path(folder(), "device.json"), systemRandom);
  const identity = await Identity.of(unhex(file.record.identity));
  const device = await Device.of(file, POLICY, [], () => undefined);
  const [work, left] = [await invited(identity, TEXT, 1), await invited(identity, TEXT, 2)];
  const [once, twice] = await Promise.all([device.answer(work, NOW), device.answer(work, NOW)]);
  assert.ok(once.reply);
  assert.deepEqual(twice.reply, once.reply, "a stage has one answer");
  await Promise.all([device.answer(left, NOW), device.close(left.session)]);
  assert.equal(file.session(left.session), null, "a session that was left is not written again");
  file.close();
});

test("a device keeps no more sessions open than it has room for, and begins others once some are over", async () => {
  const store = new FullStore();
  store.full = false;
  const identity = await Identity.of(unhex(store.record.identity));
  const device = await Device.of(store, POLICY, [], () => undefined);
  for (let nonce = 0; nonce < 64; nonce++)
    assert.ok((await device.answer(await invited(identity, TEXT, nonce), NOW)).reply);
  assert.match((await device.answer(await invited(identity, TEXT, 64), NOW)).refusal!, /as many sessions open/);
  await device.sweep(NOW + 8 * 86_400_000);
  const later = { ...(await invited(identity, TEXT, 65)), until: NOW + 8 * 86_400_000 };
  assert.ok((await device.answer(later, NOW + 8 * 86_400_000)).reply);
  store.record.sessions.push(["x", { task: "x".repeat(1 << 26), until: NOW, state: {} }]);
  assert.match(
    (await device.answer({ ...(await invited(identity, TEXT, 66)), until: NOW + 8 * 86_400_000 }, NOW + 8 * 86_400_000))
      .refusal!,
    /as many sessions open/,
  );
});

test("only the device's file and the program need Node: all else is for any platform with WebCrypto", () => {
  const sources = new URL("../../../../../src/", import.meta.url);
  const names = (readdirSync(sources, { recursive: true }) as string[]).filter(
    (name) => name.endsWith(".ts") && !name.startsWith("test"),
  );
  const needing = names.filter((name) =>
    /"node:|\bBuffer\b(?!>)|\bprocess\./.test(readFileSync(new URL(name, sources), "utf8")),
  );
  assert.deepEqual(needing.sort(), ["device_file.ts", "main.ts"]);
});

test("a device that has nothing left refuses, and a charge of the future counts", async () => {
  const file = DeviceFile.open(path(folder(), "device.json"), systemRandom);
  const identity = await Identity.of(unhex(file.record.identity));
  const device = await Device.of(file, POLICY, [], () => undefined);
  file.record.charges.push({ campaign: "other", round: 1, session: "", epsilon: "2", time: NOW + 1e12 });
  assert.match((await device.answer(await invited(identity, TEXT, 1), NOW)).refusal!, /nothing left/);
  file.close();
});

test("what is written otherwise than agreed is refused", () => {
  const fields = { session: "00".repeat(32), stage: 1, task: null, message: "", until: "2026-01-02T03:04:05+00:00" };
  const bytes = (changed: object): Bytes => new TextEncoder().encode(JSON.stringify({ ...fields, ...changed }));
  assert.equal(readServerTask(bytes({})).stage, 1);
  const wrong = [
    { session: "0" },
    { stage: 7 },
    { stage: "1" },
    { task: 1 },
    { message: "a" },
    { message: "====" },
    { until: "soon" },
    { until: 5 },
  ];
  for (const changed of wrong) assert.throws(() => readServerTask(bytes(changed)), CodecError, JSON.stringify(changed));
  assert.throws(() => readServerTask(Uint8Array.of(0xff)), CodecError);
  for (const text of [
    "[1,]",
    "[1 2]",
    '{"a":1,}',
    '{"a" 1}',
    '{"a":1,"a":2}',
    "01",
    "1e9999",
    `${"9".repeat(4_301)}`,
    "NaN",
    '"\\x"',
    '"\\ud800"',
    "[[[1]]]",
    '"\u0001"',
  ]) {
    assert.throws(() => parseJson(text, ENVELOPE), CodecError, text);
  }
  assert.deepEqual(parseJson(' {"a": [1, -2.5e0, "\\u00e9\\n", true, null], "b": {}} ', { ...ENVELOPE, depth: 3 }), {
    a: [1n, -2.5, "é\n", true, null],
    b: {},
  });
});

test("patterns of names are read as hazemap reads them, and lists of them that are none are refused", () => {
  for (const [text, pattern, fitting] of [
    ["", "*", true],
    ["homes", "h[a-o]m?s", true],
    ["homes", "h[!a-o]*", false],
    ["a]b", "a[]]b", true],
    ["a-b", "a[x-]b", true],
    ["[", "[", true],
    ["🌍x", "?x", true],
    ["x\ny", "x*y", true],
    ["", "[!]", false],
    ["b", "[z-a]", false],
    ["aaab", "a*a*b", true],
    ["Homes", "homes", false],
  ] as const)
    assert.equal(fits(text, [pattern]), fitting, `${text} ${pattern}`);
  assert.equal(fits("x", []), false);
  assert.deepEqual(readPolicy('{"rules": ["rows"], "no_purposes": ["*sell*"]}').rules, ["rows"]);
  for (const text of [
    '{"rules": ["all"]}',
    '{"carriers": ["pigeons"]}',
    '{"campaigns": "*"}',
    '{"purposes": [1]}',
    '{"keep": 0}',
  ])
    assert.throws(() => readPolicy(text), InputError, text);
});

test("what is hashed is written in one way, which keys in the order of their code points belong to", () => {
  const written =
    '{"\\u00e9":[1,-2.5,1e+22,1e-07,0.1,-0.0,123456789012345.0],"\\uffff":"\\n\\u007f\\"/","\\ud83c\\udf0d":{}}';
  const limits = { ...ENVELOPE, depth: 3 };
  assert.equal(canonicalJson(parseCanonicalJson(written, limits)), written);
  for (const [from, to] of [
    ["1e+22", "1e22"],
    ["-0.0", "-0"],
    ["0.1", "0.10"],
    ["00e9", "00E9"],
    ["\\n", "\\u000a"],
    ["/", "\\/"],
    ['"\\uffff":', '"\\uffff": '],
    ['"\\u00e9"', '"é"'],
    ['"\\ud83c\\udf0d":{}', '"a":{}'],
    ["[1,", "[1e0,"],
  ] as const) {
    assert.ok(written.includes(from), from);
    parseJson(written.replace(from, to), limits);
    assert.throws(() => parseCanonicalJson(written.replace(from, to), limits), CodecError, `${from} → ${to}`);
  }
});

test("policies, rows and addresses are read, and others refused", () => {
  assert.equal(readPolicy('{"people": 40, "campaign": "1/3"}').campaign.toString(), "1/3");
  for (const text of [
    '{"person": 1}',
    '{"people": 0}',
    '{"modes": ["kind"]}',
    '{"times": 1}',
    '{"corrupt": "1"}',
    "[]",
  ])
    assert.throws(() => readPolicy(text), text);
  assert.deepEqual([DEFAULT_POLICY.finest, readPolicy('{"finest": 0.5}').finest], [5, 0.5]);
  for (const finest of ["-1", "1e400", '"5"', "null", "true"])
    assert.throws(() => readPolicy(`{"finest": ${finest}}`), finest);
  assert.deepEqual(readRows('[{"lon": 13, "lat": 52.5, "time": 0.5}, {"lon": 13, "lat": 52.5, "time": null}]'), [
    { lon: 13, lat: 52.5, time: 0.5 },
    { lon: 13, lat: 52.5 },
  ]);
  const nowhere = { lon: NaN, lat: NaN };
  assert.deepEqual(
    readRows(
      `[{"lon": 200, "lat": 0}, {"lon": 13, "lat": -${"9".repeat(400)}, "time": 5}, {"lon": -180, "lat": 90, "time": 1e300}]`,
    ),
    [nowhere, { ...nowhere, time: 5 }, { lon: -180, lat: 90 }],
  );
  for (const text of ["{}", "[1]", '[{"lat": 0}]', '[{"lon": "1", "lat": 0}]', '[{"lon": 1, "lat": 0, "time": "now"}]'])
    assert.throws(() => readRows(text), text);
  assert.equal(originOf("HTTPS://Maps.Example:443/under/a/path"), "https://maps.example");
  assert.equal(checkedAddress("http://127.0.0.1:8470/"), "http://127.0.0.1:8470");
  for (const address of ["http://maps.example", "maps.example", "https://a b", "ftp://x"])
    assert.throws(() => checkedAddress(address), InputError);
});

test("a record that is put back from a copy says the same again, and with other places nothing that has to do with it", async () => {
  class Copied extends DeviceStore {
    constructor(record: ReturnType<typeof createdRecord>) {
      super(record);
    }

    override async save(): Promise<void> {}
  }
  const record = createdRecord(systemRandom);
  const work = await invited(await Identity.of(unhex(record.identity)), TEXT, 1);
  const said = async (places: { lon: number; lat: number }[]): Promise<Bytes> => {
    const device = await Device.of(new Copied(structuredClone(record)), POLICY, places, () => undefined);
    return (await device.answer(work, NOW)).reply!;
  };
  const here = [{ lon: 13.4, lat: 52.5 }];
  const first = await said(here);
  assert.deepEqual(await said(here), first);
  assert.notDeepEqual(first.slice(34, 130), (await said([])).slice(34, 130), "other keys and another commitment");
});

test("a round that costs nearly nothing, and one more than its person lets it answer, are refused in words", async () => {
  const record = createdRecord(systemRandom);
  const identity = await Identity.of(unhex(record.identity));
  const answered = async (policy: Policy): Promise<string | null> => {
    const store = new FullStore();
    Object.assign(store, { full: false, record: structuredClone(record) });
    store.record.charges.push({ campaign: "another", round: 1, session: "", epsilon: "1/1000", time: NOW });
    return (await (await Device.of(store, policy, [], () => undefined)).answer(await invited(identity, TEXT, 1), NOW))
      .refusal;
  };
  assert.equal(await answered(POLICY), null);
  assert.match((await answered({ ...POLICY, least: new Fraction(1) }))!, /on this device a round costs ε = 1 or more/);
  assert.match((await answered({ ...POLICY, rounds: 1 }))!, /nothing left to spend/);
  assert.equal(readPolicy('{"rounds": 7, "least": "1/50"}').rounds, 7);
  assert.throws(() => readPolicy('{"least": true}'), InputError);
});
