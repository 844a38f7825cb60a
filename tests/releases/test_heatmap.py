"""Heatmaps of releases: scale, error, pictures and GeoTIFFs."""

import warnings

import numpy as np
import pytest

from hazemap.algorithms import Adaptive, Flat, PrivateBoundingBox, Pyramid
from hazemap.cellmap import CellMap
from hazemap.draw import MapExtent, draw_heatmap, encode
from hazemap.draw.viewport import ground, sheet
from hazemap.engines.memory import MemoryTable
from hazemap.errors import FileError, InputError
from hazemap.estimate.gaussian_blur import blurred
from hazemap.lab.methods import Hierarchical, Privlet
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Release
from hazemap.releases.heatmap import is_heatmap, usual_blur
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.trust.curator import Curator

from .conftest import BERLIN, STATEMENT, flat, hexagons, released

TREE = Quadtree.around(BERLIN, 8)
RNG = np.random.default_rng(2)


def town(people=3_000):
    lon, lat = 13.35 + RNG.normal(0, 0.03, people), 52.48 + RNG.normal(0, 0.02, people)
    return MemoryTable(np.arange(people), {"lon": lon, "lat": lat})


def of(method, rows=None):
    made = run(method, Curator(rows or town(), Stream.fixed(b"heat")), PureDP(1), Unrecorded())
    return Release(made.value, STATEMENT, method, made.transcript)


def test_a_heatmap_has_about_as_many_people_as_the_map():
    release = released(flat(5))
    found = release.heatmap(500)
    rows, columns = found.density.shape
    pixel = found.view.width / columns * ground(found.view.latitude) / 1e3
    assert np.nansum(found.unbiased) * pixel**2 == pytest.approx(release.total().unbiased, rel=0.03)
    assert found.metres == 500 and (found.density >= 0).all() and (rows, columns) == found.stddev.shape


@pytest.mark.slow
def test_a_blur_far_wider_than_cells_averages_their_noise_away():
    release = released(flat(5))
    errors = [np.median(release.heatmap(metres).stddev) for metres in (100, 1_000, 5_000)]
    assert errors[0] > 3 * errors[1] > 6 * errors[2] > 0


METHODS = [Flat(TREE, 4), Pyramid(TREE, AtMostRows(1)), Adaptive(TREE), Privlet(TREE, 4), Hierarchical(TREE, 4)]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_errors_are_no_smaller_than_those_of_the_weights_of_a_pixel(method):
    """The noise of a map knows how errors of its cells hang together; a pixel is a weighted sum of cells."""
    release = of(method)
    found, (cells, owner) = release.heatmap(700), release.ground.pieces
    west, south, east, north = release.cells.tree.bounds(cells)
    (west, east), (south, north) = ([sheet(*at)[axis] for at in ((west, south), (east, north))] for axis in (0, 1))
    rows, columns = found.density.shape
    for row, column in RNG.integers(0, (rows, columns), (5, 2)).tolist():
        x = np.array([found.view.west + (column + 0.5) / columns * found.view.width])
        y = np.array([found.view.north - (row + 0.5) / rows * found.view.height])
        sigma = 700 / ground(found.view.latitude)
        each = blurred((west, south, east, north), np.eye(len(cells)), np.zeros(len(cells)), x, y, sigma).means
        weights = np.bincount(owner, each[:, 0, 0] / release.ground.km2[owner], release.cells.size)
        assert weights @ release.map.unbiased == pytest.approx(found.unbiased[row, column])
        assert release.map.noise.of(weights).stddev <= found.stddev[row, column] * (1 + 1e-6)


@pytest.mark.slow
def test_intervals_of_pixels_hold():
    truth = released(flat(4))
    exact, held = truth.heatmap(1_000).unbiased, []
    for seed in range(40):
        noise = np.random.default_rng(seed).normal(0, 2.0, truth.cells.size)
        cells = CellMap.independent(truth.cells, truth.map.unbiased + noise, np.full(truth.cells.size, 2.0), 0.0)
        low, high = Release(cells, STATEMENT, None, ()).heatmap(1_000).interval(0.95)
        held.append(((low <= exact) & (exact <= high)).mean())
    assert 0.93 < np.mean(held) < 0.97
    assert np.mean(held) > 0.95 - 5 * np.std(held) / np.sqrt(len(held))


def test_methods_of_heatmaps_are_known_and_have_a_blur():
    assert is_heatmap(Pyramid(TREE)) and is_heatmap(PrivateBoundingBox(Pyramid(TREE))) and not is_heatmap(Flat(TREE, 4))
    release = released(flat(5))
    assert usual_blur(release) == pytest.approx(1e3 * np.sqrt(np.median(release.ground.km2)), rel=0.02)
    assert release.heatmap().metres == usual_blur(release)


def test_what_cannot_be_blurred_is_refused():
    release = released(flat(4))
    for metres in (0, -1, 1e9, float("nan")):
        with pytest.raises(InputError, match="above 0 m,"):
            release.heatmap(metres)
    with pytest.raises(InputError, match="squares and rectangles"):
        released(hexagons()).heatmap(500)
    with pytest.raises(FileError, match=r"exported as \.tif"):
        release.heatmap(500).export("map.png")


def test_a_picture_of_where_people_are_says_who_is_outside_of_it():
    """As the picture is framed, which the density decides, and not the cells."""
    found = of(Flat(TREE, 5)).heatmap(1_500)
    shown, view = found.shown_part(frame=MapExtent.PEOPLE), found.plot(frame=MapExtent.PEOPLE).axes[0]
    x, y = sheet(np.array([shown.west, shown.east]), np.array([shown.south, shown.north]))
    assert (*x, *y) == pytest.approx((*view.get_xlim(), *view.get_ylim()))
    assert found.shown_part() is None and shown.east - shown.west < BERLIN.east - BERLIN.west


def test_densities_near_nothing_are_drawn_without_a_warning():
    found = of(Flat(TREE, 3)).heatmap(2_000)
    tiny = np.where(found.density > np.median(found.density), found.density, 1e-320)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_heatmap(tiny, found.stddev, found.view, metres=found.metres)


def test_a_geotiff_has_density_and_error_where_they_are(tmp_path):
    import rasterio

    found = released(flat(4)).heatmap(800)
    found.export(tmp_path / "heat.tif")
    with rasterio.open(tmp_path / "heat.tif") as picture:
        assert picture.descriptions == ("density", "unbiased", "stddev") and picture.crs.to_epsg() == 3857
        assert picture.tags()["BLUR_METRES"] == "800" and "STATEMENT" in picture.tags()
        assert picture.read(1) == pytest.approx(found.density, rel=1e-6, nan_ok=True)
        assert picture.bounds == pytest.approx((found.view.west, found.view.south, found.view.east, found.view.north))


def test_a_picture_has_its_density_and_its_uncertainty():
    found = released(flat(4)).heatmap(1_500)
    figure = found.plot(title="Heat", width=6, frame=MapExtent.PEOPLE)
    assert {"density", "uncertainty", "density legend"} <= {axes.get_label() for axes in figure.axes}
    assert "people per km², blurred by 1.5 km" in [text.get_text() for text in figure.texts]
    assert encode(figure)
    with pytest.raises(InputError, match="inches wide"):
        found.plot(width=90)
