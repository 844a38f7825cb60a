import assert from "node:assert/strict";
import { test } from "node:test";
import { countedOf, nounOf } from "../../../shared/src/estimand.js";
import { LANGUAGES } from "../../../shared/src/texts.js";
import type { PagePayload } from "../payload/release.js";
import { CATALOGUE, type Key } from "./catalogue.js";
import { plainWords, promised } from "./privacy.js";
import { decimals, Words } from "./words.js";

const holes = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();

test("every language says everything, with the same parts", () => {
  const keys = Object.keys(CATALOGUE.en).sort() as Key[];
  for (const language of LANGUAGES) {
    assert.deepEqual(Object.keys(CATALOGUE[language]).sort(), keys);
    for (const key of keys) {
      assert.ok(CATALOGUE[language][key].trim(), `${language}.${key}`);
      assert.deepEqual(holes(CATALOGUE[language][key]), holes(CATALOGUE.en[key]), `${language}.${key}`);
    }
  }
});

test("sentences are not English elsewhere", () => {
  const long = (Object.keys(CATALOGUE.en) as Key[]).filter(
    (key) => CATALOGUE.en[key].length > 12 && !/^±/.test(CATALOGUE.en[key]),
  );
  for (const language of LANGUAGES.filter((each) => each !== "en")) {
    assert.deepEqual(
      long.filter((key) => CATALOGUE[language][key] === CATALOGUE.en[key]),
      [],
    );
  }
});

test("parts are put in as they are, once", () => {
  const words = new Words("en");
  assert.equal(words.say("askFailed", { reason: "{value} <b>$&" }), "This area cannot be counted: {value} <b>$&");
  const of = (noun: string, most: number | null = null, places: number | null = null) => ({ noun, most, places });
  assert.equal(new Words("de").counted(of("people")), "Personen");
  assert.equal(words.counted(of("constructor")), "constructor");
  assert.equal(words.counted(of("rows", 3)), "rows counted, at most 3 each");
  assert.equal(words.counted(of("people", null, 24)), "people counted, at most 24 places each");
});

test("every language says what is counted, in words of its own, with how much of it a person gives", () => {
  for (const language of LANGUAGES) {
    const said = (most: number | null, places: number | null) =>
      countedOf({ noun: "visits", most, places }, language, (value) => `<${value}>`);
    const noun = nounOf({ noun: "visits", most: null, places: null }, language);
    assert.equal(noun === "visits", language === "en");
    for (const [most, places, parts] of [
      [3, null, ["<3>"]],
      [null, 24, ["<24>"]],
      [3, 24, ["<3>", "<24>"]],
    ] as const) {
      const text = said(most, places);
      assert.ok(text.includes(noun), text);
      assert.deepEqual(text.match(/<\d+>/g), [...parts], text);
      assert.deepEqual(holes(text), [], text);
    }
  }
});

test("numbers have as many digits as their noise deserves", () => {
  assert.deepEqual([66.8, 3.21, 0.0123, 0, Infinity].map(decimals), [0, 1, 3, 0, 0]);
  assert.equal(new Words("de").number(12345.2), "12.345");
  assert.equal(new Words("en").number(-0.2), "0");
  assert.deepEqual(
    [Math.E, 1, 0.10001, 148.41].map((each) => new Words("en").roundedUp(each, 3)),
    ["2.72", "1", "0.101", "149"],
  );
});

test("an interval is rounded outwards, so that it still holds what it held", () => {
  assert.deepEqual(new Words("en").ends(2.7, 12.2, 0), { low: "2", high: "13" });
  assert.deepEqual(new Words("en").ends(0.121, Math.fround(0.2), 1), { low: "0.1", high: "0.2" });
});

test("the language is the first that a reader prefers and the page speaks", () => {
  assert.equal(Words.preferred(["pt", "fr-CH", "en"]), "fr");
  assert.equal(Words.preferred(["pt"]), "en");
});

test("budgets say their ε, and the one that ρ implies", () => {
  assert.deepEqual(promised({ budget: { kind: "PureDP", epsilon: "1/10" }, implies: [] }), { epsilon: 0.1, delta: 0 });
  const zcdp = { budget: { kind: "ZCDP", rho: "1/2" }, implies: [{ epsilon: "5222/1000", delta: "1/1000000" }] };
  assert.deepEqual(promised(zcdp), { epsilon: 5.222, delta: 1e-6 });
});

test("a test stream is said to protect nobody, whatever its budget", () => {
  const statement = {
    unit: "a person: all rows of one id",
    trust: "curator",
    budget: { kind: "PureDP", epsilon: "1" },
    implies: [],
  };
  const payload = (circumstances: object) => ({ statement: { ...statement, circumstances } }) as unknown as PagePayload;
  const words = new Words("en");
  assert.match(plainWords(payload({ randomness: "fixed test stream" }), words)[0]!, /protects nobody/);
  assert.match(plainWords(payload({ randomness: "system" }), words).join(" "), /2\.72 times likelier/);
});
