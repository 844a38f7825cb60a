"""The method of a map with marks: which marks are counted, and what its cells are cut for."""

import re
from collections.abc import Sequence
from fractions import Fraction

from hazemap.algorithms.private_bounding_box import MOST_ROOTS, PrivateBoundingBox
from hazemap.algorithms.proportion import Narrow, Proportion, ProportionInSlots, Significant
from hazemap.cells import Tree
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import FINEST, domain, opened_districts
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells, refuse
from hazemap.tables.contribution_bounding import Bounding
from hazemap.temporal.time_slots import Slots
from hazemap.values.boolean_attribute import YES_OR_NO, BinaryAttribute
from hazemap.values.sides_in_slots import check_room
from hazemap.values.timed_tree import TimedTree

GOALS = "density, density:TIMES, width, width:WIDTH"


def goal_named(text: str | None) -> Significant | Narrow:
    """What cells are cut for: how many people they hold, or how wide the interval of a share is.

    >>> goal_named("width:0.1"), goal_named(None)
    (Narrow(width=Fraction(1, 10), confidence=Fraction(19, 20)), Significant(times=Fraction(4, 1)))
    """
    found = re.fullmatch(r"(density|width)(?::([0-9]{1,4}(?:\.[0-9]{1,6})?|\.[0-9]{1,6}))?", text or "density")
    if found is None:
        refuse("a goal", GOALS, str(text))
    kind = Significant if found[1] == "density" else Narrow
    return kind() if found[2] is None else kind(Fraction(found[2]))


def method_of_marks(
    marks: Sequence[str],
    goal: str | None,
    method: str,
    cells: QuadtreeCells | HexagonCells | DistrictFiles,
    box: Box | None,
    rule: Bounding,
    slots: Slots,
) -> Proportion | ProportionInSlots | PrivateBoundingBox:
    """The method that counts marks, over these cells of the box; without one, over those of a box it finds.

    With slots other than all times it counts them in each.
    """
    if method != "auto":
        raise InputError(f"marks are counted by one method, which cuts cells for --goal: leave the method {method} out")
    if rule.outside.asked:
        raise InputError("a share is of people on the map: with marks say outside = 'drop', or nothing")
    aim = goal_named(goal)
    if isinstance(cells, DistrictFiles):
        if box is not None:
            raise InputError("districts already say where the map is: leave the box out")
        return _over(opened_districts(cells), slots, rule, aim, marks)
    made = _over(domain(cells, box), slots, rule, aim, marks)
    if box:
        return made
    found = PrivateBoundingBox(made, finest=FINEST)  # type: ignore[arg-type]  # it ends in marked counts
    if isinstance(made, ProportionInSlots):
        _refuse_too_many(made, found.tree(WORLD))
    return found


def _over(
    tree: Tree, slots: Slots, rule: Bounding, goal: Significant | Narrow, marks: Sequence[str]
) -> Proportion | ProportionInSlots:
    if not slots.timed:
        return Proportion(tree, rule, goal, marks=tuple(marks))
    made = ProportionInSlots(tree, slots, rule, goal, marks=tuple(marks))
    _check_room(made, tree)
    return made


def _refuse_too_many(made: ProportionInSlots, world: Quadtree | Hexagons) -> None:
    """`InputError` for shares in slots that a box might hold too many of, wherever it is found: before it is paid."""
    if isinstance(world, Hexagons) and made.most_cells < 2 * MOST_ROOTS:
        raise InputError(
            f"a box that is yet to be found may hold {MOST_ROOTS:,} hexagons of the coarsest size, which are too many "
            f"in {len(made.slots.names):,} slots with {made.known.sides} sides: declare the box, or leave hexagons out"
        )
    _check_room(made, world)


def _check_room(made: ProportionInSlots, tree: Tree) -> None:
    sides = made.known.sides
    check_room(TimedTree(tree, made.slots), BinaryAttribute(tree, None if sides == YES_OR_NO else sides).shift)
