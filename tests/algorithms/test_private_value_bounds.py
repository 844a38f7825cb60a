"""Bounds of a value that nobody declared."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import CellStatistics, PrivateBoxStatistics, PrivateValueBounds, TwoStageStatistics
from hazemap.algorithms.private_value_bounds import best_bins, ends, topmost
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Result, Unrecorded, replay, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Always
from hazemap.trust.curator import Curator
from hazemap.values.histogram_bins import FloatGrid
from hazemap.values.value_encoding import ValueEncoding

SQUARE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 1)
FIND = PrivateValueBounds(FloatGrid())


def people(values: np.ndarray, each: int = 1) -> MemoryTable:
    place = {"lon": np.full(len(values), 13.3), "lat": np.full(len(values), 52.45)}
    return MemoryTable(np.arange(len(values)) // each, place | {"value": values})


def found(values: np.ndarray, budget=PureDP(1), bounds: PrivateValueBounds = FIND, seed: bytes = b"bounds"):  # noqa: B008
    return run(bounds, Curator(people(values), Stream.fixed(seed)), budget, Unrecorded()).value


def normal(number: int, mean: float = 20, spread: float = 5) -> np.ndarray:
    return np.random.default_rng(1).normal(mean, spread, number)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (normal(30_000), (-12, 12), (28, 40)),
        (normal(30_000, -20), (-40, -28), (-12, 12)),
        (normal(30_000, 290, 8), (240, 278), (302, 330)),
        (normal(30_000, 0, 60), (-250, -90), (90, 250)),
        (normal(30_000, 2e-5, 1e-6), (0.5e-5, 1.9e-5), (2.1e-5, 2.9e-5)),
        (np.append(normal(30_000), np.full(100, 1e9)), (-12, 12), (28, 40)),
        (np.full(5000, 5.0), (-8, 5), (5.001, 6)),
        (np.arange(5000) % 3 // 2.0, (-2, 0), (1.001, 1.5)),
    ],
    ids=["normal", "negative", "kelvin", "both signs", "tiny", "a few impossible ones", "all alike", "yes or no"],
)
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.02")], ids=str)
def test_bounds_lie_near_the_quantiles_of_peoples_values(values, low, high, budget):
    bounds = found(values, budget)
    assert low[0] <= bounds.low <= low[1]
    assert high[0] <= bounds.high <= high[1]
    assert (values < bounds.low).mean() <= bounds.below
    assert (values > bounds.high).mean() <= bounds.above


def test_what_may_lie_beyond_is_more_than_what_does():
    """Three standard errors on each side, so 1 of 200 runs may be wrong; more than 5 of 60 have P < 1e-6."""
    values = normal(3000)
    wrong = 0
    for seed in range(60):
        bounds = found(values, seed=b"%d" % seed)
        wrong += (values < bounds.low).mean() > bounds.below or (values > bounds.high).mean() > bounds.above
    assert wrong <= 5


def test_somebody_with_very_many_records_moves_no_bound():
    """One person with 30,000 records a million times larger has one vote, as all others do."""
    values = np.concatenate([normal(3000), np.full(30_000, 2e7)])
    person = np.concatenate([np.arange(3000), np.full(30_000, 5000)])
    place = {"lon": np.zeros(33_000), "lat": np.zeros(33_000)}
    table = MemoryTable(person, place | {"value": values})
    bounds = run(FIND, Curator(table, Stream.fixed(b"many")), PureDP(1), Unrecorded()).value
    assert bounds.high < 70
    as_rows = found(values)  # the twin: if every record were somebody of their own
    assert as_rows.high > 1e7


def test_a_bound_that_is_declared_is_kept():
    bounds = found(normal(5000), bounds=PrivateValueBounds(FloatGrid(), low=0))
    assert bounds.low == 0 and bounds.below == 0 and 26 < bounds.high < 50
    bounds = found(normal(5000), bounds=PrivateValueBounds(FloatGrid(), high=100))
    assert bounds.high == 100 and bounds.above == 0 and -40 < bounds.low < 14
    with pytest.raises(InputError, match="both bounds are declared"):
        PrivateValueBounds(FloatGrid(), 0, 1)
    other_unit = found(normal(5000), bounds=PrivateValueBounds(FloatGrid(), low=1000))
    assert (other_unit.low, other_unit.high, other_unit.below, other_unit.above) == (1000, 2.0**40, 0, 1)
    assert found(normal(5000), bounds=PrivateValueBounds(FloatGrid(), high=-(2.0**50))).low == -(2.0**51)


def test_a_bound_that_is_found_is_never_so_near_the_declared_one_that_nothing_lies_between():
    """Values a hair above the declared bound, beside an edge of bins; that it cannot be used is found after paying."""
    low = float(np.nextafter(8.0, 0))
    bounds = found(np.full(5000, low), bounds=PrivateValueBounds(FloatGrid(), low=low))
    assert bounds.low == low and ValueEncoding(bounds.low, bounds.high).width > 0
    high = float(np.nextafter(-8.0, 0))
    bounds = found(np.full(5000, high), bounds=PrivateValueBounds(FloatGrid(), high=high))
    assert bounds.high == high and ValueEncoding(bounds.low, bounds.high).width > 0


def test_for_too_few_people_bounds_are_the_widest_and_more_of_the_budget_is_tried_before():
    few = found(normal(20))
    assert (few.low, few.high, few.below, few.above, few.spent) == (-(2.0**40), 2.0**40, 1, 1, Fraction(1, 10))
    few, many = (
        run(FIND, Curator(people(normal(n)), Stream.fixed(b"x")), PureDP(1), Unrecorded()) for n in (250, 9000)
    )
    shares = [[exchange.question.share for exchange in done.transcript] for done in (few, many)]
    assert shares[0][:2] == [Fraction(1, 30), Fraction(1, 15)]
    assert shares[1][:2] == [Fraction(1, 30), Fraction(1, 30)]
    assert few.value.spent == sum(shares[0])


def test_where_all_is_zero_bounds_are_close_to_it():
    bounds = found(np.zeros(5000))
    assert -1e-8 < bounds.low <= 0 <= bounds.high < 1e-8


def values_of(
    bounds: PrivateValueBounds, table: MemoryTable, budget
) -> tuple[TwoStageStatistics, Result[Measurements]]:
    method = TwoStageStatistics(CellStatistics(SQUARE, 1, Always(), ValueEncoding(0, 1), OwnMeans(1)), bounds)
    return method, run(method, Curator(table, Stream.fixed(b"all")), budget, Unrecorded())


def test_values_are_asked_between_the_bounds_that_were_found_and_replayed():
    method, done = values_of(FIND, people(normal(9000)), PureDP(1))
    value_encoding = done.value.tree.value_encoding
    assert 4 < value_encoding.low < 14 and 27 < value_encoding.high < 36
    assert np.nanmax(done.value.means().value) == pytest.approx(20, abs=0.5)
    assert sum(exchange.question.share for exchange in done.transcript) == 1
    again = replay(method, Curator(people(normal(1))).prices(PureDP(1)), PureDP(1), done.transcript)
    assert again.value.tree.value_encoding == value_encoding and np.array_equal(
        again.value.counters, done.value.counters
    )
    answers = [exchange.answer for exchange in done.transcript[:-1]]
    assert (FIND.read(answers).low, FIND.read(answers).high) == (value_encoding.low, value_encoding.high)
    with pytest.raises(InputError, match="missing"):
        FIND.read(answers[:1])


def test_bounds_are_those_of_the_rows_in_the_box_that_was_found():
    rng = np.random.default_rng(2)
    number = 9000
    lon, lat = rng.normal(13.4, 0.01, number), rng.normal(52.5, 0.01, number)
    lon[:3], lat[:3] = -100.0, 10.0
    table = MemoryTable(np.arange(number), {"lon": lon, "lat": lat, "value": rng.normal(20, 2, number)})
    inner = CellStatistics(Hexagons(Box(0.0, 0.0, 1.0, 1.0), 4, 4), 0, Always(), ValueEncoding(0, 1), OwnMeans(1))
    done = run(
        PrivateBoxStatistics(TwoStageStatistics(inner, FIND)),
        Curator(table, Stream.fixed(b"f")),
        PureDP(2),
        Unrecorded(),
    )
    line = done.transcript[2].question.encoder.cells.tree
    assert line.box is not None and line.box.west < 13.4 < line.box.east < 20
    assert 10 < done.value.tree.value_encoding.low < 20 < done.value.tree.value_encoding.high < 30


def test_shares_that_cannot_be_are_refused():
    for wrong in ({"shares": ()}, {"shares": (Fraction(1),)}, {"beyond": Fraction(1, 2)}):
        with pytest.raises(InputError):
            PrivateValueBounds(FloatGrid(), **wrong)
    with pytest.raises(InputError, match="there is nothing to find in a first stage: use"):
        TwoStageStatistics(CellStatistics(SQUARE, 1, Always(), ValueEncoding(0, 1), OwnMeans(1)))


LAPLACE = (30 * 2**0.5, 3.0)


def noisy(counts: np.ndarray, seed: int) -> np.ndarray:
    return counts + np.random.default_rng(seed).laplace(0, 30, len(counts))


def test_noise_alone_hardly_ever_looks_like_a_crowd():
    """By a union bound in less than 1 case of 100; more than 12 of 300 have P < 1e-4."""
    empty = np.zeros(71)
    assert sum(topmost(noisy(empty, seed), LAPLACE, 0.01) is not None for seed in range(300)) <= 12


def test_the_twin_that_believes_in_half_the_noise_sees_crowds_where_nobody_is():
    empty = np.zeros(71)
    assert sum(topmost(noisy(empty, seed), (15 * 2**0.5, 3.0), 0.01) is not None for seed in range(300)) > 12


def test_the_top_of_a_crowd_is_found_and_few_values_far_beyond_change_nothing():
    """10,000 people in bins 30 to 34, 40 of them in bin 60. The noise of a bin would have to be ten deviations."""
    counts = np.zeros(71)
    counts[30:35], counts[60] = (1000, 3000, 3000, 2000, 1000), 40
    found = [topmost(noisy(counts, seed), LAPLACE, 0.01) for seed in range(50)]
    assert sum(top is not None and top.last == 34 for top in found) >= 48
    assert np.mean([top.people for top in found if top]) == pytest.approx(10_000, rel=0.03)


def test_a_second_crowd_behind_a_gap_is_seen():
    counts = np.zeros(71)
    counts[0], counts[31] = 3000, 900
    found = [topmost(noisy(counts, seed), LAPLACE, 0.01).last for seed in range(50)]
    assert min(found) == 31 and sum(last == 31 for last in found) >= 40


def test_ends_leave_out_as_much_as_they_say():
    """Without noise worth mentioning, one part of 100 on each side; 10^6 people in 100 equal bins of 102."""
    counts = np.concatenate([[0.0], np.full(100, 10_000.0), [0.0]])
    found = ends(counts, (1.0, 3.0), 0.015)
    assert (found.first, found.last) == (2, 99)
    assert 0.01 <= found.before < 0.011 and 0.01 <= found.behind < 0.011


def test_what_may_lie_beyond_is_said_with_the_noise_in_it():
    """Three standard errors: exceeded in about 1 of 200 cases a side; more than 10 of 300 has P < 1e-5."""
    counts = np.concatenate([[20.0], np.full(64, 100.0), [0.0]])
    wrong = 0
    for seed in range(300):
        found = ends(noisy(counts, seed), LAPLACE, 0.01)
        wrong += counts[: found.first].sum() / counts.sum() > found.before
    assert wrong <= 10


def test_ends_of_nothing_are_all_there_is():
    found = ends(np.zeros(10), (1.0, 3.0), 0.01)
    assert (found.first, found.last) == (1, 8)
    assert found.before == found.behind == 1.0


def test_few_people_have_few_bins():
    assert [best_bins(people, 28, 128) for people in (0, 100, 1_000, 10_000, 10**9)] == [8, 8, 16, 128, 128]
