"""The sheet, and which part of it a picture shows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.cell_painting import SquareCells
from hazemap.draw.viewport import NARROWEST, WIDEST, Viewport, ground, latitude, longitude, sheet
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree


def bounds_of(tree: Quadtree, level: int):
    cells = tree.grid(level).ravel()
    return SquareCells(tree, cells, np.ones(len(cells))).bounds


def test_a_view_holds_nearly_all_the_mass_and_little_else():
    tree = Quadtree.world(6)
    mass = np.zeros(64 * 64).reshape(64, 64)
    mass[20:24, 30:33] = 1000
    mass[60, 60] = 1
    view = Viewport.around(bounds_of(tree, 6), mass.ravel(), np.zeros(64 * 64))
    cell = 2 * np.pi * 6378137 / 64
    assert view.width == pytest.approx(3 * cell, rel=0.15)
    assert view.height == pytest.approx(4 * cell, rel=0.15)


def test_a_view_of_evenly_spread_mass_is_the_whole_extent():
    tree = Quadtree.world(4)
    view = Viewport.around(bounds_of(tree, 4), np.ones(256), np.zeros(256))
    assert view.width == pytest.approx(2 * np.pi * 6378137)


def test_a_view_without_mass_is_the_whole_extent():
    tree = Quadtree.world(2)
    assert Viewport.around(bounds_of(tree, 2), np.zeros(16), np.zeros(16)).width == pytest.approx(2 * np.pi * 6378137)


def test_noise_does_not_widen_a_view(make):
    tree = Quadtree.around(Box(10, 50, 11, 50.6), 6)
    values = np.random.default_rng(1).normal(0, 10, 4096)
    grid = tree.grid(6)
    values[np.isin(tree.grid(6).ravel(), grid[20:30, 20:30])] += 1000
    view = DensitySurface.of(make(tree, grid.ravel(), values, 10.0)).crowded
    assert view.width < 0.25 * tree.side * 2 * np.pi * 6378137


def test_cells_that_are_hardly_clear_alone_are_clear_together(make):
    """An adaptive tree stops where a cell is about its noise: such cells must not be cut off."""
    tree = Quadtree.around(Box(10, 50, 11, 50.6), 6)
    values = np.random.default_rng(1).normal(20, 10, 4096)  # two standard errors
    values[:4] = 1000
    view = DensitySurface.of(make(tree, tree.grid(6).ravel(), values, 10.0)).crowded
    assert view.width == pytest.approx(tree.side * 2 * np.pi * 6378137)


def test_noise_alone_is_shown_whole(make):
    tree = Quadtree.around(Box(10, 50, 11, 50.6), 6)
    values = np.random.default_rng(1).normal(0, 10, 4096)
    view = DensitySurface.of(make(tree, tree.grid(6).ravel(), values, 10.0)).crowded
    assert view.width == pytest.approx(tree.side * 2 * np.pi * 6378137)


def test_a_cell_that_was_never_measured_decides_nothing(make):
    tree = Quadtree.world(4)
    cellmap = make(tree, tree.grid(4).ravel(), 1.0)
    cellmap.unbiased[100] = cellmap.stddev[7] = np.inf
    assert np.isfinite(DensitySurface.of(replace(cellmap, values=np.ones(256))).crowded.width)


def test_the_mass_of_a_large_cell_lies_evenly_in_it(make):
    tree = Quadtree.world(8)
    west, east = tree.children(tree.root)[[0, 1]]
    cells = np.concatenate([[west], tree.children(np.array([east]))])
    values = np.array([0.2, 0, 1000, 0, 0])  # the large western cell holds a five-thousandth
    view = DensitySurface.of(make(tree, cells, values, 0.0)).crowded
    assert view.degrees[0] > -20


@given(st.floats(-170, 160), st.floats(-80, 70), st.floats(0.001, 10), st.floats(0.001, 10))
def test_a_shaped_view_holds_what_it_was_and_is_neither_ribbon_nor_tower(w: float, s: float, dx: float, dy: float):
    view = Viewport.of(Box(w, s, w + dx, s + dy))
    shaped = view.shaped()
    assert NARROWEST - 1e-9 <= shaped.aspect <= WIDEST + 1e-9
    assert shaped.joined(view) == shaped


def test_a_ribbon_at_the_edge_of_the_world_is_widened_away_from_it():
    shaped = Viewport.of(Box(0, 84.9, 90, 85.05)).shaped()
    assert shaped.north <= np.pi * 6378137 + 1


def test_nowhere_is_not_in_the_picture(make, tree):
    cells = np.concatenate([[np.uint64(0)], tree.grid(2).ravel()])
    surface = DensitySurface.of(make(tree, cells, np.arange(17.0)))
    assert len(surface.values) == 16
    assert Leaves(tree, cells).size == 17


@pytest.mark.parametrize(("lon", "lat"), [(0, 0), (-74.3, 40.7), (179, -85), (10, 60)])
def test_the_sheet_is_web_mercator_as_proj_has_it(lon: float, lat: float):
    from pyproj import Transformer

    expected = Transformer.from_crs("OGC:CRS84", "EPSG:3857", always_xy=True).transform(lon, lat)
    x, y = sheet(np.array([float(lon)]), np.array([float(lat)]))
    assert np.allclose([x[0], y[0]], expected, atol=1e-6)
    assert (longitude(x[0]), latitude(y[0])) == pytest.approx((lon, lat), abs=1e-9)


@pytest.mark.parametrize("lat", [0, 40, 60, -33.9, 80])
def test_a_metre_on_the_sheet_is_as_long_as_the_geodesic_says(lat: float):
    from pyproj import Geod

    x, _ = sheet(np.array([10.0, 10.001]), np.array([float(lat)] * 2))
    along = Geod(ellps="WGS84").inv(10, lat, 10.001, lat)[2]
    assert (x[1] - x[0]) * ground(lat) == pytest.approx(along, rel=1e-6)
