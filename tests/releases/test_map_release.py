"""Questions to a release that are not about a region, tables, pictures, replay."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import Flat
from hazemap.cells import Leaves
from hazemap.encoders import Encoder
from hazemap.errors import InputError, TranscriptMismatch
from hazemap.releases import Release
from hazemap.releases.estimates import estimate

from .conftest import flat


class Free:
    """Prices of a world without noise."""

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        return 1.0

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        return Fraction(1, 2)


def test_density_is_the_count_of_the_cell_around_per_square_kilometre(any_release):
    frame = any_release.to_geodataframe()
    row = frame.iloc[len(frame) // 2]
    point = row.geometry.representative_point()
    found = any_release.density(point.x, point.y)
    assert found.best_guess == pytest.approx(row.per_km2)
    assert found.unbiased == pytest.approx(row.unbiased / row.area_km2)
    assert found.stddev == pytest.approx(row.stddev / row.area_km2)
    assert found.counted == "people per km²"


@pytest.mark.parametrize(("lon", "lat"), [(90.0, -45.0), (float("nan"), 52.5), (13.4, 95.0), (400.0, 52.5)])
def test_a_point_outside_the_map_is_explained(any_release, lon, lat):
    with pytest.raises(InputError, match="outside the map"):
        any_release.density(lon, lat)


def test_nowhere_is_apart_from_the_places(nowhere_release, release):
    assert release.nowhere is None
    at = 3
    assert nowhere_release.nowhere.unbiased == pytest.approx(nowhere_release.map.unbiased[at])
    everywhere = nowhere_release.total().unbiased + nowhere_release.nowhere.unbiased
    assert everywhere == pytest.approx(nowhere_release.map.unbiased.sum())
    assert len(nowhere_release.to_dataframe()) == nowhere_release.map.cells.size - 1


def test_the_top_cells_are_the_largest_by_count_or_density(nested_release):
    frame = nested_release.to_geodataframe()
    for by, column in (("count", "best_guess"), ("density", "per_km2")):
        top = nested_release.top(3, by=by)
        assert list(top[column]) == sorted(frame[column], reverse=True)[:3]
        assert (top["low"] < top["unbiased"]).all()
        assert list(top.columns) == list(frame.columns)
    assert len(nested_release.top(1000)) == len(frame)


@pytest.mark.parametrize(("k", "by"), [(0, "count"), (5, "size")])
def test_asking_for_no_cells_or_an_unknown_order_is_refused(release, k, by):
    with pytest.raises(InputError, match="at least 1 cell"):
        release.top(k, by=by)


def test_the_columns_are_named_so_that_other_tools_know_them(release, nested_release, hexagon_release):
    names = [r.to_dataframe().columns[0] for r in (release, nested_release, hexagon_release)]
    assert names == ["cell", "quadkey", "h3"]


def test_a_table_without_geometry_is_the_same_table(any_release):
    frame = any_release.to_geodataframe()
    assert any_release.to_dataframe().equals(frame.drop(columns="geometry"))
    assert frame.crs.to_epsg() == 4326
    assert frame["area_km2"].sum() == pytest.approx(any_release.map.cells.areas.sum() / 1e6)


def test_no_interval_of_the_table_is_narrower_than_the_cell_needs(any_release):
    frame = any_release.to_dataframe()
    for position, name in list(enumerate(frame.iloc[:, 0]))[:20]:
        one = np.zeros(any_release.map.cells.size)
        one[any_release.ground.places[position]] = 1
        exact = estimate(any_release.map, one, "people", 0.95)
        row = frame.iloc[position]
        assert row.low <= exact.low + 1e-9, name
        assert row.high >= exact.high - 1e-9, name


def test_a_release_is_made_again_from_its_answers(release, tmp_path):
    release.save(tmp_path / "map.parquet")
    again = Release.open(tmp_path / "map.parquet").replay(Free())
    assert np.array_equal(again.map.unbiased, release.map.unbiased)
    assert again.transcript == release.transcript


def test_answers_of_another_method_do_not_replay(release):
    other = Release(release.map, release.statement, Flat(release.map.cells.tree, 3), release.transcript)
    with pytest.raises(TranscriptMismatch):
        other.replay(Free())


def test_a_picture_has_the_statement_beneath_it(release, monkeypatch):
    import hazemap.draw

    seen = {}
    monkeypatch.setattr(hazemap.draw, "draw_map", lambda cellmap, **options: seen.update(options, map=cellmap))
    release.plot(title="Berlin")
    assert seen == {
        "map": release.map,
        "caption": release.statement.line(),
        "counted": "people",
        "note": "People outside the map were not counted.",
        "title": "Berlin",
        "fine": release.shown,
    }


def test_importing_a_release_loads_nothing_heavy():
    heavy = ("pandas", "geopandas", "matplotlib", "rasterio", "pyarrow", "pyogrio", "shapely", "numba", "pyproj")
    code = f"import sys, hazemap.releases; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_cells_in_another_order_give_the_same_answers(make):
    leaves = flat()
    order = np.random.default_rng(3).permutation(leaves.size)
    shuffled = make(Leaves(leaves.tree, leaves.cells[order]))
    cell = leaves.tree.names(leaves.cells[order[:1]])[0]
    assert shuffled.count(cell).unbiased == pytest.approx(shuffled.map.unbiased[0])
