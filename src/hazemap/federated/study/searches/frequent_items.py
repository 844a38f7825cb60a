"""Sequences of tokens and strings that many people have: each round makes frequent beginnings longer."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.errors import InputError
from hazemap.federated.recipes.features import LONGEST_PREFIX, MOST_BINS, Categories, PrefixTree, StringPrefixes
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.study.searches.item_counts import (
    ItemCounts,
    check_length,
    check_search,
    counted_items,
    frequent_bins,
    round_query,
)
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Prices, Rounds

_AFTER = 2
"""Buckets of a prefix before those of its tokens: that the text ends, and other tokens."""


@dataclass(frozen=True)
class FrequentSequences:
    """The frequent sequences of 1, 2, … known tokens (McMillan et al. 2022, section 1): only frequent ones grow longer.

    Round i asks which token follows a frequent sequence of i − 1 tokens; a person answers with one of their texts that
    begin with one, drawn at random. So nobody's report is lost on a text that begins in a rare way, and a round needs
    no bins for it. Frequent is what stands out of the noise: at most `most` sequences, of which about `by_noise` would
    be nothing but noise if no sequence were frequent, and as many as a recipe has bins for. Where rows begin at
    every token of a text, the parts of a frequent sequence are frequent too: with `frequent_tokens` only tokens that
    the first round found are asked for again, which leaves noise fewer bins to stand out in.

    `recipe` is the first round's, with one feature, whose query gives a row for each place that a sequence may begin
    at: its token and those after it. Each of the `shares` of the budget pays a round; where nothing is frequent the
    search ends, and the rest is not spent.

    >>> from hazemap.federated.recipes.features import Feature
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> words = Recipe(
    ...     "words", 1, "keyboard", "which words are typed", SqlQuery("SELECT ngram FROM keyboard"), (),
    ...     (Feature("words", PrefixTree(("",), ("a",))),), Fraction(4), Fraction(1), Fraction(1, 10**6), 1_000,
    ... )
    >>> FrequentSequences.evenly(words, ("to", "be"), length=4).shares[0]
    Fraction(1, 4)
    """

    recipe: Recipe
    tokens: tuple[str, ...]
    shares: tuple[Fraction, ...]
    by_noise: Fraction = Fraction(1)
    most: int = 1_000
    frequent_tokens: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        check_search(self.recipe, self.shares, self.most, self.by_noise)
        PrefixTree(("",), self.tokens)
        if len(self.shares) > LONGEST_PREFIX + 1:
            raise InputError(f"sequences have at most {LONGEST_PREFIX + 1} tokens; found {len(self.shares)} shares")
        check_length((max(len(each.encode()) for each in self.tokens) + 1) * (len(self.shares) - 1))

    @classmethod
    def evenly(cls, recipe: Recipe, tokens: tuple[str, ...], length: int) -> "FrequentSequences":
        """Sequences of up to `length` tokens, with the same share for each length."""
        return cls(recipe, tokens, (Fraction(1, max(length, 1)),) * length)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.BINS,))

    def rounds(self, prices: Prices) -> Rounds[ItemCounts]:  # noqa: ARG002 - answers tell the noise
        """One query for each length, while any sequence is frequent."""
        rule, found = PrefixTree(("",), self.tokens), []
        for number, share in enumerate(self.shares, 1):
            query = round_query(self.recipe, rule, number, share)
            answer = yield query
            bins = frequent_bins(answer, _with_token(rule), self.most, self.by_noise)
            longer = _longer(rule, bins)
            found.append(counted_items(longer, number, answer, bins))
            if not longer:
                break
            tokens = longer if self.frequent_tokens and number == 1 else rule.tokens
            rule = PrefixTree(longer[: _room(len(tokens))], tokens)
        return ItemCounts.joined(found)


@dataclass(frozen=True)
class ListedSequences:
    """The frequent ones of listed sequences, with one question: what a static system asks.

    It has to know before what may be frequent: the published comparison is with all sequences of so many known tokens.
    The query gives a row for each sequence of that length, and a person answers with one that is listed, or another.

    >>> from hazemap.federated.recipes.features import Feature
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> pairs = Recipe(
    ...     "pairs", 1, "keyboard", "which words follow", SqlQuery("SELECT ngram FROM pairs"), (),
    ...     (Feature("words", Categories(("to be",))),), Fraction(4), Fraction(1), Fraction(1, 10**6), 1_000,
    ... )
    >>> ListedSequences(pairs, ("to be", "or not")).disclosure.learned[0].name
    'BINS'
    """

    recipe: Recipe
    sequences: tuple[str, ...]
    by_noise: Fraction = Fraction(1)
    most: int = 1_000

    def __post_init__(self) -> None:
        check_fields(self)
        check_search(self.recipe, (Fraction(1),), self.most, self.by_noise)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.BINS,))

    def rounds(self, prices: Prices) -> Rounds[ItemCounts]:  # noqa: ARG002 - the answer tells the noise
        """One query, with the whole budget."""
        rule = Categories(self.sequences)
        answer = yield round_query(self.recipe, rule, 1, Fraction(1))
        bins = frequent_bins(answer, np.arange(1, rule.size), self.most, self.by_noise)
        return counted_items([self.sequences[place - 1] for place in bins], 1, answer, bins)


def _with_token(rule: PrefixTree) -> Ints:
    """The buckets of a prefix and a known token."""
    wide = _AFTER + len(rule.tokens)
    buckets: Ints = 1 + (np.arange(len(rule.prefixes))[:, None] * wide + np.arange(_AFTER, wide)[None, :]).ravel()
    return buckets


def _longer(rule: PrefixTree, bins: Ints) -> tuple[str, ...]:
    """The sequences of these buckets: a prefix and a token each."""
    prefix, token = np.divmod(bins - 1, _AFTER + len(rule.tokens))
    found = zip(prefix.tolist(), (token - _AFTER).tolist(), strict=True)
    return tuple(f"{rule.prefixes[first]} {rule.tokens[last]}".lstrip() for first, last in found)


def _room(tokens: int) -> int:
    """How many prefixes with so many tokens after them a recipe has bins for, that of none included."""
    return max((MOST_BINS - 2) // (_AFTER + tokens), 1)


@dataclass(frozen=True)
class HeavyHitters:
    """The frequent strings over an alphabet: letters, or bits (the prefix extending method of Bassily et al. 2017).

    Every round makes the frequent beginnings `step` characters longer, and finds the frequent strings that end on the
    way. A person answers with one of their strings that begin with one. What is frequent, and what the
    `recipe` and the `shares` are, is as in `FrequentSequences`. Strings of up to `step` · rounds − 1 characters
    are found whole; what the last round finds that may go on is in the table too, and not `complete`.

    >>> from hazemap.federated.recipes.features import Feature
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
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
            answer = yield round_query(self.recipe, rule, number, share)
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
