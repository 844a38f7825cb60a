"""Edges that follow the answers: buckets of about equal counts, or as many as the noise allows."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.recipes.asking import recipe

from hazemap.codec import dumps, loads
from hazemap.errors import InputError
from hazemap.federated.recipes.features import NumericEdges
from hazemap.federated.recipes.population_table import PopulationTable
from hazemap.federated.recipes.recipe_bins import KNOWN
from hazemap.federated.study.searches import EdgeRefinement
from hazemap.federated.study.searches.refine import FINEST
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.trust.curator import Curator

FIRST = recipe(NumericEdges((0, 1)))
NO_NOISE = PureDP(10_000)
SEARCH = EdgeRefinement(FIRST, 0, 1_000, 0.25, buckets=16)


def waiting(numbers: np.ndarray) -> PopulationTable:
    """Each person has one number."""
    return PopulationTable(np.arange(len(numbers) + 1), (np.asarray(numbers, dtype=np.float64),))


def asked(search: EdgeRefinement, numbers: np.ndarray, budget=NO_NOISE, seed=b"refine"):
    return run(search, Curator(waiting(numbers), Stream.fixed(seed)), budget, Unrecorded())


def skewed(people: int) -> np.ndarray:
    return np.random.default_rng(7).lognormal(2, 1, people)


def test_without_noise_buckets_are_even_and_their_numbers_exact():
    numbers = np.append(skewed(20_000), [-5.0] * 7)
    found = asked(SEARCH, numbers).value
    exact, _ = np.histogram(numbers, found.edges)
    outside = ((numbers < 0) | (numbers >= 1_000)).sum()
    assert found.counts.count.tolist() == exact.tolist() and found.others == outside
    assert len(found.counts) == 16 and exact.max() < 1.3 * exact.mean() and exact.min() > 0.7 * exact.mean()
    first, _ = np.histogram(numbers, np.linspace(0, 1_000, 17))
    assert first.max() > 15 * first.mean()  # what a static question sees: one bucket holds nearly everybody


def test_noise_leaves_fewer_buckets():
    """At ε = 1 a bucket of 8 standard errors of the last question holds 22 of 100 people."""
    assert 1 <= len(asked(SEARCH, skewed(100), PureDP(1)).value.counts) <= 8
    assert len(asked(SEARCH, skewed(40_000), PureDP(1)).value.counts) == 16
    assert len(asked(SEARCH, np.empty(0), PureDP(1)).value.counts) <= 2


def test_even_numbers_are_asked_once_and_the_rest_of_the_budget_counts_them():
    found = asked(SEARCH, np.linspace(0, 999.9, 5_000), PureDP(1))
    assert [question.share for question, _ in found.transcript] == [Fraction(1, 8), Fraction(7, 8)]
    assert found.value.counts.stddev[0] < 2


def test_buckets_that_differ_by_noise_alone_are_even():
    """1,600 people in 16 buckets of 100 ± 11: counts differ by more than a quarter, and the edges stay."""
    found = asked(SEARCH, np.linspace(0, 999.9, 1_600), PureDP(1))
    counts = found.transcript[0].answer.sums[1:17]
    assert np.abs(counts - counts.mean()).max() > 0.25 * counts.mean() and len(found.transcript) == 2


def test_as_many_buckets_are_made_as_the_noise_of_the_next_round_allows():
    """After a round that cost next to nothing the last one has 99 % of the budget, and noise of 1.4 people."""
    search = replace(SEARCH, shares=(Fraction(1, 100),))
    assert len(asked(search, np.linspace(0, 999.9, 2_000), PureDP(1)).value.counts) > 8


def test_a_crowd_at_one_number_ends_in_a_bucket_of_one_step():
    found = asked(replace(SEARCH, shares=(Fraction(1, 8),) * 4), np.full(3_000, 37.5)).value
    crowd = int(np.argmax(found.counts.count))
    assert found.counts.count[crowd] == 3_000 and found.edges[crowd] == 37.5 and found.edges[crowd + 1] == 37.75


@pytest.mark.parametrize("numbers", [skewed(3_000), np.full(50, 3.0), np.arange(1_000.0), np.empty(0)])
def test_every_run_costs_the_budget_and_its_edges_ascend_from_end_to_end(numbers):
    found = asked(SEARCH, numbers, PureDP(1))
    assert sum(question.share for question, _ in found.transcript) == 1
    assert found.value.edges[0] == 0 and found.value.edges[-1] == 1_000 and (np.diff(found.value.edges) > 0).all()
    prices = Curator(waiting(numbers)).prices(PureDP(1))
    assert replay(SEARCH, prices, PureDP(1), found.transcript).value == found.value


@pytest.mark.parametrize(
    ("low", "step"), [(0.0, 2.0**-38), (-1e9, 1e-5), (1e14 / 2**40, 1e-8), (3.3, 0.1), (-0.7, 1e-14)]
)
def test_the_finest_edges_are_different_floats(low, step):
    """Fifty steps at both ends of the longest range that a step allows: they ascend, as a recipe's edges must."""
    for high in (low + 50.5 * step, (FINEST - 1) * step):
        search = EdgeRefinement(FIRST, low, high, step, buckets=2)
        for first in (0, search._steps - 50):
            edges = search._rule(first + np.arange(51.0)).edges
            assert len(set(edges)) == 51


def test_a_search_travels():
    assert loads(dumps(SEARCH), (*KNOWN, EdgeRefinement)) == SEARCH


@pytest.mark.parametrize(
    "change",
    [
        {"low": 1_000}, {"step": 0.0}, {"step": 2_000}, {"high": float("inf")}, {"buckets": 1}, {"buckets": 1 << 20},
        {"step": 1e-15}, {"low": 1e15, "high": 1e15 + 1, "step": 0.25}, {"shares": (Fraction(1, 10**19),)},
        {"shares": (Fraction(1),)}, {"shares": (Fraction(-1, 2),)},
    ],
)  # fmt: skip
def test_ranges_that_cannot_be_refined_are_refused(change):
    with pytest.raises(InputError):
        replace(SEARCH, **change)
