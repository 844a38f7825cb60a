"""How unevenly people are spread inside cells, learnt from how unevenly parents divide among children.

Inside a cell nobody knows where people are; a map that guesses how many of a cell's people are in a part of it is wrong
by as much as people clump together. If the parts of a cell of P people have the shares m_j of its area and hold the
numbers n_j, then D = E Σ (n_j − m_j P)²/(P² Σ m_j (1 − m_j)) tells how much they do: 1/P if everybody is anywhere on
their own, and 1 if all are in one place (D is 1/(α + 1) of a Dirichlet law with the shares α m_j). The families just
above the cells of a map tell D: noise adds a known amount to the squares, which is taken off them.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.cells import Cells
from hazemap.estimate.shrinkage import TreeLevels
from hazemap.machine_code.arrays import Bools, Floats, Ints

EDGES = (0.0, 1.5, 3.0, 6.0, 12.0, 25.0, 50.0)
"""Cells are told apart by how many standard errors of a cell's number they hold, since D hangs on how many people are
there; the last kind has no upper end."""

FEWEST = 5
"""Families that tell the D of a kind; of fewer that of the nearest kind is taken, and at least half above it."""

DEEPER = 2.0
"""How many times as much people may clump inside cells as in the families above them: on the maps that were measured,
0.6 to 1.9 times, the more the finer the place."""


AT_ONCE = 1 << 15
"""Cells whose families are looked at together: few enough for a processor's cache."""


@dataclass(frozen=True, eq=False)
class Overdispersion:
    """D of the people in a cell, by how many there are. `error` is what those numbers are measured in."""

    error: float
    parts: Floats

    @classmethod
    def of(cls, cellmap: CellMap) -> "Overdispersion":
        """Learnt from a map: O(cells · log cells). All of it is 1 without families, and of cells inside each other."""
        places = cellmap.places
        if not places.any() or cellmap.cells.nested:
            return cls(1.0, np.ones(len(EDGES)))
        stddev = cellmap.stddev[places]
        error = float(stddev[0] if (stddev == stddev[0]).all() else np.median(stddev)) or 1.0
        beyond, even, people = _families(cellmap)
        kinds = np.zeros(len(people), dtype=np.int8)
        for edge in EDGES:
            kinds += people >= edge * error
        order = np.argsort(kinds, kind="stable")  # those of a kind one after another
        beyond, even, ends = beyond[order], even[order], np.cumsum(np.bincount(kinds, minlength=len(EDGES) + 1))
        parts = np.full(len(EDGES), np.nan)
        for kind in range(len(EDGES)):
            own = slice(ends[kind], ends[kind + 1])
            total = even[own].sum()
            if ends[kind + 1] - ends[kind] >= FEWEST and total > 0:
                found = beyond[own].sum() / total
                doubt = float(np.sqrt(((beyond[own] - found * even[own]) ** 2).sum())) / total
                parts[kind] = DEEPER * (max(found, 0.0) + doubt)
        return cls(error, np.clip(_filled(parts), 0.05, 1.0))

    def at(self, people: Floats) -> Floats:
        """D of cells that hold this many people; never less than if everybody were there on their own."""
        kinds = np.searchsorted(np.array(EDGES) * self.error, people, "right") - 1
        parts = self.parts[np.maximum(kinds, 0)]
        return np.asarray(parts + (1 - parts) / np.maximum(people, 1))


def _filled(parts: Floats) -> Floats:
    """Kinds that no families tell of, from the nearest kind; 1 where nothing is known."""
    known = np.flatnonzero(~np.isnan(parts))
    if not len(known):
        return np.ones(len(parts))
    nearest = known[np.abs(np.arange(len(parts))[:, None] - known).argmin(axis=1)]
    filled = parts[nearest]
    above = np.arange(len(parts)) > nearest
    filled[above] = np.maximum(filled[above], 0.5)
    return np.asarray(filled)


def _families(cellmap: CellMap) -> tuple[Floats, Floats, Floats]:
    """Of every cell with cells of the map among its parts: Σ (n_j − m_j P)² beyond noise, P² Σ m_j (1 − m_j) beyond
    noise, and the best guess of P. Float64[families] each.
    """
    if (grid := _of_one_level(cellmap)) is not None:
        return grid
    found = list[Floats]()
    numbers = np.stack([cellmap.unbiased, np.maximum(cellmap.values, 0), cellmap.stddev**2])
    below: Floats = np.empty((3, 0))
    generations = TreeLevels(cellmap.cells).levels
    coarsest = next((level for level, here in enumerate(generations) if (here.leaf >= 0).any()), 0)
    for here in reversed(generations[coarsest:]):  # above them no family has a cell of the map
        own = here.leaf >= 0
        if own.all():
            ours = numbers[:, _run(here.leaf)]
        else:
            ours = np.empty((3, len(here.cells)))
            ours[:, own], ours[:, ~own] = numbers[:, here.leaf[own]], below
        wholes = list[Floats]()
        for some in _blocks(here.parent):
            telling, whole = _of_families(here.parent[some], here.area[some], own[some], ours[:, some])
            found.append(telling)
            wholes.append(whole)
        below = np.concatenate(wholes, axis=1) if wholes else np.empty((3, 0))
    beyond, even, people = np.concatenate(found, axis=1)
    return beyond, even, people


