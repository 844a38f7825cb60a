"""Which of the counted regions contain which.

Every answer counts regions: whole cells, or cells less the deeper cells asked beside them. All regions of a
run, cut at each other's borders, give *atoms*; a region is a few ranges of atoms. Regions form a forest when
any two are disjoint or nested. Where an old region cuts across a newer one (a cell that was collapsed and
split another way) the old one is left out: what remains is a forest, on which least squares are exact.

Whole cells of one tree are always disjoint or nested. So where no answer has cells inside each other, as in grids,
a forest is found in one walk along the spans of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Leaves, distinct
from hazemap.machine_code.arrays import Ints
from hazemap.vdaf.compiled_loops import fitting


class Forest(NamedTuple):
    """Regions in an order in which parents come before their children.

    `parent` is the position of the smallest region around, -1 for none; `missing` says that some of a
    region lies in none of its children; `row` is the region's position in the partitions given, one after
    another. All have one entry a region that was kept.
    """

    parent: Ints
    missing: NDArray[np.bool_]
    row: Ints


@dataclass(frozen=True, eq=False)
class Ranges:
    """For each region some half-open ranges of atoms: those of region i are `start[i] … start[i + 1]`."""

    start: Ints
    low: Ints
    high: Ints


def forest(partitions: Sequence[Leaves]) -> Forest:
    """The forest of all regions of some partitions of one tree, oldest first: O(regions · partitions), or · depth.

    One more region, the last row, is everything: the union of the tree's root cells.
    """
    return _of_regions(partitions) if any(partition.nested for partition in partitions) else _of_cells(partitions)


def _of_cells(partitions: Sequence[Leaves]) -> Forest:
    """The forest of cells of which none lies inside another of the same partition."""
    tree, rows = partitions[0].tree, sum(partition.size for partition in partitions)
    begin, end = tree.span(tree.root)
    firsts, lasts, places = [begin.min(keepdims=True)], [end.max(keepdims=True)], [np.full(1, rows)]
    offset = 0
    for partition in partitions:
        first, last = partition.spans
        order = None if partition.in_order else partition.order
        firsts.append(first if order is None else first[order])
        lasts.append(last if order is None else last[order])
        places.append(np.arange(offset, offset + partition.size) if order is None else order + offset)
        offset += partition.size
    stops = np.cumsum([len(first) for first in firsts])
    starts, everything = np.append(0, stops[:-1]), (end - begin).sum() + np.uint64(len(begin))
    parent, at, missing = fitting(_walk_loop, int(stops[-1]))(
        np.concatenate(firsts), np.concatenate(lasts), starts, stops, everything
    )
    return Forest(parent, missing, np.concatenate(places)[at])


def _of_regions(partitions: Sequence[Leaves]) -> Forest:
    """The forest of cells less those inside them."""
    ranges = _ranges(partitions)
    age = np.repeat(np.arange(1, len(partitions) + 2), [*(p.size for p in partitions), 1])
    age[-1] = 0
    lengths = np.concatenate([[0], np.cumsum(ranges.high - ranges.low)])
    size = lengths[ranges.start[1:]] - lengths[ranges.start[:-1]]
    atoms = int(ranges.high.max(initial=0))
    kept = np.flatnonzero(size > 0)
    while True:
        order = kept[np.lexsort((age[kept], -size[kept]))]  # of equal regions the oldest is outermost
        parent, dropped = fitting(_nest_loop, atoms)(order, ranges.start, ranges.low, ranges.high, age, atoms)
        if not len(dropped):
            break
        kept = np.setdiff1d(kept, dropped)
    place = np.full(len(size) + 1, -1)
    place[order] = np.arange(len(order))
    inside = np.zeros(len(order), dtype=np.int64)
    placed = place[parent]
    np.add.at(inside, placed[placed >= 0], size[order][placed >= 0])
    return Forest(placed, inside < size[order], order)


def _ranges(partitions: Sequence[Leaves]) -> Ranges:
    """Each region as ranges of atoms: its span, less the spans of the cells directly inside."""
    firsts, lasts, holders, offset = [], [], [], 0
    for partition in partitions:
        first, last = partition.spans
        firsts.append(first)
        lasts.append(last)
        holders.append(np.where(partition.holder >= 0, partition.holder + offset, -1))
        offset += partition.size
    tree = partitions[0].tree
    begin, end = tree.span(tree.root)
    first, last, holder = np.concatenate(firsts), np.concatenate(lasts), np.concatenate(holders)
    edges: Cells = distinct(np.concatenate([first, last + np.uint64(1), begin, end + np.uint64(1)]))
    low, high = np.searchsorted(edges, first), np.searchsorted(edges, last + np.uint64(1))
    holes = np.flatnonzero(holder >= 0)
    # A region with holes runs from its start to the first hole, between holes, and from the last hole to its end.
    owner = np.concatenate([np.arange(offset), holder[holes], np.full(len(begin), offset)])
    begins = np.concatenate([low, high[holes], np.searchsorted(edges, begin)])
    ends = np.concatenate([high, low[holes], np.searchsorted(edges, end + np.uint64(1))])
    by_begin, by_end = np.lexsort((begins, owner)), np.lexsort((ends, owner))
    owner, begins, ends = owner[by_begin], begins[by_begin], ends[by_end]
    some = begins < ends  # two holes side by side leave nothing between them
    start = np.concatenate([[0], np.cumsum(np.bincount(owner[some], minlength=offset + 1))])
    return Ranges(start, begins[some], ends[some])


def _walk_loop(first, last, start, stop, everything):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Spans in several sorted runs, the oldest run first: parents, their places, and where children leave a gap.

    The next cell is the one that begins first; of those the longest; of those the oldest. Its run goes on until a cell
    of another run begins.
    """
    n, head, none = len(first), start.copy(), np.uint64(0xFFFFFFFFFFFFFFFF)
    parent, at, covered = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.uint64)
    begins = np.empty(len(start), dtype=np.uint64)
    for r in range(len(start)):
        begins[r] = first[start[r]] if start[r] < stop[r] else none
    i, around = 0, -1
    while i < n:
        run, others = 0, none
        for r in range(1, len(begins)):
            if begins[r] < begins[run] or (begins[r] == begins[run] and last[head[r]] > last[head[run]]):
                run, others = r, begins[run]
            elif begins[r] < others:
                others = begins[r]
        while True:
            cell = head[run]
            while around >= 0 and last[at[around]] < first[cell]:
                around = parent[around]
            at[i], parent[i] = cell, around
            if around >= 0:
                covered[around] += last[cell] - first[cell] + np.uint64(1)
            around = i
            i += 1
            head[run] += 1
            if head[run] == stop[run]:
                begins[run] = none
                break
            begins[run] = first[head[run]]
            if begins[run] >= others:
                break
    missing = np.empty(n, dtype=np.bool_)
    for i in range(n):
        length = everything if at[i] == 0 else last[at[i]] - first[at[i]] + np.uint64(1)
        missing[i] = covered[i] != length
    return parent, at, missing


def _nest_loop(  # type: ignore[no-untyped-def]
    order, start, low, high, age, atoms
):  # pragma: no cover - compiled
    innermost = np.full(atoms, -1)
    placed_at = np.full(len(start) - 1, -1)
    parent = np.full(len(order), -1)
    dropped = np.zeros(len(start) - 1, dtype=np.bool_)
    for i in range(len(order)):
        region = order[i]
        around, deepest, alike = innermost[low[start[region]]], -1, True
        for r in range(start[region], start[region + 1]):
            for atom in range(low[r], high[r]):
                other = innermost[atom]
                alike = alike and other == around
                if other >= 0 and (deepest < 0 or placed_at[other] > placed_at[deepest]):
                    deepest = other
        if not alike:  # the deepest one met does not hold all of this region: they cut across each other
            if age[region] <= age[deepest]:
                dropped[region] = True
                continue
            dropped[deepest] = True
        placed_at[region] = i
        parent[i] = around if alike else -1
        for r in range(start[region], start[region + 1]):
            for atom in range(low[r], high[r]):
                innermost[atom] = region
    return parent, np.flatnonzero(dropped)
