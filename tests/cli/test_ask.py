"""`hazemap ask`."""

import json

import pytest

TRIANGLE = {"type": "Polygon", "coordinates": [[[13.2, 52.4], [13.6, 52.4], [13.2, 52.6], [13.2, 52.4]]]}


def test_an_answer_is_a_number_its_interval_and_its_error(release, hazemap):
    done = hazemap("ask", "map.parquet", "--box=13.2,52.4,13.4,52.5")
    assert done.code == 0
    assert done.out.splitlines()[0].endswith(")")
    for word in ("people", "standard error", "95 % interval", "…"):
        assert word in done.out
    assert "±" not in done.out


def test_every_kind_of_region_can_be_asked_about(release, hazemap, tmp_path):
    marked = "\ufeff" + json.dumps({"type": "Feature", "geometry": TRIANGLE})  # as Windows writes it
    (tmp_path / "triangle.geojson").write_text(marked)
    total = hazemap("ask", "map.parquet", "--json").json
    box = hazemap("ask", "map.parquet", "--box=13.2,52.4,13.6,52.6", "--json").json
    triangle = hazemap("ask", "map.parquet", "--polygon", "triangle.geojson", "--json").json
    quarters = [hazemap("ask", "map.parquet", "--cell", f"root-{i}", "--json").json["best_guess"] for i in range(4)]
    both = hazemap("ask", "map.parquet", "--cell", "root-0", "--cell", "root-1", "--json").json["best_guess"]
    assert box["best_guess"] == pytest.approx(total["best_guess"], rel=0.05)
    assert 0 < triangle["best_guess"] < box["best_guess"]
    assert sum(quarters) == pytest.approx(total["best_guess"])
    assert both == pytest.approx(quarters[0] + quarters[1])
    assert hazemap("ask", "map.parquet", "--at=13.32,52.46", "--json").json["counted"] == "people per km²"


def test_a_wider_confidence_gives_a_wider_interval(release, hazemap):
    narrow, wide = (hazemap("ask", "map.parquet", "--confidence", p, "--json").json for p in ("0.5", "0.999"))
    assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]
    assert (narrow["nowhere"] or narrow)["confidence"] == 0.5 and (wide["nowhere"] or wide)["confidence"] == 0.999


def test_the_fullest_cells_come_first(release, hazemap):
    done = hazemap("ask", "map.parquet", "--top", "3")
    assert len(done.out.splitlines()) == 5
    assert "chosen for their numbers" in done.out
    assert "chosen for their numbers" not in hazemap("ask", "map.parquet", "--top", "1000000").out  # all of them
    assert "99 % interval" in hazemap("ask", "map.parquet", "--top", "3", "--confidence", "0.99").out
    top = hazemap("ask", "map.parquet", "--top", "3", "--by", "density", "--json").json["top"]
    densities = [row["per_km2"] for row in top]
    assert densities == sorted(densities, reverse=True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("map.parquet", "--box=0,0,1,1"), "outside the map"),
        (("map.parquet", "--box=0,0"), "four numbers"),
        (("map.parquet", "--at=0,0"), "outside the map"),
        (("map.parquet", "--at", "here"), "lon,lat in degrees; found 'here'"),
        (("map.parquet", "--cell", "berlin"), "berlin"),
        (("map.parquet", "--top", "0"), "at least 1"),
        (("map.parquet", "--top", "1", "--by", "beauty"), "count or density; found 'beauty'"),
        (("map.parquet", "--confidence", "2"), "between 0 and 1"),
        (("map.parquet", "--confidence", "0.9999999999999999"), "found 0.99999999999999989"),
        (("map.parquet", "--by", "density"), "say --top K too"),
        (("map.parquet", "--top", "1", "--at=13.3,52.5"), "one question at a time: --at and --top were given"),
        (("map.parquet", "--polygon", "none.geojson"), "none.geojson cannot be read"),
        (("map.parquet", "--polygon", "visits.parquet"), "visits.parquet"),
        (("map.parquet", "--polygon", "list.geojson"), "not GeoJSON"),
        (("visits.parquet",), "no release of hazemap"),
        (("none.parquet",), "there is no file none.parquet"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_words(wrong, words, release, hazemap, tmp_path):
    (tmp_path / "list.geojson").write_text("[1, 2]")
    done = hazemap("ask", *wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert hazemap("ask", *wrong, "--json").json["error"]["message"]


def test_asking_costs_nothing(release, hazemap):
    before = hazemap("ledger", "history", "--json").out
    hazemap("ask", "map.parquet")
    assert hazemap("ledger", "history", "--json").out == before
