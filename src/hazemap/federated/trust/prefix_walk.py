"""Which questions two servers can answer from one report of each person: a walk down a prefix tree, level by level.

A report holds a path of cells (Poplar1, draft-irtf-cfrg-vdaf, section 9): at any one level the servers can add up, for
a list of candidate prefixes, how many paths begin with each. What was added up can be added up further before noise
goes on it, so cells that are unions of earlier candidates cost nothing more. New candidates must lie deeper than all
levels before, and below the last candidates: `Poplar1.is_valid`. So each level is verified once.

Cells are bit strings (`CellStrings`). The first bit says whether a person is nowhere. Then comes the number of the
first cell among the tree's roots, and for each level down the number of the child among its siblings. A last bit is 0,
and is never asked for: so all sums are in one field, that of inner nodes.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.cells import NOWHERE, Cells, Growing, Leaves, Tree, WholeDomain, distinct
from hazemap.encoders import Concatenation, Counts, Encoder
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.protocols.dap.prefix_question import PrefixCells, PrefixQuestion
from hazemap.machine_code.arrays import Ints, Words
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import Bounding
from hazemap.vdaf.poplar1_evaluation import Poplar1Parameter

MOST_PREFIXES = 1 << 16
"""Candidates of one level, at most, unless said otherwise: a server's work for each report grows with them."""


class PrefixWalk:
    """How far the servers have come: the candidates of each level so far, and the number of questions.

    >>> tree = Quadtree.world(depth=6)
    >>> walk = PrefixWalk(levels=2)
    >>> walk.take(Counts(Leaves.at_level(tree, 3)))
    >>> walk.take(Counts(Leaves(tree, tree.children(tree.children(tree.root)))))  # level 2: unions of what is known
    >>> [(level, len(cells)) for level, cells in walk.candidates]
    [(3, 64)]
    """

    def __init__(self, levels: int, most: int = MOST_PREFIXES) -> None:
        if levels < 1 or most < 1:
            raise InputError("a walk has 1 level or more, and 1 candidate or more on each")
        self.levels, self.most = levels, most
        self.candidates: list[tuple[int, Cells]] = []
        self.asked: Cells = np.zeros(0, dtype=np.uint64)
        self.where: tuple[Tree, Bounding] | None = None

    def take(self, encoder: Encoder) -> None:
        """Evaluate what a question needs, or raise `Unanswerable` if it leaves the walk. Nothing is done twice."""
        tree, cells = self._cells(encoder)
        if len(self._new(cells)):
            self._evaluate(tree, cells.cells[~np.isin(cells.cells, self.asked)])
        self.asked = distinct(np.concatenate([self.asked, cells.cells]))

    def _cells(self, encoder: Encoder) -> tuple[Tree, Leaves]:
        """All cells of a question as one list; those inside others are listed too."""
        found = []
        for each in flat(encoder):
            if not isinstance(each, Counts) or each.sensitivity.l1 != 1 or isinstance(each.cells.tree, Growing):
                raise Unanswerable(
                    "one report holds one person's path in a tree that is known beforehand, so it answers counts of "
                    "one row a person, of cells of that tree: ask for a report each round (TwoServers) instead"
                )
            tree, cells = each.cells.tree, each.cells
            string_bits(tree)
            if self.where is None:
                self.where = tree, each.bounding
            if self.where != (tree, each.bounding):
                raise Unanswerable("people reported once, in one tree and by one rule; another was asked for")
            if not isinstance(cells, Leaves | WholeDomain):
                raise Unanswerable(f"one report answers counts of listed cells, not of {type(cells).__name__}")
            found.append(cells.cells if isinstance(cells, Leaves) else tree.root)
        together = distinct(np.concatenate(found))
        return tree, Leaves(tree, together[together != NOWHERE])  # one prefix at any level holds those outside

    def _new(self, cells: Leaves) -> Cells:
        """The cells that are no unions of candidates so far."""
        if not self.candidates:
            return cells.cells
        known = np.zeros(cells.size, dtype=np.bool_)
        for level in distinct(cells.levels.astype(np.uint64)).astype(np.int64).tolist():
            deep = [found for depth, found in self.candidates if depth >= level]
            if not deep:
                continue
            first, last = Leaves(cells.tree, distinct(np.concatenate(deep))).stretches
            here = np.flatnonzero(cells.levels == level)
            begins, ends = (side[here] for side in cells.spans)
            at = np.searchsorted(first, begins, "right") - 1
            known[here] = (at >= 0) & (last[at] >= ends)
        return cells.cells[~known]

    def _evaluate(self, tree: Tree, new: Cells) -> None:
        """One level deeper: the deepest of the cells that nobody asked for before, and all that lies in them there."""
        level = int(tree.level(new).max())
        if len(self.candidates) == self.levels:
            raise Unanswerable(
                f"the reports were made for {self.levels} levels, which devices paid for when they sent them; a "
                "further one was asked for: ask for reports of more levels, or for fewer rounds"
            )
        found = descendants(tree, new, level, self.most)
        if self.candidates:
            self._check_below(tree, level, found)
        self.candidates.append((level, found))

    def _check_below(self, tree: Tree, level: int, found: Cells) -> None:
        last, known = self.candidates[-1]
        above = found
        for _ in range(level - last):
            above = distinct(tree.parent(above))
        if level <= last or not np.isin(above, known).all():
            raise Unanswerable(
                f"two servers walk down a tree of one report: after level {last} they can ask only for what lies below "
                "the cells that they asked for there, and deeper. Take a method that goes down level by level "
                "(Adaptive.for_one_report), or ask for a report each round (TwoServers)"
            )


