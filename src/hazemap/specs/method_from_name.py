"""Builds a method from its name, with the cells and the box that go with it."""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from fractions import Fraction
from math import ceil, cos, degrees, log, radians
from typing import Any, NoReturn, cast

from hazemap.algorithms.adaptive_slots import AdaptiveSlots
from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.built_in_methods import canonical
from hazemap.algorithms.comparators import every_method
from hazemap.algorithms.named_methods import LEVEL, CellKind, NamedMethod
from hazemap.algorithms.plug_ins import method_named, plug_in_names
from hazemap.algorithms.private_bounding_box import MOST_ROOTS, MethodOfBox, PrivateBoundingBox, over
from hazemap.algorithms.proportion import MARKS_OR_SLOTS, ProportionInSlots
from hazemap.cells import MOST_CELLS, Tree
from hazemap.encoders import Encoder
from hazemap.errors import InputError
from hazemap.privacy.budget import Budget, PureDP
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import REACH, Hexagons
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree, plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.subdivided_districts import DistrictQuadtree
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells
from hazemap.tables.contribution_bounding import Bounding
from hazemap.temporal.time_slots import Slots
from hazemap.values.timed_tree import TimedTree

OF_DISTRICTS = {CellKind.DISTRICTS, CellKind.DISTRICT_SQUARES}
NOT_YET = Quadtree.world(depth=0)
SPECK = Box(0.0, 0.0, 1e-5, 1e-5)
"""Stand for the tree and the box that `PrivateBoundingBox` will find."""

FINEST = 10
"""Metres: where nobody says how deep a quadtree is, its squares stay about this wide."""


def method_from_name(
    method: str,
    cells: QuadtreeCells | HexagonCells | DistrictFiles,
    box: Box | None,
    rule: Bounding,
    budget: Budget | None = None,
    plane: Plane | None = None,
) -> MethodOfBox | PrivateBoundingBox:
    """The method that a text names, over these cells of the box; without one, over those of a box it finds.

    The level is a level of the quadtree, a resolution of H3, or the number of a file of districts; by default the
    finest of `cells`. Methods with amounts of ε in the place of shares need to know the budget.
    """
    if isinstance(cells, DistrictFiles) and plane is not None:
        raise InputError("districts are on the ground: leave the plane out")
    if isinstance(cells, DistrictFiles) and box is not None:
        raise InputError("districts already say where the map is: leave the box out")
    method = canonical(method)
    named, argument = _understood(method, cells)
    options: dict[str, Any] = {"bounding": rule, **named.options(method)}
    if named.priced:
        options["epsilon"] = _epsilon(named, budget, box)
    level = int(argument) if named.parameter == LEVEL and argument else None
    if isinstance(cells, DistrictFiles):
        return _over_districts(named, cells, level, options)
    level = _level(named, level, cells) if named.levelled else 0
    tree = domain(cells, box, level, plane)
    if isinstance(tree, Hexagons) and CellKind.HEXAGONS not in named.cells:
        raise InputError(f"the method {named.name} cuts squares of a quadtree only, not {cells}: leave the cells out")
    made = named.build(tree, **({"level": level} if named.levelled else {}), **options)
    if isinstance(tree, Hexagons) and not tree.depth:  # its first question may need cells inside of others
        next(iter(made.rounds(_Unit())), None)
    if box:
        return made
    _refuse_too_few(made)
    return PrivateBoundingBox(made, finest=FINEST)


def _refuse_too_few(made: MethodOfBox) -> None:
    """`InputError` for a limit of numbers that first cells may be more than, wherever a box is found: it is paid then.

    Of a quadtree a level has 4^n cells, and its first cells are the coarsest that are enough; hexagons of a box that
    nobody knows may be as many as `MOST_ROOTS` at once.
    """
    if not isinstance(made, Adaptive) or made.most_numbers is None:
        return
    squares = 4 ** ceil(log(made.first_cells, 4) - 1e-9)
    first = MOST_ROOTS if isinstance(made.tree, Hexagons) else squares
    least = (first + 1) * (len(made.deciding) + 1 + len(made.coarser))
    if made.most_numbers < least:
        raise InputError(
            f"{made.most_numbers:,} numbers may be too few for the first cells of a box that is yet to be found: "
            f"declare the box, or allow {least:,}"
        )


