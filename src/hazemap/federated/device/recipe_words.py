"""What a recipe asks, costs and finds, and what a device would be told of it: in words, without any data."""

from collections.abc import Iterable
from typing import Any

from hazemap.federated.device.recipe_check import RecipeCheck
from hazemap.federated.device.recipe_explanation import explained
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_price import RecipePrice


def check_lines(recipe: Recipe, price: RecipePrice, judged: RecipeCheck | None, people: int) -> list[str]:
    """What `hazemap recipe check` says, of so many people; with a policy also whether devices would answer."""
    own = " and one" if recipe.none_bin is not None else ", and a random one of them"
    who = "".join(f"{each.name} {' or '.join(each.values)}; " for each in recipe.cohort)
    least = f"{price.least_cohort:,} people would do" if price.least_cohort else "no sum of any size would do"
    verdict = "which it keeps" if price.kept else "which it does NOT keep: no device answers"
    keep, turn_on = recipe.law.chances
    lines = [
        f"{recipe.id}, version {recipe.version}, for {recipe.analysis}: {recipe.purpose}",
        f"bins     {recipe.bins:,} ({' × '.join(f'{each.name} {each.rule.size:,}' for each in recipe.features)}){own}"
        " for devices where nothing fits",
        f"cohort   {who}{recipe.minimum_cohort:,} people at least, by {recipe.carrier.value}",
        f"report   ε₀ = {_number(recipe.local_epsilon)}: a bit that is set is sent as 1 with probability {keep:.4g},"
        f" any other with {turn_on:.4g}",
        f"sum      (ε, δ) = ({float(price.sum.epsilon):.4g}, {float(recipe.delta):.3g}), by {price.sum.bound};"
        f" the recipe states ε = {_number(recipe.epsilon)}, {verdict} ({least})",
        f"error    ± {recipe.standard_deviation(people):,.1f} people in a rare bin, ±"
        f" {recipe.standard_deviation(people, 0.1):,.1f} in one that a tenth report, one standard deviation, of"
        f" {people:,} people",
    ]
    if judged is None:
        return [*lines, "fields   --policy says which fields are read, and whether devices would answer"]
    if judged.admitted:
        lines.append(f"fields   {', '.join(map(str, judged.admitted.touched))}")
    if judged.answered:
        return [*lines, "answered by every device that has told nothing yet"]
    return [*lines, *(f"refused  {reason}" for reason in judged.reasons)]


def explanation(recipe: Recipe, touched: tuple[StreamFieldName, ...] | None, reasons: Iterable[str]) -> list[str]:
    """What a person reads before their device answers, and every reason why it would not.

    `touched` is what the query reads, None where no policy says.
    """
    return [*explained(recipe, touched), *(f"This device would refuse it: {each}." for each in reasons)]


def _number(value: Any) -> str:
    return f"{float(value):.6g}"
