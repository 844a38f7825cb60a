"""A page inside a notebook: a frame that can run its own script and reach nothing else."""

import html
from dataclasses import dataclass

from hazemap.errors import InputError

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