def _understood(text: str, cells: QuadtreeCells | HexagonCells | DistrictFiles) -> tuple[NamedMethod, str]:
    """The method and the argument for its parameter, if it has methods for such cells at all."""
    named = method_named(text.partition(":")[0])
    argument = named.argument(text) if named else None
    districts = isinstance(cells, DistrictFiles)
    if named is None or argument is None or not _cuts(named, districts):
        if named is not None and _cuts(named, districts):
            takes = ", ".join(f"{each.name}=" for each in named.settings)
            raise InputError(
                f"the method {named.name} is spelled {' or '.join(named.spellings)}"
                f"{f', and takes {takes}… behind a colon' if takes else ''}; found {text!r:.80}"
            )
        own = [spelling for each in every_method().values() if _cuts(each, districts) for spelling in each.spellings]
        unknown_method(text, (*own, *plug_in_names()), "a method for districts" if districts else "a method")
    return named, argument


def unknown_method(text: str, known: Sequence[str], what: str = "a method") -> NoReturn:
    """`InputError` that says which methods there are, and which of them was probably meant."""
    names = list(dict.fromkeys(name.partition(":")[0] for name in known))
    meant = get_close_matches(text[:80].casefold().partition(":")[0], names, 1)
    hint = f". Did you mean {meant[0]}?" if meant else ""
    raise InputError(f"{what} is one of: {', '.join(known)}; found {text!r:.80}{hint}")


def _cuts(named: NamedMethod, districts: bool) -> bool:
    """Whether a method cuts districts, or whether it cuts anything else."""
    return any((kind in OF_DISTRICTS) == districts for kind in named.cells)


def _over_districts(
    named: NamedMethod, cells: DistrictFiles, level: int | None, options: dict[str, Any]
) -> MethodOfBox:
    """A method over districts; level 1 is the first file."""
    tree = opened_districts(cells)
    if named.levelled:
        level = tree.depth if level is None else level
        if level > tree.depth:
            raise InputError(f"{cells} have levels 0 (all of them) to {tree.depth}; found {level}")
        options["level"] = level
    if CellKind.DISTRICT_SQUARES in named.cells:
        return named.build(DistrictQuadtree(tree, Quadtree.world(cells.squares)), **options)
    return named.build(tree, **options)


def opened_districts(cells: DistrictFiles) -> Districts:
    """The districts; `FileError` or `InputError` says what is wrong with the files."""
    return Districts.of(*(DistrictLayer(*layer) for layer in cells.layers))


def _epsilon(named: NamedMethod, budget: Budget | None, box: Box | None) -> Fraction:
    """What a method with amounts of ε has to spend; finding a box costs a part of the whole."""
    if not isinstance(budget, PureDP):
        raise InputError(
            f"the method {named.name} spends amounts of pure ε: say --epsilon, without a delta, or take one with shares"
        )
    return budget.epsilon * (1 if box else 1 - PrivateBoundingBox.share)


def method_options(text: str) -> dict[str, Any]:
    """The fields of a method that its text sets, and to what."""
    named = method_named(text.partition(":")[0])
    return named.options(text) if named else {}


class _Unit:
    """Prices for whoever only looks at what a method asks first."""

    def stddev(self, encoder: Encoder, share: Fraction) -> float:  # noqa: ARG002 - the same for all
        return 1.0

    def share(self, encoder: Encoder, stddev: float) -> Fraction:  # noqa: ARG002 - the same for all
        return Fraction(1, 100)


def sums_only(method: MethodOfBox) -> bool:
    """Whether a method asks for nothing but sums over people, so that devices can answer it as well as a curator."""
    return not {Learned.MEDIANS, Learned.EVENNESS, Learned.COSTS, Learned.GROWTH}.intersection(
        method.disclosure.learned
    )


