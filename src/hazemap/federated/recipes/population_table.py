"""The rows of many people, as a recipe's query gave them: what simulations and curators answer recipes from.

A column of texts is kept as sequences of interned tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Tree
from hazemap.errors import TableError
from hazemap.federated.recipes.features import BucketRule, Categories, NumericEdges, PrefixTree
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.recipe_bins import PersonDraws, matches
from hazemap.federated.recipes.sql_query import Value
from hazemap.field_types import own_array
from hazemap.machine_code.arrays import Ints
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.keyed_hash import SamplingKey

_ENDED = -1
"""Where a text has no token any more."""


@dataclass(frozen=True, eq=False)
class TokenSequences:
    """One text a row, as int32[rows, length]: the place of each token in `vocabulary`, and −1 after the last one.

    Texts that are longer are cut: a window is as long as the longest sequence that is asked for.

    >>> texts = TokenSequences.of_texts(["to be or not", "be"], length=3)
    >>> texts.tokens.tolist(), texts.vocabulary
    ([[0, 1, 2], [1, -1, -1]], ('to', 'be', 'or'))
    >>> texts.buckets(PrefixTree(("to",), ("be", "do"))).tolist()
    [3, 0]
    """

    tokens: NDArray[np.int32]
    vocabulary: tuple[str, ...]

    def __post_init__(self) -> None:
        own_array(self, "tokens", np.int32)
        if self.tokens.ndim != 2 or not self.tokens.shape[1]:
            raise TableError(f"token sequences are a matrix, rows by places; found {self.tokens.ndim} dimensions")
        if self.tokens.size and not _ENDED <= self.tokens.min() <= self.tokens.max() < len(self.vocabulary):
            raise TableError("tokens are places in the vocabulary, or -1 after the last one")
        if (self.tokens[:, :-1] < self.tokens[:, 1:])[self.tokens[:, :-1] == _ENDED].any():
            raise TableError("a sequence that has ended does not go on")

    @classmethod
    def of_texts(cls, texts: Iterable[str], length: int) -> "TokenSequences":
        """The first tokens of each text, which single spaces part; in Unicode's normal form C."""
        places: dict[str, int] = {}
        rows = [normalize("NFC", text).split(" ")[:length] if text else [] for text in texts]
        tokens = np.full((len(rows), length), _ENDED, dtype=np.int32)
        for row, words in enumerate(rows):
            tokens[row, : len(words)] = [places.setdefault(word, len(places)) for word in words]
        return cls(tokens, tuple(places))

    def __len__(self) -> int:
        return len(self.tokens)

    def buckets(self, rule: BucketRule) -> Ints:
        """The bucket of each row, as `rule.buckets` of the texts gives it: O(rows · length), not O(characters).

        Those of the rule that was asked for last are kept: populations that are resampled ask for the same.
        """
        last: tuple[BucketRule, Ints] | None = self.__dict__.get("_last")
        if last is None or last[0] is not rule:
            last = rule, self._found(rule)
            object.__setattr__(self, "_last", last)
        return last[1]

    def _found(self, rule: BucketRule) -> Ints:
        if isinstance(rule, PrefixTree):
            return self._after_prefixes(rule)
        if isinstance(rule, Categories):
            return self._whole(rule)
        return rule.buckets([self._texts])

    @property
    def _texts(self) -> list[str]:
        words = self.vocabulary
        return [" ".join(words[token] for token in row if token >= 0) for row in self.tokens.tolist()]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {token: place for place, token in enumerate(self.vocabulary)}

    def _after_prefixes(self, rule: PrefixTree) -> Ints:
        """Walk all rows along the tree at once; where a prefix ends, the next token decides."""
        wide, ends = 2 + len(rule.tokens), np.full(len(self.vocabulary) + 1, 1, dtype=np.int64)
        ends[-1] = 0  # the text has ended there
        for place, token in enumerate(rule.tokens, 2):
            if token in self._places:
                ends[self._places[token]] = place
        found = np.zeros(len(self), dtype=np.int64)
        prefixes = {tuple(each.split(" ")) if each else (): place for place, each in enumerate(rule.prefixes)}
        for rows, depth, prefix in self._walk(prefixes):
            next_ = self.tokens[rows, depth] if depth < self.tokens.shape[1] else np.full(len(rows), _ENDED)
            found[rows] = 1 + prefix * wide + ends[next_]
        return found

    def _whole(self, rule: Categories) -> Ints:
        listed = {
            tuple(value.split(" ")) if value else (): place
            for place, value in enumerate(rule.values, 1)
            if isinstance(value, str)
        }
        found = np.zeros(len(self), dtype=np.int64)
        for rows, depth, place in self._walk(listed):
            over = (
                self.tokens[rows, depth] == _ENDED if depth < self.tokens.shape[1] else np.ones(len(rows), dtype=bool)
            )
            found[rows[over]] = place[over]
        return found

    def _walk(self, paths: dict[tuple[str, ...], int]) -> Iterable[tuple[Ints, int, Ints]]:
        """The rows that begin with a path, with the path's length and its number, a length at a time."""
        size, unknown = len(self.vocabulary), -1
        node: dict[tuple[int, ...], int] = {(): 0}
        ending: list[dict[int, int]] = [{} for _ in range(self.tokens.shape[1] + 1)]
        edges: list[list[tuple[int, int]]] = [[] for _ in range(self.tokens.shape[1])]
        for path, number in paths.items():
            codes = tuple(self._places.get(token, unknown) for token in path)
            if unknown in codes or len(codes) > self.tokens.shape[1]:
                continue
            for depth, code in enumerate(codes):
                longer = codes[: depth + 1]
                if longer not in node:
                    node[longer] = len(node)
                    edges[depth].append((node[codes[:depth]] * size + code, node[longer]))
            ending[len(codes)][node[codes]] = number
        rows, state = np.arange(len(self)), np.zeros(len(self), dtype=np.int64)
        for depth, ends in enumerate(ending):
            if ends:
                numbers = np.full(len(node), unknown)
                numbers[list(ends)] = list(ends.values())
                here = numbers[state] != unknown
                yield rows[here], depth, numbers[state[here]]
            if depth == len(edges) or not edges[depth]:
                return
            keys, targets = (np.array(each) for each in zip(*sorted(edges[depth]), strict=True))
            token = self.tokens[rows, depth]
            key = state * size + token
            at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            goes_on = (keys[at] == key) & (token != _ENDED)
            rows, state = rows[goes_on], targets[at[goes_on]]


RowColumn = TokenSequences | NDArray[np.float64] | Sequence[Value | None]
"""One column of everybody's rows: texts of tokens, numbers, or any values."""


@dataclass(frozen=True, eq=False)
class PopulationTable:
    """Rows of people, and which person has which: those from start[i] to start[i + 1] belong to `holder` i.

    `of` says which holder's rows each person has, int64[people]: in a population that is resampled with replacement
    many people have the same rows, and each draws for themselves. Without it every holder is one person. `key` makes
    one simulation's draws differ from another's.

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
