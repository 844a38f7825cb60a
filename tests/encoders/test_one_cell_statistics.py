"""Sensitivities under VALUES ONLY, by brute force: all tables of a few samples, all people, all their values."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hazemap.encoders import total
from hazemap.encoders.sample_statistics import ArrayBins, ArrayMeans, ArrayQuantiles, RobustMeanScores, ValueSums
from hazemap.engines.memory import MemoryTable, SingleCellSamples
from hazemap.errors import InputError, TableError
from hazemap.privacy.budget import ZCDP
from hazemap.privacy.mechanisms import noise_for
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.tables.sample_grouping import BestFit, Filling, SampleCounts, WrapAround
from hazemap.values.quantizer import Quantizer

QUANTIZER = Quantizer(0, 4, steps=4)
PERSON = np.array([0, 1, 1, 2, 2])
SOME = SampleCounts(np.array([1, 2, 2]))
GROUPINGS = [rule(most, filling) for rule in (BestFit, WrapAround) for most in (1, 2, 3) for filling in Filling]
HALF = Fraction(1, 2)


def moved(numbers) -> int:
    """The most that any number moves when the values of one person change."""
    tables = {
        values: np.asarray(numbers(SingleCellSamples(PERSON, np.array(values))))
        for values in product((0, 2, 4), repeat=5)
    }
    most = 0
    for person in range(3):
        others: dict[tuple[int, ...], list[np.ndarray]] = {}
        for values, found in tables.items():
            others.setdefault(tuple(v for v, p in zip(values, PERSON, strict=True) if p != person), []).append(found)
        for neighbours in others.values():
            stack = np.array(neighbours)
            most = max(most, int((stack.max(axis=0) - stack.min(axis=0)).max()))
    return most


@pytest.mark.parametrize("most", [1, 2, 3])
def test_nobody_moves_the_sum_of_their_first_values_by_more_than_its_sensitivity(most):
    sums = ValueSums(QUANTIZER, most)
    assert moved(sums.total) == ValueSums(QUANTIZER, min(most, 2)).sensitivity.l1 <= sums.sensitivity.l1


@pytest.mark.parametrize("grouping", GROUPINGS, ids=repr)
@pytest.mark.parametrize(("low", "high"), [(0, 4), (1, 3)])
def test_nobody_moves_the_sum_of_array_means_by_more_than_its_sensitivity(grouping, low, high):
    means = ArrayMeans(QUANTIZER, SOME, grouping, low, high)
    found = moved(means.total)
    assert found <= means.sensitivity.l1
    assert found == high - low or grouping.spanned == 2


def test_somebody_in_two_arrays_does_move_their_sum_by_more_than_the_range():
    """So the sensitivity of wrapping around is not that of best fit: their one sample makes the last array alone."""
    assert moved(ArrayMeans(QUANTIZER, SOME, WrapAround(2), 1, 3).total) > 2


@pytest.mark.parametrize("grouping", GROUPINGS, ids=repr)
@pytest.mark.parametrize("rank", [Fraction(1, 10), HALF, Fraction(9, 10)])
def test_nobody_moves_a_score_of_a_quantile_by_more_than_its_sensitivity(grouping, rank):
    scores = ArrayQuantiles(QUANTIZER, SOME, grouping, (rank,))
    assert moved(lambda table: scores.scores(table, rank)) <= scores.sensitivity(rank)


@pytest.mark.parametrize("grouping", GROUPINGS, ids=repr)
@pytest.mark.parametrize("width", [1, 2, 3])
def test_nobody_moves_a_score_of_a_bin_by_more_than_its_sensitivity(grouping, width):
    bins = ArrayBins(QUANTIZER, SOME, grouping, width)
    assert moved(lambda table: bins.scores(table, HALF)) <= bins.sensitivity(HALF)


@pytest.mark.parametrize(("most", "reach"), [(1, 1), (1, 4), (2, 1), (2, 2), (2, 4)])
def test_nobody_moves_a_balance_by_more_than_its_sensitivity_and_somebody_by_as_much(most, reach):
    balance = RobustMeanScores(QUANTIZER, most, reach)
    found = moved(lambda table: balance.scores(table, HALF))
    assert found <= balance.sensitivity(HALF)
    pulls = moved(lambda table: -slow_pulls(balance, table))
    assert pulls == min(2 * reach, 4) * most <= balance.sensitivity(HALF)


def slow_pulls(balance: RobustMeanScores, table: SingleCellSamples) -> np.ndarray:
    means, weights = table.means(balance.quantizer), table.contributions.kept(balance.most)
    every = np.arange(balance.quantizer.steps + 1)[:, None]
    return (weights * np.clip(means - every, -balance.reach, balance.reach)).sum(axis=1)


def test_scores_are_those_of_slow_twins():
    chance, quantizer = np.random.default_rng(4), Quantizer(0, 65, steps=130)
    table = SingleCellSamples(chance.integers(0, 40, 300), chance.normal(20, 15, 300))
    some = table.contributions
    for reach in (1, 8, 130):
        balance = RobustMeanScores(quantizer, 5, reach)
        assert (balance.scores(table, HALF) == -np.abs(slow_pulls(balance, table))).all()
    means = table.array_means(BestFit(9), quantizer)
    quantiles = ArrayQuantiles(quantizer, some, BestFit(9), (Fraction(1, 10),))
    slow = [-abs(10 * int((means < reading).sum()) - len(means)) for reading in range(131)]
    assert quantiles.scores(table, Fraction(1, 10)).tolist() == slow
    bins = ArrayBins(quantizer, some, BestFit(9), 25)
    ends = [(25 * number, 25 * number + 24) for number in range(bins.number)]
    slow = [-max(int((means < low).sum()), int((means > high).sum())) for low, high in ends]
    assert bins.scores(table, HALF).tolist() == slow


def test_sums_of_values_are_the_same_from_samples_and_person_by_person():
    chance = np.random.default_rng(5)
    person, value = chance.integers(-9, 9, 100), chance.normal(20, 30, 100)
    memory = MemoryTable(person, {"lon": np.zeros(100), "lat": np.zeros(100), "value": value})
    for most in (1, 3, 100):
        sums = ValueSums(Quantizer(0, 65), most)
        assert sums.total(SingleCellSamples(person, value)) == total(sums, memory)


def test_a_table_of_places_is_not_one_of_values():
    places = MemoryTable(np.array([1]), {"lon": np.zeros(1), "lat": np.zeros(1)})
    with pytest.raises(TableError, match="table of samples"):
        ValueSums(QUANTIZER, 1).total(places)
    with pytest.raises(TableError, match="called value"):
        ValueSums(QUANTIZER, 1).encode(places)
    assert not len(SingleCellSamples(PERSON, PERSON).votes(Quadtree.world(2), AtMostRows(1)).cells)


def test_other_numbers_of_samples_than_the_public_ones_are_refused():
    means = ArrayMeans(QUANTIZER, SampleCounts(np.array([1, 2, 1])), BestFit(1), 0, 4)
    with pytest.raises(TableError, match="declared public"):
        means.total(SingleCellSamples(PERSON, PERSON))


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: ValueSums(QUANTIZER, 0),
        lambda: ArrayMeans(QUANTIZER, SOME, BestFit(1), 2, 2),
        lambda: ArrayMeans(QUANTIZER, SOME, BestFit(1), 0, 5),
        lambda: ArrayQuantiles(QUANTIZER, SOME, BestFit(1), ()),
        lambda: ArrayQuantiles(QUANTIZER, SOME, BestFit(1), (Fraction(2),)),
        lambda: ArrayBins(QUANTIZER, SOME, BestFit(1), 5),
        lambda: RobustMeanScores(QUANTIZER, 0, 1),
        lambda: RobustMeanScores(QUANTIZER, 1, 5),
    ],
)
def test_impossible_questions_are_refused(impossible):
    with pytest.raises(InputError):
        impossible()


@pytest.mark.parametrize(
    "sums",
    [
        ValueSums(QUANTIZER, 2),
        ArrayMeans(QUANTIZER, SOME, BestFit(2), 1, 3),
        ArrayMeans(QUANTIZER, SOME, WrapAround(2), 1, 3),
    ],
)
def test_fault_12_one_number_moves_as_far_in_l2_as_in_l1_so_its_noise_under_rho_is_for_the_square(sums):
    found = moved(sums.total)
    assert 2 < found <= sums.sensitivity.l1 or isinstance(sums, ArrayMeans)
    assert found**2 <= sums.sensitivity.l2_squared, "moved that far by one person"
    assert noise_for(ZCDP("0.5"), sums.sensitivity).variance == sums.sensitivity.l1**2 > sums.sensitivity.l1
