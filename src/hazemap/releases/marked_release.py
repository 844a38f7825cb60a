"""A published map of which marks are counted too: how many of those in each cell are ill."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, InputError
from hazemap.estimate.marked_counts import MarkedCounts, MarkedNumbers
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.noisy_queries import Prices
from hazemap.releases.base_release import Bands
from hazemap.releases.estimates import Estimate, PeopleOutside
from hazemap.releases.file_metadata import MARKED, OF_MARKS, MarkedContents
from hazemap.releases.map_release import Release
from hazemap.releases.region_weights import Region, weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hazemap.releases.gis.layer_styles import LayerStyle

HALF = 0.5
"""Of its area: a cell that lies in a region with less does not count there."""

WIDE = 0.5
"""A share whose interval is wider than this says too little to be shown."""


@dataclass(frozen=True)
class Share:
    """The share of people in some cells who carry a mark; `value` is None where there seems to be nobody.

    `low` … `high` holds the true share of these people with probability `confidence`.

    >>> print(Share("ill", 0.2, 0.184, 0.216, 0.95))
    ill: 20.0 % (95 % interval 18.4 … 21.6 %)
    """

    mark: str
    value: float | None
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        width = max(self.high - self.low, 1e-9)
        digits = min(max(0, -math.floor(math.log10(100 * width) - 0.7)), 6)
        value = "unknown" if self.value is None else f"{100 * self.value:.{digits}f} %"
        ends = f"{100 * self.low:.{digits}f} … {100 * self.high:.{digits}f} %"
        return f"{self.mark}: {value} ({100 * self.confidence:.6g} % interval {ends})"


@dataclass(frozen=True)
class RegionShares:
    """Shares in the whole cells that lie in a region with half of their area or more, and how many people are there.

    The border of the region cuts `inside` of these `cells`, and `outside` cells more, which do not count.
    """

    cells: int
    inside: int
    outside: int
    people: Estimate
    shares: tuple[Share, ...]

    @property
    def said(self) -> str:
        """What these numbers are of."""
        cells = "1 cell" if self.cells == 1 else f"{self.cells:,} cells"
        if not self.inside and not self.outside:
            return f"These shares are of {cells}."
        return (
            f"These shares are of {cells} with half of their area or more in the region. Its border cuts"
            f" {self.inside:,} of them, and {self.outside:,} more that do not count."
        )

    def __str__(self) -> str:
        return "\n".join([*map(str, self.shares), f"of {self.people}", self.said])

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "shares": [asdict(each) for each in self.shares],
            "people": self.people.to_json(),
            "cells": self.cells,
            "said": self.said,
        }


def shares_of(numbers: MarkedNumbers, confidence: float) -> dict[str, NDArray[Any]]:
    """The columns MARK_unbiased, MARK_share, MARK_low, MARK_high of every mark, of some places: O(marks · numbers)."""
    columns = dict[str, NDArray[Any]]()
    for mark in numbers.marks.texts:
        found = numbers.shares(mark)
        names = (f"{mark}_{what}" for what in ("unbiased", "share", "low", "high"))
        columns |= dict(zip(names, (found.marked, found.values, *found.interval(confidence)), strict=True))
    return columns


@dataclass(frozen=True, eq=False, repr=False)
class MarkedRelease(Release, contents=MarkedContents):
    """A published map with marks: a `Release` of the people, that also says which share of them carries each mark.

    All numbers are made from `counts`: noisy numbers of each side of each cell.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.privacy.statement import A_PERSON, Statement
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> from hazemap.values.marks import Marks
    >>> leaves = Leaves.at_level(Quadtree.world(depth=1), 1)
    >>> counts = MarkedCounts(leaves, Marks.of("ill"), np.array([[30.0, 25, 10, 5], [10, 5, 10, 5]]), 1.0)
    >>> statement = Statement(
    ...     "demo", A_PERSON, "one person added or removed", PureDP(1), AtMostRows(1), "curator",
    ...     (), "discrete Laplace", (), (), "shares", "2026-01-02", "0.1.0",
    ... )
    >>> print(MarkedRelease(counts.map, statement, None, (), counts).share().shares[0])
    ill: 30 % (95 % interval 27 … 33 %)
    """

    counts: MarkedCounts

    HOLDS: ClassVar[str] = "a map with marks"
    SUFFIXES: ClassVar[tuple[str, ...]] = (".parquet",)
    MADE: ClassVar[str] = "counts"

    @property
    def marks(self) -> tuple[str, ...]:
        """What is counted beside people."""
        return self.counts.marks.texts

    def share(
        self, region: Region | None = None, marks: Sequence[str] | None = None, confidence: float = 0.95
    ) -> RegionShares:
        """Which share of the people in a region carries each mark, or each of these `marks`.

        A region is what `count` takes, or None for the whole map. Where its border cuts cells, the file does not know
        who is on which side: so the answer is of whole cells, those with half of their area or more in the region. The
        interval holds for a region that is chosen before its numbers are seen. `InputError` for a region without cells.
        """
        shares = self.map.places.astype(float) if region is None else weights(self.ground, region)
        chosen = np.flatnonzero(shares >= HALF)
        if not chosen.size:
            raise InputError("no cell lies in this region with half of its area or more: ask for a larger region")
        cut = (shares > 0) & (shares < 1)
        inside, outside = int((cut & (shares >= HALF)).sum()), int((cut & (shares < HALF)).sum())
        people = self.estimate((shares >= HALF).astype(float), self.counted, confidence)
        found = tuple(self._share(mark, chosen, confidence) for mark in marks or self.marks)
        return RegionShares(len(chosen), inside, outside, people, found)

    def named_at(self, lon: float, lat: float) -> str:
        """The name of the cell around a point in degrees."""
        (name,) = self.cells.tree.names(self.cells.cells[[self.cell_at(lon, lat)]])
        return name

    def _share(self, mark: str, cells: Ints, confidence: float) -> Share:
        found = self.counts.shares(mark, cells)
        (low,), (high,) = found.interval(confidence)
        value = float(found.values[0])
        return Share(mark, None if math.isnan(value) else value, float(low), float(high), confidence)

    def columns(self, positions: Ints | None = None, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """The table of `Release`; then MARK_unbiased, MARK_share, MARK_low and MARK_high of every mark.

        MARK_unbiased is unbiased; MARK_share is NaN where there seems to be nobody.
        """
        positions = self.ground.places if positions is None else positions
        return super().columns(positions, confidence) | shares_of(self.counts.at(positions), confidence)

    def label(self) -> dict[str, Any]:
        """The marks; all else is in the last answer."""
        return {"format": MARKED, "kind": OF_MARKS, "marks": list(self.marks)}

    def bands(self, column: str | None) -> Bands:
        """The share of each mark, or a column of the table that is no count."""
        table = self.columns(np.arange(self.cells.size))
        fit = {f"{mark}_{what}": table[f"{mark}_{what}"] for mark in self.marks for what in ("share", "low", "high")}
        wanted = [f"{mark}_share" for mark in self.marks] if column is None else [column]
        if any(name not in fit for name in wanted):
            raise FileError(f"a .tif of a map with marks holds one of the columns {', '.join(fit)}; found {column!r}")
        return Bands(tuple(wanted), [fit[name] for name in wanted], False, {}, self.ground)

    def layer_styles(self) -> "tuple[LayerStyle, ...]":
        """The share of each mark, grey where its interval is wide; then the density of people."""
        from hazemap.releases.gis.layer_styles import Comparison, unless_known, value_style

        made = []
        for mark in self.marks:
            wide = Comparison(f"{mark}_high", ">", WIDE, f"{mark}_low")
            grey = unless_known(f"an interval wider than {100 * WIDE:g} points", wide)
            made.append(value_style(f"share {mark}", f"{mark}_share", self.known(mark), (0.0, 1.0), (grey,)))
        return (*made, *super().layer_styles())

    def summary(self) -> list[str]:
        """Statement, total, number of cells, the share of each mark on the whole map."""
        return [*super().summary(), *map(str, self.share().shares)]

    def replay(self, prices: Prices) -> Self:
        """The same release, made again from its stored answers: `TranscriptMismatch` if they do not fit."""
        made = cast(MarkedRelease, super().replay(prices))
        return cast(Self, replace(made, map=made.counts.map))

    def known(self, mark: str) -> Floats:
        """The share in each cell as pictures show it: NaN where its interval is wider than `WIDE`."""
        found = self.counts.shares(mark)
        low, high = found.interval()
        shown: Floats = np.where(high - low <= WIDE, found.values, np.nan)
        return shown

    def plot(self, **options: Any) -> "Figure":
        """A picture of the share of each mark; beside it what its cells were cut for, or as `beside` says.

        Options are those of `hazemap.draw.draw_shares`; without any it shows all of the map.
        """
        from hazemap.draw import draw_shares, shown_part

        frame = {name: options[name] for name in ("frame", "box") if name in options}
        usual = {"caption": self.statement.line(), "counted": self.counted}
        if "note" not in options:
            usual["note"] = str(PeopleOutside.of(self, shown_part(self.map, **frame)))
        ends = {mark: self.counts.shares(mark).interval() for mark in self.marks}
        widths = {mark: high - low for mark, (low, high) in ends.items()}
        return draw_shares(self.map, {mark: self.known(mark) for mark in self.marks}, widths, **{**usual, **options})

    def page_data(self, title: str | None = None) -> dict[str, Any]:
        """What a page is told of the map and its marks."""
        from hazemap.releases.page.map_payload import marks_payload

        return marks_payload(self, WIDE, title)
