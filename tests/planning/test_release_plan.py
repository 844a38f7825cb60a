"""Plans: made of public numbers alone, and right about what they promise."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import hazemap
from hazemap.errors import InputError
from hazemap.planning.release_plan import plan
from hazemap.privacy.ledger import Ledger
from hazemap.spatial.bounding_box import Box
from hazemap.tables.contribution_bounding import AtMostRows

BOX = "13.2,52.4,13.6,52.6"


def test_a_plan_is_the_same_every_time_and_costs_nothing(home):
    first, again = (plan(BOX, people=50_000, epsilon=1) for _ in range(2))
    assert first == again
    assert not home.exists()


def test_error_bars_are_the_ones_a_release_will_have(points, tmp_path):
    promised = plan(BOX, people=4_000, epsilon="0.3", bounding="rows:4")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    options = {"box": BOX, "bounding": "rows:4", "method": "flat:4", "ledger": ledger}
    made = hazemap.release(pa.table(points), epsilon="0.3", **options)
    assert made.map.stddev[made.map.places] == pytest.approx(np.full(4**4, promised.levels[4].stddev))
    assert promised.levels[4].cells == made.map.places.sum()
    areas = made.map.cells.areas[made.map.places]
    assert promised.levels[4].metres == pytest.approx(np.sqrt(np.median(areas)), rel=0.01)


def test_a_count_that_is_called_well_known_has_an_interval_of_a_fifth():
    level = plan(BOX, people=4_000, epsilon=1).levels[0]
    assert level.stddev == pytest.approx(1.357, abs=0.001)
    assert 1.96 * level.stddev < 0.2 * level.least < 2.3 * level.stddev


def test_more_people_or_more_budget_make_the_best_map_finer():
    few = plan(BOX, people=5_000, epsilon=1)
    many = plan(BOX, people=500_000, epsilon=1)
    rich = plan(BOX, people=5_000, epsilon=20)
    assert few.flat.level < many.flat.level
    assert few.flat.level <= rich.flat.level
    assert few.uniform.level < many.uniform.level
    assert few.adaptive.cells < many.adaptive.cells
    assert many.adaptive.misplaced < few.adaptive.misplaced


def test_adaptive_is_expected_to_misplace_fewer_people_than_the_best_flat_map():
    for people in (5_000, 100_000):
        made = plan(BOX, people=people, epsilon=1)
        assert made.adaptive.misplaced < made.flat.misplaced
        assert all(0 < level.misplaced < 1 for level in made.levels)


def test_a_box_that_reaches_beyond_the_map_is_planned_as_far_as_the_map_goes():
    made = plan("-10,84,10,89", people=10_000, epsilon=1)
    assert all(
        coarser.metres == pytest.approx(2 * finer.metres, rel=0.1) for coarser, finer in pairwise(made.levels[4:])
    )


@pytest.mark.parametrize("cells", ["quadtree", "h3:6-9"])
def test_the_total_is_as_sure_as_it_was_planned(points, cells, tmp_path):
    table = pa.table(points)
    people = len(set(table["person"].to_pylist()))
    promised = plan(BOX, people=people, epsilon=1, cells=cells).adaptive.total
    made = hazemap.release(table, epsilon=1, box=BOX, cells=cells, ledger=Ledger(tmp_path / "ledger.sqlite"))
    assert made.total().stddev == pytest.approx(promised, rel=0.25)  # each has counted people on its own
    assert promised <= max(15, people / 100)


def test_hexagons_are_planned_by_resolution():
    made = plan(Box.parse(BOX), people=50_000, epsilon=1, cells="h3:6-9", bounding=AtMostRows(2))
    assert [level.name for level in made.levels] == [f"resolution {r}" for r in range(6, 10)]
    assert all(finer.metres < coarser.metres / 2 for coarser, finer in pairwise(made.levels))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"people": 3}, "100 to"),
        ({"people": 10**12}, "100 to"),
        ({"epsilon": None}, "rho alone"),
        ({"cells": "h3"}, "one of"),
        ({"bounding": "some"}, "one of"),
    ],
)
def test_a_plan_for_nonsense_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        plan(BOX, **{"people": 1000, "epsilon": 1, **wrong})


def test_a_method_that_is_named_is_planned_too():
    same = plan(BOX, people=20_000, epsilon=1, method="auto:first=256")
    assert same.adaptive.cells / 2 < same.method.cells < same.adaptive.cells * 2
    assert plan(BOX, people=20_000, epsilon=1).method is None
    flat = plan(BOX, people=20_000, epsilon=1, method="flat:6")
    assert flat.method.misplaced == pytest.approx(flat.levels[6].misplaced, rel=0.2)
    assert 0 < plan(BOX, people=20_000, epsilon=1, method="adaptive-grid").method.misplaced < 1
    for name in ("privtree", "kd-tree", "htf"):
        with pytest.raises(InputError, match="more than sums over people"):
            plan(BOX, people=20_000, epsilon=1, method=name)
