"""Recipes of a search in rounds: each asks the same query with other buckets, and pays its share of the price."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.noisy_queries import Query
from hazemap.recipes.buckets import MOST_TOKENS
from hazemap.recipes.features import BucketRule, Feature
from hazemap.recipes.recipe import NoMatch, Recipe
from hazemap.recipes.recipe_bins import RecipeBins
from hazemap.recipes.sql_query import LONGEST_VALUE

MOST_ROUNDS = 1_000
"""Rounds of one search, at most."""


def check_template(recipe: Recipe, shares: Sequence[Fraction]) -> None:
    """`InputError` unless a recipe can be asked in rounds with these shares of its budget, each of them."""
    if len(recipe.features) != 1 or recipe.features[0].rule.columns != 1:
        raise InputError(f"a search asks for one feature of one column; the recipe {recipe.id} has others")
    if recipe.no_match is not NoMatch.NONE:
        raise InputError(
            f"in the recipe {recipe.id} people without a match report a random bin, which is then too full: let them "
            "report none"
        )
    if not 1 <= len(shares) <= MOST_ROUNDS or min(shares) <= 0 or sum(shares) > 1:
        raise InputError(f"a search has shares for 1 to {MOST_ROUNDS} rounds, above 0, that add up to 1 at most")
    for round_, share in enumerate(shares, 1):
        _priced(recipe, recipe.features[0].rule, round_, share)


def check_search(recipe: Recipe, shares: Sequence[Fraction], most: int, by_noise: Fraction) -> None:
    """`check_template`, and how many items are frequent at most, and of how many noise alone may make so many."""
    check_template(recipe, shares)
    if not 1 <= most <= MOST_TOKENS or by_noise <= 0:
        raise InputError(
            f"a search finds 1 to {MOST_TOKENS:,} items in a round, and lets noise alone add a number above 0; found "
            f"{most:,} and {float(by_noise):g}"
        )


def check_length(longest: int) -> None:
    """`InputError` for prefixes that would be too long for a recipe: now, and not in a round that is paid already."""
    if longest > LONGEST_VALUE:
        raise InputError(
            f"in its last round this search might ask for prefixes of {longest:,} bytes, where a recipe has "
            f"{LONGEST_VALUE:,} at most: take fewer rounds, or shorter tokens"
        )


def asked(recipe: Recipe, rule: BucketRule, round_: int, share: Fraction) -> Query:
    """The question of one round: by a recipe of its own, so that people draw afresh."""
    return Query(RecipeBins(_priced(recipe, rule, round_, share)), share)


def _priced(recipe: Recipe, rule: BucketRule, round_: int, share: Fraction) -> Recipe:
    return replace(
        recipe,
        id=f"{recipe.id}.{round_}",
        features=(Feature(recipe.features[0].name, rule),),
        epsilon=recipe.epsilon * share,
        delta=recipe.delta * share,
    )
