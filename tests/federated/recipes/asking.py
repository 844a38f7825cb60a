"""Recipes to ask with, and people to ask."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.federated.recipes.features import BucketRule, Feature
from hazemap.federated.recipes.population_table import PopulationTable, TokenSequences
from hazemap.federated.recipes.recipe import NoMatch, Recipe
from hazemap.federated.recipes.recipe_bins import PersonDraws, matches
from hazemap.federated.recipes.sql_query import SqlQuery, Value
from hazemap.machine_code.arrays import Ints
from hazemap.tables.keyed_hash import SamplingKey


def recipe(*rules: BucketRule, no_match: NoMatch = NoMatch.NONE, name: str = "words") -> Recipe:
    features = tuple(Feature(f"feature{place}", rule) for place, rule in enumerate(rules))
    query = SqlQuery("SELECT ngram FROM keyboard")
    return Recipe(
        name, 1, "keyboard", "which words are typed", query, (), features,
        Fraction(4), Fraction(1), Fraction(1, 10**6), 1_000, no_match=no_match,
    )  # fmt: skip


def starts(people: list[list[str]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(texts) for texts in people])]).astype(np.int64)


def typing(people: list[list[str]], length: int = 4, key: int | bytes = 0) -> PopulationTable:
    """People with these texts of tokens."""
    texts = TokenSequences.of_texts([text for own in people for text in own], length)
    return PopulationTable(starts(people), (texts,), None, key)


@dataclass(frozen=True)
class PersonRows:
    """The rows that a recipe's query gave on one device, which draws by its key: one person's answer, row by row."""

    rows: Sequence[Sequence[Value | None]]
    key: SamplingKey = 0
    person: int = 0

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bin of the row that is drawn among those that match."""
        bins = recipe.bins_of(self.rows)
        matching = bins[matches(recipe, bins)]
        draws = PersonDraws(recipe, self.key, np.array([self.person]))
        if not len(matching):
            return draws.without_match()
        return matching[draws.places(np.array([len(matching)]))]
