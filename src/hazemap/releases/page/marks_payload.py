"""What a page is told of a map with marks: the map of people, and the share of each mark in its cells."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.draw.colour_scales import ValueScale
from hazemap.releases.page.asking_marks_payload import asking_marks_of
from hazemap.releases.page.cell_places import painted
from hazemap.releases.page.map_payload import counts_payload, floats

if TYPE_CHECKING:
    from hazemap.releases.marked_release import MarkedRelease


def marks_payload(release: "MarkedRelease", wide: float, title: str | None = None) -> dict[str, Any]:
    """Everything that a page shows of a map with marks; `InputError` for one of more cells than a page can show.

    A share whose interval is wider than `wide` is not shown.
    """
    facts = counts_payload(release, "marks", title)
    positions = painted(release.cells)
    columns = release.columns(positions)
    known = np.concatenate([release.known(mark)[positions] for mark in release.marks])
    scale, whole = ValueScale.of(known), release.share()
    marks = [
        {
            "name": mark,
            **{what: floats(columns[f"{mark}_{what}"]) for what in ("share", "low", "high")},
            "whole": {"value": share.value, "low": share.low, "high": share.high},
        }
        for mark, share in zip(release.marks, whole.shares, strict=True)
    ]
    shares = {"low": max(scale.low, 0.0), "high": min(scale.high, 1.0)}
    return {**facts, "marks": marks, "shares": shares, "wide": wide, "asking": asking_marks_of(release)}
