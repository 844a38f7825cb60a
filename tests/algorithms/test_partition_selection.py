"""Cells that are worth asking, found with a share of the budget."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import CellStatistics, PartitionSelection, PrivateBoxStatistics, TwoStageStatistics
from hazemap.algorithms import partition_selection as module
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Always, Clock
from hazemap.trust.curator import Curator
from hazemap.values.value_encoding import ValueEncoding

SQUARE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.8), 5)
VALUE_ENCODING = ValueEncoding(0, 60)


BUSY = {"lon": 13.206 + np.arange(12) / 32, "lat": np.full(12, 52.5)}


def town(number: int = 1000, wide: int = 60) -> MemoryTable:
    """Everybody is in twelve busy cells, and in `wide` places that hardly anybody else is in."""
    rng = np.random.default_rng(4)
    person = np.tile(np.arange(number), wide + 12)
    lon, lat = rng.uniform(13.2, 13.6, len(person)), rng.uniform(52.4, 52.64, len(person))
    lon[: 12 * number], lat[: 12 * number] = np.repeat(BUSY["lon"], number), 52.5
    return MemoryTable(person, {"lon": lon, "lat": lat, "value": rng.normal(30, 5, len(person))})


def asked(cells: int = 4, slots=Always(), tree=SQUARE, level: int = 5) -> CellStatistics:  # noqa: B008 - it is frozen
    return CellStatistics(tree, level, slots, VALUE_ENCODING, OwnMeans(cells))


def ran(method, table: MemoryTable, budget=PureDP(1), seed: bytes = b"select"):  # noqa: B008
    return run(method, Curator(table, Stream.fixed(seed)), budget, Unrecorded())


def told(done) -> int:
    return int((~done.value.means().too_few).sum())


def test_nobody_spends_their_cap_on_cells_that_cannot_be_told():
    """Each is in some 70 of 1,024 cells and counts in 4: without a selection hardly any place has enough people."""
    table, method = town(), TwoStageStatistics(asked(), None, PartitionSelection(Fraction(1, 5)))
    plain, chosen = [], []
    for seed in (b"a", b"b", b"c"):
        plain.append(told(ran(asked(), table, seed=seed)))
        done = ran(method, table, seed=seed)
        chosen.append(told(done))
        busy = done.value.tree.cells.locate(SQUARE.cell_at(BUSY, SQUARE.depth))
        assert (busy >= 0).sum() >= 8
        assert [exchange.question.share for exchange in done.transcript] == [Fraction(1, 5), Fraction(4, 5)]
    assert sum(chosen) >= 1.7 * sum(plain)
    assert min(chosen) >= 6


def test_only_selected_cells_are_in_the_result_and_it_can_be_replayed():
    method = TwoStageStatistics(asked(), None, PartitionSelection())
    done = ran(method, town(3000), PureDP("0.5"))
    assert 2 <= done.value.tree.cells.size < 300
    again = replay(method, Curator(town(10)).prices(PureDP("0.5")), PureDP("0.5"), done.transcript)
    assert np.array_equal(again.value.tree.cells.cells, done.value.tree.cells.cells)
    assert np.array_equal(again.value.counters, done.value.counters)


def test_rows_without_a_value_or_a_slot_select_nothing():
    number = 4000
    lon = np.repeat([13.21, 13.35, 13.58], number)
    value, time = np.full(3 * number, 30.0), np.full(3 * number, 6e4)
    value[:number], time[number : 2 * number] = np.nan, np.nan
    columns = {"lon": lon, "lat": np.full(3 * number, 52.5), "value": value, "time": time}
    table = MemoryTable(np.arange(3 * number), columns)
    done = ran(TwoStageStatistics(asked(slots=Clock.hours("UTC")), None, PartitionSelection()), table)
    cells = SQUARE.cell_at({"lon": lon[::number], "lat": np.full(3, 52.5)}, 5)
    assert (done.value.tree.cells.locate(cells) >= 0).tolist() == [False, False, True]


def test_a_selection_hangs_on_its_answer_alone():
    """Two tables, the same answers: the same cells are asked next, whatever the rows are."""
    method = TwoStageStatistics(asked(), None, PartitionSelection())
    first = ran(method, town(3000), PureDP("0.5"))
    rounds = method.rounds(Curator(town(3)).prices(PureDP("0.5")))
    next(rounds)
    query = rounds.send(first.transcript[0].answer)
    assert query == first.transcript[1].question


@pytest.mark.parametrize("tree", [SQUARE, Hexagons(Box(13.2, 52.4, 13.6, 52.8), 4, 7)], ids=["squares", "hexagons"])
def test_coarse_cells_are_asked_first_where_all_would_be_too_many(tree, monkeypatch):
    table, method = (
        town(3000, wide=1),
        TwoStageStatistics(asked(tree=tree, level=tree.depth), None, PartitionSelection()),
    )
    whole = ran(method, table)
    monkeypatch.setattr(module, "MOST_ASKED", 100)
    done = ran(method, table)
    sizes = [exchange.question.size for exchange in done.transcript[:-1]]
    assert len(sizes) >= 2 and max(sizes) <= 100
    assert sum(exchange.question.share for exchange in done.transcript[:-1]) == Fraction(1, 10)
    assert done.transcript[-1].question.share == Fraction(9, 10)
    both = np.isin(done.value.tree.cells.cells, whole.value.tree.cells.cells)
    assert both.any()
    assert (done.value.tree.cells.locate(tree.cell_at(BUSY, tree.depth)) >= 0).sum() >= 9
    assert told(done) >= 6


def test_a_country_of_fine_hexagons_is_possible():
    """Some 23 million hexagons: they end in "too many" without a selection."""
    germany = Box(5.0, 47.0, 15.0, 55.0)
    with pytest.raises(InputError, match="hexagons at once"):
        Hexagons(germany, 9, 9)
    tree = Hexagons(germany, 5, 9)
    rng = np.random.default_rng(5)
    place = {"lon": rng.normal(13.4, 0.001, 3000), "lat": rng.normal(52.5, 0.001, 3000)}
    table = MemoryTable(np.arange(3000), place | {"value": rng.normal(30, 5, 3000)})
    done = ran(TwoStageStatistics(asked(tree=tree, level=4), None, PartitionSelection()), table)
    assert told(done) >= 2
    assert done.value.tree.cells.size < 150
    assert np.nanmean(done.value.means().value) == pytest.approx(30, abs=3)


def test_where_nobody_is_no_cell_is_told_of():
    """Noise lifts 100 of 1,024 empty cells over the first bar; none is told of but by 1 in 100 runs."""
    nobody = MemoryTable(np.zeros(0, dtype=np.int64), {name: np.zeros(0) for name in ("lon", "lat", "value")})
    sizes, loud = [], 0
    for seed in range(100):
        done = ran(TwoStageStatistics(asked(), None, PartitionSelection()), nobody, seed=b"%d" % seed)
        sizes.append(done.value.tree.cells.size)
        loud += told(done) > 0
    assert loud <= 8  # P < 1e-5
    assert 60 < np.mean(sizes) < 140
    lone = CellStatistics(SQUARE, 0, Always(), VALUE_ENCODING, OwnMeans(1))
    done = ran(TwoStageStatistics(lone, None, PartitionSelection()), nobody, seed=b"one cell")
    assert done.value.tree.cells.size == 1 and not told(done)


def test_a_box_is_found_before_cells_are_selected_in_it():
    rng = np.random.default_rng(6)
    place = {"lon": rng.normal(13.4, 0.01, 5000), "lat": rng.normal(52.5, 0.01, 5000)}
    table = MemoryTable(np.arange(5000), place | {"value": rng.normal(30, 5, 5000)})
    inner = CellStatistics(Hexagons(Box(0.0, 0.0, 1.0, 1.0), 7, 7), 0, Always(), VALUE_ENCODING, OwnMeans(1))
    done = ran(PrivateBoxStatistics(TwoStageStatistics(inner, None, PartitionSelection())), table)
    assert told(done) >= 1
    assert sum(exchange.question.share for exchange in done.transcript) == 1


def test_selections_that_cannot_be_are_refused():
    for wrong in ({"share": Fraction(0)}, {"share": Fraction(1)}, {"most": 0}, {"down": 0}):
        with pytest.raises(InputError, match="selecting cells"):
            PartitionSelection(**wrong)
