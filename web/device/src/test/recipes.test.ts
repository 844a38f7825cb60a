import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import init from "@sqlite.org/sqlite-wasm";
import { hex, systemRandom, unhex } from "../../../shared/src/bytes.js";
import { Device } from "../device.js";
import { createdRecord, type DeviceRecord, DeviceStore } from "../device_store.js";
import { Identity } from "../ed25519.js";
import { CodecError, InputError, Refused, Unreachable } from "../errors.js";
import { Fraction } from "../fraction.js";
import type { Json } from "../json_text.js";
import { checkPolicy, DEFAULT_POLICY } from "../policy.js";
import { quietSqlite } from "../recipes/open_sqlite.js";
import { QuerySandbox } from "../recipes/query_sandbox.js";
import { logarithm, readRandomiser, report, uniform } from "../recipes/randomiser.js";
import { matchingBins } from "../recipes/recipe.js";
import { checkAsked, checkCampaign } from "../recipes/recipe_account.js";
import { admitted, drawnBin, matching, placesAsEvents } from "../recipes/recipe_answers.js";
import { NOTHING, RecipeLog } from "../recipes/recipe_log.js";
import { acceptPolicy, RecipeSide } from "../recipes/recipe_side.js";
import { allowed, readSignedPolicy } from "../recipes/shipped_policy.js";
import { sqlQuery } from "../recipes/sql_query.js";
import { sumPrice } from "../recipes/sum_price.js";
import { encodeParameters, type SessionParameters } from "../session_parameters.js";
import { readTask, type Task, termsOf } from "../task.js";
import { invited, NOW } from "./invitations.js";
import { vectors } from "./vectors.js";

/** The vectors of this repository; or more of them, of another seed, that another program has written just now. */
const file = process.env["RECIPE_CASES"];
const cases = file ? JSON.parse(readFileSync(file, "utf8")) : vectors("device/recipes");
const sqlite = await quietSqlite(init);
const { policy: shipped } = await readSignedPolicy(cases.policy[0].text);
const policy = allowed(shipped, DEFAULT_POLICY);
const places = cases.places.map(([lon, lat, time]: [number, number, number | null]) => ({ lon, lat, time }));
const zeros = { roster: new Uint8Array(32), nonce: new Uint8Array(32), graph: new Uint8Array(32) };

/** What a device with this policy says of a task; `Refused` or `CodecError` where it refuses. */
async function judged(
  text: string,
): Promise<{ task: Task; terms: SessionParameters; touched: readonly string[]; bins: number[] }> {
  const task = await readTask(text);
  if (!task.asked) throw new Refused("this asks no recipe");
  const terms = termsOf(task, task.cohort.shard, zeros);
  checkPolicy(DEFAULT_POLICY, task, terms);
  const { recipe } = task.asked;
  const query = admitted(sqlite, recipe, policy);
  checkAsked(
    {
      recipe,
      fields: query.touched,
      people: terms.survivors,
      study: task.campaign,
      whole: [task.budget, task.budgetDelta],
    },
    policy,
  );
  for (const limit of policy.limits) if (recipe.epsilon.compare(limit.epsilon) > 0) throw new Refused("over the limit");
  const analysis = policy.analyses.get(recipe.analysis)!;
  const budgets = [analysis, ...query.touched.map((name) => policy.fields.get(name)!)];
  if (budgets.some(({ epsilon, delta }) => recipe.epsilon.compare(epsilon) > 0 || recipe.delta.compare(delta) > 0))
    throw new Refused("over its budget");
  const { rows } = new QuerySandbox(sqlite, policy.streams, analysis.queries).run(
    query,
    placesAsEvents(places, NOW, policy, NOW),
  );
  return { task, terms, touched: query.touched, bins: matchingBins(recipe, rows) };
}

test("recipes are answered and refused as in the vectors, and places fall into the same bins", async () => {
  for (const { about, task: text, answer } of cases.tasks) {
    let found: Awaited<ReturnType<typeof judged>> | string;
    try {
      found = await judged(text);
    } catch (error) {
      assert.ok(
        error instanceof Refused || error instanceof CodecError,
        `${about}: ${error instanceof Error ? error.stack : error}\n${text}`,
      );
      found = error.message;
    }
    assert.equal(
      typeof found !== "string",
      answer !== null,
      `${about}: ${typeof found === "string" ? found : "answered"}\n${text}`,
    );
    if (typeof found === "string") continue;
    const { recipe } = found.task.asked!;
    assert.deepEqual([recipe.digest, recipe.size, found.touched], [answer.recipe, answer.size, answer.touched], about);
    assert.equal(hex(encodeParameters(found.terms)), answer.terms, about);
    assert.deepEqual(found.bins, answer.bins, about);
  }
});

