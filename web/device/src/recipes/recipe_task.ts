import { CodecError, Refused } from "../errors.js";
import { Fraction } from "../fraction.js";
import { isObject, type Json } from "../json_text.js";
import { fieldsOf, fraction, typed } from "../typed_json.js";
import { type Randomiser, readRandomiser } from "./randomiser.js";
import { matchesLaw, type Recipe, readRecipe } from "./recipe.js";
import { sumPrice } from "./sum_price.js";

/** What a round asks of events: a recipe, and the law of its reports. */
export interface AskedRecipe {
  readonly recipe: Recipe;
  readonly law: Randomiser;
}

/** ε, and δ where there is one. */
export type Price = readonly [Fraction, Fraction];

/** A price in pure ε, or in ε and δ. */
export function readPrice(json: Json | undefined, where: string): Price {
  const [type, value] = typed(json, where);
  const above0 = (json: Json | undefined): Fraction => {
    const found = fraction(json, where);
    if (found.numerator <= 0n) throw new CodecError(`${where} is above 0, and so is its δ, or it is in pure ε`);
    return found;
  };
  if (type === "PureDP") return [above0(fieldsOf(value, where, "epsilon")["epsilon"]), new Fraction(0)];
  if (type !== "ApproxDP") throw new CodecError(`recipes are paid in ε and δ: ${where} is not`);
  const { delta, epsilon } = fieldsOf(value, where, "delta", "epsilon");
  const found: Price = [above0(epsilon), above0(delta)];
  if (found[1].compare(new Fraction(1)) >= 0) throw new CodecError(`δ of ${where} is below 1`);
  return found;
}

/** Whether an encoder asks a recipe. */
export const asksRecipe = (encoder: Json | undefined): boolean =>
  isObject(encoder) && Object.hasOwn(encoder, "RecipeBins");

/** The recipe of a round; `CodecError` unless the round keeps what the recipe states, and its share of the budget covers that. */
export async function readAskedRecipe(
  encoder: Json | undefined,
  randomiser: Json | undefined,
  purpose: string,
  share: Fraction,
  price: Price,
  budget: Price,
): Promise<AskedRecipe> {
  const recipe = await readRecipe(fieldsOf(typed(encoder, "the encoder")[1], "RecipeBins", "recipe")["recipe"]);
  const law = readRandomiser(randomiser);
  if (purpose !== recipe.purpose)
    throw new CodecError("a round that asks a recipe has the recipe's purpose, for people read it");
  if (law.replacement.compare(recipe.local) > 0)
    throw new CodecError("reports to a recipe are randomised with its local ε or less");
  if (!matchesLaw(recipe, law))
    throw new CodecError("the recipe names how its reports are randomised, and this task another way");
  if (price[0].compare(recipe.epsilon) !== 0 || price[1].compare(recipe.delta) !== 0)
    throw new CodecError("this task costs something else than its recipe states");
  if (price.some((part, at) => part.compare(share.times(budget[at]!)) > 0))
    throw new CodecError("the recipe costs more than its share of the budget");
  return { recipe, law };
}

/** `Refused` unless a sum over `survivors` people, so many of them honest for certain, keeps what the recipe states. */
export function checkSum({ recipe, law }: AskedRecipe, survivors: number, honest: number): void {
  if (recipe.carrier !== "secure sums")
    throw new Refused(`the recipe ${recipe.id} is carried by ${recipe.carrier}, not by secure sums`);
  if (survivors < recipe.people) {
    throw new Refused(
      `the recipe ${recipe.id} is summed over ${recipe.people} people or more, but this sum is opened with ${survivors}`,
    );
  }
  const found = sumPrice(law, honest, recipe.delta);
  if (found.compare(recipe.epsilon) > 0) {
    throw new Refused(
      `the recipe ${recipe.id} states ε = ${recipe.epsilon}, but a sum in which ${honest} honest people's reports are certain tells ${found.toNumber()}`,
    );
  }
}
