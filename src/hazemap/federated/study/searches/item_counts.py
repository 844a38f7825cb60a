"""A search in rounds: recipes that ask the same query with other buckets, and the counts of items that they find."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import leading, reach
from hazemap.estimate.mean_intervals import loudest
from hazemap.estimate.report_intervals import report_intervals
from hazemap.federated.recipes.features import MOST_TOKENS, BucketRule, Feature
from hazemap.federated.recipes.recipe import NoMatch, Recipe
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.recipes.sql_query import LONGEST_VALUE
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.noisy_queries import Answer, Query


class CountInterval(NamedTuple):
    """Low and high ends of the number of people who reported each item, float64[items] each."""

    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class ItemCounts(EqualByFields):
    """Items, the round that found them, and in it the number of people who reported each: unbiased, with its noise.

    `stddev` and `kurtosis` describe the noise of each number, float64[items]; `complete` says whether an item is known
    to end there, or may go on. `reports`, float64[items, 3], has the people whose reports each number is made of and
    the two chances of their bits; all 0 where it was not made of reports. A person reports one of their matching items,
    so a number counts reports in its round and not all people who have the item. Items are here because their numbers
    are large: of those close to the threshold more are too large than too small.

    >>> found = ItemCounts(("i am", "a"), np.array([2, 1]), np.array([30.0, 50]), np.ones(2), np.zeros(2), np.zeros(2))
    >>> found.interval(0.95).low.round(1), found.of_round(1).items
    (array([28., 48.]), ('a',))
    """

    items: tuple[str, ...]
    round: Ints
    count: Floats
    stddev: Floats
    kurtosis: Floats
    complete: NDArray[np.bool_]
    reports: Floats = field(default_factory=lambda: np.zeros((0, 3)))

    def __post_init__(self) -> None:
        if not len(self.reports):
            object.__setattr__(self, "reports", np.zeros((len(self.items), 3)))
        for name, type_ in (("round", np.int64), ("complete", np.bool_)):
            own_array(self, name, type_)
        for name in ("count", "stddev", "kurtosis", "reports"):
            own_array(self, name, np.float64)
        check_fields(self)
        arrays = (self.round, self.count, self.stddev, self.kurtosis, self.complete)
        if any(len(each) != len(self.items) for each in (*arrays, self.reports)) or self.reports.shape[1:] != (3,):
            raise InputError("a table of items has one number of each kind for every item")

    def __len__(self) -> int:
        return len(self.items)

    def interval(self, confidence: float = 0.95) -> CountInterval:
        """Where the exact number of reports lies, each with this probability: by their exact law, where it is known."""
        margin = reach(confidence, self.kurtosis) * self.stddev
        low, high = self.count - margin, self.count + margin
        for people, keep, turn_on in np.unique(self.reports, axis=0).tolist():
            if people:
                own = np.flatnonzero((self.reports == (people, keep, turn_on)).all(axis=1))
                low[own], high[own] = report_intervals((keep, turn_on), int(people), self.count[own], confidence)
        return CountInterval(*leading(self.count, low, high))

    def at(self, places: Ints) -> "ItemCounts":
        """The items at these places."""
        chosen = tuple(self.items[place] for place in places)
        return ItemCounts(chosen, *(getattr(self, name)[places] for name in _NUMBERS))

    def of_round(self, round_: int) -> "ItemCounts":
        """The items that one round found: of a search for sequences, those of so many tokens."""
        return self.at(np.flatnonzero(self.round == round_))

    def top(self, most: int) -> "ItemCounts":
        """The items with the largest numbers, the largest first."""
        return self.at(np.argsort(-self.count, kind="stable")[:most])

    @classmethod
    def joined(cls, tables: "Sequence[ItemCounts]") -> "ItemCounts":
        """Several tables, one or more, one after the other."""
        items = tuple(item for table in tables for item in table.items)
        return cls(items, *(np.concatenate([getattr(table, name) for table in tables]) for name in _NUMBERS))


_NUMBERS = tuple(each.name for each in fields(ItemCounts))[1:]


def frequent_bins(answer: Answer, among: Ints, most: int, by_noise: Fraction) -> Ints:
    """Of some bins those that stand out of the noise, the largest number first, and `most` of them at most.

    Were all of them empty, noise would lift about `by_noise` of them so high. Randomised reports in an empty bin are
    Bin(n, q), which reaches further up than down where q is small: its own tail counts, found from its moments.

    >>> frequent_bins(Answer(np.array([9, 0, 2]), np.array([1.0])), np.arange(3), 10, Fraction(1)).tolist()
    [0, 2]
    """
    if not len(among):
        return among
    chance = min(float(by_noise) / len(among), 0.5)
    least = _loudest_reports(answer, chance)
    if least is None:
        least = loudest(1, (float(answer.stddev.min()), answer.kurtosis), chance)
    counts = answer.sums[among]
    largest = among[np.argsort(-counts, kind="stable")[:most]]
    found: Ints = largest[answer.sums[largest] > least]
    return found


def _loudest_reports(answer: Answer, chance: float) -> float | None:
    """What an empty bin of randomised reports passes with this probability at most; None for symmetric noise.

    Of n reports X ~ Bin(n, q) have the bin's bit. Where an older answer does not say q, its moments do: skewness² =
    (1 − 4v)/(n v) with v = q(1 − q), so both numbers tell v, and the standard deviation of the unbiased number how much
    one report moves it. That number is rounded up or down at random, which its variance counts as ¼.
    """
    if answer.people is None:
        return None
    from scipy.stats import binom  # heavy: only where it is needed

    if answer.chances is not None:
        keep, turn_on = answer.chances
        empty = binom.isf(chance, answer.people, turn_on) - answer.people * turn_on
        return float(np.ceil(empty / (keep - turn_on)))
    if not answer.skewness or answer.skewness < 0:
        return None
    people, variance = answer.people, max(float(answer.stddev.min()) ** 2 - 0.25, 0.0)
    spread = 1 / (people * answer.skewness**2 + 4)
    q = 2 * spread / (1 + sqrt(max(1 - 4 * spread, 0.0)))
    step = sqrt(variance / (people * spread))
    return float(np.ceil(step * (binom.isf(chance, people, q) - people * q)))


def counted_items(
    items: Sequence[str], round_: int, answer: Answer, bins: Ints, complete: NDArray[np.bool_] | bool = False
) -> ItemCounts:
    """The numbers of these bins, as a table."""
    return ItemCounts(
        tuple(items),
        np.full(len(bins), round_),
        answer.sums[bins].astype(np.float64),
        np.broadcast_to(answer.stddev, answer.sums.shape)[bins],
        np.full(len(bins), answer.kurtosis),
        np.broadcast_to(np.asarray(complete), len(bins)),
        np.tile((answer.people, *answer.chances) if answer.chances and answer.people else (0, 0, 0), (len(bins), 1)),
    )


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


def round_query(recipe: Recipe, rule: BucketRule, round_: int, share: Fraction) -> Query:
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
