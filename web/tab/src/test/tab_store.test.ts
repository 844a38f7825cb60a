import assert from "node:assert/strict";
import { test } from "node:test";
import { CodecError, InputError } from "../../../device/src/errors.js";
import { DEFAULT_POLICY, readPolicy } from "../../../device/src/policy.js";
import { type Bytes, systemRandom, utf8 } from "../../../shared/src/bytes.js";
import { looser, policyText, written } from "../rules.js";
import { freshKey, seal, unseal } from "../sealed_box.js";
import { type Keeper, TabStore } from "../tab_store.js";

class Memory implements Keeper {
  readonly kept = new Map<string, Bytes>();
  full = false;

  async get(name: string): Promise<Bytes | null> {
    return this.kept.get(name) ?? null;
  }

  async put(name: string, plain: Bytes): Promise<void> {
    if (this.full) throw new InputError("full");
    this.kept.set(name, plain);
  }
}

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
const CHARGE = { campaign: "homes", round: 1, session: "00", epsilon: "1", time: 5 };

test("a charge and its line in the log are kept in one write", async () => {
  const memory = new Memory();
  const store = await TabStore.open(memory, systemRandom, () => 7);
  store.log("pays ε = 1");
  store.record.charges.push(CHARGE);
  await store.save();
  const again = await TabStore.open(memory, systemRandom);
  assert.deepEqual(again.lines, [[7, "pays ε = 1"]]);
  assert.deepEqual(again.record, store.record);
  assert.equal(again.record.identity.length, 64);
});

test("what a save keeps is what stood when it was asked for, in order, and a line alone is kept soon", async () => {
  const memory = new Memory();
  const store = await TabStore.open(memory, systemRandom);
  const first = store.save();
  store.log("later");
  store.setSession("aa", null);
  await first;
  assert.equal(JSON.parse(new TextDecoder().decode(memory.kept.get("device"))).lines.length, 0);
  await soon();
  assert.deepEqual((await TabStore.open(memory, systemRandom)).record.sessions, [["aa", null]]);
});

test("where nothing can be kept a save says so, and the next one tries again", async () => {
  const memory = new Memory();
  const store = await TabStore.open(memory, systemRandom);
  memory.full = true;
  await assert.rejects(store.save(), InputError);
  store.log("a line alone stops nobody");
  await soon();
  memory.full = false;
  await store.save();
  assert.equal((await TabStore.open(memory, systemRandom)).lines.length, 1);
});

test("the log keeps its last five thousand lines", async () => {
  const store = await TabStore.open(new Memory(), systemRandom);
  for (let at = 0; at < 5_010; at++) store.log(`${at}`);
  assert.deepEqual([store.lines.length, store.lines.at(-1)![1], store.lines[0]![1]], [5_000, "5009", "10"]);
});

test("what is sealed opens under its name and its key alone, and the key cannot be read out", async () => {
  const [key, other] = [await freshKey(), await freshKey()];
  const sealed = await seal(key, "places", utf8("13.4"));
  assert.ok(!new TextDecoder("latin1").decode(sealed).includes("13.4"));
  assert.deepEqual(await unseal(key, "places", sealed), utf8("13.4"));
  const changed = sealed.slice();
  changed[20]! ^= 1;
  for (const [by, name, bytes] of [
    [key, "device", sealed],
    [other, "places", sealed],
    [key, "places", changed],
    [key, "places", sealed.slice(0, 5)],
  ] as const) {
    await assert.rejects(unseal(by, name, bytes), InputError);
  }
  await assert.rejects(crypto.subtle.exportKey("raw", key));
  assert.notDeepEqual(await seal(key, "places", utf8("13.4")), sealed);
});

test("rules are read as they were written, nonsense is refused, and what is looser is named", () => {
  const fields = written(DEFAULT_POLICY);
  assert.deepEqual(readPolicy(policyText(fields)), DEFAULT_POLICY);
  assert.deepEqual(looser(DEFAULT_POLICY), []);
  const wider = readPolicy(policyText({ ...fields, people: " 40 ", period: "5/2", days: "10", finest: "0.5" }));
  assert.deepEqual(
    looser(wider).map(({ name }) => name),
    ["people", "period", "days", "finest"],
  );
  for (const wrong of [
    { people: "many" },
    { people: "0" },
    { campaign: "" },
    { campaign: "-1" },
    { days: "1.5" },
    { finest: "-1" },
    { finest: "small" },
    { times: "maybe" },
    { period: "∞" },
    { survivors: "" },
  ]) {
    const said = (error: unknown): boolean => error instanceof InputError || error instanceof CodecError;
    assert.throws(() => policyText({ ...fields, ...wrong }), said, JSON.stringify(wrong));
  }
});
