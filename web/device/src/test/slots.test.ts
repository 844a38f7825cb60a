import assert from "node:assert/strict";
import { test } from "node:test";
import { sha256, unhex, utf8 } from "../../../shared/src/bytes.js";
import { CodecError, Refused } from "../errors.js";
import type { Json } from "../json_text.js";
import { checkPolicy, DEFAULT_POLICY } from "../policy.js";
import { decodeParameters } from "../session_parameters.js";
import { readTask } from "../task.js";
import { readSlots } from "../time_slots.js";
import { ZONE_NAMES } from "../zone_names.js";
import { vectors } from "./vectors.js";

const { moments, tasks } = vectors("device/slots");

test("moments lie in the slots of the vectors, where clocks are changed too", () => {
  for (const { slots, times, found } of moments) {
    const own = readSlots(slots_(slots));
    assert.deepEqual(
      times.map((time: number | null) => own.at(time)),
      found,
      JSON.stringify(slots),
    );
  }
});

test("there are clocks for every name of the list, and a machine that has none for one says so", (t) => {
  const weekdays = (zone: string): object => slots_({ Weekdays: { zone } });
  for (const zone of ZONE_NAMES) assert.equal(readSlots(weekdays(zone) as Json).many, 7, zone);
  t.mock.method(Intl, "DateTimeFormat", () => {
    throw new RangeError("Invalid time zone specified: America/Coyhaique");
  });
  assert.throws(
    () => readSlots(weekdays("America/Coyhaique") as Json),
    (error) => error instanceof Refused && /does not know the clocks/.test(error.message),
  );
});

/** Whole numbers as the codec's reader gives them. */
const slots_ = (json: any): any =>
  JSON.parse(JSON.stringify(json), (_, value) => (typeof value === "number" ? BigInt(value) : value));

test("rows become counts of places in slots as in the vectors", async () => {
  for (const { task: text, rows, sampling, contribution } of tasks) {
    const task = await readTask(text);
    const sums = task.counts!.contribution(rows, await sha256(unhex(sampling), utf8(task.campaign)));
    assert.deepEqual(
      [...sums.entries()].filter(([, sum]) => sum),
      contribution,
      task.campaign,
    );
  }
});

test("who does not want to be counted by time is not, and others are", async () => {
  const { task: text, terms: bytes } = tasks[0];
  const [task, terms] = [await readTask(text), decodeParameters(unhex(bytes))];
  assert.match(task.counts!.slots!.words, /24 parts of the day, as clocks of Europe\/Berlin show it/);
  checkPolicy(DEFAULT_POLICY, task, terms);
  assert.throws(
    () => checkPolicy({ ...DEFAULT_POLICY, times: false }, task, terms),
    /does not reveal when its rows were/,
  );
});

test("slots that are none are refused, and what they may cost is bounded", async () => {
  const wrong: [object, RegExp | null][] = [
    [{ Clock: { zone: "UTC", edges: [] } }, null],
    [{ Clock: { zone: "UTC", edges: [0, 0] } }, null],
    [{ Clock: { zone: "UTC", edges: [86_400] } }, null],
    [{ Clock: { zone: "UTC" } }, null],
    [{ Spans: { zone: "UTC", edges: [5] } }, null],
    [{ Spans: { zone: "UTC", edges: [5, 4] } }, null],
    [{ Spans: { zone: "UTC", edges: [-(2 ** 40), 0] } }, null],
    [{ Spans: { zone: "UTC", edges: Array.from({ length: 65_538 }, (_, at) => at) } }, null],
    [{ Weekdays: { zone: "+01:00" } }, null],
    [{ Weekdays: { zone: "../etc/passwd" } }, null],
    [{ Weekdays: { zone: "Europe/Atlantis" } }, null],
    [{ Always: {} }, null],
    ...[
      "europe/berlin",
      "Asia/KathMandu",
      "US/pacific",
      "utc",
      "Etc/Gmt+5",
      "posix/UTC",
      "localtime",
      "Factory",
      "PST",
    ].map((zone): [object, null] => [{ Weekdays: { zone } }, null]),
    [{ Weekdays: { zone: "UTC", edges: [] } }, null],
  ];
  for (const [slots, words] of wrong) {
    const kind = words ? Refused : CodecError;
    assert.throws(
      () => readSlots(slots_(slots)),
      (error: Error) => error instanceof kind && (words?.test(error.message) ?? true),
      JSON.stringify(slots).slice(0, 90),
    );
  }
  const written: string = tasks[0].task;
  const left = /"left":([0-9.]+)/.exec(written)![0];
  const changes: [string, string][] = [
    [left, '"left":0.1'],
    ['"TimedTree"', '"Timed"'],
    ['"zone":"Europe/Berlin"', '"zone":"Europe/Berlin","more":1'],
    ['{"EachSlot"', '{"SomeSlot"'],
    ['["uint64",[', '["uint64",[0,'],
    ['"edges":[0,3600,', '"edges":[0,"3600",'],
  ];
  for (const [from, to] of changes) {
    assert.ok(written.includes(from), from);
    await assert.rejects(
      readTask(written.replace(from, to)),
      (error) => error instanceof CodecError || error instanceof Refused,
      `${from} → ${to}`,
    );
  }
  const cells = Array.from({ length: 600 }, (_, at) => 4 ** 6 + at);
  const hours = `"edges":[${Array.from({ length: 65_537 }, (_, at) => at).join(",")}]`;
  const many = written
    .replace(/"uint64",\[[0-9,]+\]/, `"uint64",[${cells}]`)
    .replace(/"Clock":\{"edges":\[[0-9,]+\]/, `"Spans":{${hours}`);
  await assert.rejects(readTask(many), /more than 33554432 numbers/);
});
