"""Maps with marks from the command line."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

BOX = "--box=13.0,52.3,13.8,52.7"


@pytest.fixture
def marked(hazemap, tmp_path):
    rng = np.random.default_rng(5)
    lon, lat = 13.4 + rng.normal(0, 0.12, 3_000), 52.5 + rng.normal(0, 0.06, 3_000)
    ill = np.where(rng.random(3_000) < 0.3, "yes", "no")
    pq.write_table(pa.table({"user": np.arange(3_000), "lon": lon, "lat": lat, "ill": ill}), tmp_path / "t.parquet")
    done = hazemap("release", "t.parquet", "--person", "user", "-e", "2", BOX, "--mark", "ill=yes", "-o", "m.parquet")
    assert done.code == 0, done.err
    return done


def test_a_release_says_the_share_of_each_mark(marked, hazemap):
    assert "ill=yes: 3" in marked.out or "ill=yes: 2" in marked.out
    asked = hazemap("ask", "m.parquet", "--json").json
    assert asked["shares"][0]["mark"] == "ill=yes"
    assert asked["shares"][0]["low"] <= 0.31 and asked["shares"][0]["high"] >= 0.28
    assert asked["people"]["best_guess"] == pytest.approx(3_000, abs=150)


def test_shares_are_asked_of_boxes_cells_and_points(marked, hazemap):
    for where in (("--box=13.3,52.4,13.5,52.6",), ("--at", "13.4,52.5"), ("--cell", "root")):
        said = hazemap("ask", "m.parquet", *where, "--mark", "ill=yes")
        assert said.code == 0 and said.out.startswith("ill=yes: "), said.err
    assert "the marks are ill=yes" in hazemap("ask", "m.parquet", "--mark", "well").err
    assert "interval" in hazemap("ask", "m.parquet", "--top", "2").out


def test_pictures_show_shares(marked, hazemap, tmp_path):
    done = hazemap("show", "m.parquet", "-o", "m.png", "--beside", "nothing", "--width", "5")
    assert done.code == 0 and (tmp_path / "m.png").exists(), done.err
    assert "--beside is width, density or nothing" in hazemap("show", "m.parquet", "--beside", "all").err
    assert "shows people and no shares" in hazemap("show", "m.parquet", "--beside", "width", "--blur", "900").err
    part = hazemap("show", "m.parquet", "-o", "m.tif", "--blur", "900", BOX)
    assert "holds all of the map" in part.err and not (tmp_path / "m.tif").exists()
    assert hazemap("inspect", "m.parquet", "--replay").code == 0


def test_maps_without_marks_say_so(release, hazemap):
    assert "counts no marks" in hazemap("ask", "map.parquet", "--mark", "ill").err
    assert "counts no marks" in hazemap("show", "map.parquet", "--beside", "width").err
