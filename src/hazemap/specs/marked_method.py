"""The method of a map with marks: which marks are counted, and what its cells are cut for."""

import re
from collections.abc import Sequence
from fractions import Fraction

from hazemap.algorithms.private_bounding_box import PrivateBoundingBox
from hazemap.algorithms.proportion import Narrow, Proportion, Significant
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.specs.method_from_name import FINEST, domain, opened_districts
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells, refuse
from hazemap.tables.contribution_bounding import Bounding

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
) -> Proportion | PrivateBoundingBox:
    """The method that counts marks, over these cells of the box; without one, over those of a box it finds."""
    if method != "auto":
        raise InputError(f"marks are counted by one method, which cuts cells for --goal: leave the method {method} out")
    if rule.outside.asked:
        raise InputError("a share is of people on the map: with marks say outside = 'drop', or nothing")
    aim = goal_named(goal)
    if isinstance(cells, DistrictFiles):
        if box is not None:
            raise InputError("districts already say where the map is: leave the box out")
        return Proportion(opened_districts(cells), rule, aim, marks=tuple(marks))
    made = Proportion(domain(cells, box), rule, aim, marks=tuple(marks))
    return made if box else PrivateBoundingBox(made, finest=FINEST)  # type: ignore[arg-type]  # it ends in marked counts
