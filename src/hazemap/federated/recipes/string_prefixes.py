"""Strings by the characters that they begin with and the next ones: what heavy hitters are found with."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from unicodedata import is_normalized, normalize

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.federated.recipes.buckets import END, MOST_BINS, MOST_TOKENS, NO_TEXT, OTHER, Column
from hazemap.federated.recipes.sql_query import LONGEST_VALUE, check_text
from hazemap.field_types import check_fields

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
