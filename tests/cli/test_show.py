"""`hazemap show` and `hazemap export`."""

import json
import struct

import pytest


def test_a_picture_appears_beside_the_file(release, hazemap, tmp_path):
    done = hazemap("show", "map.parquet")
    assert (done.code, done.out.splitlines()[0]) == (0, "map.png")
    content = (tmp_path / "map.png").read_bytes()
    width, height = struct.unpack(">II", content[16:24])
    assert content.startswith(b"\x89PNG")
    assert (width, height) > (1000, 500)


@pytest.mark.slow
def test_a_picture_is_what_was_asked_for(release, hazemap, tmp_path):
    line = {"type": "LineString", "coordinates": [[13.2, 52.4], [13.6, 52.6]]}
    (tmp_path / "line.geojson").write_text(json.dumps({"type": "Feature", "properties": {}, "geometry": line}))
    options = ("--no-uncertainty", "--outlines", "line.geojson", "--title", "Berlin", "--box=13.25,52.4,13.5,52.6")
    done = hazemap("show", "map.parquet", "-o", "berlin.svg", *options, "--json")
    assert done.json["picture"] == "berlin.svg"
    text = (tmp_path / "berlin.svg").read_text()
    assert "Berlin" in text
    assert "How sure is each cell?" not in text
    assert "Differentially private per person" in text


def test_a_page_is_written_whole_and_takes_no_options_of_pictures(release, hazemap, tmp_path, monkeypatch):
    from hazemap.releases.page import page_file

    monkeypatch.setattr(page_file, "template", lambda: "<!--title-->, <!--summary-->, <!--release-->")
    assert hazemap("show", "map.parquet", "-o", "map.html", "--title", "a < b", "--json").json == {"page": "map.html"}
    assert (tmp_path / "map.html").read_text().startswith("a &lt; b, ")
    refused = hazemap("show", "map.parquet", "-o", "map.html", "--box=13.3,52.4,13.4,52.5", "--blur", "30")
    assert (refused.code, "leave --blur out" in refused.err) == (2, True)


def test_a_page_shows_a_box_first_and_lines_of_a_file_over_the_map(release, hazemap, tmp_path, monkeypatch):
    from hazemap.releases.page import page_file

    monkeypatch.setattr(page_file, "template", lambda: "<!--title--><!--summary--><!--release-->")
    ring = [[13.3, 52.45], [13.4, 52.45], [13.4, 52.5], [13.3, 52.45]]
    far = [[2.3, 48.8], [2.4, 48.9]]
    shapes = [{"type": "Polygon", "coordinates": [ring]}, {"type": "LineString", "coordinates": far}]
    features = [{"type": "Feature", "properties": {}, "geometry": shape} for shape in shapes]
    (tmp_path / "districts.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    words = ("show", "map.parquet", "-o", "map.html", "--box=13.3,52.4,13.4,52.5")
    assert hazemap(*words, "--outlines", "districts.geojson").code == 0
    text = (tmp_path / "map.html").read_text()
    told = json.loads(text[text.index("{") : text.rindex("}") + 1])
    assert told["box"] == [13.3, 52.4, 13.4, 52.5]
    assert [sorted(map(tuple, line)) for line in told["outlines"]] == [sorted(map(tuple, ring))], "and nothing far away"
    for options, said in (
        (("--box=2,48,3,49",), "shows nothing of this map"),
        (("--outlines", "none.geojson"), "none.geojson"),
    ):
        refused = hazemap("show", "map.parquet", "-o", "map.html", *options)
        assert (refused.code, said in refused.err) == (2, True), refused.err


def test_a_picture_crops_nobody_in_silence(release, hazemap):
    """Fault 9: 9 to 46 % of the people lay outside the picture, and nobody said so."""
    whole = hazemap("show", "map.parquet", "--no-uncertainty", "--json").json
    part = hazemap("show", "map.parquet", "--no-uncertainty", "--box=13.3,52.45,13.4,52.55", "--json").json
    total, inside = (
        hazemap("ask", "map.parquet", *box, "--json").json["unbiased"] for box in ((), ("--box=13.3,52.45,13.4,52.55",))
    )
    assert whole["beyond"] is None
    assert whole["said"].endswith("lie outside the map.")
    assert part["beyond"]["unbiased"] == pytest.approx(total + whole["nowhere"]["unbiased"] - inside)
    assert part["beyond"]["low"] <= part["beyond"]["best_guess"] < part["beyond"]["high"]
    assert " lie outside this picture; of them " in part["said"]
    near = hazemap("show", "map.parquet", "--no-uncertainty", "--frame", "people")
    assert near.out.splitlines()[1].endswith("outside the map.")
    assert hazemap("show", "map.parquet", "--frame", "all").code == 2


def test_a_picture_has_its_size_and_theme(release, hazemap, tmp_path):
    options = ("--size", "1200x800px", "--theme", "dark", "--no-uncertainty")
    assert hazemap("show", "map.parquet", "-o", "dark.png", *options).code == 0
    assert struct.unpack(">II", (tmp_path / "dark.png").read_bytes()[16:24]) == (1200, 800)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("map.parquet", "--size", "10"), "WIDTHxHEIGHT, such as 10x7 (inches) or 1600x900px; found '10'"),
        (("map.parquet", "--size", "99x99"), "5 to 24 inches wide (1,000 to 4,800 pixels)"),
        (("map.parquet", "--size", "5x3"), "no room for"),
        (("map.parquet", "--size", "9x9", "--width", "9"), "leave --width out"),
        (("map.parquet", "--theme", "blue"), "light or dark; found blue"),
        (("map.parquet", "--width", "4"), "5 to 24 inches wide"),
        (("map.parquet", "-o", "map.html", "--theme", "dark"), "leave --theme out"),
        (("map.parquet", "-o", "map.tif", "--blur", "90", "--size", "9x9"), "holds numbers and no paper"),
        (("map.parquet", "-o", "map.jpeg"), ".png, .svg, .pdf; found '.jpeg'"),
        (("map.parquet", "-o", "no/map.png"), "no/map.png could not be written"),
        (("map.parquet", "--outlines", "none.geojson"), "none.geojson"),
        (("visits.parquet",), "no release"),
    ],
)
def test_pictures_that_cannot_be_are_refused(wrong, words, release, hazemap):
    done = hazemap("show", *wrong)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.parametrize("suffix", ["geojson", "csv", "gpkg", "tif"])