test("queries touch what the vectors say, and the same are refused", () => {
  const streams = cases.streams.map(({ name, fields }: any) => ({
    name,
    fields: fields.map(([own, type]: any) => ({ name: own, type })),
  }));
  const functions = [
    ..."abs avg coalesce count ifnull length lower max min nullif round sign substr substring sum total typeof unicode upper".split(
      " ",
    ),
    ..."row_number rank dense_rank first_value last_value lag lead nth_value ntile".split(" "),
  ];
  const sandbox = new QuerySandbox(sqlite, streams, {
    fields: cases.allowed,
    functions,
    listed: null,
    templates: null,
  });
  let versions = 0;
  for (const { text, touched } of cases.queries) {
    let found: readonly string[] | null = null;
    let why = "";
    try {
      found = sandbox.admit(sqlQuery(text, [])).touched;
    } catch (error) {
      assert.ok(error instanceof Refused || error instanceof CodecError, `${text}: ${error}`);
      why = error.message;
    }
    // Of queries that are made up some run on one version of SQLite alone: then they touch what they may, but not nothing.
    if (file && (found === null) !== (touched === null)) versions++;
    else assert.deepEqual(found, touched, `${text}\n${why}`);
  }
  assert.ok(versions <= cases.queries.length / 100, `${versions} of ${cases.queries.length}`);
});

test("sums cost what the vectors say", () => {
  for (const { law, honest, delta, epsilon } of cases.prices) {
    const written = JSON.parse(JSON.stringify(law)) as Json;
    const price = sumPrice(readRandomiser(written), honest, Fraction.written(delta));
    const apart = price.minus(Fraction.written(epsilon));
    assert.ok(Math.abs(apart.toNumber()) <= 2e-9, `${JSON.stringify(law)} ${honest}: ${price} and ${epsilon}`);
  }
  assert.equal(logarithm(new Fraction(1)).compare(new Fraction(1n, 1n << 39n)) <= 0, true);
});

test("a query that takes too many steps, gives too many rows or fails has no rows, and says nothing of events", () => {
  const schema = [
    {
      name: "notes",
      fields: [
        { name: "n", type: "integer" as const },
        { name: "word", type: "text" as const },
      ],
    },
  ];
  const sandbox = new QuerySandbox(sqlite, schema, {
    fields: ["notes.n", "notes.word"],
    functions: ["abs", "count", "sum"],
    listed: null,
    templates: null,
  });
  const events = Array.from({ length: 400 }, (_, at) => [BigInt(at), "x"]);
  const run = (sql: string, source = events) => {
    const query = sandbox.admit(sqlQuery(sql, []));
    return sandbox.run(query, (_, fields) =>
      source.map(([n, word]) => fields.map((name) => (name === "n" ? n! : word!))),
    );
  };
  assert.deepEqual(run("SELECT n FROM notes WHERE n < 2").rows, [[0n], [1n]]);
  assert.match(run("SELECT count(*) FROM notes a, notes b, notes c WHERE a.n + b.n > c.n").failure!, /steps/);
  assert.match(run("SELECT a.n FROM notes a, notes b").failure!, /too many rows/);
  assert.match(
    run("SELECT abs(n - 9223372036854775807 - 1) FROM notes", [[0n, "x"]]).failure!,
    /failed on these events/,
  );
  assert.match(
    run(
      "SELECT n FROM notes",
      Array.from({ length: 100_001 }, () => [1n, "x"]),
    ).failure!,
    /too many events/,
  );
  assert.match(run("SELECT n FROM notes", [[1.5 as never, "x"]]).failure!, /failed/);
  assert.match(run("SELECT word FROM notes", [[1n, "x".repeat(5_000)]]).failure!, /./);
  assert.deepEqual(run("SELECT word FROM notes", [[1n, "é'\"--"]]).rows, [["é'\"--"]]);
});

test("a report has the law of its coins, and a place among its bins", () => {
  const law = readRandomiser({ UnaryEncoding: { keep: { fraction: "3/4" }, turn_on: { fraction: "1/4" } } });
  const sums = new Uint32Array(4);
  for (let at = 0; at < 4_000; at++) report(law, systemRandom, 2, 4).forEach((bit, place) => (sums[place]! += bit));
  for (const [place, sum] of sums.entries()) {
    assert.ok(Math.abs(sum - (place === 2 ? 3_000 : 1_000)) < 250, `${sums}`); // nine standard deviations
  }
  const asymmetric = report(readRandomiser({ Asymmetric: { epsilon: { fraction: "3" } } }), systemRandom, 0, 20_000);
  const ones = asymmetric.reduce((sum, bit) => sum + bit, 0);
  assert.ok(Math.abs(ones - 20_000 / (Math.exp(3) + 1)) < 9 * Math.sqrt(20_000 * 0.0452), `${ones}`);
  assert.throws(() => report(law, systemRandom, 4, 4), RangeError);
  assert.ok(new Set(Array.from({ length: 200 }, () => uniform(systemRandom, 3))).size === 3);
});

