"""Features of a recipe: how the columns of a query's rows fall into buckets (McMillan et al. 2022, appendix B).

Bucket 0 of every rule is what the rule does not cover: *out of vocabulary* (OOV) in the paper, `(other)` in tables.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import ClassVar
from unicodedata import is_normalized, normalize

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves, Partition
from hazemap.errors import InputError
from hazemap.federated.recipes.sql_query import LONGEST_VALUE, Value, check_name, check_text, check_value
from hazemap.field_types import check_fields

MOST_BINS = 1 << 20
"""Bins of a recipe, that of people without an answer among them."""

MOST_TOKENS, LONGEST_PREFIX = 1 << 16, 16
"""Tokens or prefixes of a tree; tokens of one prefix."""

OTHER, END, NO_TEXT = "(other)", "(end)", "(no text)"
"""Labels of what is not covered, of a text that ends where its prefix does, and of what is no text."""

Column = Sequence[Value | None]
"""One column of a query's rows."""


MOST_STEP, MOST_LETTERS = 16, 256
"""Characters by which a prefix grows in one round, and those of an alphabet, at most."""


@dataclass(frozen=True)
class StringPrefixes:
    """Strings by a prefix that they begin with and the next `step` characters of an alphabet.

    A prefix has a bucket for whatever else follows, one for each string of fewer than `step` characters that ends there
    (the empty one too), and one for each of `step` characters, however it goes on: 1 + P·(1 + Σ Aⁱ, i = 0 … step)
    buckets. A string that begins with no prefix has bucket 0. No prefix begins another.

    >>> rule = StringPrefixes(("b",), "ab", 1)
    >>> rule.labels()
    ['(other)', 'b (other)', 'b (end)', 'ba', 'bb']
    >>> rule.buckets([["b", "bab", "abba", "bx", None]]).tolist()
    [2, 3, 0, 1, 0]
    """

    prefixes: tuple[str, ...]
    alphabet: str
    step: int

    def __post_init__(self) -> None:
        check_fields(self)
        check_text(self.alphabet, "an alphabet", LONGEST_VALUE)
        letters = len(self.alphabet)
        if not 1 <= letters <= MOST_LETTERS or len(set(self.alphabet)) != letters:
            raise InputError(f"an alphabet has 1 to {MOST_LETTERS} characters, each once; found {letters}")
        if not self.alphabet.isascii() and _combine(self.alphabet):
            raise InputError("the characters of an alphabet do not combine with each other: write them composed")
        if not 1 <= self.step <= MOST_STEP or letters**self.step >= MOST_BINS:
            raise InputError(
                f"a prefix grows by 1 to {MOST_STEP} characters in a round, of which there are less than {MOST_BINS:,} "
                f"different ones; {self.step} of {letters} are too many"
            )
        if not 1 <= len(self.prefixes) <= MOST_TOKENS or len(set(self.prefixes)) != len(self.prefixes):
            raise InputError(f"strings have 1 to {MOST_TOKENS:,} different prefixes; found {len(self.prefixes):,}")
        for each in self.prefixes:
            check_text(each, "a prefix", LONGEST_VALUE)
        if any(next_.startswith(each) for each, next_ in pairwise(sorted(self.prefixes))):
            raise InputError("a prefix of strings begins another one: ask for them in different rounds")
        if self.size >= MOST_BINS:
            raise InputError(f"strings fall into less than {MOST_BINS:,} buckets; these make {self.size:,}")

    @property
    def columns(self) -> int:
        """How many columns of a row it reads."""
        return 1

    @property
    def size(self) -> int:
        """How many buckets."""
        return 1 + len(self.prefixes) * self.width

    @property
    def width(self) -> int:
        """How many buckets a prefix has."""
        return 1 + self._before[-1]

    def buckets(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The bucket of each row: O(log prefixes + step) each. Texts are compared in Unicode's normal form C."""
        return np.fromiter((self._bucket(value) for value in columns[0]), dtype=np.int64)

    def labels(self) -> list[str]:
        """The label of each bucket."""
        found = [OTHER if all(self.prefixes) else NO_TEXT]  # every text begins with the empty prefix
        for prefix in range(len(self.prefixes)):
            first = 1 + prefix * self.width
            found.append(f"{self.prefixes[prefix]} {OTHER}".lstrip())
            for bucket in range(first + 1, first + self.width):
                text, ends = self.string(bucket)
                found.append(f"{text} {END}".lstrip() if ends else text)
        return found

    def string(self, bucket: int) -> tuple[str, bool]:
        """The string of a bucket, and whether it ends there; `InputError` for a bucket of others."""
        prefix, place = divmod(bucket - 1, self.width)
        if place == 0 or not 0 < bucket < self.size:
            raise InputError(f"the bucket {bucket} stands for no string")
        length = bisect_right(self._before, place - 1) - 1
        number, letters = place - 1 - self._before[length], ""
        for _ in range(length):
            number, letter = divmod(number, len(self.alphabet))
            letters = self.alphabet[letter] + letters
        return self.prefixes[prefix] + letters, length < self.step

    def _bucket(self, value: object) -> int:
        if not isinstance(value, str):
            return 0
        text = normalize("NFC", value)
        ordered, places = self._ordered
        at = bisect_right(ordered, text) - 1  # no prefix begins another, so only this one can begin the text
        if at < 0 or not text.startswith(ordered[at]):
            return 0
        rest = text[len(ordered[at]) :][: self.step]
        number = 0
        for letter in rest:
            place = self._letters.get(letter)
            if place is None:
                return 1 + places[at] * self.width
            number = number * len(self.alphabet) + place
        return 2 + places[at] * self.width + self._before[len(rest)] + number

    @cached_property
    def _before(self) -> list[int]:
        """How many strings are shorter than 0, 1, … `step` + 1 characters."""
        return [sum(len(self.alphabet) ** shorter for shorter in range(length)) for length in range(self.step + 2)]

    @cached_property
    def _letters(self) -> dict[str, int]:
        return {letter: place for place, letter in enumerate(self.alphabet)}

    @cached_property
    def _ordered(self) -> tuple[list[str], list[int]]:
        """The prefixes in ascending order, and where each stands."""
        places = sorted(range(len(self.prefixes)), key=self.prefixes.__getitem__)
        return [self.prefixes[place] for place in places], places


def _combine(alphabet: str) -> bool:
    """Whether Unicode's normal form C may write some of these characters together otherwise than alone.

    It reorders two neighbours, or composes a character with a later one that would compose with it alone: so pairs
    tell. O(characters²).
    """
    return not all(is_normalized("NFC", first + second) for first in alphabet for second in alphabet)


_EXACT = 1 << 53  # beyond it a whole number is rounded when it becomes a float


@dataclass(frozen=True)
class NumericEdges:
    """Numbers by the interval they lie in: a bucket for each [edge, next edge), and one for all others.

    >>> age = NumericEdges((20, 30, 40))
    >>> age.size, age.buckets([[19, 20, 39.5, 40, None, "25"]]).tolist(), age.labels()
    (3, [0, 1, 2, 0, 0, 0], ['(other)', '[20, 30)', '[30, 40)'])
    """

    columns: ClassVar[int] = 1
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if not 2 <= len(self.edges) <= MOST_BINS:
            raise InputError(f"a feature has 2 to {MOST_BINS:,} edges; found {len(self.edges):,}")
        if any(abs(each) > _EXACT for each in self.edges if type(each) is int):
            raise InputError("an edge is a number that a float holds exactly")
        edges = tuple(float(each) + 0.0 for each in self.edges)  # −0 is 0
        if not all(map(isfinite, edges)) or any(one >= next_ for one, next_ in pairwise(edges)):
            raise InputError("the edges of a feature are finite numbers in ascending order, each once")
        object.__setattr__(self, "edges", edges)

    @property
    def size(self) -> int:
        """How many buckets."""
        return len(self.edges)

    def buckets(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The bucket of each row; a float and a whole number are compared exactly."""
        edges = self.edges
        return _array(
            bisect_right(edges, value) % len(edges) if isinstance(value, int | float) else 0 for value in columns[0]
        )

    def labels(self) -> list[str]:
        """The label of each bucket."""
        edges = [repr(each).removesuffix(".0") for each in self.edges]
        return [OTHER, *(f"[{low}, {high})" for low, high in pairwise(edges))]


@dataclass(frozen=True)
class Categories:
    """Values that are listed, all texts or all whole numbers, and one bucket for all others.

    >>> Categories(("qwerty", "azerty")).buckets([["azerty", "dvorak", None]]).tolist()
    [2, 0, 0]
    """

    columns: ClassVar[int] = 1
    values: tuple[int | str, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= len(self.values) < MOST_BINS:
            raise InputError(f"a feature has 1 to {MOST_BINS - 1:,} categories; found {len(self.values):,}")
        for each in self.values:
            check_value(each, "a category")
        if len({type(each) for each in self.values}) != 1 or len(set(self.values)) != len(self.values):
            raise InputError("the categories of a feature are all texts or all whole numbers, each once")
        if {OTHER, ""} & set(self.values):
            raise InputError(f"a category is neither empty nor {OTHER}, which means all others")

    @property
    def size(self) -> int:
        """How many buckets."""
        return len(self.values) + 1

    def buckets(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The bucket of each row; each value is looked at once. Texts are compared in Unicode's normal form C."""
        keys = [*zip(map(type, columns[0]), columns[0], strict=True)]
        known = {(kind, value): self._places.get((kind, _normal(value)), 0) for kind, value in set(keys)}
        return _array(map(known.__getitem__, keys))

    def labels(self) -> list[str]:
        """The label of each bucket."""
        return [OTHER, *map(str, self.values)]

    @cached_property
    def _places(self) -> dict[tuple[type, Value | None], int]:
        return {(type(value), value): place for place, value in enumerate(self.values, 1)}


@dataclass(frozen=True)
class PrefixTree:
    """Texts of tokens, by a prefix that they begin with and the token after it.

    A prefix has a bucket for each known token, one for all others, and one for a text that ends there; a text that
    begins with no prefix has a bucket of its own: 1 + P·(1 + 1 + T) buckets. A text may go on after that token. No
    prefix begins another. The empty prefix asks for the first token.

    >>> tree = PrefixTree(("hello world", "i got"), ("a", "the"))
    >>> tree.size, tree.buckets([["hello world the cat", "i got", "hello world zebra", "good bye"]]).tolist()
    (9, [4, 5, 2, 0])
    >>> tree.labels()[4]
    'hello world the'
    """

    columns: ClassVar[int] = 1
    prefixes: tuple[str, ...]
    tokens: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= len(self.prefixes) <= MOST_TOKENS or not 1 <= len(self.tokens) <= MOST_TOKENS:
            raise InputError(f"a prefix tree has 1 to {MOST_TOKENS:,} prefixes, and as many tokens")
        for each in self.tokens:
            _check_tokens(each, 1, "a token")
        for each in self.prefixes:
            _check_tokens(each, LONGEST_PREFIX, "a prefix")
        paths = {tuple(_split(each)) for each in self.prefixes}
        if len(set(self.tokens)) != len(self.tokens) or len(paths) != len(self.prefixes):
            raise InputError("a prefix tree has each token and each prefix once")
        if any(path[:length] in paths for path in paths for length in range(len(path))):
            raise InputError("a prefix of a tree begins another one: ask for them in different rounds")
        if {OTHER, END} & set(self.tokens):
            raise InputError(f"{OTHER} and {END} are no tokens: they mean all others, and none")
        if self.size >= MOST_BINS:
            raise InputError(f"a prefix tree has below {MOST_BINS:,} buckets; this one has {self.size:,}")

    @property
    def size(self) -> int:
        """How many buckets."""
        return 1 + len(self.prefixes) * (2 + len(self.tokens))

    def buckets(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The bucket of each row. Tokens stand apart by single spaces; texts are compared in normal form C."""
        return _array(map(self._bucket, columns[0]))

    def labels(self) -> list[str]:
        """The label of each bucket."""
        after = [END, OTHER, *self.tokens]
        first = OTHER if all(self.prefixes) else NO_TEXT  # every text begins with the empty prefix
        return [first, *(f"{prefix} {token}".lstrip() for prefix in self.prefixes for token in after)]

    def _bucket(self, value: Value | None) -> int:
        if not isinstance(value, str):
            return 0
        words = _split(normalize("NFC", value))
        for length in self._lengths:
            place = self._places.get(tuple(words[:length])) if length <= len(words) else None
            if place is not None:
                token = 0 if length == len(words) else self._tokens.get(words[length], 1)
                return 1 + place * (2 + len(self.tokens)) + token
        return 0

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(path) for path in self._places})

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        return {tuple(_split(prefix)): place for place, prefix in enumerate(self.prefixes)}

    @cached_property
    def _tokens(self) -> dict[str, int]:
        return {token: place for place, token in enumerate(self.tokens, 2)}


@dataclass(frozen=True)
class MapCells:
    """Places by the cell of a map they lie in: two columns, longitude and latitude in degrees.

    The cells are any partition of any tree, so the leaves of an adaptive map are a feature too.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> places = MapCells(Leaves.at_level(Quadtree.world(depth=3), 1))
    >>> places.size, places.buckets([[2.35, None, 500.0], [48.85, 1.0, 0.0]]).tolist(), places.labels()
    (5, [2, 0, 0], ['(other)', '0', '1', '2', '3'])
    """

    columns: ClassVar[int] = 2
    cells: Partition

    def __post_init__(self) -> None:
        if not (hasattr(self.cells, "locate") and hasattr(self.cells, "tree")):
            raise InputError(f"the cells of a feature are a partition, not a {type(self.cells).__name__}")
        if not 1 <= self.cells.size < MOST_BINS:
            raise InputError(f"a feature has 1 to {MOST_BINS - 1:,} cells; found {self.cells.size:,}")
        try:
            self._base(np.empty(0), np.empty(0))
        except (KeyError, TypeError, AttributeError):
            kind = type(self.cells.tree).__name__
            raise InputError(f"a place has longitude and latitude; cells of a {kind} need more than these") from None

    @property
    def size(self) -> int:
        """How many buckets."""
        return self.cells.size + 1

    def buckets(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The bucket of each row; a place that is no pair of numbers on the earth lies in none of the cells."""
        lon, lat = (
            np.array([value if isinstance(value, int | float) else np.nan for value in column], dtype=np.float64)
            for column in columns
        )
        found: NDArray[np.int64] = np.zeros(len(lon), dtype=np.int64)
        real = np.flatnonzero((np.abs(lon) <= 180) & (np.abs(lat) <= 90))
        base = self._base(lon[real], lat[real])
        found[real] = np.where(base == NOWHERE, 0, self.cells.locate(base) + 1)
        return found

    def labels(self) -> list[str]:
        """The label of each bucket: how people write the cell, or its place where the partition lists none."""
        if isinstance(self.cells, Leaves) and not (self.cells.cells == NOWHERE).any():
            return [OTHER, *self.cells.tree.names(self.cells.cells)]
        return [OTHER, *(f"cell {place}" for place in range(1, self.size))]

    def _base(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> Cells:
        return self.cells.tree.cell_at({"lon": lon, "lat": lat}, self.cells.tree.depth)


BucketRule = NumericEdges | Categories | PrefixTree | StringPrefixes | MapCells
"""How values fall into buckets: `columns` of a row that it reads, `size`, `buckets(columns)`, `labels()`."""


@dataclass(frozen=True)
class Feature:
    """A named part of what a recipe asks: so many columns of the query's rows, and their buckets."""

    name: str
    rule: BucketRule

    def __post_init__(self) -> None:
        check_fields(self)
        if check_name(self.name, "the name of a feature") == "people":
            raise InputError("a feature is not called people: that is the column of numbers")


def _array(buckets: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(buckets, dtype=np.int64)


def _normal(value: Value | None) -> Value | None:
    return normalize("NFC", value) if isinstance(value, str) else value


def _split(text: str) -> list[str]:
    """Tokens stand apart by single spaces; the empty text has none."""
    return text.split(" ") if text else []


def _check_tokens(text: str, most: int, what: str) -> None:
    check_text(text, what, LONGEST_VALUE)
    words = _split(text)
    if len(words) > most or (not words and most == 1) or any(not word or word.split() != [word] for word in words):
        raise InputError(f"{what} is at most {most} words that single spaces part; found {text!r:.80}")
