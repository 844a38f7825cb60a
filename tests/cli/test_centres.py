"""`hazemap centres`, and heatmaps of `hazemap show`."""

import json

import pytest

BOX = "--box=13.2,52.4,13.6,52.6"


def test_centres_are_printed_with_intervals(release, hazemap):
    done = hazemap("centres", "map.parquet", "-k", "3")
    assert done.code == 0 and "mean way" in done.out and "All ways together are" in done.out
    found = hazemap("centres", "map.parquet", "-k", "3", "--json").json
    assert len(found["centres"]) == 3
    assert all(each["low"] < each["high"] for each in found["centres"])
    assert sum(each["best_guess"] for each in found["centres"]) == pytest.approx(4_000, rel=0.1)


def test_centres_are_written_whole(release, hazemap, tmp_path):
    assert hazemap("centres", "map.parquet", "-k", "2", "-o", "c.geojson").code == 0
    found = json.loads((tmp_path / "c.geojson").read_text())
    assert [each["geometry"]["type"] for each in found["features"]] == ["Point", "Point"]
    assert found["statement"]["dataset"] == "visits"
    assert hazemap("centres", "map.parquet", "-k", "2", "-o", "c.csv").code == 0
    assert (tmp_path / "c.csv").read_text().startswith("lon,lat,best_guess,low,high,metres\n")
    assert json.loads((tmp_path / "c.csv.statement.json").read_text())["dataset"] == "visits"
    assert "the file c.csv exists" in hazemap("centres", "map.parquet", "-o", "c.csv").err
    assert ".csv or .geojson" in hazemap("centres", "map.parquet", "-o", "c.txt").err
    assert hazemap("centres", "map.parquet", "-k", "0").code == 2
    assert "has no slots" in hazemap("centres", "map.parquet", "--slot", "8").err


def test_a_blur_is_drawn_and_exported(release, hazemap, tmp_path):
    done = hazemap("show", "map.parquet", "--blur", "900", "-o", "heat.tif", "--json")
    assert (done.code, done.json["blur_metres"]) == (0, 900), done.err
    assert hazemap("show", "map.parquet", "--blur", "900", "-o", "heat.png", "--width", "5").code == 0
    assert "it is a heatmap that was drawn from one; open that" in hazemap("ask", "heat.tif").err
    assert "--blur METRES" in hazemap("show", "map.parquet", "-o", "heat2.tif").err
    assert "above 0 m, " in hazemap("show", "map.parquet", "--blur", "1e9", "-o", "x.png").err


def test_pyramids_are_heatmaps_unless_cells_are_asked_for(hazemap, visits, tmp_path):
    made = hazemap("release", "visits.parquet", "-e", "1", BOX, "--method", "pyramid", "-o", "p.parquet")
    assert made.code == 0, made.err
    assert hazemap("show", "p.parquet", "-o", "p.tif", "--json").json["blur_metres"] > 0
    assert "--blur METRES" in hazemap("show", "p.parquet", "--blur", "0", "-o", "q.tif").err