def test_an_export_holds_the_numbers_and_replaces_nothing(suffix, release, hazemap, tmp_path):
    done = hazemap("export", "map.parquet", "-o", f"out.{suffix}")
    styles = ["out.qml", "out.sld"] if suffix in ("geojson", "csv") else []
    statement = ["out.csv.statement.json"] if suffix == "csv" else []
    assert (done.code, done.out.splitlines()) == (0, [f"out.{suffix}", *statement, *styles])
    before = (tmp_path / f"out.{suffix}").stat().st_mtime_ns
    again = hazemap("export", "map.parquet", "-o", f"out.{suffix}")
    assert again.code == 2
    assert "exists: choose another name" in again.err
    assert (tmp_path / f"out.{suffix}").stat().st_mtime_ns == before
    again = hazemap("export", "map.parquet", "-o", f"out.{suffix}", "--force", "--json").json
    said = {"statement": statement[0]} if statement else {}
    assert again == {"file": f"out.{suffix}"} | said | ({"styles": styles} if styles else {})
    (tmp_path / f"out.{suffix}").unlink()
    for beside in statement:
        (tmp_path / beside).write_text("somebody's own")
        assert f"the file {beside} exists" in hazemap("export", "map.parquet", "-o", f"out.{suffix}").err
        assert f"the file {beside} exists" in hazemap("centres", "map.parquet", "-o", f"out.{suffix}").err
        assert (tmp_path / beside).read_text() == "somebody's own"


def test_a_style_of_ones_own_stays(release, hazemap, tmp_path):
    (tmp_path / "out.qml").write_text("mine")
    assert hazemap("export", "map.parquet", "-o", "out.geojson").out.split() == ["out.geojson", "out.sld"]
    assert (tmp_path / "out.qml").read_text() == "mine"
    assert hazemap("export", "map.parquet", "-o", "plain.fgb", "--no-style").out.split() == ["plain.fgb"]
    assert not (tmp_path / "plain.qml").exists()


def test_an_export_to_an_unknown_format_is_refused(release, hazemap):
    done = hazemap("export", "map.parquet", "-o", "out.shp")
    assert done.code == 2
    assert ".geojson" in done.err
