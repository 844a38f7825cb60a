"""A method by its name, over the cells and the box that go with it."""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import cos, degrees, radians
from typing import Any, cast

from hazemap.algorithms import (
    HB,
    HTF,
    Adaptive,
    AdaptiveGrid,
    CountMin,
    DensePyramid,
    FittedLevel,
    Flat,
    Geometric,
    Hierarchical,
    HTFPlus,
    KDTree,
    LaplaceClip,
    National,
    PrefixTree,
    PrivateBoundingBox,
    Privlet,
    PrivTree,
    PublishedPyramid,
    Pyramid,
    TopCells,
    UniformGrid,
)
from hazemap.algorithms.private_bounding_box import MethodOfBox, over
from hazemap.cellmap import Reading
from hazemap.cells import MOST_CELLS, Tree
from hazemap.encoders import Encoder
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.district_squares import DistrictSquares
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import REACH, Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.district_methods import way_in_districts
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells, refuse
from hazemap.tables.contribution_bounding import Bounding

WHOLE: dict[str, Callable[..., MethodOfBox]] = {
    "auto": Adaptive,
    "adaptive": Adaptive,
    "adaptive-grid": AdaptiveGrid,
    "uniform-grid": UniformGrid,
    "fitted-level": FittedLevel,
    "kd-tree": KDTree,
    "kd-tree-uniform": KDTree.uniform,
    "kd-hybrid": KDTree.hybrid,
    "privtree": PrivTree,
    "htf": partial(HTF, reading=Reading.UNBIASED),
    "htf+": HTFPlus,
    "prefix": PrefixTree,
    "total": partial(Flat, level=0),
    "sketch": CountMin,
    "pyramid": Pyramid,
    "pyramid-published": PublishedPyramid,
    "dense-pyramid": DensePyramid,
}
"""Methods that find out themselves how fine their cells are: of a tree and a bounding rule."""

LEVELLED: dict[str, Callable[..., MethodOfBox]] = {
    "flat": Flat,
    "hierarchical": Hierarchical,
    "geometric": Geometric,
    "hb": HB.published,
    "hb-least": HB.least,
    "privlet": Privlet,
    "singular": Flat,
    "laplace-clip": LaplaceClip,
}
"""Methods that count down to a level, NAME or NAME:LEVEL."""

TOP = re.compile(r"top(?::(100|[0-9]{1,2}(?:\.[0-9]{1,6})?))?")
"""The method that shows the top of the finest cells, so many per cent of them: top or top:PERCENT."""

KEEPING = re.compile(r"(pyramid|pyramid-published):([1-9][0-9]{0,4})")
"""Methods that cut so many cells of a level at most: NAME:CELLS."""

HALVING = ("htf", "kd-hybrid", "kd-tree", "kd-tree-uniform")
"""Methods that choose in private where a cell is cut."""

SQUARE = ("adaptive-grid", "htf+", "uniform-grid", *HALVING)
"""Methods that cut a square into rectangles of their own."""

CURATOR_ONLY = (HTF, KDTree, National, PrivTree)
"""Methods that ask more than sums over people."""

METHODS = ", ".join(
    (
        *WHOLE,
        *(f"{name}, {name}:LEVEL" for name in LEVELLED),
        *("pyramid:CELLS", "pyramid-published:CELLS", "top", "top:PERCENT"),
    )
)

NOT_YET = Quadtree.world(depth=0)
SPECK = Box(0.0, 0.0, 1e-5, 1e-5)
"""Stand for the tree and the box that `PrivateBoundingBox` will find."""

FINEST = 10
"""Metres: where nobody says how deep a quadtree is, its squares stay about this wide."""


def method_from_name(
    method: str, cells: QuadtreeCells | HexagonCells | DistrictFiles, box: Box | None, rule: Bounding
) -> MethodOfBox | PrivateBoundingBox:
    """The method that a text names, over these cells of the box; without one, over those of a box it finds.

    The level is a level of the quadtree, or a resolution of H3; by default the finest of `cells`.
    """
    if isinstance(cells, DistrictFiles):
        if box is not None:
            raise InputError("districts say themselves where the map is: leave the box out")
        return way_in_districts(method, cells, rule)
    if keeping := KEEPING.fullmatch(method):
        return _but(method_from_name(keeping[1], cells, box, rule), kept=int(keeping[2]))
    if (top := TOP.fullmatch(method)) and top[1]:
        return _but(method_from_name("top", cells, box, rule), kept=Fraction(top[1]) / 100)
    name, _, digits = method.partition(":")
    if not (method in WHOLE or top or (name in LEVELLED and re.fullmatch(r"[a-z-]+(:[0-9]{1,2})?", method))):
        refuse("a method", METHODS, method)
    levelled = {**LEVELLED, "top": TopCells}
    level = _level(name, int(digits) if digits else None, cells) if name in levelled else 0
    tree = domain(cells, box, level)
    if name in SQUARE and not isinstance(tree, Quadtree):
        raise InputError(
            f"the method {name} cuts a square into rectangles of its own, not into {cells}: leave them out"
        )
    made = levelled[name](tree, level=level, bounding=rule) if name in levelled else WHOLE[name](tree, bounding=rule)
    if isinstance(tree, Hexagons) and not tree.depth:  # its first question may need cells inside of others
        next(iter(made.rounds(_Unit())), None)
    return made if box else PrivateBoundingBox(made, finest=FINEST)


