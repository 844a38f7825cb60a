"""What one person answers to a recipe: one bin, of one of the rows that they have.

The query gives a person's rows, each falls into a bin, and one row is drawn among those that match. Every person adds a
single 1 to the vector, also those without a match, so silence tells nothing. The law is the same on a device
(`federated.device.recipes.recipe_answer`) and in a simulated population (`population_table.PopulationTable`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders.encoder import Entries
from hazemap.errors import TableError
from hazemap.federated.recipes.features import PrefixTree, StringPrefixes
from hazemap.federated.recipes.recipe import KNOWN as OF_RECIPES
from hazemap.federated.recipes.recipe import Recipe
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.keyed_hash import KeyWords, SamplingKey, numbers, seeds
from hazemap.tables.votes import VotesTable

_HALF = np.uint64(32)


class RecipeTable(Protocol):
    """Rows of people, as a recipe's query gives them. Only a trust model may hold one."""

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bin that each person reports, int64[people]."""
        ...


@dataclass(frozen=True)
class RecipeBins:
    """The number of people in each bin of a recipe: one report a person, that of people without a match included.

    A person who is added or removed moves one number by 1, so L1 = L2² = 1; one who is replaced moves two.

    >>> from fractions import Fraction
    >>> from hazemap.federated.recipes.features import Feature
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> words = Recipe(
    ...     "words", 1, "keyboard", "which words are typed", SqlQuery("SELECT ngram FROM keyboard"), (),
    ...     (Feature("words", PrefixTree(("",), ("hello", "world"))),),
    ...     Fraction(4), Fraction(1), Fraction(1, 10**6), 1_000,
    ... )
    >>> RecipeBins(words).size
    6
    """

    recipe: Recipe

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def size(self) -> int:
        """The recipe's bins, that of people without a match among them."""
        return self.recipe.size

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums."""
        return Sensitivity(1, 1)

    def encode(self, table: RecipeTable | VotesTable) -> Entries:
        """A 1 of each person."""
        bins = self.bins(table)
        return Entries(np.arange(len(bins)), bins, np.ones(len(bins), dtype=np.int64))

    def total(self, table: RecipeTable | VotesTable) -> NDArray[np.int64]:
        """How many people report each bin. O(rows + people + bins)."""
        return np.bincount(self.bins(table), minlength=self.size)

    def bins(self, table: RecipeTable | VotesTable) -> Ints:
        """The bin that each person reports; `TableError` for a table of votes."""
        if not hasattr(table, "recipe_bins"):
            raise TableError(
                f"a {type(table).__name__} holds votes in cells; a recipe is answered by rows of a query: ask a "
                "PopulationTable or a device"
            )
        bins: Ints = table.recipe_bins(self.recipe)
        return bins


KNOWN: tuple[type, ...] = (*OF_RECIPES, RecipeBins)
"""What questions about recipes add to the codec's closed list: `codec.loads(text, KNOWN, Query, MESSAGE)`."""


@dataclass(frozen=True)
class PersonDraws:
    """What people draw for one recipe, each by the key and their own number, int64[people].

    Another recipe gives other draws; the same one the same, so an answer that is made again after a crash is the same.
    """

    recipe: Recipe
    key: SamplingKey
    people: Ints

    def places(self, of: Ints) -> Ints:
        """A place from 0 to `of` − 1 for each person, uniform as far as 32 bits go; `of` below 2³², int64[people]."""
        drawn = numbers(self._seeds, np.zeros(len(self.people), dtype=np.uint64)) >> _HALF
        return ((drawn * of.astype(np.uint64)) >> _HALF).astype(np.int64)

    def without_match(self) -> Ints:
        """The bins that people report who have no matching row: that of none, or a random one."""
        if self.recipe.none_bin is not None:
            return np.full(len(self.people), self.recipe.none_bin, dtype=np.int64)
        return self.places(np.full(len(self.people), self.recipe.bins, dtype=np.int64))

    @cached_property
    def _seeds(self) -> NDArray[np.uint64]:
        secret = self.key if isinstance(self.key, bytes) else b"%d" % self.key
        words = KeyWords.expanded(secret + bytes.fromhex(self.recipe.digest), "RecipeBins")
        return seeds(self.people.astype(np.int64).view(np.uint64), words)


def matches(recipe: Recipe, bins: Ints) -> NDArray[np.bool_]:
    """Which rows a recipe asks for, by their bins: those that begin with a prefix, where it asks for prefixes.

    A row in the bucket of other values of any other feature matches: that it is another one is an answer.
    """
    found, rest = np.ones(len(bins), dtype=np.bool_), bins
    for feature in reversed(recipe.features):
        rest, bucket = np.divmod(rest, feature.rule.size)
        if isinstance(feature.rule, PrefixTree | StringPrefixes):
            found &= bucket != 0
    return found
