"""The page of a release: one HTML file with its script, its style and its data inside."""

import html
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import PlaneBox, plane_of

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

    from hazemap.releases.base_release import BaseRelease


TEMPLATE = "page.html"
"""What `web/page` is built into; a wheel carries it, a clone builds it."""


TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Letters that turn the order of others about, so that a name could make a sentence say something else."""
HALVES = re.compile("[\ud800-\udfff]")
"""Halves of letters, which no file can hold."""


def template() -> str:
    """The built page, without a release in it; `InputError` where there is none."""
    built = files(__package__).joinpath(TEMPLATE)
    if not built.is_file():
        raise InputError(
            "the page for browsers was not built: with npm (Node 20) run `make studio` in the folder of hazemap's"
            " sources, or install a wheel, which carries it"
        )
    return built.read_text(encoding="utf-8")


def filled(page: str, payload: dict[str, Any]) -> str:
    """A built page with a release in it. Whatever the release holds stays data: nothing of it becomes markup."""
    summary = f"{payload['title']}. {payload['line']} This page needs JavaScript to show the map."
    for mark, text in (
        ("<!--title-->", html.escape(_seen(payload["title"], "\\"))),
        ("<!--summary-->", html.escape(_seen(summary, "\\"))),
        ("<!--release-->", script_text(payload)),
    ):
        before, found, after = page.partition(mark)
        if not found:
            raise InputError(f"the built page has no place for {mark[4:-3]}: build it anew with `make studio`")
        page = before + text + after
    return page


def script_text(payload: dict[str, Any]) -> str:
    """JSON that stands inside a script: no letter of it can end the script, or begin a comment, or hide.

    `InputError` for numbers that are not finite: a file may hold counts whose sum is none.
    """
    try:
        plain = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError("a number of this release is too large for a page: no honest one holds such counts") from None
    text = _seen(plain, "\\\\")
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _seen(text: str, backslash: str) -> str:
    """A text in which letters that turn others about are seen, by their numbers, and halves of letters are gone."""
    return HALVES.sub("\ufffd", TURNING.sub(lambda found: f"{backslash}u{ord(found[0]):04x}", text))


SHORTEST, TALLEST = 200, 4000
"""Pixels."""


@dataclass(frozen=True)
class PageFrame:
    """What `release.explore()` gives: a notebook shows it as the page of the release.

    The frame is sandboxed: its script can reach neither the notebook nor the network, wherever notebooks are shown.

    >>> PageFrame("<p>a page</p>", 300)._repr_html_()[:50]
    '<iframe title="hazemap" sandbox="allow-scripts" lo'
    """

    page: str
    height: int = 640

    def __post_init__(self) -> None:
        if not SHORTEST <= self.height <= TALLEST:
            raise InputError(f"a page in a notebook is {SHORTEST} to {TALLEST} pixels high; found {self.height}")

    def _repr_html_(self) -> str:
        look = f"width:100%;height:{self.height}px;border:1px solid #ccc"
        frame = f'<iframe title="hazemap" sandbox="allow-scripts" loading="lazy" style="{look}"'
        return f'{frame} srcdoc="{html.escape(self.page)}"></iframe>'


def folded(frame: PageFrame) -> str:
    """A page in a notebook that opens when somebody wants it."""
    return f"<details><summary>Explore the map</summary>{frame._repr_html_()}</details>"


AROUND = 1.0
"""Of the sides of a map: so much of the outlines is on either side of it, as of the base map."""
FINEST = 1 / 20_000
"""Of the width of a map: bends smaller than this are not drawn."""


def page_view(release: "BaseRelease", outlines: "Path | str | GeoDataFrame | None", box: Box | None) -> dict[str, Any]:
    """Both as a page is told them; `InputError` for a box beside the map, and for outlines of a plane."""
    found: dict[str, Any] = {}
    plane = plane_of(release.cells.tree)
    if outlines is not None:
        if plane is not None:
            raise InputError("outlines are of longitude and latitude, and this map is of a plane: leave them out")
        from hazemap.draw.overlay_lines import lines_around

        found["outlines"] = lines_around(outlines, release.ground.extent, AROUND, FINEST)
    if box is not None:
        if isinstance(box, PlaneBox) != (plane is not None):
            raise InputError(f"a box of this map is in {'its plane' if plane else 'degrees'}")
        sides = box.west, box.south, box.east, box.north
        if plane is None and not _meet(sides, release.ground.extent):
            raise InputError(f"the box {box} shows nothing of this map")
        found["box"] = list(sides)
    return found


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
