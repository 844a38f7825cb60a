import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "../../../shared/src/bytes.js";
import { vectors } from "./vectors.js";
import { Judge } from "./verdicts.js";

const { cases, elsewhere, rules } = vectors("device/verdicts");
const judge = await Judge.of();

/** The rule whose words a refusal has. */
const ruleOf = (said: string): string | undefined =>
  Object.keys(rules).find((name) => rules[name].some((words: string) => said.includes(words)));

test("what comes from outside has the verdict, the rule and the answer of the vectors", async () => {
  for (const { kind, policy, text, base64, verdict, rule, answer } of cases) {
    const content = base64 === undefined ? utf8(text) : Uint8Array.from(Buffer.from(base64, "base64"));
    const found = await judge.judged({ kind, content, policy });
    const about = `${kind} ${text ?? base64}`.slice(0, 2_000);
    if (found.verdict === "unknown")
      assert.ok(elsewhere.includes(found.kind) && text.includes(found.kind), `${found.kind}: ${about}`);
    else {
      const words = "words" in found ? found.words : null;
      assert.deepEqual(
        [found.verdict, found.verdict === "refused" ? ruleOf(words!) : null],
        [verdict, rule],
        `${words}: ${about}`,
      );
      if ("answer" in found) assert.deepEqual(found.answer, answer, about);
    }
  }
});
