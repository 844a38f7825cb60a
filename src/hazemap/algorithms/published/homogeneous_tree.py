"""Growing homogeneous trees from several roots in the same rounds (Shaham et al. 2022, algorithms 1 to 3).

Level after level: count the cells and stop where few people are; look for the line that leaves two even halves in what
is left, and cut. A cell that is cut no more is counted again with all that is left on the way to it. Cells of a level
are disjoint, so each question is paid once, whatever their number, and people pay only for the cells they are in
(`privacy.parallel_composition`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Cells, Leaves
from hazemap.encoders import Counts, EvenSplitScores, SplitCosts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.machine_code.arrays import Ints
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.queries.noisy_queries import Answer, Choice, Measure, Query, Question, Rounds
from hazemap.spatial.rectangle_trees import Cuttable, Rectangles
from hazemap.tables.contribution_bounding import Bounding

MOST_CANDIDATES = 1 << 22
"""Lines of all cells among which one question chooses: some 0.3 GB."""


@dataclass(frozen=True)
class BudgetAllotment:
    """What is spent below one root, as shares of the run's budget, and when its cells are cut no more.

    `left` is for every way from the root to a leaf. After d cuts a cell is counted with deciding[d], and is a leaf if
    that says fullness[d] or less; otherwise its line is looked for with cutting[d]. After as many cuts as there are
    entries, every cell is a leaf. Whatever is left then counts the leaf. The root waits until `begins` levels of other
    trees went by, so that cells which pay the same are asked together.

    >>> quarter = Fraction(1, 4)
    >>> BudgetAllotment(Fraction(1), (quarter,), (quarter,), (100.0,)).height
    1
    """

    left: Fraction
    deciding: tuple[Fraction, ...]
    cutting: tuple[Fraction, ...]
    fullness: tuple[float, ...]
    begins: int = 0

    def __post_init__(self) -> None:
        if not len(self.deciding) == len(self.cutting) == len(self.fullness):
            raise InputError("a budget allotment needs a count, a cut and a fullness for each level")
        spent = sum((*self.deciding, *self.cutting), Fraction(0))
        if min((*self.deciding, *self.cutting), default=0) < 0 or spent >= self.left:
            raise InputError(
                f"counts and cuts get {float(spent):.4g} of the budget, and leaves need some of the "
                f"{float(self.left):.4g} that there is: build fewer levels, or spend less on cuts"
            )

    @property
    def height(self) -> int:
        """How many times a cell may be cut."""
        return len(self.deciding)


class GrownTree(NamedTuple):
    """The tree, its uncut cells below the roots, and all that was asked and answered."""

    tree: Cuttable
    leaves: Cells
    transcript: tuple[tuple[Question, Answer], ...]


@dataclass(frozen=True)
class TreeGrower:
    """What is the same for all cells: how they are counted, how lines are looked for, what is too small to be cut.

    A line is looked for in `turns` turns (T): start in the middle, measure the cost of cutting there and on the quarter
    points, keep the best of the three and the lines beside it, and so on; 2T + 1 costs that share what the level may
    spend on cuts. With no turn, cells are halved. Where `turns` is None one of all lines is chosen by its cost, with
    all that the level may spend (`EvenSplitScores`; the paper adds noise to every cost, and leaves each a part of the
    budget); of some at equal distances where there are more than `MOST_CANDIDATES`. The axis alternates, north and
    south of the line where the height left is even; a cell one pixel wide is cut along its other axis. A cell of
    `least_pixels` or fewer is a leaf. What was fixed before it is asked is not asked, and not paid: the count of such a
    cell, or the cost where there is one line.

    (In the paper's listing the quarter points are ⌊(k − l)/2⌋ and ⌊(r − k)/2⌋; they must be l + ⌊(k − l)/2⌋ and
    k + ⌊(r − k)/2⌋. And it cuts all cells down to the last level first, then stops above; cutting only what goes on
    gives the same tree, and leaves what the cuts below would have cost to the count of the leaf.)

    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> TreeGrower(AtMostRows(1)).turns
    3
    """

    bounding: Bounding
    turns: int | None = 3
    least_pixels: int = 5

    def __post_init__(self) -> None:
        if (self.turns or 0) < 0 or self.least_pixels < 1:
            raise InputError("the number of turns must not be negative, and a cell of one pixel cannot be cut")

    def grown(self, tree: Cuttable, roots: Cells, allotments: Sequence[BudgetAllotment]) -> Rounds[GrownTree]:
        """Ask until there are only leaves, then count those; `allotments` has one entry a root.

        Some T + 1 questions a level, and one for every sum that is left; more where roots are given different shares.
        """
        kinds = tuple(dict.fromkeys(allotments))
        number = {kind: at for at, kind in enumerate(kinds)}
        start = np.array([each.begins for each in allotments], dtype=np.int64)
        roots, which = np.array(roots, dtype=np.uint64), np.array([number[each] for each in allotments], dtype=np.int64)
        active = _Active.none(kinds)
        leaves: dict[Fraction, list[Cells]] = {}  # what is left for each
        transcript: list[tuple[Question, Answer]] = []
        for level in range(max((kind.begins + kind.height for kind in kinds), default=0) + 1):
            active = active.joined(roots[start == level], which[start == level])
            done = active.of([float(kind.begins + kind.height <= level) for kind in kinds]) > 0
            done |= _pixels(tree.rectangles(active.cells)) <= self.least_pixels
            for share, who in active.groups([_at(kind.deciding, level - kind.begins) for kind in kinds], ~done):
                query = Query(Counts(Leaves(tree, active.cells[who]), self.bounding), share)
                transcript.append((query, (yield query)))
                active.people[who] = transcript[-1][1].sums / self.bounding.unit
                active.pay(who, share)
            done |= active.people <= active.of([_at(kind.fullness, level - kind.begins) for kind in kinds])
            for share, who in active.left(done):
                leaves.setdefault(share, []).append(active.cells[who])
            active = active.part(~done)
            if len(active.cells):
                axis, line = yield from self._lines(tree, active, level, transcript)
                tree = tree.cut(active.cells, axis, line)
                active = active.halved(tree.children(active.cells))
        for share, cells in sorted(leaves.items()):
            query = Query(Counts(Leaves(tree, np.sort(np.concatenate(cells))), self.bounding), share)
            transcript.append((query, (yield query)))
        every = [roots[:0], *(cells for same in leaves.values() for cells in same)]
        return GrownTree(tree, np.sort(np.concatenate(every)), tuple(transcript))

    def mapped(self, grown: GrownTree, before: Sequence[tuple[Question, Answer]], reading: Reading) -> Rounds[CellMap]:
        """The map of the leaves, given what was asked before; who is in no cell was asked nothing yet."""
        transcript, cells = [*before, *grown.transcript], grown.leaves
        if self.bounding.outside.asked:
            query = Query(Counts(Leaves(grown.tree, np.array([NOWHERE])), self.bounding), Fraction(1))
            transcript.append((query, (yield query)))
            cells = np.append(cells, NOWHERE)
        return read(transcript, Leaves(grown.tree, cells), reading)

    def _lines(
        self, tree: Cuttable, active: "_Active", level: int, transcript: list[tuple[Question, Answer]]
    ) -> Rounds[tuple[NDArray[np.int8], Ints]]:
        """Which way and where to cut each cell."""
        height = active.of([kind.begins + kind.height - level for kind in active.kinds])
        axis, low, high = _range(tree.rectangles(active.cells), height)
        middle = (low + high) // 2
        spent, several = [_at(kind.cutting, level - kind.begins) for kind in active.kinds], low < high
        if self.turns is None:
            for share, who in active.groups(spent, several):
                most = _most_lines(high[who] - low[who] + 2)
                even = EvenSplitScores(Leaves(tree, active.cells[who]), axis[who], self.bounding, most)
                choice = Choice(even, share)
                transcript.append((choice, (yield choice)))
                middle[who] = transcript[-1][1].sums
                active.pay(who, share)
            return axis, middle
        each, best = [share / (2 * self.turns + 1) for share in spent], np.zeros(len(middle))
        for turn in range(self.turns):
            lines = np.stack([middle, low + (middle - low) // 2, middle + (high - middle) // 2], axis=1)
            costs = np.zeros(lines.shape)
            costs[:, 0] = best
            known = 1 if turn else 0
            for share, who in active.groups([one * (3 - known) for one in each], several):
                scores = SplitCosts(Leaves(tree, active.cells[who]), axis[who], lines[who, known:], self.bounding)
                question = Measure(scores, share)
                transcript.append((question, (yield question)))
                costs[who, known:] = transcript[-1][1].sums.reshape(-1, 3 - known)
                active.pay(who, share)
            chosen = costs.argmin(axis=1)
            low = np.choose(chosen, [lines[:, 1], low, middle])
            high = np.choose(chosen, [lines[:, 2], middle, high])
            rows = np.arange(len(middle))
            middle, best = lines[rows, chosen], costs[rows, chosen]
        return axis, middle


@dataclass(eq=False)
class _Active:
    """Cells that may still be cut: the kind of allotment of each, what was paid on the way to it, its people.

    What was paid is one of `sums`. Of people there is the last count, halved with every cut since.
    """

    cells: Cells
    kind: Ints
    kinds: tuple[BudgetAllotment, ...]
    paid: Ints
    sums: tuple[Fraction, ...]
    people: NDArray[np.float64]

    @classmethod
    def none(cls, kinds: tuple[BudgetAllotment, ...]) -> "_Active":
        """Not one cell."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(nothing.astype(np.uint64), nothing, kinds, nothing, (Fraction(0),), nothing.astype(np.float64))

    def of(self, values: Sequence[float]) -> NDArray[np.float64]:
        """What belongs to each cell, of a number for each kind."""
        return np.array(values, dtype=np.float64)[self.kind]

    def groups(self, shares: Sequence[Fraction], wanted: NDArray[np.bool_]) -> list[tuple[Fraction, Ints]]:
        """Cells that pay the same for the next question, by position, for each share above 0."""
        distinct = sorted(set(shares) - {Fraction(0)})
        place = np.array([distinct.index(share) if share else -1 for share in shares])[self.kind]
        return _grouped(distinct, place, wanted)

    def left(self, wanted: NDArray[np.bool_]) -> list[tuple[Fraction, Ints]]:
        """The same for all that is left on the way to each cell."""
        code = self.kind * len(self.sums) + self.paid
        pairs = np.flatnonzero(np.bincount(code))
        shares = [self.kinds[i // len(self.sums)].left - self.sums[i % len(self.sums)] for i in pairs.tolist()]
        distinct = sorted(set(shares))
        place = np.zeros(len(self.kinds) * len(self.sums), dtype=np.int64)
        place[pairs] = [distinct.index(share) for share in shares]
        return _grouped(distinct, place[code], wanted)

    def pay(self, who: Ints, share: Fraction) -> None:
        """Some cells pay."""
        paid = self.paid.copy()
        paid[who] += len(self.sums)
        every = (*self.sums, *(each + share for each in self.sums))
        used = np.flatnonzero(np.bincount(paid))
        renamed = np.zeros(len(every), dtype=np.int64)
        renamed[used] = np.arange(len(used))
        self.paid = renamed[paid]
        self.sums = tuple(every[at] for at in used.tolist())

    def joined(self, cells: Cells, kind: Ints) -> "_Active":
        """With some roots more, which have paid nothing, in ascending order."""
        if not len(cells):
            return self
        sums = self.sums if Fraction(0) in self.sums else (*self.sums, Fraction(0))
        paid = np.concatenate([self.paid, np.full(len(cells), sums.index(Fraction(0)))])
        people = np.concatenate([self.people, np.full(len(cells), np.inf)])
        every = np.concatenate([self.cells, cells])
        order = np.argsort(every)
        kinds = np.concatenate([self.kind, kind])[order]
        return _Active(every[order], kinds, self.kinds, paid[order], sums, people[order])

    def part(self, kept: NDArray[np.bool_]) -> "_Active":
        """Some of the cells."""
        return replace(
            self, cells=self.cells[kept], kind=self.kind[kept], paid=self.paid[kept], people=self.people[kept]
        )

    def halved(self, cells: Cells) -> "_Active":
        """The halves of the cells, which follow each other."""
        twice = np.repeat(np.arange(len(self.cells)), 2)
        return replace(self, cells=cells, kind=self.kind[twice], paid=self.paid[twice], people=self.people[twice] / 2)


def _most_lines(width: Ints) -> int:
    """The most parts of a cell between which it may be cut, so that there are at most `MOST_CANDIDATES` lines in all.

    >>> _most_lines(np.array([1024, 7])), _most_lines(np.full(1 << 12, 1 << 12))
    (65536, 1024)
    """
    most = 1 << 16
    while most > 2 and np.minimum(width, most).sum() > MOST_CANDIDATES:
        most //= 2
    return most


def learned_of_lines(turns: int | None) -> tuple[Learned, ...]:
    """What a search in so many turns (`TreeGrower`) learns at a price."""
    return {None: (Learned.EVENNESS,), 0: ()}.get(turns, (Learned.COSTS,))


def rounded_share(share: float) -> Fraction:
    """A share that need be no rational, rounded down to a multiple of 2⁻⁴⁰."""
    return Fraction(floor(share * (1 << 40)), 1 << 40)


def _grouped(shares: list[Fraction], place: Ints, wanted: NDArray[np.bool_]) -> list[tuple[Fraction, Ints]]:
    """Those cells that are wanted, by their place among the shares; only shares that some of them pay."""
    found = ((share, np.flatnonzero(wanted & (place == at))) for at, share in enumerate(shares))
    return [(share, who) for share, who in found if len(who)]


def _at(shares: Sequence[Any], level: int) -> Any:
    """The entry of a level; 0 above the first and below the last."""
    return shares[level] if 0 <= level < len(shares) else Fraction(0)


def _pixels(edges: Rectangles) -> Ints:
    return (edges.east - edges.west) * (edges.south - edges.north)


def _range(edges: Rectangles, height: NDArray[np.float64]) -> tuple[NDArray[np.int8], Ints, Ints]:
    """Which way each cell is cut next, and the first and the last line that it may be cut on."""
    width, length = edges.east - edges.west, edges.south - edges.north
    down = np.where(width < 2, True, np.where(length < 2, False, height % 2 == 0))
    low, high = np.where(down, edges.north, edges.west), np.where(down, edges.south, edges.east)
    return down.astype(np.int8), low + 1, high - 1
