"""What maps look like: the truth, each method, the difference."""

from typing import TYPE_CHECKING

from hazemap.lab.compare.charts import Draw
from hazemap.lab.compare.practices import METHODS
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.results import Results
from research.compare.map_gallery import Pictured, draw_gallery

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"city": "A synthetic city", "new-york": "New York", "san-francisco": "San Francisco"}


def _of(place: str) -> Draw:
    def draw(results: Results) -> "Figure":
        return draw_gallery(results, place, TITLES[place])

    return draw


GALLERY = Preset(
    "gallery",
    "pictures of the city, New York and San Francisco: the truth, each method, the difference, ε = 0.1",
    tuple(TITLES),
    METHODS,
    ("0.1",),
    1,
    ("mre", "l1", "cells"),
    (Pictured(),),
    tuple((place, _of(place)) for place in TITLES),
    note="Only the pictures of the city are of made-up data: those of the others are not to be passed on.",
    verdicts=(),
)
