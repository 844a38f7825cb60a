"""What a page is told of a map, and how it is written into the page."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
import shapely

import hazemap
from hazemap.errors import InputError, TranscriptMismatch
from hazemap.releases import Release, base_release
from hazemap.releases.notebook_card import card
from hazemap.releases.page import map_payload as module
from hazemap.releases.page import page_file
from hazemap.releases.page.map_payload import map_payload
from hazemap.releases.page.packed_arrays import _rings, painted, unpack
from hazemap.releases.page.page_file import filled
from hazemap.spatial.h3_hexagons import Hexagons

EMPTY = (
    "<html><title><!--title--></title><noscript><!--summary--></noscript>"
    '<script type="application/json" id="release"><!--release--></script></html>'
)
EVIL = "</script><script>alert(1)</script><!--release--><!-- \u2028 & \" ' <b>"


class Elements(HTMLParser):
    """The tags of a page and the text in them."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], {}

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text[self.tags[-1]] = self.text.get(self.tags[-1], "") + data


def test_a_page_is_told_what_the_release_says_of_each_cell(any_release):
    payload = map_payload(any_release)
    positions = painted(any_release.cells)
    columns = any_release.columns(positions)
    for name in ("best_guess", "unbiased", "stddev", "low", "high"):
        assert unpack(payload["cells"][name]) == pytest.approx(columns[name], rel=1e-6)
    assert unpack(payload["cells"]["area"]) == pytest.approx(columns["area_km2"], rel=1e-6)
    assert payload["total"]["best_guess"] == any_release.total().best_guess
    assert (payload["nowhere"] is None) == (any_release.nowhere is None)
    assert payload["statement"] == any_release.statement.to_json()
    json.dumps(payload, allow_nan=False)


def test_the_densest_cells_have_the_intervals_of_chosen_ones(any_release):
    found = map_payload(any_release)["densest"]
    top = any_release.top(len(found), by="density")
    assert [each["best_guess"] for each in found] == pytest.approx(top["best_guess"].tolist())
    assert [each["low"] for each in found] == top["low"].tolist()
    names = any_release.cells.tree.names(any_release.cells.cells[painted(any_release.cells)])
    assert [names[each["cell"]] for each in found] == top.iloc[:, 0].tolist()


def test_squares_are_where_the_tree_has_them(release, nested_release):
    for made in (release, nested_release):
        positions = painted(made.cells)
        found = map_payload(made)["cells"]["places"]
        level, column, row = (unpack(found[name]).astype(float) for name in ("level", "column", "row"))
        side = found["side"] * 0.5**level
        x, y, width = made.cells.tree.square(made.cells.cells[positions])
        assert found["left"] + column * side == pytest.approx(x, abs=1e-12)
        assert found["top"] + row * side == pytest.approx(y, abs=1e-12)
        assert side == pytest.approx(width)
        assert (np.diff(level) >= 0).all()


def outlined(places: dict) -> list[list[np.ndarray]]:
    """The rings of each cell in degrees, as the page makes them from what it is told."""
    steps, ring, cell = (unpack(places[name]).astype(np.int64) for name in ("points", "ring", "cell"))
    for lag in places["lags"]:
        for at in range(lag, len(steps)):
            steps[at] += steps[at - lag]
    points = steps.astype(np.int32).reshape(-1, 2) * places["unit"]  # differences may have wrapped around
    return [[points[ring[r] : ring[r + 1]] for r in range(first, last)] for first, last in pairwise(cell)]


def test_hexagons_have_their_index_and_their_outline(hexagon_release):
    made = hexagon_release
    assert isinstance(made.cells.tree, Hexagons)
    positions = painted(made.cells)
    found = map_payload(made)["cells"]["places"]
    assert np.array_equal(unpack(found["h3"]), made.cells.cells[positions])
    outlines = made.cells.tree.outlines(made.cells.cells[positions])
    for rings, outline in zip(outlined(found), outlines, strict=True):
        assert len(rings) == 1
        assert rings[0] == pytest.approx(shapely.get_coordinates(outline)[:-1], abs=1e-7)


def test_districts_keep_their_holes_and_islands():
    hole = shapely.Polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(3, 3), (3, 6), (6, 6)]])
    islands = shapely.MultiPolygon([shapely.box(-180, -90, -170, 0), shapely.box(170, 1, 180, 90)])
    found = outlined(_rings(np.array([hole, islands, shapely.box(1, 1, 2, 2)], dtype=object), lag=0))
    assert [len(rings) for rings in found] == [2, 2, 1]
    assert found[0][1].tolist() == pytest.approx(np.array([(3, 3), (3, 6), (6, 6)]))
    assert found[1][1].max() == pytest.approx(180)


