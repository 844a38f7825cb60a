"""Places in slots: numbers and back, and what is counted there beside a plain loop over rows."""

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.encoders import Counts
from hazemap.errors import InputError, TableError
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.temporal.time_slots import Always, Clock, Spans, Weekdays
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.rows_with_values import RowsWithValues
from hazemap.values.timed_tree import TimedTree

BOX = Box(2.0, 48.0, 3.0, 49.0)


def districts() -> Districts:
    import geopandas
    import shapely

    boxes = [shapely.box(x, y, x + 0.5, y + 0.5) for x in (2.0, 2.5) for y in (48.0, 48.5)]
    return Districts.of(geopandas.GeoDataFrame({"name": list("abcd")}, geometry=boxes, crs="EPSG:4326"))


TREES = {
    "quadtree": lambda: Quadtree.around(BOX, 6),
    "hexagons": lambda: Hexagons(BOX, 3, 7),
    "one resolution": lambda: Hexagons(BOX, 5, 5),
    "finest hexagons of the world": lambda: Hexagons(WORLD, 0, 15),
    "districts": districts,
}
SLOTS = [Clock.hours("Europe/Berlin"), Weekdays("UTC"), Spans("UTC", (0, 3600, 7200))]
ROWS = 400
rng = np.random.default_rng(5)
COLUMNS = {
    "lon": np.append(rng.uniform(1.9, 3.1, ROWS), [2.5, np.nan]),
    "lat": np.append(rng.uniform(47.9, 49.1, ROWS), [48.5, 48.5]),
    "time": np.append(rng.uniform(-4000, 9000, ROWS), [np.nan, 0.0]),
}


@pytest.mark.parametrize("slots", SLOTS, ids=lambda slots: type(slots).__name__)
@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_numbers_say_where_and_when_a_row_is(tree, slots):
    timed = TimedTree(tree(), slots)
    base = timed.cell_at(COLUMNS, 0)
    where, when = timed.tree.cell_at(COLUMNS, timed.tree.depth), slots.at(COLUMNS["time"])
    known = (where != NOWHERE) & (when >= 0)
    found = timed.taken_apart(base)
    assert 0 < known.sum() < len(known)
    assert (base[~known] == NOWHERE).all() and (base[known] != NOWHERE).all()
    assert np.array_equal(found.cells, np.where(known, where, NOWHERE))
    assert np.array_equal(found.slots, np.where(known, when, -1))
    assert base.max() <= timed.size
    assert np.array_equal(timed.numbered(found), base)
    names = timed.names(base[known][:3])
    assert names[0] == f"{timed.tree.names(where[known])[0]} {slots.names[when[known][0]]}"
    assert np.array_equal(timed.area(base[known]), timed.tree.area(where[known]))
    assert timed.outlines(base[known][:1])[0].equals(timed.tree.outlines(where[known][:1])[0])


@pytest.mark.parametrize("tree", [TREES["quadtree"], TREES["hexagons"], TREES["districts"]])
def test_counts_are_those_of_a_loop_over_rows(tree):
    from hazemap.engines.memory import MemoryTable

    timed = TimedTree(tree(), Clock("UTC", (0, 1800, 3600, 43200)))
    table = MemoryTable(np.arange(ROWS + 2), COLUMNS)
    cells = Leaves.at_level(timed.tree, min(timed.tree.depth, 2))
    where = cells.locate(timed.tree.cell_at(COLUMNS, timed.tree.depth))
    when = timed.slots.at(COLUMNS["time"])
    expected = np.zeros((cells.size, 4), dtype=np.int64)
    for cell, slot in zip(where, when, strict=True):
        if cell >= 0 and slot >= 0:
            expected[cell, slot] += 1
    assert np.array_equal(Counts(EachSlot(timed, cells), RowIsPerson()).total(table), expected.ravel())
    assert np.array_equal(Counts(AllSlots(timed, cells), RowIsPerson()).total(table), expected.sum(axis=1))
    everything = WholeDomain(timed.tree)
    assert np.array_equal(Counts(EachSlot(timed, everything), RowIsPerson()).total(table), expected.sum(axis=0))
    assert Counts(AllSlots(timed, everything), RowIsPerson()).total(table).tolist() == [expected.sum()]


def test_what_cannot_be_a_map_with_time_is_refused():
    tree = TREES["quadtree"]()
    with pytest.raises(InputError, match="hour-of-day"):
        TimedTree(tree, Always())
    with pytest.raises(InputError, match="squares, hexagons or districts"):
        TimedTree(RowsWithValues(tree), SLOTS[0])
    with pytest.raises(InputError, match="63 bits"):
        TimedTree(Hexagons(WORLD, 0, 15), Spans("UTC", tuple(range(60000))))
    timed = TimedTree(tree, SLOTS[0])
    with pytest.raises(InputError, match="of the tree"):
        EachSlot(timed, Leaves.at_level(Quadtree.world(2), 1))
    with pytest.raises(InputError, match="NOWHERE"):
        EachSlot(timed, Leaves(tree, np.append(tree.root, NOWHERE)))
    with pytest.raises(InputError, match="coarser cells or fewer slots"):
        EachSlot(TimedTree(Quadtree.around(BOX, 12), SLOTS[0]), Leaves.at_level(Quadtree.around(BOX, 12), 11))
    with pytest.raises(InputError, match="level 0"):
        timed.cell_at(COLUMNS, 1)
    with pytest.raises(TableError, match="no time"):
        timed.cell_at({"lon": COLUMNS["lon"], "lat": COLUMNS["lat"]}, 0)
