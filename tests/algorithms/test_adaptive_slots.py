"""The method of maps with time: what it asks, what it pays, and what comes of it."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap import codec
from hazemap.algorithm_session import Unrecorded, replay, run
from hazemap.algorithms import METHODS, AdaptiveSlots, PrivateBoundingBox
from hazemap.algorithms.adaptive_slots import united
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside, RowIsPerson
from hazemap.temporal.time_slots import Always, Clock, Weekdays
from hazemap.trust.curator import Curator
from hazemap.values.cells_in_slots import AllSlots, EachSlot

BOX = Box(13.2, 52.4, 13.6, 52.6)
HOURS = Clock.hours("UTC")
SQUARES = Quadtree.around(BOX, 7)


@pytest.fixture
def commuters() -> MemoryTable:
    """20,000 rows of 4,000 people: at home at night, and in the middle by day."""
    rng = np.random.default_rng(7)
    hour = rng.integers(0, 24, 20_000)
    day = (hour >= 8) & (hour < 18)
    spot = np.where(day[:, None], rng.normal(0.5, 0.04, (20_000, 2)), rng.uniform(0.05, 0.95, (20_000, 2)))
    columns = {"lon": 13.2 + 0.4 * spot[:, 0], "lat": 52.4 + 0.2 * spot[:, 1], "time": hour * 3600.0 + 60}
    return MemoryTable(rng.integers(0, 4_000, 20_000), columns)


def asked(made, table, budget=None):
    return run(made, Curator(table, Stream.fixed(b"slots")), budget or PureDP(1), Unrecorded())


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.01")], ids=str)
@pytest.mark.parametrize("tree", [SQUARES, Hexagons(BOX, 5, 8)], ids=lambda tree: type(tree).__name__)
def test_the_shares_are_all_of_the_budget_and_it_is_replayed(commuters, tree, budget):
    method = AdaptiveSlots(tree, HOURS, AtMostRows(2, Outside.PEOPLE))
    found = asked(method, commuters, budget)
    assert sum(exchange.question.share for exchange in found.transcript) == 1
    assert all(isinstance(exchange.question.encoder, Counts) for exchange in found.transcript)
    kinds = [type(exchange.question.encoder.cells) for exchange in found.transcript]
    assert kinds.index(EachSlot) == len([kind for kind in kinds if kind is AllSlots])
    again = replay(method, Curator(commuters).prices(budget), budget, found.transcript).value
    assert np.array_equal(again.values, found.value.values)
    assert np.array_equal(again.unbiased, found.value.unbiased)
    assert codec.loads(codec.dumps(method), METHODS) == method


def test_with_next_to_no_noise_hours_are_the_truth(commuters):
    made = asked(AdaptiveSlots(SQUARES, HOURS, RowIsPerson()), commuters, PureDP(10_000)).value
    where = made.cells.locate(SQUARES.cell_at(commuters.columns, SQUARES.depth))
    truth = np.zeros((24, made.cells.size))
    np.add.at(truth, (HOURS.at(commuters.columns["time"]), where), 1)
    assert made.cells.size > 300
    assert np.allclose(made.unbiased, truth, atol=0.51)
    assert np.allclose(np.stack([made.during([hour]).values for hour in range(24)]), truth, atol=1.5)


def test_hours_that_differ_are_told_apart(commuters):
    """The middle is full by day: the part of people in it, by day and at night."""
    made = asked(AdaptiveSlots(SQUARES, HOURS, RowIsPerson()), commuters).value
    middle = Box(13.35, 52.47, 13.45, 52.53)
    west, south, east, north = SQUARES.bounds(made.finer([12]).cells.cells)
    inside = (west > middle.west) & (east < middle.east) & (south > middle.south) & (north < middle.north)
    noon, night = (made.finer([hour]).values for hour in (12, 2))
    assert noon[inside].sum() / noon.sum() > 0.6
    assert night[inside].sum() / night.sum() < 0.2


def test_few_people_are_asked_once_by_slot(commuters):
    few = commuters.person < 30
    table = MemoryTable(commuters.person[few], {name: column[few] for name, column in commuters.columns.items()})
    method = AdaptiveSlots(SQUARES, HOURS)
    found = asked(method, table, PureDP("0.1"))
    last = found.transcript[-1].question
    assert last.share == method.least + method.hours
    assert last.encoder.cells.size == 24
    assert sum(exchange.question.share for exchange in found.transcript) == 1


@pytest.mark.parametrize("level", [0, 2, 4])
def test_cells_of_slots_tile_and_are_as_full_as_asked(level):
    tree = Quadtree.world(depth=5)
    cells = Leaves(
        tree, np.concatenate([tree.children(Leaves.at_level(tree, 4).cells[:64]), Leaves.at_level(tree, 4).cells[64:]])
    )
    numbers = np.full(cells.size, 1.0)
    found = united(cells, numbers, 4.0**level)
    assert not found.nested
    assert (found.locate(cells.spans[0]) >= 0).all()
    assert found.cells.size <= cells.size
    if not level:
        assert found.same_cells(cells)
    assert united(cells, numbers * 0, 1.0).size == 1


def test_what_makes_no_sense_is_refused():
    for wrong in ({"slots": Always()}, {"hours": Fraction(0)}, {"least": Fraction(9, 10)}, {"most": Fraction(9, 10)}):
        with pytest.raises(InputError):
            AdaptiveSlots(**{"tree": SQUARES, "slots": HOURS, **wrong})


def test_it_runs_in_a_box_that_it_finds(commuters):
    box = PrivateBoundingBox(AdaptiveSlots(Quadtree.world(0), Weekdays("UTC"), AtMostRows(1, Outside.PEOPLE)))
    made = asked(box, commuters, PureDP(4)).value
    assert made.total.cells.tree.depth > 5
    assert abs(made.total.unbiased.sum() - 4_000) < 200