test("whoever has no events, or is not in the cohort, reports what the recipe says, and a random bin is any", async () => {
  const task = (about: string): string => cases.tasks.find((each: any) => each.about === about)?.task;
  if (!task("squares")) return; // other cases have other names
  const none = async (about: string, own = places): Promise<number> => {
    const { recipe } = (await readTask(task(about))).asked!;
    return (
      drawnBin(
        recipe,
        matching(sqlite, recipe, admitted(sqlite, recipe, policy), policy, placesAsEvents(own, NOW, policy, NOW)),
        systemRandom,
      ) - recipe.bins
    );
  };
  assert.equal(await none("squares", []), 0);
  assert.equal(await none("a cohort"), 0);
  assert.ok((await none("squares")) < 0);
  assert.ok((await none("hexagons, a random bin for none", [])) < 0);
  const old = placesAsEvents(places, NOW - 91 * 86_400_000, policy, NOW);
  assert.deepEqual(old("places", ["lon"]), [], "what is older than the policy keeps is not read");
  const now = NOW / 1_000;
  const timed = [now - 5.5, null, now - 91 * 86_400, now - 2 * 86_400].map((time) => ({ lon: 1, lat: 2, time }));
  const told = placesAsEvents(timed, NOW, policy, NOW)("places", ["time", "weight"]);
  assert.deepEqual(
    told,
    [
      [null, 1],
      [BigInt(Math.floor(now - 2 * 86_400)), 1],
      [BigInt(Math.floor(now - 5.5)), 1],
    ],
    "whole seconds, the oldest day first",
  );
});

test("a map with time costs what a policy lets the time of places cost, and other maps do not", () => {
  const field = {
    field: "places.time",
    epsilon: new Fraction(1),
    delta: new Fraction(0),
    reports: 1,
    local: new Fraction(1),
  };
  const only = { ...policy, fields: new Map([[field.field, field]]), limits: [] };
  const map = (timed: boolean): Task =>
    ({ price: new Fraction(1), counts: { slots: timed ? { many: 24 } : null } }) as unknown as Task;
  const charge = { campaign: "hours", round: 1, session: "", epsilon: "1", time: NOW };
  const check = (charges: readonly object[], timed: boolean): void =>
    checkCampaign({ charges } as unknown as DeviceRecord, map(timed), only, NOW, () => undefined);
  check([], true);
  check([charge, { ...charge, timed: false }], true);
  check([{ ...charge, timed: true }], false);
  assert.throws(() => check([{ ...charge, timed: true }], true), /nothing left/);
});

test("a policy is taken with its key, a later one from the same key, and none that was changed", async () => {
  const [{ text, key }] = cases.policy;
  const record = createdRecord(systemRandom);
  await assert.rejects(acceptPolicy(record, text, ""), /needs the key/);
  await assert.rejects(acceptPolicy(record, text, "ab".repeat(32)), /another key/);
  for (const [from, to] of [
    ['"days":30', '"days":31'],
    ['"epsilon":"2"', '"epsilon":"3"'],
    ['"accounting":"basic"', '"accounting":"zcdp"'],
    ['"name":"town"', '"name":"Town"'],
    ['"epsilon":"2"', '"epsilon":"4/2"'],
    ['"version":3', '"version":3,"x":1'],
    ["{", "["],
  ]) {
    await assert.rejects(acceptPolicy(record, text.replace(from, to), key), InputError, `${from} → ${to}`);
  }
  assert.equal(record.shipped, undefined);
  assert.equal((await acceptPolicy(record, text, key)).name, "town");
  await acceptPolicy(record, text, "");
  await assert.rejects(acceptPolicy(record, `${text} `, ""), /has had version 3/);
});

