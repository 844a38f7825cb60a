"""Districts by the files that hold them, and the methods that go with them."""

import re
from collections.abc import Callable

from hazemap.algorithms import Adaptive, Flat, Geometric, Hierarchical, National
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.errors import InputError
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.district_squares import DistrictSquares
from hazemap.spatial.districts import Districts
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.parsing import DistrictFiles, refuse
from hazemap.tables.contribution_bounding import Bounding

LEVELLED: dict[str, Callable[..., MethodOfBox]] = {"flat": Flat, "hierarchical": Hierarchical, "geometric": Geometric}
"""Methods that count down to a level of districts, by default the finest."""

METHODS = ", ".join(("national, national:PEOPLE", "adaptive", *(f"{name}, {name}:LEVEL" for name in LEVELLED)))


def opened(cells: DistrictFiles) -> Districts:
    """The districts; `FileError` or `InputError` says what is wrong with the files."""
    return Districts.of(*(DistrictLayer(*layer) for layer in cells.layers))


def way_in_districts(method: str, cells: DistrictFiles, rule: Bounding) -> MethodOfBox:
    """The method that a text names, over districts; level 1 is the first file, PEOPLE what makes a district dynamic."""
    found = re.fullmatch(
        r"(adaptive|auto)|(flat|hierarchical|geometric)(?::([0-9]{1,2}))?|national(?::([1-9][0-9]{0,10}))?", method
    )
    if found is None:
        refuse("a method for districts", METHODS, method)
    tree = opened(cells)
    if found[1]:
        return Adaptive(tree, rule)
    if not found[2]:
        district_squares = DistrictSquares(tree, Quadtree.world(cells.squares))
        return National(district_squares, rule, int(found[4])) if found[4] else National(district_squares, rule)
    level = int(found[3] or tree.depth)
    if level > tree.depth:
        raise InputError(f"{cells} have levels 0 (all of them) to {tree.depth}; found {level}")
    return LEVELLED[found[2]](tree, level=level, bounding=rule)