def flat(encoder: Encoder) -> list[Encoder]:
    """The parts of a stack, all the way down."""
    if isinstance(encoder, Concatenation):
        return [each for part in encoder.parts for each in flat(part)]
    return [encoder]


def descendants(tree: Tree, cells: Cells, level: int, most: int) -> Cells:
    """What lies in these cells at one level, ascending; `Unanswerable` if that is more than `most` cells."""
    depth = tree.level(cells)
    done = [cells[depth == level]]
    todo = cells[depth < level]
    while len(todo):
        if len(todo) + sum(map(len, done)) > most:
            raise Unanswerable(
                f"this question needs more than {most:,} prefixes of level {level}: ask for cells whose sizes differ "
                "less, or allow more prefixes"
            )
        todo = tree.children(todo)
        deep = tree.level(todo) == level
        done.append(todo[deep])
        todo = todo[~deep]
    found = distinct(np.concatenate(done))
    if len(found) > most:
        raise Unanswerable(f"this question needs {len(found):,} prefixes of level {level}; {most:,} are allowed")
    return found


def string_bits(tree: Tree) -> int:
    """The length of a path in bits: a bit for outside, those of the first cell, and of each step down.

    >>> string_bits(Quadtree.world(depth=10))
    21
    """
    if not isinstance(tree, Quadtree | Hexagons):
        raise Unanswerable(
            "one report holds a path of squares or hexagons, not of other cells: ask a report each round"
        )
    step = 2 if isinstance(tree, Quadtree) else 3
    return 1 + max(len(tree.root) - 1, 0).bit_length() + step * tree.depth


