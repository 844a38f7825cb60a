"""What a recipe's sum tells of one person, computed, beside what the recipe states."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.errors import Refused
from hazemap.privacy.amplification.aggregate_price import AggregatePrice, aggregate_price, minimum_cohort
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.recipes.recipe import Recipe


@dataclass(frozen=True)
class RecipePrice:
    """The price of the sum of a recipe's minimum cohort, and the least cohort that would do.

    Reports are asymmetric one-hot reports of the recipe's ε₀ (appendix A): the price holds where `honest` people of the
    cohort, each one included, randomise as stated.

    >>> from hazemap.recipes.recipe_file import EXAMPLE, recipe_from_toml
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
        law = BitFlipLaw.asymmetric(recipe.local_epsilon)
        try:
            least = minimum_cohort(law, recipe.epsilon, recipe.delta)
        except Refused:
            least = None
        return cls(aggregate_price(law, recipe.minimum_cohort, recipe.delta), recipe.epsilon, least)

    @property
    def kept(self) -> bool:
        """Whether the sum tells no more than the recipe states: check 3 of a device."""
        return self.sum.epsilon <= self.stated