class _Unit:
    """Prices for whoever only looks at what a method asks first."""

    def stddev(self, encoder: Encoder, share: Fraction) -> float:  # noqa: ARG002 - the same for all
        return 1.0

    def share(self, encoder: Encoder, stddev: float) -> Fraction:  # noqa: ARG002 - the same for all
        return Fraction(1, 100)


def _but(chosen: MethodOfBox | PrivateBoundingBox, **changes: Any) -> MethodOfBox | PrivateBoundingBox:
    """The same method with other parameters."""
    if isinstance(chosen, PrivateBoundingBox):
        return replace(chosen, method=replace(cast(Any, chosen.method), **changes))
    return cast(MethodOfBox, replace(cast(Any, chosen), **changes))


def among_devices(chosen: MethodOfBox | PrivateBoundingBox, most_numbers: int) -> MethodOfBox | PrivateBoundingBox:
    """The same method, where people's devices answer: an adaptive one with the parameters for samples of people.

    No device is asked for more than `most_numbers` by it in all rounds, whatever the answers are: somebody who adds
    false millions makes cells finer, but not without end.
    """
    inner = chosen.method if isinstance(chosen, PrivateBoundingBox) else chosen
    if isinstance(inner, CURATOR_ONLY):
        raise InputError(
            f"{type(inner).__name__} asks what only somebody can answer who sees all rows: choose a method of sums, "
            "such as adaptive"
        )
    if not isinstance(inner, Adaptive):
        return chosen
    ours = Adaptive.for_devices(inner.tree, inner.bounding, most_numbers)
    return replace(chosen, method=ours) if isinstance(chosen, PrivateBoundingBox) else ours


def reach(chosen: MethodOfBox | PrivateBoundingBox) -> Box | None:
    """A box that holds every cell of the method's tree; none where the method has yet to find one."""
    return None if isinstance(chosen, PrivateBoundingBox) else around(chosen.tree)


def around(tree: Tree) -> Box | None:
    """A box that holds every cell of a tree; none for trees that are no squares, hexagons or districts."""
    if isinstance(tree, Quadtree):
        return Box(*(float(edge[0]) for edge in tree.bounds(tree.root)))
    if isinstance(tree, Districts | DistrictSquares):
        districts = tree if isinstance(tree, Districts) else tree.districts
        return Box(*districts.bounds(districts.root)[0].tolist())
    if not isinstance(tree, Hexagons):
        return None
    margin = degrees(3 * REACH / 7 ** (tree.coarsest / 2))
    south, north = max(-90.0, tree.box.south - margin), min(90.0, tree.box.north + margin)
    widest = margin / max(cos(radians(max(-south, north))), 1e-9)
    if widest >= 90 or tree.box.west - widest < -180 or tree.box.east + widest > 180:
        return Box(-180.0, south, 180.0, north)
    return Box(tree.box.west - widest, south, tree.box.east + widest, north)


def _level(name: str, level: int | None, cells: QuadtreeCells | HexagonCells) -> int:
    if isinstance(cells, HexagonCells):
        level = cells.finest if level is None else level
        if not cells.coarsest <= level <= cells.finest:
            raise InputError(f"a {name} map of {cells} has one of these resolutions, not {level}")
        return level - cells.coarsest
    level = cells.depth if level is None else level
    if level is None:
        raise InputError(
            f"how fine shall a {name} map be? {_levelled(name)} cuts the box LEVEL times in each direction in half; "
            "`hazemap plan` recommends a level, and the method fitted-level finds one by itself"
        )
    if 4**level > MOST_CELLS or (cells.depth is not None and level > cells.depth):
        raise InputError(f"a {name} map of {cells} cannot have level {level}: choose a coarser one")
    return level


def _levelled(name: str) -> str:
    return f"{name}:LEVEL" if name in LEVELLED else "quadtree:LEVEL"


def domain(cells: QuadtreeCells | HexagonCells, box: Box | None, level: int = 0) -> Quadtree | Hexagons:
    """The tree of these cells over a box, at least `level` deep; a stand-in where there is no box yet."""
    if isinstance(cells, HexagonCells):
        return Hexagons(box or SPECK, cells.coarsest, cells.finest)
    if box is None and cells.depth not in (None, level):
        raise InputError(
            f"quadtree:{cells.depth} cuts a box that is not known yet: declare the box, or say quadtree alone"
        )
    if box is None:
        return NOT_YET
    return over(box, FINEST, level) if cells.depth is None else Quadtree.around(box, cells.depth)
