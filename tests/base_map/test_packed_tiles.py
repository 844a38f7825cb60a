"""The format of the base map's data: what goes in comes out, in any order, from few bytes."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.base_map.natural_earth import NamedPoints, Outlines, PackedTiles, TileGrid, pack
from hazemap.errors import FileError

GRID = TileGrid("10m", 6, 10_000)
LAYERS = ("land", "places")


@given(arrays.arrays(np.int64, (7, 2), elements=st.integers(0, 60_000)), st.integers(-30, 29), st.integers(-15, 14))
def test_outlines_come_back(local, column, row):
    points = local + np.array([column, row]) * 60_000
    outlines = Outlines(points, np.array([4, 3]), np.array([False, True]))
    found = PackedTiles.read(pack(GRID, LAYERS, {("land", column, row): outlines})).outlines("land", column, row)
    for there, here in zip(found, outlines, strict=True):
        np.testing.assert_array_equal(there, here)


def test_places_come_back_with_their_letters():
    named = NamedPoints(np.array([[-60_000, 0], [-1, 59_999]]), np.array([0, 10]), ("Zürich", "東京"))
    tiles = PackedTiles.read(pack(GRID, LAYERS, {("places", -1, 0): named}))
    found = tiles.named_points("places", -1, 0)
    np.testing.assert_array_equal(found.points, named.points)
    assert (found.names, found.ranks.tolist()) == (named.names, [0, 10])
    assert tiles.outlines("land", -1, 0) is None
    assert tiles.named_points("places", 0, 0) is None


def test_the_order_of_entries_does_not_matter():
    line = Outlines(np.array([[0, 0], [5, 5]]), np.array([2]), np.array([False]))
    entries = {
        ("land", column, row): Outlines(line.points + np.array([column, row]) * 60_000, *line[1:])
        for column in (2, 1)
        for row in (1, 0)
    }
    assert pack(GRID, LAYERS, entries) == pack(GRID, LAYERS, dict(sorted(entries.items())))


def test_a_point_outside_of_its_tile_is_refused():
    line = Outlines(np.array([[0, 0], [65_536, 0]]), np.array([2]), np.array([False]))
    with pytest.raises(ValueError, match="outside"):
        pack(GRID, LAYERS, {("land", 0, 0): line})
    with pytest.raises(ValueError, match="65,535"):
        TileGrid("1m", 7, 10_000)


@pytest.mark.parametrize("part", [0, 1, 40, 0.5, -1])
def test_a_file_that_is_cut_off_is_refused(part):
    line = Outlines(np.array([[0, 0], [5, 5]]), np.array([2]), np.array([False]))
    file = pack(GRID, LAYERS, {("land", 0, 0): line})
    with pytest.raises(FileError, match="base map cannot be read"):
        PackedTiles.read(file[: int(part * len(file)) if isinstance(part, float) else part])
