"""Means of one cell: right without noise, chosen from public numbers, and as good as they claim."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms.published.user_level_means import BalancedMean, median_length, most_arrays, worst_case_length
from hazemap.engines.memory import SingleCellSamples
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.sample_grouping import BestFit, Filling, SampleCounts, WrapAround
from hazemap.trust.curator import Curator
from hazemap.values.quantizer import Quantizer
from research.compare.user_level.published_means import (
    ArrayAveraging,
    LevyMean,
    PlainMean,
    QuantileMean,
    worst_case_error,
)

QUANTIZER = Quantizer(0, 65)
counts = st.lists(st.integers(1, 40), min_size=1, max_size=20).map(lambda numbers: SampleCounts(np.array(numbers)))


@pytest.fixture(scope="module")
def buses():
    """200 people with 1 to 400 samples, around means that differ by 3."""
    chance = np.random.default_rng(8)
    number = np.minimum(chance.geometric(1 / 80, 200), 400)
    own = np.repeat(chance.normal(21, 3, 200), number)
    return SingleCellSamples(np.repeat(np.arange(200), number), own + chance.normal(0, 9, len(own)))


def methods(table: SingleCellSamples):
    some = table.contributions
    rules = [BestFit(60), WrapAround(60), BestFit(60, Filling.MEANS), WrapAround(60, Filling.MEANS)]
    grouped = [method(QUANTIZER, some, rule) for method in (ArrayAveraging, LevyMean, QuantileMean) for rule in rules]
    return [
        *(
            PlainMean(QUANTIZER, some),
            PlainMean(QUANTIZER, some, 60),
            BalancedMean(QUANTIZER, some),
            BalancedMean(QUANTIZER, some, most=60),
        ),
        *(*grouped, QuantileMean(QUANTIZER, some, BestFit(60), rank=None)),
    ]


@pytest.mark.parametrize("number", range(17))
@pytest.mark.parametrize("budget", [PureDP(10_000), ZCDP(10**8)], ids=str)
def test_with_a_huge_budget_every_mean_is_near_the_true_one(buses, number, budget):
    true = np.clip(buses.value, 0, 65).mean()
    found = run(methods(buses)[number], Curator(buses, Stream.fixed(b"means")), budget, Unrecorded()).value
    assert abs(found.value - true) < (0.02 if number == 0 else 0.8)
    assert np.isnan(found.stddev) or 0 <= found.stddev < 0.01


def test_the_list_above_is_whole(buses):
    assert len(methods(buses)) == 17


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 4, 5])
def test_the_stated_noise_is_the_noise(buses, number):
    """200 draws: their spread is within 40 % of the stated one (5 standard errors, 1e-6); half the noise must fail."""
    method, trust = methods(buses)[number], Curator(buses, Stream.fixed(b"noise"))
    found = [run(method, trust, PureDP("0.5"), Unrecorded()).value for _ in range(200)]
    ratio = np.std([mean.value for mean in found]) / found[0].stddev
    assert 0.6 < ratio < 1.4
    assert not 0.6 < ratio / 2 < 1.4


@given(counts, st.floats(0.01, 10))
def test_the_best_worst_case_is_at_a_number_of_somebody_and_grows_with_the_budget(some, epsilon):
    best = worst_case_length(some, epsilon)
    every = [worst_case_error(some, length, epsilon) for length in range(1, some.most + 1)]
    assert worst_case_error(some, best, epsilon) <= min(every) * (1 + 1e-9)
    assert best in some.counts and best <= worst_case_length(some, 2 * epsilon)


@given(counts)
def test_lengths_are_those_of_their_definitions(some):
    assert median_length(some) == sorted(some.counts)[(some.people - 1) // 2]
    kept = {length: int(some.kept(length).sum()) for length in some.counts}
    assert kept[most_arrays(some)] // most_arrays(some) * most_arrays(some) ** 0.5 == pytest.approx(
        max(kept[length] // length * length**0.5 for length in kept)
    )
    lengths, sums, more = some.distinct
    assert [kept[length] for length in lengths] == sums.tolist()
    assert [int((some.counts >= length).sum()) for length in lengths] == more.tolist()


@given(counts, st.floats(0.05, 5))
def test_weights_of_a_balance_have_the_least_expected_error(some, epsilon):
    part = some.counts / some.total

    def expected(most: int) -> float:
        weights = some.kept(most)
        noise = 4 / (epsilon * weights.sum() / most * 0.75)
        return 2 * noise**2 + 4 * ((weights / weights.sum() - part) ** 2).sum()

    best = BalancedMean(QUANTIZER, some).length(epsilon)
    assert expected(best) == pytest.approx(min(expected(int(most)) for most in some.counts))


@pytest.mark.slow
def test_a_balance_beats_arrays_by_far(buses):
    """Mean absolute error of 60 draws at ε = 1 (fixed stream): less than 0.6 of Array-Averaging's, measured 0.4."""
    some, true = buses.contributions, np.clip(buses.value, 0, 65).mean()

    def error(method) -> float:
        trust = Curator(buses, Stream.fixed(b"balance"))
        return float(np.mean([abs(run(method, trust, PureDP(1), Unrecorded()).value.value - true) for _ in range(60)]))

    arrays = ArrayAveraging(QUANTIZER, some, BestFit(most_arrays(some), Filling.MEANS))
    assert error(BalancedMean(QUANTIZER, some)) < 0.6 * error(arrays)


def test_the_dependent_rank_comes_from_the_budget_alone(buses):
    some = buses.contributions
    method = QuantileMean(QUANTIZER, some, BestFit(10), rank=None)
    arrays = BestFit(10).arrays(some).number
    ranks = [method.dependent(Curator(buses).prices(PureDP(epsilon))) for epsilon in ("0.01", "0.5", 2)]
    assert ranks == [Fraction(1, 4), Fraction(4, arrays), Fraction(1, arrays)]


def test_impossible_methods_are_refused():
    some = SampleCounts(np.array([1]))
    for impossible in (
        lambda: PlainMean(QUANTIZER, some, -1),
        lambda: QuantileMean(QUANTIZER, some, BestFit(1), HALF),
        lambda: BalancedMean(QUANTIZER, some, reach=Fraction(0)),
    ):
        with pytest.raises(InputError):
            impossible()


HALF = Fraction(1, 2)
