import assert from "node:assert/strict";
import { test } from "node:test";
import { ascii, hex, sha256, unhex, utf8 } from "../../../shared/src/bytes.js";
import { CodecError, Refused } from "../errors.js";
import { Fraction } from "../fraction.js";
import { degreeAndThreshold, together, weakness } from "../graph_degree.js";
import { modulusBits } from "../noise_modulus.js";
import { checkPolicy, DEFAULT_POLICY } from "../policy.js";
import { decodeParameters, encodeParameters, MALICIOUS, SEMI_HONEST } from "../session_parameters.js";
import { checkTerms, readTask } from "../task.js";
import { vectors } from "./vectors.js";

const { degrees, moduli, others, tasks } = vectors("device/tasks");

test("degrees, thresholds and groups are those of the vectors", () => {
  for (const { clients, corrupt, dropout, mode, degree, threshold, together: group, weak } of degrees) {
    const parts = [Fraction.written(corrupt), Fraction.written(dropout)] as const;
    if (degree === null) {
      assert.throws(() => degreeAndThreshold(clients, ...parts, mode), Refused);
      continue;
    }
    assert.deepEqual(
      degreeAndThreshold(clients, ...parts, mode),
      [degree, threshold],
      `${clients} ${corrupt} ${dropout} ${mode}`,
    );
    assert.equal(together(clients, degree, threshold, ...parts), group);
    const found = [threshold - 1, threshold].map((t) => weakness(clients, degree, t, ...parts, mode) !== null);
    assert.deepEqual(found, weak);
  }
});

test("moduli are those of the vectors", () => {
  for (const { scale, parties, people, most, size, bits } of moduli) {
    assert.equal(modulusBits(Fraction.written(scale), parties, people, most, size), bits);
  }
});

test("terms follow from tasks, and rows become sums, as in the vectors", async () => {
  for (const { task: text, terms: bytes, rows, sampling, contribution } of tasks) {
    const [task, terms] = [await readTask(text), decodeParameters(unhex(bytes))];
    checkTerms(task, terms);
    const key = await sha256(unhex(sampling), utf8(task.campaign));
    const sums = task.counts!.contribution(rows, key);
    assert.deepEqual(
      [...sums.entries()].filter(([, sum]) => sum),
      contribution,
    );
  }
});

test("terms that do not follow from their task are refused, each of them", async () => {
  const { task: text, terms: bytes } = tasks[1];
  const [task, terms] = [await readTask(text), decodeParameters(unhex(bytes))];
  const wrong = {
    mode: SEMI_HONEST,
    task: new Uint8Array(32),
    clients: terms.clients - 1,
    degree: terms.degree + 1,
    threshold: terms.threshold - 1,
    survivors: terms.survivors - 1,
    size: terms.size + 1,
    bits: terms.bits + 1,
    scale: terms.scale.times(new Fraction(1, 2)),
    parties: terms.parties + 1,
  };
  for (const [name, value] of Object.entries(wrong)) {
    assert.throws(() => checkTerms(task, { ...terms, [name]: value }), Refused, name);
  }
  assert.throws(() => checkTerms(task, { ...terms, clients: task.cohort.shard + 1 }), /was formed/);
});

test("a device refuses what is below its own minimum, in words", async () => {
  const { task: text, terms: bytes } = tasks[1];
  const [task, terms] = [await readTask(text), decodeParameters(unhex(bytes))];
  const kind = { ...DEFAULT_POLICY, corrupt: new Fraction(1, 20) };
  assert.equal(terms.mode, MALICIOUS);
  checkPolicy(kind, task, terms);
  const strict = {
    "takes part in semi-honest sessions, not in malicious ones": { modes: [SEMI_HONEST] as const },
    "at least 5000 must be invited": { people: 5_000 },
    "at least 150 must be in it": { survivors: 150 },
    "one campaign may cost 0.125": { campaign: new Fraction(1, 8) },
    "too long": { longest: 10 },
    "5 % of the others work with the server": { corrupt: new Fraction(1, 3) },
  };
  for (const [words, rules] of Object.entries(strict)) {
    assert.throws(() => checkPolicy({ ...kind, ...rules }, task, terms), new RegExp(words));
  }
  // A scale whose parts are no doubles any more: the work is bounded before it is done.
  const large = { ...terms, size: 1 << 24, scale: new Fraction((1n << 2_030n) + 1n, 1n << 2_000n) };
  assert.throws(() => checkPolicy({ ...kind, longest: 1 << 30 }, task, large), /more work/);
  const semi = tasks.find((each: any) => decodeParameters(unhex(each.terms)).mode === SEMI_HONEST);
  const open = { ...kind, people: 2, survivors: 2 };
  const [other, theirs] = [await readTask(semi.task), decodeParameters(unhex(semi.terms))];
  assert.throws(() => checkPolicy(open, other, theirs), /semi-honest/);
});