@dataclass(frozen=True)
class CellStrings:
    """The strings of a tree's cells.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> strings = CellStrings(Quadtree.world(depth=3))
    >>> strings.bits, strings.of_cells(strings.tree.children(strings.tree.root), 1).tolist()
    (8, [0, 1, 2, 3])
    >>> strings.of_people(np.array([64, 127, 0], dtype=np.uint64)).tolist()
    [0, 126, 128]
    """

    tree: Tree

    @property
    def bits(self) -> int:
        """Of a person's string."""
        return string_bits(self.tree) + 1

    def length(self, level: int) -> int:
        """Bits of a cell's string at a level: the first ones of the strings of whoever is in it."""
        roots = max(len(self.tree.root) - 1, 0).bit_length()
        return 1 + roots + (level * self._step)

    def of_people(self, base: Cells) -> Words:
        """What people in these base cells, or `NOWHERE`, report. O(people x depth)."""
        found = np.full(len(base), np.uint64(1) << np.uint64(self.bits - 1))
        somewhere = base != NOWHERE
        found[somewhere] = self.of_cells(base[somewhere], self.tree.depth) << np.uint64(1)
        return found

    def of_cells(self, cells: Cells, level: int) -> Words:
        """The strings of cells of one level, as numbers of `length(level)` bits. O(cells x level)."""
        found, step = np.zeros(len(cells), dtype=np.uint64), np.uint64(self._step)
        for up in range(level):
            found |= _places(self.tree, cells) << (np.uint64(up) * step)
            cells = self.tree.parent(cells)
        return found | np.searchsorted(self.tree.root, cells).astype(np.uint64) << (np.uint64(level) * step)

    def parameter(self, level: int, cells: Cells) -> tuple[Poplar1Parameter, Ints]:
        """What asks how many are in each of some cells of a level, and, last, how many are nowhere.

        Also the place of each cell among the prefixes, which ascend.
        """
        strings = self.of_cells(cells, level)
        order = np.argsort(strings)
        places = np.empty(len(cells), dtype=np.int64)
        places[order] = np.arange(len(cells))
        nowhere = np.uint64(1) << np.uint64(self.length(level) - 1)
        return Poplar1Parameter(self.length(level) - 1, np.append(strings[order], nowhere)), places

    @property
    def _step(self) -> int:
        """Bits a level."""
        roots = max(len(self.tree.root) - 1, 0).bit_length()
        return (string_bits(self.tree) - 1 - roots) // max(self.tree.depth, 1)


def _places(tree: Tree, cells: Cells) -> Words:
    """The place of each cell among the children of its parent."""
    siblings = tree.children(distinct(tree.parent(cells)))
    families = tree.parent(siblings)
    first = np.flatnonzero(np.concatenate([[True], families[1:] != families[:-1]])[: len(families)])
    sizes: Ints = np.diff(np.append(first, len(siblings)))
    place = np.arange(len(siblings)) - np.repeat(first, sizes)
    order = np.argsort(siblings)
    found: Words = place[order[np.searchsorted(siblings[order], cells)]].astype(np.uint64)
    return found


def prefix_question(walk: PrefixWalk, number: int, encoder: Encoder, share: Fraction) -> PrefixQuestion:
    """The `number`-th question (from 0) of a walk that has taken it; its sums come in the encoder's order.

    >>> from hazemap import AtMostRows, Quadtree
    >>> walk, quarters = PrefixWalk(levels=1), Counts(Leaves.at_level(Quadtree.world(depth=2), 1), AtMostRows(1))
    >>> walk.take(quarters)
    >>> question = prefix_question(walk, 0, quarters, Fraction(1, 3))
    >>> question.size, question.sensitivity == quarters.sensitivity, len(question.to_bytes())
    (4, True, 77)
    """
    if walk.where is None:
        raise Unanswerable("nothing was asked")
    level, cells = walk.candidates[-1]
    strings = CellStrings(walk.where[0])
    parameter, _ = strings.parameter(level, cells)
    return PrefixQuestion.of(number, parameter.to_bytes(), share, _parts(strings, encoder, 1))


def _parts(strings: CellStrings, encoder: Encoder, weight: int) -> tuple[PrefixCells, ...]:
    if isinstance(encoder, Concatenation):
        pairs = zip(encoder.weights, encoder.parts, strict=True)
        return tuple(part for own, each in pairs for part in _parts(strings, each, weight * own))
    if isinstance(encoder, Counts) and isinstance(encoder.cells, WholeDomain):
        return (PrefixCells.of(np.zeros(1, dtype=np.uint64), [1], weight),)  # all whose first bit says: somewhere
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves):
        raise Unanswerable("one report answers counts of listed cells")
    asked = encoder.cells
    prefixes, lengths = np.ones(asked.size, dtype=np.uint64), np.ones(asked.size, dtype=np.int64)
    real = asked.cells != NOWHERE
    for level in np.unique(asked.levels[real]).tolist():
        here = real & (asked.levels == level)
        prefixes[here] = strings.of_cells(asked.cells[here], level)
        lengths[here] = strings.length(level)
    return (PrefixCells.of(prefixes, lengths, weight),)
