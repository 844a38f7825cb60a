"""What a recipe's sum tells of one person, computed, beside what the recipe states."""

from dataclasses import dataclass, replace
from fractions import Fraction

from hazemap.errors import InputError, Refused
from hazemap.federated.recipes.recipe import Recipe
from hazemap.privacy.amplification.aggregate_price import AggregatePrice, aggregate_price, minimum_cohort
from hazemap.privacy.amplification.best_unary_encoding import best_unary
from hazemap.privacy.budget import Number
from hazemap.privacy.local_randomisers import UnaryEncoding


@dataclass(frozen=True)
class RecipePrice:
    """The price of the sum of a recipe's minimum cohort, and the least cohort that would do.

    The price holds where the people of the minimum cohort, each one included, randomise their one-hot reports by the
    recipe's law: asymmetric (appendix A) or of two chances.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> price = RecipePrice.of(recipe_from_toml(EXAMPLE))
    >>> price.kept, round(float(price.sum.epsilon), 3), price.least_cohort
    (True, 0.058, 466)
    """

    sum: AggregatePrice
    stated: Fraction
    least_cohort: int | None

    @classmethod
    def of(cls, recipe: Recipe) -> "RecipePrice":
        """The price of a recipe: 10 to 500 ms."""
        law = recipe.law.bit_flips
        try:
            least = minimum_cohort(law, recipe.epsilon, recipe.delta)
        except Refused:
            least = None
        return cls(aggregate_price(law, recipe.minimum_cohort, recipe.delta), recipe.epsilon, least)

    @property
    def kept(self) -> bool:
        """Whether the sum tells no more than the recipe states: check 3 of a device."""
        return self.sum.epsilon <= self.stated


def with_best_encoding(recipe: Recipe, share: Number) -> Recipe:
    """The recipe with the two chances that count best a bin which this share of the people hold, at its price. Seconds.

    Its minimum cohort keeps (ε, δ), and one report tells the recipe's local ε at most. That no other chances are better
    is only found by search (`best_unary`); their price is proved.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> example = replace(recipe_from_toml(EXAMPLE), local_epsilon=Fraction(8))
    >>> best = with_best_encoding(example, "0.1")
    >>> RecipePrice.of(best).kept, round(best.standard_deviation(10_000, 0.1)), best.law.replacement <= 8
    (True, 19, True)
    """
    if not recipe.delta:
        raise InputError("without a δ a sum costs what one report does: there is no best encoding to look for")
    found = best_unary(recipe.epsilon, recipe.delta, recipe.minimum_cohort, recipe.local_epsilon, share)
    law = UnaryEncoding(*found)
    while law.replacement > recipe.local_epsilon:  # by the last of its binary digits, which are rounded up
        law = UnaryEncoding(law.keep, law.turn_on + Fraction(1, 1 << 40))
    return replace(recipe, randomiser=law)