def among_devices(
    chosen: MethodOfBox | PrivateBoundingBox, most_numbers: int | None, once: bool = False, text: str = "auto"
) -> MethodOfBox | PrivateBoundingBox:
    """The same method, where people's devices answer: an adaptive one with the parameters for samples of people.

    With `once` a device reports once, and each round goes down from the one before. Parameters that its `text` sets
    stay as they are.

    No device is asked for more than `most_numbers` by it in all rounds, whatever the answers are: somebody who adds
    false millions makes cells finer, but not without end.
    """
    inner = chosen.method if isinstance(chosen, PrivateBoundingBox) else chosen
    if not sums_only(inner):
        raise InputError(
            f"{type(inner).__name__} asks what only somebody can answer who sees all rows: choose a method of sums, "
            "such as auto"
        )
    if isinstance(inner, ProportionInSlots):
        raise InputError(MARKS_OR_SLOTS)
    if isinstance(inner, AdaptiveSlots):
        if once:
            raise InputError("one report a person holds a path of places, not of times: leave the slots out")
        timed: Any = replace(inner, most_numbers=most_numbers)
        return replace(chosen, method=timed) if isinstance(chosen, PrivateBoundingBox) else cast(MethodOfBox, timed)
    if not isinstance(inner, Adaptive):
        return chosen
    if once and inner.prior is not None:
        raise InputError("with one report a person the map goes down from a first grid: leave the prior out")
    parameters = Adaptive.for_one_report if once else Adaptive.for_devices
    ours = parameters(inner.tree, inner.bounding, most_numbers, inner.prior)
    if inner.prior is not None:
        ours = replace(ours, deciding=inner.deciding, fullness=inner.fullness)
    ours = replace(ours, **method_options(text))
    return replace(chosen, method=ours) if isinstance(chosen, PrivateBoundingBox) else ours


def in_slots(chosen: MethodOfBox | PrivateBoundingBox, slots: Slots) -> MethodOfBox | PrivateBoundingBox:
    """The same method with a map for every slot; `InputError` for methods that have none, and for too many slots."""
    inner = chosen.method if isinstance(chosen, PrivateBoundingBox) else chosen
    if not isinstance(inner, Adaptive):
        raise InputError("maps with time are made by the adaptive method alone: leave the method out")
    if inner != Adaptive(inner.tree, inner.bounding):
        raise InputError("maps with time begin with no prior and have no parameters: leave them, or the slots, out")
    TimedTree(inner.tree, slots)
    ours: Any = AdaptiveSlots(inner.tree, slots, inner.bounding)
    return replace(chosen, method=ours) if isinstance(chosen, PrivateBoundingBox) else cast(MethodOfBox, ours)


def reach(chosen: MethodOfBox | PrivateBoundingBox) -> Box | None:
    """A box that holds every cell of the method's tree; none where the method has yet to find one."""
    return None if isinstance(chosen, PrivateBoundingBox) else around(chosen.tree)


def around(tree: Tree) -> Box | None:
    """A box that holds every cell of a tree; none for trees that are no squares, hexagons or districts."""
    if plane_of(tree):
        return PlaneBox(*(float(edge[0]) for edge in tree.bounds(tree.root)))  # type: ignore[attr-defined]  # a plane's
    if isinstance(tree, Quadtree):
        return Box(*(float(edge[0]) for edge in tree.bounds(tree.root)))
    if isinstance(tree, Districts | DistrictQuadtree):
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


def _level(named: NamedMethod, level: int | None, cells: QuadtreeCells | HexagonCells) -> int:
    name = named.name
    if isinstance(cells, HexagonCells):
        level = cells.finest if level is None else level
        if not cells.coarsest <= level <= cells.finest:
            raise InputError(f"a {name} map of {cells} has one of these resolutions, not {level}")
        return level - cells.coarsest
    level = cells.depth if level is None else level
    if level is None:
        spelled = f"{name}:LEVEL" if named.parameter == LEVEL else "quadtree:LEVEL"
        raise InputError(
            f"say how fine the {name} map should be: {spelled} halves the box LEVEL times in each direction; "
            "`hazemap plan` recommends a level, and the method fitted-level finds one by itself"
        )
    if 4**level > MOST_CELLS or (cells.depth is not None and level > cells.depth):
        raise InputError(f"a {name} map of {cells} cannot have level {level}: choose a coarser one")
    return level


def domain(
    cells: QuadtreeCells | HexagonCells, box: Box | None, level: int = 0, plane: Plane | None = None
) -> Quadtree | Hexagons:
    """The tree of these cells over a box, at least `level` deep; a stand-in where there is no box yet."""
    if plane is not None:
        if box is None or not isinstance(cells, QuadtreeCells):
            raise InputError(f"{plane} is cut in squares of a box: declare the box, and leave other cells out")
        usual = PlaneQuadtree.over(plane, box, cells.depth)
        return usual if usual.depth >= level else replace(usual, depth=level)
    if isinstance(cells, HexagonCells):
        return Hexagons(box or SPECK, cells.coarsest, cells.finest)
    if box is None and cells.depth not in (None, level):
        raise InputError(
            f"quadtree:{cells.depth} cuts a box that is not known yet: declare the box, or say quadtree alone"
        )
    if box is None:
        return NOT_YET
    return over(box, FINEST, level) if cells.depth is None else Quadtree.around(box, cells.depth)