def test_parts_of_a_finer_map_know_their_cell(release):
    likely = replace(release.map, reading=hazemap.Reading.LIKELY, values=release.map.values**3)
    made = Release(likely, release.statement, release.algorithm, release.transcript)
    assert made.shown is not made.map
    cells = map_payload(made)["cells"]
    fine = cells["fine"]
    cell, count, area = (unpack(fine[name]) for name in ("cell", "best_guess", "area"))
    assert (np.unique(cell) == np.arange(cells["best_guess"]["length"])).all()
    assert np.bincount(cell, count) == pytest.approx(unpack(cells["best_guess"]), rel=1e-4)
    assert np.bincount(cell, area) == pytest.approx(unpack(cells["area"]), rel=1e-4)


def test_whatever_a_release_holds_stays_data(release):
    statement = replace(release.statement, dataset=EVIL, assumptions=(EVIL,))
    made = Release(release.map, statement, release.algorithm, release.transcript)
    page = filled(EMPTY, map_payload(made))
    found = Elements()
    found.feed(page)
    assert found.tags == ["html", "title", "noscript", "script"]
    assert json.loads(found.text["script"])["title"] == EVIL
    assert "<!--" not in found.text["script"]
    assert json.loads(found.text["script"])["statement"]["assumptions"] == [EVIL]
    assert "<b>" not in re.sub("<script.*", "", page)


def test_no_letter_of_a_release_turns_others_about(release):
    statement = replace(release.statement, dataset="safe \u202e\u2066 = ε\ud800", assumptions=("\u200f",))
    made = Release(release.map, statement, release.algorithm, release.transcript)
    found = Elements()
    found.feed(page := filled(EMPTY, map_payload(made)))
    assert not set("\u202e\u2066\u200f\ud800") & set(page)
    data = json.loads(found.text["script"])
    assert (data["title"], data["statement"]["assumptions"]) == ("safe \\u202e\\u2066 = ε\ufffd", ["\\u200f"])
    assert found.text["title"].startswith("safe \\u202e\\u2066 = ε\ufffd")


def test_counts_whose_sum_is_no_number_are_refused_in_words(release):
    values = release.map.unbiased.copy()
    values[:5] = 1e308
    made = Release(replace(release.map, unbiased=values), release.statement, release.algorithm, release.transcript)
    with np.errstate(all="ignore"), pytest.raises(InputError, match="too large for a page"):
        filled(EMPTY, map_payload(made))


def test_forged_error_bars_are_found_before_a_map_is_cut_by_them(release, tmp_path, monkeypatch):
    forged = replace(release.map, stddev=np.full_like(release.map.stddev, 1e-300))
    Release(forged, release.statement, release.algorithm, release.transcript).save(tmp_path / "map.parquet")
    monkeypatch.setattr(Release, "shown", property(lambda _: pytest.fail("it was cut")))
    with pytest.raises(TranscriptMismatch, match="error bars"):
        map_payload(Release.open(tmp_path / "map.parquet"))


def test_a_notebook_has_the_page_in_a_frame_that_reaches_nothing(release, monkeypatch):
    assert "<iframe" not in card(release)
    monkeypatch.setattr(page_file, "template", lambda: EMPTY)
    statement = replace(release.statement, dataset=EVIL)
    made = Release(release.map, statement, release.algorithm, release.transcript)
    for shown in (made.explore()._repr_html_(), made._repr_html_().split("<details>")[1]):
        frames = Frames()
        frames.feed(shown)
        [(attributes, inside)] = frames.found
        assert attributes["sandbox"] == "allow-scripts"
        assert inside == made.to_html()
        assert frames.tags <= {"iframe", "summary"}
    monkeypatch.setattr(base_release, "MOST_IN_NOTEBOOKS", 255)
    assert made._repr_html_() == card(made)
    for height in (0, 10**6):
        with pytest.raises(InputError, match="pixels high"):
            made.explore(height)


class Frames(HTMLParser):
    """The frames of a notebook's cell: attributes, and the page inside."""

    def __init__(self):
        super().__init__()
        self.found, self.tags = [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "iframe":
            self.found.append((dict(attrs), dict(attrs)["srcdoc"]))


def test_a_page_that_was_never_built_is_refused_with_what_to_do(release, monkeypatch):
    monkeypatch.setattr(page_file, "TEMPLATE", "none.html")
    with pytest.raises(InputError, match="make studio"):
        release.to_html()
    with pytest.raises(InputError, match="no place for release"):
        filled("<!--title--><!--summary-->", {"title": "", "line": ""})


def test_a_map_of_more_cells_than_a_browser_can_show_is_refused(release, monkeypatch):
    monkeypatch.setattr(module, "MOST_CELLS", 255)
    with pytest.raises(InputError, match=r"at most 255 cells, and this map has 256"):
        map_payload(release)
