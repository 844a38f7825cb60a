"""What a round that asks a recipe has to keep: its randomiser, its price, and how many reports are in its sum.

The server that makes the task and every device that reads it compute the same: check 3 of McMillan et al. (2022,
section 4.3), for the sums that can really be opened.
"""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import ceil

from hazemap.errors import InputError
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import Recipe
from hazemap.privacy.amplification.aggregate_price import AggregatePrice, aggregate_price
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.privacy.local_randomisers import TOO_HEAVY, Asymmetric, Randomiser, Symmetric, UnaryEncoding


def stated_price(recipe: Recipe) -> PureDP | ApproxDP:
    """What a recipe says that the sum of its cohort tells: the price of its round.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> str(stated_price(recipe_from_toml(EXAMPLE)))
    '(ε, δ) = (0.3, 1e-06)'
    """
    return ApproxDP(recipe.epsilon, recipe.delta) if recipe.delta else PureDP(recipe.epsilon)


def randomiser_of(recipe: Recipe) -> Asymmetric | UnaryEncoding:
    """The randomiser of a recipe: the one that it names, or the asymmetric one with its ε₀."""
    return recipe.law


def price_of_sum(randomiser: Symmetric | Asymmetric | UnaryEncoding, honest: int, delta: Fraction) -> AggregatePrice:
    """What a sum tells of one person in which so many honest reports are certain, theirs among them: 10 to 500 ms.

    Everybody reports one bin, whatever they have, so neighbours replace one person's bin by another.
    """
    if isinstance(randomiser, UnaryEncoding):
        return _price_of_coins(randomiser.keep, randomiser.turn_on, honest, delta)
    return _price(type(randomiser).__name__, randomiser.epsilon, honest, delta)


def price_of_recipe(recipe: Recipe, randomiser: Symmetric | Asymmetric | UnaryEncoding, honest: int) -> AggregatePrice:
    """`price_of_sum` at the recipe's δ, whoever carries its reports.

    Two servers let no report through that has too many 1s, and devices throw such a report again: sums have the law of
    reports that all fit at once. That event has probability 1 − γ at least, γ = `TOO_HEAVY`, and the same one whatever
    people say, for the number of 1s has one law for all places. So (ε, δ) of sums of all reports is
    (ε, (δ + γe^ε)/(1 − γ)) of those, and the local ε₀ stays what it is.
    """
    delta = recipe.delta
    if recipe.carrier is Carrier.TWO_SERVERS:
        delta = max(Fraction(0), delta * (1 - TOO_HEAVY) - TOO_HEAVY * 3 ** ceil(recipe.epsilon))  # e < 3
    return replace(price_of_sum(randomiser, honest, delta), delta=recipe.delta)


def check_carried_by(recipe: Recipe, carrier: Carrier) -> None:
    """`InputError` where a recipe says that somebody else carries its reports."""
    if recipe.carrier is not carrier:
        raise InputError(f"the recipe {recipe.id} is carried by {recipe.carrier.value}, not by {carrier.value}")


def check_recipe_round(
    recipe: Recipe, purpose: str, share: Fraction, price: Budget, budget: Budget, randomiser: Randomiser | None
) -> None:
    """`InputError` unless a round keeps what its recipe states, and its share of the budget covers that.

    Prices of recipes add up by basic composition, so a share is one of ε and of δ.
    """
    if purpose != recipe.purpose:
        raise InputError(f"a round that asks the recipe {recipe.id} has the recipe's purpose, for people read it")
    if randomiser is None or randomiser.replacement > recipe.local_epsilon:
        raise InputError(
            f"reports to {recipe.id} are randomised with a local ε of {float(recipe.local_epsilon):.6g} or less"
        )
    if recipe.randomiser is not None and randomiser != recipe.randomiser:
        raise InputError(f"the recipe {recipe.id} names how its reports are randomised, and this task another way")
    if price != stated_price(recipe):
        raise InputError(f"this task costs {price}, but the recipe {recipe.id} states {stated_price(recipe)}")
    whole = _whole(budget)
    if recipe.epsilon > share * whole[0] or recipe.delta > share * whole[1]:
        raise InputError(
            f"the recipe {recipe.id} costs {price}, more than the share {float(share):.6g} of {budget}: prices of "
            "recipes add up in ε and in δ"
        )


def check_recipe_sum(
    recipe: Recipe, randomiser: Symmetric | Asymmetric | UnaryEncoding, survivors: int, honest: int
) -> None:
    """`InputError` unless a sum over `survivors` people, so many of them honest for certain, keeps what is stated."""
    if survivors < recipe.minimum_cohort:
        raise InputError(
            f"the recipe {recipe.id} is summed over {recipe.minimum_cohort:,} people or more, but this sum is opened"
            f" with {survivors:,}: ask more people together"
        )
    found = price_of_recipe(recipe, randomiser, honest)
    if found.epsilon > recipe.epsilon:
        raise InputError(
            f"the recipe {recipe.id} states {stated_price(recipe)}, but a sum in which {honest:,} honest people's"
            f" reports are certain tells ε = {float(found.epsilon):.6g}: ask more people together, for a smaller local"
            " ε, or state a higher price"
        )


@lru_cache(maxsize=256, typed=True)
def _price(name: str, epsilon: Fraction, honest: int, delta: Fraction) -> AggregatePrice:
    law = BitFlipLaw.symmetric if name == Symmetric.__name__ else BitFlipLaw.asymmetric
    return aggregate_price(law(epsilon), honest, delta)


@lru_cache(maxsize=256, typed=True)
def _price_of_coins(keep: Fraction, turn_on: Fraction, honest: int, delta: Fraction) -> AggregatePrice:
    return aggregate_price(BitFlipLaw.unary(keep, turn_on), honest, delta)


def _whole(budget: Budget) -> tuple[Fraction, Fraction]:
    if isinstance(budget, PureDP):
        return budget.epsilon, Fraction(0)
    if isinstance(budget, ApproxDP):
        return budget.epsilon, budget.delta
    raise InputError("a budget for recipes says its ε, or its ε and δ: their prices add up in these")
