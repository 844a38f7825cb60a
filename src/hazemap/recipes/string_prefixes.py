"""Strings by the characters that they begin with and the next ones: what heavy hitters are found with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.recipes.buckets import END, MOST_BINS, MOST_TOKENS, OTHER, Column
from hazemap.recipes.sql_query import LONGEST_VALUE, check_text

MOST_STEP = 16
"""Characters by which a prefix grows in one round, at most."""


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
        if not self.alphabet or len(set(self.alphabet)) != len(self.alphabet):
            raise InputError("an alphabet has one character or more, each once")
        if not 1 <= self.step <= MOST_STEP or len(self.alphabet) ** self.step >= MOST_BINS:
            raise InputError(
                f"a prefix grows by 1 to {MOST_STEP} characters in a round, of which there are less than {MOST_BINS:,} "
                f"different ones; {self.step} of {len(self.alphabet)} are too many"
            )
        if not 1 <= len(self.prefixes) <= MOST_TOKENS or len(set(self.prefixes)) != len(self.prefixes):
            raise InputError(f"strings have 1 to {MOST_TOKENS:,} different prefixes; found {len(self.prefixes):,}")
        for each in self.prefixes:
            check_text(each, "a prefix", LONGEST_VALUE)
        known = set(self.prefixes)
        if any(each[:length] in known for each in self.prefixes for length in range(len(each))):
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
        extensions: int = sum(len(self.alphabet) ** length for length in range(self.step + 1))
        return 1 + extensions

    def buckets(self, columns: Sequence[Column]) -> NDArray[np.int64]:
        """The bucket of each row. Texts are compared in Unicode's normal form C."""
        return np.fromiter((self._bucket(value) for value in columns[0]), dtype=np.int64)

    def labels(self) -> list[str]:
        """The label of each bucket."""
        found = [OTHER]
        for prefix in self.prefixes:
            found.append(f"{prefix} {OTHER}".lstrip())
            found += [f"{prefix}{rest} {END}".lstrip() if ends else prefix + rest for rest, ends in self._extensions]
        return found

    def text(self, bucket: int) -> tuple[str, bool] | None:
        """The string of a bucket, and whether it ends there; None for a bucket of others."""
        prefix, place = divmod(bucket - 1, self.width)
        if bucket == 0 or place == 0:
            return None
        rest, ends = self._extensions[place - 1]
        return self.prefixes[prefix] + rest, ends

    def _bucket(self, value: object) -> int:
        if not isinstance(value, str):
            return 0
        text = normalize("NFC", value)
        for length in self._lengths:
            prefix = self._places.get(text[:length]) if length <= len(text) else None
            if prefix is not None:
                place = self._rests.get((text[length : length + self.step], len(text) < length + self.step), 0)
                return 1 + prefix * self.width + place
        return 0

    @cached_property
    def _extensions(self) -> list[tuple[str, bool]]:
        return [
            ("".join(letters), length < self.step)
            for length in range(self.step + 1)
            for letters in product(self.alphabet, repeat=length)
        ]

    @cached_property
    def _rests(self) -> dict[tuple[str, bool], int]:
        return {extension: place for place, extension in enumerate(self._extensions, 1)}

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(prefix) for prefix in self.prefixes})

    @cached_property
    def _places(self) -> dict[str, int]:
        return {prefix: place for place, prefix in enumerate(self.prefixes)}
