"""The card of a release in a notebook."""

import base64
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from hazemap.cellmap import CellMap
from hazemap.releases import Release
from hazemap.releases.notebook_card import SIDE, _png, thumbnail
from hazemap.releases.notebook_card import card as card_of


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_card_says_statement_total_and_cells(any_release):
    card = any_release._repr_html_()
    assert "ε = 1 (pure)" in card
    assert str(any_release.total()) in card
    assert f"{any_release.map.places.sum():,} cells" in card
    assert ("outside the map were not counted" in card) == (any_release.nowhere is None)
    assert any_release.nowhere is None or str(any_release.nowhere) in card


def test_the_card_is_small_whole_and_asks_nobody_for_anything(any_release):
    card = card_of(any_release)
    tags = Tags()
    tags.feed(card)
    assert tags.open == []
    assert set(tags.seen) <= {"div", "b", "img"}
    assert len(card.encode()) < 30_000
    assert not re.search(r"https?:|//|<script|<link|@import", card.replace(picture(card), ""))


def test_what_a_steward_writes_is_text_and_no_markup(release):
    evil = replace(release.statement, dataset='<script>alert("x")</script>')
    card = card_of(Release(release.map, evil, release.algorithm, release.transcript))
    assert "<script" not in card
    assert "&lt;script" in card


def picture(card: str) -> str:
    return re.search(r"base64,([^\"]*)", card)[1]


def test_the_picture_is_a_png_with_the_densest_place_brightest(release):
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(base64.b64decode(picture(release._repr_html_()))))
    steps = thumbnail(release)
    assert pixels.shape[:2] == steps.shape
    assert max(steps.shape) == SIDE
    frame = release.top(1, by="density")
    west, _, east, _ = release.ground.extent
    column = int((frame.geometry.iloc[0].centroid.x - west) / (east - west) * steps.shape[1])
    assert 15 in steps[:, column]


def test_even_the_worst_picture_leaves_the_card_below_30_kilobytes():
    noise = np.random.default_rng(1).integers(0, 16, (SIDE, SIDE)).astype(np.uint8)
    assert len(base64.b64encode(_png(noise))) < 29_000


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 2)])
def test_pictures_of_odd_sizes_are_right_to_the_pixel(shape):
    from matplotlib.image import imread

    steps = np.arange(shape[0] * shape[1]).reshape(shape).astype(np.uint8) % 16
    pixels = imread(io.BytesIO(_png(steps)))
    assert pixels.shape[:2] == shape
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) == len(np.unique(steps))


def test_a_map_with_nobody_in_it_has_an_empty_picture(release):
    zero = np.zeros(release.map.cells.size)
    nobody = CellMap(release.map.cells, zero, zero, release.map.stddev, release.map.noise)
    empty = Release(nobody, release.statement, release.algorithm, release.transcript)
    assert not thumbnail(empty).any()
    assert "<img" in empty._repr_html_()
