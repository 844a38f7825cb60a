"""The rows of many people, as a recipe's query gave them: what simulations and curators answer recipes from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Tree
from hazemap.errors import TableError
from hazemap.federated.recipes.features import BucketRule, NumericEdges
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import PersonDraws, matches
from hazemap.federated.recipes.sql_query import Value
from hazemap.federated.recipes.token_sequences import TokenSequences
from hazemap.field_types import own_array
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.keyed_hash import SamplingKey

RowColumn = TokenSequences | NDArray[np.float64] | Sequence[Value | None]
"""One column of everybody's rows: texts of tokens, numbers, or any values."""


@dataclass(frozen=True, eq=False)
class PopulationTable:
    """Rows of people, and which person has which: those from start[i] to start[i + 1] belong to `holder` i.

    `of` says which holder's rows each person has, int64[people]: in a population that is resampled with replacement
    many people have the same rows, and each draws for themselves. Without it every holder is one person. `key` makes
    one simulation's draws differ from another's. A device gives the same answer (`recipe_bins.PersonRows` of the same
    key and number), which tests/federated/recipes/test_population_table.py holds it to.

    >>> texts = TokenSequences.of_texts(["to be", "to do", "or"], length=2)
    >>> PopulationTable.of_people(np.array([7, 7, 9]), (texts,)).people
    2
    """

    start: Ints
    columns: tuple[RowColumn, ...]
    of: Ints | None = None
    key: SamplingKey = 0

    def __post_init__(self) -> None:
        own_array(self, "start", np.int64)
        if self.of is not None:
            own_array(self, "of", np.int64)
        start, rows = self.start, {len(column) for column in self.columns}
        if start.ndim != 1 or not len(start) or start[0] != 0 or (np.diff(start) < 0).any() or rows != {int(start[-1])}:
            raise TableError("rows stand in the order of their people, from 0, and every column has one value a row")
        if int(np.diff(start).max(initial=0)) >= 1 << 32:
            raise TableError("a person has less than 2^32 rows")
        if self.of is not None and len(self.of) and not 0 <= self.of.min() <= self.of.max() < len(start) - 1:
            raise TableError(f"people have the rows of holders 0 to {len(start) - 2:,}")

    @classmethod
    def of_people(cls, person: Ints, columns: Sequence[RowColumn], key: SamplingKey = 0) -> "PopulationTable":
        """From rows with the code of the person that each belongs to; rows of one person stand together."""
        changes = np.flatnonzero(np.diff(person)) + 1
        if len(np.unique(person)) != len(changes) + bool(len(person)):
            raise TableError("the rows of one person stand together: sort them by person")
        start = np.concatenate([[0], changes, [len(person)]]) if len(person) else np.zeros(1, dtype=np.int64)
        return cls(start, tuple(columns), None, key)

    @property
    def people(self) -> int:
        """How many people there are, those without a row included."""
        return len(self.start) - 1 if self.of is None else len(self.of)

    def resampled(self, of: Ints, key: SamplingKey) -> "PopulationTable":
        """People who have the rows of these holders, each with draws of their own."""
        return PopulationTable(self.start, self.columns, of, key)

    def recipe_bins(self, recipe: Recipe) -> Ints:
        """The bin that each person reports, of one of their matching rows: O(rows · length + people)."""
        bins = self._bins_of_rows(recipe)
        matching = np.flatnonzero(matches(recipe, bins))
        first = np.searchsorted(matching, self.start)
        who = np.arange(self.people) if self.of is None else self.of
        many = (first[1:] - first[:-1])[who]
        draws, has = PersonDraws(recipe, self.key, np.arange(self.people)), many > 0
        found = draws.without_match()
        found[has] = bins[matching[(first[who] + draws.places(many))[has]]]
        return found

    def votes(self, tree: Tree, bounding: Bounding) -> NoReturn:  # noqa: ARG002 - whatever is asked
        """These rows lie in no cells: `TableError`."""
        raise TableError("a population's rows answer recipes; votes in cells are asked of a table with places")

    def _bins_of_rows(self, recipe: Recipe) -> Ints:
        if recipe.columns != len(self.columns):
            raise TableError(f"the features of {recipe.id} read {recipe.columns} columns; here are {len(self.columns)}")
        found, at = np.zeros(int(self.start[-1]), dtype=np.int64), 0
        for feature in recipe.features:
            rule = feature.rule
            found = found * rule.size + _buckets(rule, self.columns[at : at + rule.columns])
            at += rule.columns
        return found


def _buckets(rule: BucketRule, columns: Sequence[RowColumn]) -> Ints:
    """As `rule.buckets`, without a loop over rows where there need not be one."""
    if len(columns) == 1 and isinstance(columns[0], TokenSequences):
        return columns[0].buckets(rule)
    if len(columns) == 1 and isinstance(columns[0], np.ndarray) and isinstance(rule, NumericEdges):
        below: Ints = np.searchsorted(np.array(rule.edges), columns[0], side="right") % len(rule.edges)
        return below
    return rule.buckets([_values(column) for column in columns])


def _values(column: RowColumn) -> Sequence[Value | None]:
    if isinstance(column, TokenSequences):
        raise TableError("texts of tokens are one column of one feature")
    return column.tolist() if isinstance(column, np.ndarray) else column
