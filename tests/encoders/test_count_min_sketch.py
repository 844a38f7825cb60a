"""Sketches: every vote once in every row, wherever the public hash throws it."""

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import CountMinSketch, Counts, total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.lab.methods.count_min_tree import sketched
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, Sensitivity

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREE, HEXAGONS = Quadtree.around(BOX, 9), Hexagons(BOX, 5, 9)


def people(number: int = 3_000, nowhere: int = 0) -> MemoryTable:
    rng = np.random.default_rng(2)
    lost = np.full(nowhere, np.nan)
    lon, lat = rng.normal(13.4, 0.03, number), rng.normal(52.5, 0.02, number)
    return MemoryTable(np.arange(number + nowhere), {"lon": np.append(lon, lost), "lat": np.append(lat, lost)})


@pytest.mark.parametrize("tree", [TREE, HEXAGONS], ids=["quadtree", "hexagons"])
def test_every_vote_is_counted_once_in_every_row(tree):
    table = people()
    sketch = CountMinSketch(tree, 3, width=50, rows=4)
    rows = sketch.total(table).reshape(4, 50)
    assert (rows.sum(axis=1) == table.votes(tree, AtMostRows(1)).weights.sum()).all()
    assert np.array_equal(sketch.total(table), total(sketch, table))


@pytest.mark.parametrize("tree", [TREE, HEXAGONS], ids=["quadtree", "hexagons"])
def test_a_bucket_holds_the_cells_that_are_thrown_into_it(tree):
    table, sketch = people(), CountMinSketch(tree, 3, width=20, rows=3)
    cells = Leaves.at_level(tree, 3)
    counts = Counts(cells).total(table)
    expected = np.zeros(sketch.size, dtype=np.int64)
    for row in sketch.places(cells.cells):
        np.add.at(expected, row, counts)
    assert np.array_equal(sketch.total(table), expected)


def test_rows_and_keys_throw_in_other_ways_and_evenly():
    cells = Leaves.at_level(TREE, 8).cells
    sketch = CountMinSketch(TREE, 8, width=64, rows=3)
    places = sketch.places(cells) % 64
    for one, other in (
        (places[0], places[1]),
        (places[1], places[2]),
        (places[0], CountMinSketch(TREE, 8, 64, 3, key=9).places(cells)[0]),
    ):
        together = np.bincount(one * 64 + other, minlength=64 * 64)
        expected = len(cells) / 64**2
        chi_square = ((together - expected) ** 2 / expected).sum()
        # 4,095 degrees of freedom: mean 4,095, standard deviation 90; beyond 6 of them by chance below 1e-8.
        assert abs(chi_square - 4095) < 6 * 90.5


@pytest.mark.slow
def test_the_corrected_rows_are_unbiased_over_keys():
    """The mean over 2,000 keys is the count, within 6 standard errors (a chance below 1e-8)."""
    table, cells = people(400), Leaves.at_level(TREE, 5)
    true = Counts(cells).total(table)
    some = cells.cells[np.argsort(true)[-3:]]
    found = []
    for key in range(2_000):
        sketch = CountMinSketch(TREE, 5, width=16, rows=1, key=key)
        found.append(sketched(sketch, sketch.total(table), some)[0])
    error = np.std(found, axis=0) / np.sqrt(2_000)
    assert (np.abs(np.mean(found, axis=0) - np.sort(true)[-3:]) < 6 * error).all()
    naive = [value * 15 / 16 + 400 / 16 for value in found]  # the twin: buckets as they are
    assert (np.mean(naive, axis=0) - np.sort(true)[-3:] > 6 * error).all()


def test_micro_votes_are_told_in_people():
    rule = OneVote(512)
    sketch = CountMinSketch(TREE, 2, width=40, rows=2, bounding=rule)
    cells = Leaves.at_level(TREE, 2).cells
    found = sketched(sketch, sketch.total(people()), cells)
    assert found.sum(axis=1) == pytest.approx([3_000, 3_000], rel=0.5)


def test_the_sensitivity_is_reached():
    one = MemoryTable(np.zeros(3, dtype=np.int64), {"lon": np.full(3, 13.4), "lat": np.full(3, 52.5)})
    for rule in (AtMostRows(3), OneVote(10)):
        sketch = CountMinSketch(TREE, 4, width=8, rows=5, bounding=rule)
        moved = sketch.total(one)
        assert sketch.sensitivity == Sensitivity(int(moved.sum()), int((moved**2).sum()))


def test_rows_that_lie_nowhere_are_thrown_like_a_cell_where_the_rule_keeps_them():
    kept, dropped = (
        CountMinSketch(TREE, 9, 1_000, 2, AtMostRows(1, outside)) for outside in (Outside.COUNT, Outside.DROP)
    )
    table = people(nowhere=500)
    assert kept.total(table).sum() - dropped.total(table).sum() == 2 * 500
    assert np.array_equal(kept.total(table), total(kept, table))
    assert sketched(kept, kept.total(table), np.array([NOWHERE])).min() > 490


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountMinSketch(TREE, 10, 5, 1),
        lambda: CountMinSketch(TREE, -1, 5, 1),
        lambda: CountMinSketch(TREE, 3, 1, 1),
        lambda: CountMinSketch(TREE, 3, 5, 0),
        lambda: CountMinSketch(TREE, 3, 5, 65, AtMostCells(2)),
    ],
)
def test_impossible_sketches_are_refused(make):
    with pytest.raises(InputError):
        make()
