"""What a query asks, read off its encoder: its cells, its rules, and a sentence for a person."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from hazemap.cells import NOWHERE, Leaves, Tree, WholeDomain
from hazemap.encoders import Concatenation, CountMinSketch, Counts, Encoder, HaarWavelet
from hazemap.errors import Refused
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.statement_facts import Estimand
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.tables.contribution_bounding import Bounding
from hazemap.temporal.time_slots import Slots
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

MOST_LOOKED_AT = 1 << 12


@dataclass(frozen=True)
class QueryDescription:
    """What a device weighs before it answers: how many numbers, over how fine cells, by which rules.

    `side` is the side in metres of a square as large as the smallest cell; `marked` whether rows with a mark are
    counted apart from those without; `thrown` whether some cells are counted together in buckets, by a public hash.
    `slots` are those in which rows lie, where they do; `timed` whether rows are counted apart by when they were.
    """

    size: int
    side: float
    marked: bool
    thrown: bool
    rules: tuple[Bounding, ...]
    slots: Slots | None = None
    timed: bool = False

    def __str__(self) -> str:
        counted = " and ".join(dict.fromkeys(Estimand.of(rule).noun for rule in self.rules))
        rules = "; ".join(dict.fromkeys(str(rule) for rule in self.rules))
        apart = ", those with your mark apart from those without" if self.marked else ""
        what = "buckets of cells" if self.thrown else "cells in slots of time" if self.timed else "cells"
        when = ""
        if self.slots is not None:
            how = "apart by when they were" if self.timed else "at any of these times"
            when = f", {how}: {self.slots.in_words}"
        return (
            f"how many {counted} are in each of {self.size:,} {what}{apart}, the smallest {_metres(self.side)} wide"
            f"{when} ({rules})"
        )


def describe_query(task: Task) -> QueryDescription:
    """What a task asks; `Refused` for a kind of question that devices do not know."""
    try:
        each = list(_parts(task.question.encoder))
    except ValueError as error:  # cells that are none: only who measures them sees it
        raise Refused(f"this device cannot tell how large these cells are: {error!s:.100}") from error
    side = sqrt(min(part.area for part in each))
    marked = any(isinstance(part.tree, BinaryAttribute) for part in each)
    thrown = any(part.thrown for part in each)
    rules = tuple(part.rule for part in each)
    slots = next((part.tree.slots for part in each if isinstance(part.tree, TimedTree)), None)
    timed = any(part.timed for part in each)
    return QueryDescription(task.question.encoder.size, side, marked, thrown, rules, slots, timed)


class _Part(NamedTuple):
    """One vector of cells that is asked for: the area of the smallest of them, their tree, and the rule."""

    area: float
    tree: Tree
    rule: Bounding
    thrown: bool = False
    timed: bool = False


def _parts(encoder: Encoder) -> Iterator[_Part]:
    match encoder:
        case Concatenation():
            for part in encoder.parts:
                yield from _parts(part)
        case CountMinSketch():
            tree = _known(encoder.tree)
            yield _Part(_smallest_at(tree, encoder.level), tree, encoder.bounding, thrown=True)
        case HaarWavelet():
            yield _Part(_smallest_at(encoder.tree, encoder.level), encoder.tree, encoder.bounding)
        case Counts(cells=Leaves() as leaves):
            yield _Part(_smallest(leaves), _known(leaves.tree), encoder.bounding)
        case Counts(cells=WholeDomain(tree=tree)):
            yield _Part(float(_known(tree).area(tree.root).sum()), tree, encoder.bounding)
        case Counts(cells=AttributeCells() as sides):
            yield _Part(_smallest(sides.cells), sides.tree, encoder.bounding)
        case Counts(cells=AllSlots(cells=inner) | EachSlot(cells=inner) as places):
            [own] = _parts(Counts(inner, encoder.bounding))
            yield own._replace(tree=places.tree, timed=isinstance(places, EachSlot))
        case _:
            raise Refused(f"this device does not know how to judge a question of type {type(encoder).__name__}")


def _known(tree: Tree) -> Tree:
    """The tree, if its cells are places whose size a device can tell soon, whatever they are."""
    inner = tree.tree if isinstance(tree, BinaryAttribute) else tree
    if not isinstance(inner, Quadtree | Hexagons | TwoLevelGrid | BinaryPartition | Districts):
        raise Refused(f"this device does not know how to judge cells of type {type(inner).__name__}")
    return tree


def _smallest(leaves: Leaves) -> float:
    """The area of the smallest cell in square metres, for cells of which others are cut as well.

    What a cell owns beside the cells within it is made of siblings of these, so it is no smaller than they are.
    """
    _known(leaves.tree)
    real = leaves.cells[leaves.cells != NOWHERE]
    return float(leaves.tree.area(real).min(initial=np.inf))


def _smallest_at(tree: Tree, level: int) -> float:
    """The area of the smallest cell of a level: one of its first and last, where there are too many to look at all.

    The squares of Mercator shrink towards the poles, so the smallest lie in the first row or in the last.
    """
    cells = tree.root
    for _ in range(level):
        cells = tree.children(cells)
        if len(cells) > MOST_LOOKED_AT:
            cells = cells[[0, -1]]
    return float(tree.area(cells).min())


def _metres(side: float) -> str:
    return f"{side / 1000:,.3g} km" if side >= 1000 else f"{side:.3g} m"