test("a round is answered only if the server's public log knows it, and a log that was written anew is none", async () => {
  const task = await readTask(cases.tasks[0].task).catch(() => null);
  if (!task?.asked || file) return;
  const lines: string[] = cases.log;
  const shown = (some: readonly string[]) => async (path: string) => {
    const after = Number(/after=([0-9]+)$/.exec(path)![1]);
    return { status: 200, wait: null, kind: "", content: new TextEncoder().encode(some.slice(after).join("\n")) };
  };
  const logged = RecipeSide.logged(task);
  const log = new RecipeLog();
  assert.throws(() => log.check(logged, NOTHING), /not in the server's public log/);
  await log.read(shown(lines.slice(0, 2)), logged.task, NOTHING);
  log.check(logged, NOTHING);
  const seen = log.last;
  assert.equal(seen.entries, 2);
  assert.throws(() => log.check({ ...logged, words: [...logged.words.slice(0, 5), 7n] }, seen), /something else/);
  await log.read(shown(lines), "", seen);
  assert.throws(() => log.check({ ...logged, study: "éther" }, seen), /stopped/);
  log.check(logged, seen);
  for (const other of [
    lines.slice(0, 1),
    [lines[0]!.replace("policy", "recipe"), ...lines.slice(1)],
    [...lines.slice(1)],
    ["{}"],
    ["x"],
  ]) {
    const again = new RecipeLog();
    await again.read(shown(other), logged.task, seen);
    assert.throws(() => again.check(logged, seen), Refused);
  }
  await log.read(shown(lines.slice(0, 1)), "", { entries: 9, digest: "" });
  assert.throws(() => log.check(logged, seen), /does not go on/);
  await assert.rejects(
    new RecipeLog().read(async () => ({ status: 503, wait: 1, kind: "", content: new Uint8Array() }), "", NOTHING),
    Unreachable,
  );
});

class Memory extends DeviceStore {
  constructor(record: DeviceRecord = createdRecord(systemRandom)) {
    super(record);
  }
  override async save(): Promise<void> {}
}

test("a device answers a recipe under a policy, by the public log and within its account alone, and says little else", async () => {
  if (file) return;
  const text: string = cases.tasks[0].task;
  const lines: string[] = cases.log.slice(0, 2);
  const content = new TextEncoder().encode(lines.join("\n"));
  const said: string[] = [];
  const asked = async (prepare: (record: DeviceRecord) => Promise<unknown>, known = true): Promise<string | null> => {
    const store = new Memory();
    await prepare(store.record);
    const log = new RecipeLog();
    const parts = { recipes: { sqlite: async () => sqlite, given: NOW, log } };
    const device = await Device.of(store, DEFAULT_POLICY, places, (line) => said.push(line), parts);
    const work = await invited(await Identity.of(unhex(store.record.identity)), text, 1);
    const logged = (await device.logged(work))!;
    if (known)
      await log.read(async () => ({ status: 200, wait: null, kind: "", content }), logged.task, device.recipes.seen);
    const { refusal } = await device.answer(work, NOW);
    assert.equal(await device.logged(work), null, "a session that is known is not looked up again");
    return refusal;
  };
  const [{ text: signed, key }] = cases.policy;
  const accepted = (record: DeviceRecord): Promise<unknown> => acceptPolicy(record, signed, key);
  assert.equal(await asked(accepted), null);
  assert.match((await asked(async () => undefined))!, /accepted no policy/);
  assert.match((await asked(accepted, false))!, /public log/);
  const recipe = { analysis: "town", fields: ["places.lon"], delta: "1/1000000", local: "3", digest: "" };
  const paid =
    (about: object, times = 1) =>
    async (record: DeviceRecord): Promise<void> => {
      await accepted(record);
      for (let at = 0; at < times; at++)
        record.charges.push({ campaign: "other", round: 1, session: "", epsilon: "1/2", time: NOW, recipe, ...about });
    };
  for (const [why, prepare] of [
    [/analysis town may cost ε/, paid({})],
    [/analysis town may cost δ/, paid({ epsilon: "1/1000", recipe: { ...recipe, delta: "1/200000" } })],
    [/analysis town may be told of by 4/, paid({ epsilon: "1/1000", recipe: { ...recipe, delta: "0" } }, 4)],
    [/field places.lon may cost ε/, paid({ epsilon: "3/2", recipe: { ...recipe, analysis: "listed" } })],
    [
      /this device may cost ε = 2 /,
      paid({ epsilon: "3/2", recipe: { ...recipe, analysis: "listed", fields: ["notes.word"] } }),
    ],
    [/the study study would cost more/, paid({ campaign: "study", epsilon: "3/2", time: NOW - 1e12 })],
  ] as const) {
    said.length = 0;
    assert.equal(await asked(prepare), "this device has nothing left to spend on this round");
    assert.ok(
      said.some((line) => why.test(line)),
      `${why}: ${said.join("\n")}`,
    );
  }
  const monthAgo = paid({ epsilon: "3/2", time: NOW - 31 * 86_400_000 });
  assert.notEqual(await asked(monthAgo), null, "a month by the machine's clock alone");
  const passed = async (record: DeviceRecord): Promise<void> => monthAgo(record).then(() => void (record.clock = NOW));
  assert.equal(await asked(passed), null, "a month that has passed");
});