test("questions of other kinds are refused in words, and what is no task is no task", async () => {
  const other = [
    "query",
    "query-of-values",
    "query-of-a-sketch",
    "query-over-hexagons",
    "query-of-a-wavelet",
    "query-of-a-cohort",
    "query-over-cuts",
  ];
  const task = JSON.parse(tasks[0].task);
  const { share } = task.Task.question.Query;
  const refusals: string[] = [];
  for (const name of other) {
    task.Task.question = vectors(`codec/${name}`);
    task.Task.question = task.Task.question.Query ? task.Task.question : { Query: {} };
    if (task.Task.question.Query.share) task.Task.question.Query.share = share;
    try {
      await readTask(JSON.stringify(task).replace("\u00e9", "\\u00e9"));
      refusals.push("answered");
    } catch (error) {
      assert.ok(error instanceof Refused || error instanceof CodecError, `${name}: ${error}`);
      refusals.push(error.message);
    }
  }
  for (const kind of ["Stack", "Wavelet", "Cuts"])
    assert.ok(
      refusals.some((words) => words.startsWith("this device") && words.includes(kind)),
      refusals.join("\n"),
    );
  const written: string = tasks[0].task;
  const wrong = [
    written.slice(0, -1),
    written.replace('"round":1', '"round":1,"round":1'),
    written.replace('"round":1', '"round":true'),
    written.replace('"round":1', '"round":1.0'),
    written.replace('"round":1', '"rounds":1'),
    written.replace('"round":1', '"round":0'),
    written.replace("homes", "hom\u00e9s"),
    written.replace('"fraction":"1/20"', '"fraction":"2/40"'),
    `${written} x`,
    written.replace('"purpose"', '"__proto__"'),
    "[".repeat(100_000),
    "",
    "null",
    "{}",
    written.replace('{"Task":', '{ "Task":'),
    written.replace('"budget"', '"\\u0062udget"'),
  ];
  for (const text of wrong) await assert.rejects(readTask(text), CodecError, text.slice(0, 80));
});

test("the golden task of the codec is read", async () => {
  const task = await readTask(JSON.stringify(vectors("codec/task")));
  assert.equal(task.counts!.size, 5);
  assert.equal(task.counts!.sensitivity, 3);
  assert.equal(task.cohort.shard, 1_000);
  assert.equal(hex(await sha256(ascii("a"))).length, 64);
});

test("each term of the vectors has its one encoding", () => {
  for (const { terms } of tasks) assert.equal(hex(encodeParameters(decodeParameters(unhex(terms)))), terms);
});

test("sound questions that this device does not answer are refused in words that say why", async () => {
  const why: Record<string, RegExp> = {
    "a vote": /by AtMostRows or AtMostCells, not by OneVote/,
    "a sketch": /answers counts of rows in cells, not Sketch/,
    "a stack": /not Stack/,
    zCDP: /randomises no reports/,
  };
  const slots = ["each slot", "all slots"]; // which it does answer
  assert.deepEqual(
    others.map(({ about }: { about: string }) => about),
    [...slots, ...Object.keys(why)],
  );
  for (const { about, task } of others) {
    if (slots.includes(about)) assert.equal((await readTask(task)).counts!.slots!.many, 4);
    else
      await assert.rejects(
        readTask(task),
        (error: Error) => error instanceof Refused && why[about]!.test(error.message),
        about,
      );
  }
});
