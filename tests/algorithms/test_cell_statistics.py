"""Values of cells and slots under every trust model that answers sums."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import CellStatistics, PrivateBoxStatistics
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, Unanswerable
from hazemap.estimate.value_estimates import Measurements
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SecureAggregation, SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Always, Clock
from hazemap.trust.curator import Curator
from hazemap.values.value_encoding import ValueEncoding

BOX = Box(13.2, 52.4, 13.6, 52.6)
SQUARE = Quadtree.around(BOX, 2)
VALUE_ENCODING = ValueEncoding(0, 60, 2, (8,))


def town(people: int = 3000, each: int = 4) -> tuple[MemoryTable, np.ndarray]:
    """Speeds around 20 in the west and 40 in the east, in the morning; and the middle of the town, in degrees."""
    rng = np.random.default_rng(3)
    number = people * each
    lon = np.where(rng.random(number) < 0.5, 13.25, 13.55)
    value = np.clip(rng.normal(np.where(lon < 13.4, 20.0, 40.0), 5), 0, 60)
    columns = {"lon": lon, "lat": np.full(number, 52.5), "value": value, "time": np.full(number, 8 * 3600.0)}
    return MemoryTable(np.arange(number) % people, columns), lon


def method(slots=Always(), cells: int = 2, value_encoding: ValueEncoding = VALUE_ENCODING) -> CellStatistics:  # noqa: B008 - it is frozen
    return CellStatistics(SQUARE, 2, slots, value_encoding, OwnMeans(cells, scale=value_encoding.scale))


def sides(found: Measurements, values: np.ndarray) -> list[float]:
    """What is said of the cells where the two crowds are."""
    at = {"lon": np.array([13.25, 13.55]), "lat": np.full(2, 52.5)}
    cells = found.tree.cells.locate(SQUARE.cell_at(at, SQUARE.depth))
    slots = len(found.tree.slots.names)
    return values[cells * slots + (8 if slots == 24 else 0)].tolist()


@pytest.mark.parametrize("budget", [PureDP(2), ZCDP("0.5"), ApproxDP(2, "1e-6")], ids=str)
def test_a_curator_tells_means_variances_and_quantiles(budget):
    table, _ = town()
    found = run(method(), Curator(table, Stream.fixed(b"values")), budget, Unrecorded()).value
    mean, variance, median = found.means(1 - 1e-6), found.variances(1 - 1e-6), found.quantiles(0.5, 1 - 1e-6)
    assert sides(found, found.means().value) == pytest.approx([20, 40], abs=1)
    for statistic, truths, off in ((mean, (20, 40), 0.3), (variance, (25, 25), 3), (median, (20, 40), 4)):
        for low, high, truth in zip(sides(found, statistic.low), sides(found, statistic.high), truths, strict=True):
            assert low - off < truth < high + off
    assert found.means().too_few.sum() == 14


def test_simulated_devices_tell_the_same():
    table, _ = town()
    trust = SimulatedSecureAggregation(
        table, Cohort(people=3000, shard=1000, dropout=Fraction(0)), Stream.fixed(b"devices")
    )
    found = run(method(), trust, PureDP(4), Unrecorded()).value
    assert sides(found, found.means().value) == pytest.approx([20, 40], abs=2)


def test_devices_tell_the_same_through_the_real_protocol():
    table, _ = town(60)
    coarse = CellStatistics(SQUARE, 1, Always(), ValueEncoding(0, 60), OwnMeans(1))
    trust = SecureAggregation(table, Cohort(people=60, shard=60, dropout=Fraction(0)), Stream.fixed(b"protocol"))
    found = run(coarse, trust, PureDP(50), Unrecorded()).value
    assert found.people.sum() == pytest.approx(60, abs=2)
    assert found.tree.cells.size == 4


def test_people_who_randomise_alone_cannot_say_what_is_shared_out():
    table, _ = town(50)
    with pytest.raises((Unanswerable, InputError)):
        run(method(), LocalReports(table, 50), PureDP(4), Unrecorded())


def test_only_the_slot_with_people_is_told():
    table, _ = town()
    found = run(method(Clock.hours("UTC")), Curator(table, Stream.fixed(b"slots")), PureDP(1), Unrecorded()).value
    known = ~found.means().too_few.reshape(16, 24)
    assert known[:, 8].sum() == 2
    assert known.sum() == 2
    assert found.people.shape == (16 * 24,)


def test_a_budget_that_is_too_small_says_nothing_of_any_cell():
    table, _ = town()
    found = run(method(), Curator(table, Stream.fixed(b"poor")), PureDP("0.001"), Unrecorded()).value
    mean = found.means()
    assert mean.too_few.all() and np.isnan(mean.value).all()
    assert (mean.low >= 0).all() and (mean.high <= 60).all()


@pytest.mark.slow
def test_the_threshold_is_public_and_keeps_empty_places_quiet():
    """Noise lifts any of 384 empty places above it in less than 1 run of 100; 300 runs: 12 of them has P < 1e-4."""
    nobody = MemoryTable(np.zeros(0, dtype=np.int64), {name: np.zeros(0) for name in ("lon", "lat", "value", "time")})
    asked = method(Clock.hours("UTC"), 3, ValueEncoding(0, 60))
    loud = 0
    for seed in range(300):
        found = run(asked, Curator(nobody, Stream.fixed(b"%d" % seed)), PureDP(1), Unrecorded()).value
        loud += bool((~found.means().too_few).any())
    assert loud < 12


def test_a_box_is_found_with_a_second_share_where_the_first_is_too_little():
    rng = np.random.default_rng(6)
    people = 400
    columns = {"lon": rng.normal(13.4, 0.01, people), "lat": rng.normal(52.5, 0.01, people)}
    table = MemoryTable(np.arange(people), {**columns, "value": np.full(people, 30.0)})
    inner = CellStatistics(Hexagons(Box(0.0, 0.0, 1.0, 1.0), 4, 4), 0, Always(), ValueEncoding(0, 60), OwnMeans(1))
    done = run(PrivateBoxStatistics(inner), Curator(table, Stream.fixed(b"found")), PureDP(1), Unrecorded())
    shares = [exchange.question.share for exchange in done.transcript]
    assert shares == [Fraction(1, 50), Fraction(1, 10), Fraction(1, 10), Fraction(19, 25)]
    assert np.nanmax(done.value.means().value) == pytest.approx(30, abs=5)
    again = replay(PrivateBoxStatistics(inner), Curator(table).prices(PureDP(1)), PureDP(1), done.transcript)
    assert np.array_equal(again.value.counters, done.value.counters)


def test_where_nobody_is_values_are_asked_over_the_world_and_squares_need_a_box():
    nobody = MemoryTable(np.zeros(0, dtype=np.int64), {name: np.zeros(0) for name in ("lon", "lat", "value")})
    inner = CellStatistics(Hexagons(Box(0.0, 0.0, 1.0, 1.0), 4, 4), 0, Always(), ValueEncoding(0, 60), OwnMeans(1))
    done = run(PrivateBoxStatistics(inner), Curator(nobody, Stream.fixed(b"none")), PureDP(1), Unrecorded())
    assert done.value.tree.cells.tree.box == WORLD and done.value.means().too_few.all()
    fine = PrivateBoxStatistics(CellStatistics(Hexagons(BOX, 9, 9), 0, Always(), ValueEncoding(0, 60), OwnMeans(1)))
    assert fine.over(WORLD, Hexagons(BOX, 9, 9)).tree.finest == 4
    assert fine.over(BOX, Hexagons(BOX, 9, 9)).tree.finest == 9
    with pytest.raises(InputError, match="squares"):
        PrivateBoxStatistics(method())


def test_hexagons_are_those_that_the_box_touches():
    small = CellStatistics(Hexagons(BOX, 6, 6), 0, Always(), ValueEncoding(0, 60), OwnMeans(1)).measured.cells
    rng = np.random.default_rng(1)
    inside = {"lon": rng.uniform(BOX.west, BOX.east, 20_000), "lat": rng.uniform(BOX.south, BOX.north, 20_000)}
    assert (small.locate(small.tree.cell_at(inside, 0)) >= 0).all()
    assert small.size < len(small.tree.root)


def test_statistics_that_were_not_asked_for_are_refused():
    table, _ = town(50)
    plain = method(value_encoding=ValueEncoding(0, 60))
    found = run(plain, Curator(table, Stream.fixed(b"plain")), PureDP(1), Unrecorded()).value
    with pytest.raises(InputError, match="variances were not asked for"):
        found.variances()
    with pytest.raises(InputError, match="quantiles were not asked for"):
        found.quantiles(0.5)