def _of_one_level(cellmap: CellMap) -> tuple[Floats, Floats, Floats] | None:
    """The same of cells of one level, in ascending order as those above them: no other families tell anything, and
    nothing need be as long as the map. None for other maps.
    """
    leaves = cellmap.cells
    places = leaves.levels >= 0
    here = slice(0, leaves.size) if places.all() else _run(np.flatnonzero(places))
    cells, levels = leaves.cells[here], leaves.levels[here]
    if levels[0] == 0 or (levels != levels[0]).any() or not (cells[1:] > cells[:-1]).all():
        return None
    parent, found = leaves.tree.parent(cells), list[Floats]()
    if not (parent[1:] >= parent[:-1]).all():
        return None
    areas = leaves.areas[here]
    unbiased, values, stddev = (each[here] for each in (cellmap.unbiased, cellmap.values, cellmap.stddev))
    for some in _blocks(parent):
        above = parent[some]
        ours = np.stack([unbiased[some], np.maximum(values[some], 0), stddev[some] ** 2])
        if _in_fours(above):
            found.append(_of_fours(areas[some], ours))
            continue
        family = np.append(0, np.cumsum(above[1:] != above[:-1]))
        found.append(_of_families(family, areas[some], np.ones(len(above), dtype=bool), ours)[0])
    beyond, even, people = np.concatenate(found, axis=1)
    return beyond, even, people


def _run(positions: Ints) -> Ints | slice:
    """Positions, as a slice where they are one after another: then nothing is copied."""
    if len(positions) and (positions[1:] - positions[:-1] == 1).all():
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


def _blocks(parent: Ints | Cells) -> list[slice]:
    """Cells of one level in blocks of whole families, which a processor's cache holds; all, if they are not sorted."""
    if not len(parent) or not (parent[1:] >= parent[:-1]).all():
        return [slice(0, len(parent))]
    families = parent[::AT_ONCE] if len(parent) > AT_ONCE else parent[:1]
    cuts = sorted({*np.searchsorted(parent, families).tolist(), len(parent)})
    return [slice(start, end) for start, end in pairwise(cuts)]


def _of_families(parent: Ints, areas: Floats, own: Bools, ours: Floats) -> tuple[Floats, Floats]:
    """The three numbers of some families with cells of the map, float64[3, some]; and the sums of all, float64[3, all].

    `ours` are the unbiased number, the best guess and the variance of each cell.
    """
    parent = parent - parent.min(initial=0 if not len(parent) else int(parent[0]))
    size = int(parent.max(initial=-1)) + 1
    unbiased, _, variance = ours
    whole = np.stack([np.bincount(parent, each, size).astype(np.float64) for each in ours])
    area = np.bincount(parent, areas, size)
    share = np.divide(areas, area[parent], out=np.zeros(len(parent)), where=area[parent] > 0)
    noise = (1 - 2 * share) * variance + share**2 * whole[2][parent]
    beyond = np.bincount(parent, (unbiased - share * whole[0][parent]) ** 2 - noise, size)
    even = (whole[0] ** 2 - whole[2]) * np.bincount(parent, share * (1 - share), size)
    members = np.bincount(parent, minlength=size)
    telling = (members > 1) & (np.bincount(parent, own, size) > 0)
    return np.stack([beyond, even, whole[1]])[:, telling], whole[:, members > 0]


def _in_fours(parent: Cells) -> bool:
    """Whether cells of one level, in order, are whole families of a quadtree."""
    first, last = parent[::4], parent[3::4]
    return len(parent) % 4 == 0 and bool((first == last).all() and (first[1:] != last[:-1]).all())


def _of_fours(areas: Floats, ours: Floats) -> Floats:
    """What `_of_families` says of whole families of four cells of the map, to the last bit, without looking any up."""
    areas, ours = areas.reshape(-1, 4), ours.reshape(3, -1, 4)
    area, whole, (unbiased, _, variance) = _sum_of_four(areas), _sum_of_four(ours), ours
    share = np.divide(areas, area[:, None], out=np.zeros(areas.shape), where=area[:, None] > 0)
    noise = (1 - 2 * share) * variance + share**2 * whole[2][:, None]
    beyond = _sum_of_four((unbiased - share * whole[0][:, None]) ** 2 - noise)
    even = (whole[0] ** 2 - whole[2]) * _sum_of_four(share * (1 - share))
    return np.stack([beyond, even, whole[1]])


def _sum_of_four(numbers: Floats) -> Floats:
    """Sums over the last of some axes, which is 4 long, in its order from 0, as `np.bincount` adds up."""
    first, second, third, fourth = np.moveaxis(numbers, -1, 0)
    return np.asarray((((0.0 + first) + second) + third) + fourth)
