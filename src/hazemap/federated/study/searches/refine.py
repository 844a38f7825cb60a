"""The distribution of an unknown number, by edges that follow the answers."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, isfinite, log, sqrt

import numpy as np

from hazemap.errors import InputError
from hazemap.federated.recipes.features import MOST_BINS, NumericEdges
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.study.searches.item_counts import ItemCounts, check_template, counted_items, round_query
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Floats
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Prices, Query, Rounds

FULL = 8
"""Standard errors of the next round that a bucket is to hold, at least."""

EVEN = 0.25
"""Buckets are even if none differs from their mean by more than this part of it, besides what noise explains."""


FINEST = 1 << 48
"""Steps from 0 to an end, at most: edges a step apart are then different floats."""


@dataclass(frozen=True, eq=False)
class RefinedBuckets(EqualByFields):
    """Buckets [edge, next edge) and how many people reported each; `others` reported a number outside, or none.

    >>> counts = ItemCounts(("[0, 1)",), np.ones(1), np.array([7.0]), np.ones(1), np.zeros(1), np.ones(1))
    >>> RefinedBuckets(np.array([0.0, 1.0]), counts, 3.0).counts.count
    array([7.])
    """

    edges: Floats
    counts: ItemCounts
    others: float

    def __post_init__(self) -> None:
        own_array(self, "edges", np.float64)
        if self.edges.shape != (len(self.counts) + 1,):
            raise InputError("buckets have one edge more than there are of them")


@dataclass(frozen=True)
class EdgeRefinement:
    """A numeric feature in buckets of about equal counts: full ones are cut and empty ones merged, round after round.

    The first round asks `buckets` of equal width from `low` to `high`. After each, the edges move to where the answer
    puts equal counts, as if numbers lay evenly in each bucket: at most `buckets`, and no more than hold `FULL` standard
    errors of the next round. Edges are whole numbers of `step` above `low`. Where buckets are even (`EVEN`) or their
    edges stand still, the search ends, and one question with all that is left counts the buckets. `shares` are those of
    the rounds before it.

    >>> from hazemap.federated.recipes.features import Feature
    >>> from hazemap.federated.recipes.sql_query import SqlQuery
    >>> delays = Recipe(
    ...     "delays", 1, "app", "how long people wait", SqlQuery("SELECT seconds FROM waits"), (),
    ...     (Feature("seconds", NumericEdges((0, 60))),), Fraction(4), Fraction(1), Fraction(1, 10**6), 1_000,
    ... )
    >>> EdgeRefinement(delays, 0, 60, 0.5).last_share
    Fraction(1, 2)
    """

    recipe: Recipe
    low: float
    high: float
    step: float
    buckets: int = 32
    shares: tuple[Fraction, ...] = (Fraction(1, 8), Fraction(1, 8), Fraction(1, 4))

    def __post_init__(self) -> None:
        check_fields(self)
        check_template(self.recipe, (*self.shares, self.last_share))
        for rounds in range(1, len(self.shares) + 1):  # the last question has what these leave
            check_template(self.recipe, (1 - sum(self.shares[:rounds], Fraction(0)),))
        if not all(map(isfinite, (self.low, self.high, self.step))) or not 0 < self.step <= self.high - self.low:
            raise InputError("a number is refined from its low end to its high end, by a step above 0")
        if max(abs(self.low), abs(self.high)) / self.step >= FINEST:
            raise InputError(
                "a step is so small beside the ends that floats do not tell edges apart: take a larger one"
            )
        if not 2 <= self.buckets < MOST_BINS - 1:
            raise InputError(f"2 to {MOST_BINS - 2:,} buckets are asked for; found {self.buckets:,}")

    @property
    def last_share(self) -> Fraction:
        """What the last question has, if every round before it is needed."""
        return 1 - sum(self.shares, Fraction(0))

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.BINS,))

    def rounds(self, prices: Prices) -> Rounds[RefinedBuckets]:
        """One query for each share, as long as that helps; one for the buckets."""
        places = self._placed(np.linspace(0, self._steps, self.buckets + 1))
        left = Fraction(1)
        for number, share in enumerate(self.shares, 1):
            query = self._asked(places, number, share)
            answer = yield query
            left -= share
            later = self.shares[number] if number < len(self.shares) else self.last_share
            counts = answer.sums[1 : len(places)].astype(np.float64)
            moved = self._moved(places, counts, FULL * prices.stddev(query.encoder, later))
            if len(moved) == len(places) and (_even(counts, answer) or (moved == places).all()):
                break
            places = moved
        answer = yield self._asked(places, len(self.shares) + 1, left)
        rule = self._rule(places)
        counted = counted_items(rule.labels()[1:], len(self.shares) + 1, answer, np.arange(1, rule.size), True)
        return RefinedBuckets(np.array(rule.edges), counted, float(answer.sums[0]))

    @property
    def _steps(self) -> int:
        return floor((self.high - self.low) / self.step)

    def _asked(self, places: Floats, round_: int, share: Fraction) -> Query:
        return round_query(self.recipe, self._rule(places), round_, share)

    def _rule(self, places: Floats) -> NumericEdges:
        return NumericEdges(tuple(float(self.low + self.step * place) for place in places))

    def _placed(self, places: Floats) -> Floats:
        """Edges in steps from the low end: whole, ascending, each once; both ends among them."""
        return np.unique(np.append(np.clip(np.rint(places), 0, self._steps), [0.0, self._steps]))

    def _moved(self, places: Floats, counts: Floats, fewest: float) -> Floats:
        """Edges between which about equally many are: as many as leave `fewest` in each."""
        people = max(float(counts.sum()), 0.0)
        number = int(min(self.buckets, people / fewest if fewest > 0 else self.buckets))
        below = np.concatenate([[0.0], np.cumsum(np.maximum(counts, 0))])
        inner = np.arange(1, number) / max(number, 1) * below[-1]
        at = np.searchsorted(below, inner, side="right") - 1  # of buckets with somebody in them
        part = (inner - below[at]) / (below[at + 1] - below[at])
        return self._placed(places[at] + part * (places[at + 1] - places[at]))


def _even(counts: Floats, answer: Answer) -> bool:
    """Whether noise explains what counts differ by, besides a part of their mean."""
    mean, noise = float(counts.mean()), float(answer.stddev.max())
    worst = noise * (3 + sqrt(2 * log(len(counts))))
    return bool((np.abs(counts - mean) <= EVEN * abs(mean) + worst).all())
