"""What changed from one release to another, cell by cell, and where it is more than noise explains.

The cells are the finest of which both maps know the numbers: each is a cell of one of them, and made of cells of the
other. A difference has the noise of both, which is independent. Everything is a function of published files, so asking
costs no privacy.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Independent
from hazemap.cells import NOWHERE, Leaves, Tree
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import margins
from hazemap.estimate.noise_drift import holm, moved_ps
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.page.page_file import page_view
from hazemap.spatial.quadtree import Quadtree

if TYPE_CHECKING:
    from pathlib import Path

    from geopandas import GeoDataFrame

    from hazemap.releases.map_release import Release
    from hazemap.spatial.bounding_box import Box

ALPHA = 0.05
"""Of maps between which nothing changed so many have any cell that is said to have changed, at most."""

MOST_SUMS = 5_000
"""Of so many sums of cells the error is found exactly, in a millisecond; of others it is the sum of the cells' own."""


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseDifference:
    """`after` less `before`, of each of some cells; float64[cells.size] each.

    `low` … `high` holds the true difference of a cell with probability 95 % or more. `chance` says how often noise
    alone makes one of all the cells differ so much (`noise_drift.moved_ps`, corrected by Holm 1979), so where it is
    0.05 or less the cell changed by more than noise explains. Which of their rows a person is counted with is drawn
    anew for each release, where a rule draws; that is no noise, and is in neither.
    """

    before: "Release"
    after: "Release"
    cells: Leaves
    difference: Floats
    stddev: Floats

    @classmethod
    def of(cls, before: "Release", after: "Release") -> "ReleaseDifference":
        """`InputError` for maps that have no ground in common or count different things."""
        if before.counted != after.counted:
            raise InputError(f"one map counts {before.counted} and the other {after.counted}: they have no difference")
        tree = _common_tree(before.cells.tree, after.cells.tree)
        maps = [replace(each.map, cells=Leaves(tree, each.cells.cells)) for each in (before, after)]
        cells = _outermost(tree, np.concatenate([each.cells.cells for each in maps]))
        sums = [_Sums.of(each, cells) for each in maps]
        known = sums[0].whole & sums[1].whole
        if not known.any():
            raise InputError("the two maps have no ground in common: choose releases of the same place")
        one, other = sums
        difference, stddev = other.numbers - one.numbers, np.hypot(one.stddev, other.stddev)
        return cls(before, after, Leaves(tree, cells.cells[known]), difference[known], stddev[known])

    @cached_property
    def interval(self) -> tuple[Floats, Floats]:
        """`low` and `high` of each cell."""
        margin = margins(self.stddev, self._kurtosis, asymmetry=self._asymmetry(0.95))
        return self.difference - margin, self.difference + margin

    @cached_property
    def chance(self) -> Floats:
        """How often noise alone makes any cell differ so much, at most."""
        alone = moved_ps(self.difference, self.stddev, self._kurtosis, self._asymmetry)
        return np.array(holm(alone.tolist()), dtype=np.float64)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Which cells changed by more than noise explains."""
        found: NDArray[np.bool_] = self.chance <= ALPHA
        return found

    @cached_property
    def ground(self) -> CellGeometry:
        """Where the cells are."""
        return CellGeometry(self.cells)

    @property
    def summary(self) -> str:
        """One line."""
        changed = int(self.changed.sum())
        return f"{changed:,} of {self.cells.size:,} cells changed by more than noise explains (α = {ALPHA} for all)"

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.summary}"

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row for each cell: cell, difference, stddev, low, high, chance, changed."""
        low, high = self.interval
        return {
            "cell": np.array(self.cells.tree.names(self.cells.cells), dtype=object),
            "difference": self.difference,
            "stddev": self.stddev,
            "low": low,
            "high": high,
            "chance": self.chance,
            "changed": self.changed,
        }

    def to_html(
        self,
        title: str | None = None,
        *,
        outlines: "Path | str | GeoDataFrame | None" = None,
        box: "Box | None" = None,
    ) -> str:
        """One page for a browser, which asks no other machine for anything: as `BaseRelease.to_html` makes one."""
        from hazemap.releases.page.map_payload import difference_payload
        from hazemap.releases.page.page_file import filled, template

        return filled(template(), difference_payload(self, title) | page_view(self.after, outlines, box))

    @property
    def _kurtosis(self) -> float:
        return max(self.before.kurtosis, self.after.kurtosis)

    def _asymmetry(self, confidence: float) -> float:
        return self.before.asymmetry(confidence) + self.after.asymmetry(confidence)


@dataclass(frozen=True, eq=False)
class _Sums:
    """What one map knows of other cells: numbers, their errors, and whether it knows all of each."""

    numbers: Floats
    stddev: Floats
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, cellmap: CellMap, cells: Leaves) -> "_Sums":
        """`cells` are disjoint, and each cell of the map is in one of them."""
        first, last = cells.spans
        own_first, own_last = cellmap.cells.spans
        real = cellmap.cells.cells != NOWHERE
        group = np.where(real, np.searchsorted(first, own_first, "right") - 1, cells.size)

        def added(numbers: NDArray[Any]) -> NDArray[Any]:
            return np.bincount(group, numbers, cells.size + 1)[:-1]

        outer = real & (cellmap.cells.holder < 0)
        covered = np.zeros(cells.size, dtype=np.uint64)
        np.add.at(covered, group[outer], own_last[outer] - own_first[outer] + np.uint64(1))
        if isinstance(cellmap.noise, Independent):
            stddev = np.sqrt(added(cellmap.stddev**2))
        else:
            stddev = added(cellmap.stddev)  # exact where a cell is alone, and never too small
            for several in np.flatnonzero(added(np.ones(len(group))) > 1)[:MOST_SUMS]:
                stddev[several] = cellmap.noise.of((group == several).astype(np.float64)).stddev
        return cls(added(cellmap.unbiased), stddev, covered == last - first + np.uint64(1))


def _common_tree(one: Tree, other: Tree) -> Tree:
    """The tree of which both maps have cells: the same one, or of two quadtrees the deeper."""
    if one == other:
        return one
    if isinstance(one, Quadtree) and isinstance(other, Quadtree):
        deeper = one if one.depth > other.depth else other
        if replace(one, depth=deeper.depth) == replace(other, depth=deeper.depth):
            return deeper
    raise InputError(
        "the cells of the two maps are of different kinds, or cut from different ground, so that none can be compared: "
        "release both with the same box and the same cells"
    )


def _outermost(tree: Tree, cells: NDArray[np.uint64]) -> Leaves:
    """Those of some cells that lie in no other, in order."""
    places = Leaves(tree, np.unique(cells[cells != NOWHERE]))
    order: Ints = places.order
    first, last = (ends[order] for ends in places.spans)
    ended = np.maximum.accumulate(last)
    outer = np.append(np.ones(min(len(first), 1), dtype=bool), first[1:] > ended[:-1])
    return Leaves(tree, places.cells[order][outer])
