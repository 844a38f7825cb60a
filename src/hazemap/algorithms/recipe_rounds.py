"""Recipes of a search in rounds: each asks the same of people with other buckets, and pays its share of the price."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.noisy_queries import Query
from hazemap.recipes.features import BucketRule, Feature
from hazemap.recipes.recipe import NoMatch, Recipe
from hazemap.recipes.recipe_bins import RecipeBins


def check_template(recipe: Recipe, shares: Sequence[Fraction]) -> None:
    """`InputError` unless a recipe can be asked in rounds with these shares of its budget."""
    if len(recipe.features) != 1 or recipe.features[0].rule.columns != 1:
        raise InputError(f"a search asks for one feature of one column; the recipe {recipe.id} has others")
    if recipe.no_match is not NoMatch.NONE:
        raise InputError(
            f"in the recipe {recipe.id} people without a match report a random bin, which is then too full: let them "
            "report none"
        )
    if not shares or min(shares) <= 0 or sum(shares) > 1:
        raise InputError("the rounds of a search have shares above 0 that add up to 1 at most")


def check_search(recipe: Recipe, shares: Sequence[Fraction], most: int, by_noise: Fraction) -> None:
    """`check_template`, and how many items are frequent at most, and of how many noise alone may make so many."""
    check_template(recipe, shares)
    if most < 1 or by_noise <= 0:
        raise InputError(
            f"a search finds at least 1 item in a round, and lets noise alone add a number above 0; found {most} and "
            f"{float(by_noise):g}"
        )


def asked(recipe: Recipe, rule: BucketRule, round_: int, share: Fraction) -> Query:
    """The question of one round: by a recipe of its own, so that people draw afresh."""
    feature = Feature(recipe.features[0].name, rule)
    own = replace(
        recipe,
        id=f"{recipe.id}.{round_}",
        features=(feature,),
        epsilon=recipe.epsilon * share,
        delta=recipe.delta * share,
    )
    return Query(RecipeBins(own), share)
