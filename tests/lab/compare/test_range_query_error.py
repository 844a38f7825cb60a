"""Range queries, against loops and against the workbench that everybody's figures come from."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.lab.compare.map_scores import (
    WORKLOADS,
    QueryRectangles,
    laid,
    mre,
    rectangles,
    relative_errors,
    sums,
    workloads,
)


@pytest.fixture
def bench(shared):
    place = importlib.util.spec_from_file_location("range_queries", shared / "bench" / "range_queries.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99), st.sampled_from([None, 0.02, 0.5, 1.0]))
def test_a_rectangle_holds_what_its_pixels_hold(rows, columns, seed, area):
    grid = np.random.default_rng(seed).normal(size=(rows, columns))
    asked = rectangles(str(seed).encode(), (rows, columns), 20, area)
    slowly = [grid[n:s, w:e].sum() for n, s, w, e in zip(*asked, strict=True)]
    assert sums(grid, asked) == pytest.approx(np.array(slowly), abs=1e-9)
    assert (asked.north < asked.south).all() and (asked.west < asked.east).all()


def test_whole_numbers_are_added_exactly():
    grid = np.full((3, 3), 2**49 + 1)
    assert sums(grid, QueryRectangles(*np.array([[0, 2], [3, 3], [0, 2], [3, 3]]))).tolist() == [
        9 * (2**49 + 1),
        2**49 + 1,
    ]


def test_the_same_seed_asks_the_same_questions():
    one, same, other = (rectangles(seed, (64, 32)) for seed in (b"1", b"1", b"2"))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
    assert not np.array_equal(one.north, other.north)
    lots = workloads(b"1", (64, 32), 50)
    assert list(lots) == list(WORKLOADS) == ["random", "2%", "6%", "10%"]
    assert len({tuple(lot.north) for lot in lots.values()}) == 4, "each workload has luck of its own"


@pytest.mark.parametrize("area", [0.02, 0.06, 0.10])
def test_a_square_that_no_border_cuts_has_its_share_of_the_area(area):
    side = 1024
    asked = rectangles(b"squares", (side, side), area=area)
    free = (asked.north > 0) & (asked.south < side) & (asked.west > 0) & (asked.east < side)
    edge = np.sqrt(area) * side
    for size in ((asked.south - asked.north)[free], (asked.east - asked.west)[free]):
        assert free.sum() > 500
        assert ((edge <= size) & (size <= edge + 2)).all(), "touched pixels belong"


def test_random_rectangles_are_of_all_shapes_and_sizes():
    """Means of uniform numbers: eight standard errors, so an error probability below 1e-14."""
    asked = rectangles(b"shapes", (4096, 4096), 4000)
    middle = (asked.north + asked.south) / 2
    free = (asked.north > 0) & (asked.south < 4096)
    assert 0.2 < free.mean() < 0.8
    height, width = asked.south - asked.north, asked.east - asked.west
    assert abs(np.corrcoef(height, width)[0, 1]) < 8 / np.sqrt(4000)
    assert abs(middle.mean() / 4096 - 0.5) < 8 * 0.29 / np.sqrt(4000)


def test_errors_of_small_counts_are_divided_by_the_smoothing():
    assert relative_errors([100, 10, 0], [110, 20, -5]).tolist() == [0.1, 0.5, 0.25]
    assert relative_errors([10], [20], smoothing=5).tolist() == [1.0]


@given(st.integers(0, 99))
def test_turning_both_maps_and_the_questions_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    true, found = rng.poisson(30, (9, 7)), rng.normal(30, 9, (9, 7))
    asked = rectangles(b"turn", (9, 7), 30)
    turned = QueryRectangles(asked.west, asked.east, asked.north, asked.south)
    assert mre(true.T, found.T, turned) == pytest.approx(mre(true, found, asked))
    assert mre(true, true, asked) == 0


def test_the_workbench_lays_the_same_rectangles(bench):
    for area in WORKLOADS.values():
        rng = np.random.default_rng(7)
        centres = np.array([rng.random(2000), rng.random(2000)])
        sizes = rng.random((2, 2000)) if area is None else np.full((2, 2000), np.sqrt(area))
        ours, theirs = laid(centres, sizes, (1024, 1024)), bench.rectangles(area=area)
        for side, expected in zip(ours, (theirs[0], theirs[1], theirs[2], theirs[3]), strict=True):
            assert np.array_equal(side, expected)


def test_the_workbench_counts_the_same_errors(bench):
    rng = np.random.default_rng(1)
    true = rng.poisson(0.3, (64, 64))
    found = true + rng.laplace(0, 2, true.shape)
    theirs = bench.relative_errors(true, found)
    for name, area in WORKLOADS.items():
        boxes = QueryRectangles(*bench.rectangles(area=area, side=64))
        assert 100 * mre(true, found, boxes) == pytest.approx(theirs[name], rel=1e-9)
        assert sums(found, boxes) == pytest.approx(bench.answers(found, boxes))


def test_questions_that_do_not_fit_are_refused():
    asked = rectangles(b"", (8, 8), 100)
    with pytest.raises(InputError, match="larger grid"):
        sums(np.ones((4, 4)), asked)
    with pytest.raises(InputError, match="rows and columns"):
        sums(np.ones(4), asked)
    with pytest.raises(InputError, match="area up to 1"):
        rectangles(b"", (8, 8), area=2)
    with pytest.raises(InputError, match="every exact answer"):
        relative_errors([1, 2], [1])
