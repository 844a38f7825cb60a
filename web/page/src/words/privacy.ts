/** The privacy statement in plain words. */

import type { PagePayload } from "../payload/release.js";
import type { Words } from "./words.js";

type Plain = { readonly [field: string]: unknown };

/** A rational as text, like "1/10". */
function rational(text: unknown): number {
  const [above, below = "1"] = String(text).split("/");
  return Number(above) / Number(below);
}

/** ε and δ of a budget, of those that it implies the first. */
export function promised(statement: Plain): { epsilon: number; delta: number } {
  const budget = (statement["budget"] ?? {}) as Plain,
    implies = (statement["implies"] ?? []) as Plain[];
  const from = implies[0] ?? budget;
  return { epsilon: rational(from["epsilon"]), delta: "delta" in from ? rational(from["delta"]) : 0 };
}

/** Sentences that say what is promised to whom. */
export function plainWords(payload: PagePayload, words: Words): string[] {
  const { statement } = payload,
    { epsilon, delta } = promised(statement);
  const circumstances = (statement["circumstances"] ?? {}) as Plain;
  if (circumstances["randomness"] === "fixed test stream") return [words.say("privacyTest"), words.say("privacyNoise")];
  const unit = String(statement["unit"]),
    trust = String(statement["trust"]);
  const factor = epsilon < 12 ? words.roundedUp(Math.exp(epsilon), 3) : `e^${words.roundedUp(epsilon, 4)}`;
  const said = [
    words.say("privacyNoise"),
    words.say("privacyPerson", {
      unit: unit.startsWith("a person")
        ? words.say("unitPerson")
        : unit.startsWith("a row")
          ? words.say("unitRow")
          : unit,
    }),
    words.say("privacyFactor", { factor, epsilon: words.roundedUp(epsilon, 4) }),
  ];
  if (delta > 0) said.push(words.say("privacyDelta", { delta: delta.toExponential(0) }));
  said.push(words.say("privacyTrust", { trust: trust === "curator" ? words.say("trustCurator") : trust }));
  said.push(words.say("privacyFree"));
  return said;
}
