"""Strings that many people have, out of all possible ones: each round adds a few characters."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.algorithm_disclosure import Disclosure, Learned
from hazemap.algorithms.item_counts import ItemCounts, counted_items, frequent_bins
from hazemap.algorithms.recipe_rounds import asked, check_length, check_search
from hazemap.arrays import Ints
from hazemap.field_types import check_fields
from hazemap.noisy_queries import Prices, Rounds
from hazemap.recipes.buckets import MOST_BINS
from hazemap.recipes.recipe import Recipe
from hazemap.recipes.string_prefixes import StringPrefixes


@dataclass(frozen=True)
class HeavyHitters:
    """The frequent strings over an alphabet: letters, or bits (the prefix extending method of Bassily et al. 2017).

    Every round makes the frequent beginnings `step` characters longer, and finds the frequent strings that end on the
    way. A person answers with one of their strings that begin with one. What is frequent, and what the
    `recipe` and the `shares` are, is as in `FrequentSequences`. Strings of up to `step` · rounds − 1 characters
    are found whole; what the last round finds that may go on is in the table too, and not `complete`.

    >>> from hazemap.recipes.features import Feature
    >>> from hazemap.recipes.sql_query import SqlQuery
    >>> codes = Recipe(
    ...     "codes", 1, "errors", "which codes are frequent", SqlQuery("SELECT code FROM errors"), (),
    ...     (Feature("code", StringPrefixes(("",), "01", 1)),), Fraction(4), Fraction(1), Fraction(1, 10**6), 1_000,
    ... )
    >>> HeavyHitters(codes, "01", 4, (Fraction(1, 2), Fraction(1, 2))).longest
    7
    """

    recipe: Recipe
    alphabet: str
    step: int
    shares: tuple[Fraction, ...]
    by_noise: Fraction = Fraction(1)
    most: int = 1_000

    def __post_init__(self) -> None:
        check_fields(self)
        check_search(self.recipe, self.shares, self.most, self.by_noise)
        StringPrefixes(("",), self.alphabet, self.step)
        check_length(max(map(_bytes, self.alphabet)) * self.step * (len(self.shares) - 1))

    @property
    def longest(self) -> int:
        """The most characters of a string that is found whole."""
        return self.step * len(self.shares) - 1

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.BINS,))

    def rounds(self, prices: Prices) -> Rounds[ItemCounts]:  # noqa: ARG002 - answers tell the noise
        """One query for each step, while any beginning is frequent."""
        rule, found = StringPrefixes(("",), self.alphabet, self.step), []
        for number, share in enumerate(self.shares, 1):
            answer = yield asked(self.recipe, rule, number, share)
            bins = frequent_bins(answer, _of_strings(rule), self.most, self.by_noise)
            texts = [rule.string(int(bucket)) for bucket in bins]
            ends = np.array([end for _, end in texts], dtype=bool)
            longer = tuple(text for text, end in texts if not end)
            last = number == len(self.shares)
            kept = np.ones(len(bins), dtype=bool) if last else ends
            whole = [text for (text, _), keep in zip(texts, kept, strict=True) if keep]
            found.append(counted_items(whole, number, answer, bins[kept], ends[kept]))
            if not longer or last:
                break
            rule = StringPrefixes(longer[: (MOST_BINS - 2) // rule.width], self.alphabet, self.step)
        return ItemCounts.joined(found)


def _bytes(letter: str) -> int:
    return len(letter.encode())


def _of_strings(rule: StringPrefixes) -> Ints:
    """The buckets that stand for a string: all but those of others."""
    every = np.arange(1, rule.size)
    strings: Ints = every[(every - 1) % rule.width != 0]
    return strings
