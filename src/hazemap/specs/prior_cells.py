"""Cells to begin with: those of a release, or of a list that somebody declares public, as cells of another tree.

A prior decides where a method looks first. So it must cost nothing: a release has been paid for, and what is done
with it is free; anything else has to be declared public by whoever orders the map.
"""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.private_bounding_box import MethodOfBox, PrivateBoundingBox
from hazemap.cells import MOST_CELLS, NOWHERE, Leaves, Tree, distinct
from hazemap.errors import FileError, InputError
from hazemap.files.text_files import read_text
from hazemap.privacy.statement_facts import Randomness
from hazemap.releases import Release
from hazemap.spatial.plane import plane_of
from hazemap.spatial.quadtree import DEEPEST, Quadtree

ALIKE = 1.5
"""A cell stands for one of a prior if it is at most this many times as large."""

LARGEST_LIST = 1 << 27
"""Bytes of a list of cells."""


class PriorCells(NamedTuple):
    """Where the middle of each cell is, in degrees, and how large it is, in square metres; whether a map chose them."""

    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    area: NDArray[np.float64]
    chosen: bool = False


def begun_from(method: MethodOfBox | PrivateBoundingBox, file: Path, public: bool, told: dict[str, Any]) -> MethodOfBox:
    """The method, with the cells of a file to begin with; `told` are parameters that stay as they are.

    `InputError` for a method that takes no prior, and for cells of which none lies on the map.
    """
    if isinstance(method, PrivateBoundingBox):
        raise InputError("with a prior the box is known: declare it, west,south,east,north (--box)")
    if "prior" not in {each.name for each in fields(method)}:  # type: ignore[arg-type]  # methods are dataclasses
        raise InputError(f"a {type(method).__name__} begins with no cells of a prior: take auto or prefix, or no prior")
    found = prior_cells(file, method.tree, public)
    given: dict[str, Any] = {"prior": tiled(method.tree, found)}
    if isinstance(method, Adaptive):
        given |= (Adaptive.FROM_MAP if found.chosen else Adaptive.FROM_LIST) | told
    made: MethodOfBox = replace(method, **given)  # type: ignore[type-var]  # as above
    return made


def prior_cells(file: Path, tree: Tree, public: bool) -> PriorCells:
    """The cells of a release, or of a list that was declared `public`: of names of the tree's cells, or of quadkeys."""
    try:
        there = file.is_file()
    except OSError:  # a name that is too long
        there = False
    if not there:
        raise FileError(f"there is no file {str(file)[:200]} to take a prior from; look at its name and folder")
    try:
        release = Release.open(file)
    except FileError:
        if not public:
            raise InputError(
                f"the prior {file.name} is no release of a map, so nothing says what it tells of anybody: if all of it "
                "is public, say so (--prior-is-public)"
            ) from None
        return _listed(file, tree)
    if release.statement.circumstances.randomness is Randomness.TEST_STREAM and not public:
        raise InputError(
            f"the prior {file.name} is a test whose noise repeats itself, so it protects nobody: if all of it is "
            "public, say so (--prior-is-public)"
        )
    theirs, ours = (_coordinates(each) for each in (release.cells.tree, tree))
    if theirs != ours:
        raise InputError(
            f"the prior {file.name} is in {theirs} and this map in {ours}: take a prior in the same coordinates"
        )
    ground = release.ground
    places = ground.places[ground.km2[ground.places] > 0]
    return middles_of(release.cells.tree, release.cells.cells[places])._replace(chosen=True)


def tiled(tree: Tree, prior: PriorCells) -> Leaves:
    """Cells of a tree that tile it, about as large as those of a prior wherever it has some: O(cells · depth).

    The cells of a partition of the same tree come out as they are. Where two priors' cells lie in each other the finer
    ones win.
    """
    found = tree.cell_at({"lon": prior.lon, "lat": prior.lat}, tree.depth)
    most = ALIKE * prior.area[found != NOWHERE]
    found = found[found != NOWHERE]
    if not len(found):
        raise InputError("no cell of the prior lies on this map: declare a box that it covers, or leave it out")
    for _ in range(tree.depth):
        lower = tree.level(found) > 0
        above = np.where(lower, tree.parent(np.where(lower, found, tree.children(tree.root)[0])), found)
        wider = lower & (tree.area(above) <= most)
        if not wider.any():
            break
        found = np.where(wider, above, found)
    found = distinct(found)
    inner: list[NDArray[np.uint64]] = []
    while len(found := found[tree.level(found) > 0]):
        found = distinct(tree.parent(found))
        inner.append(found)
    if not inner:
        return Leaves(tree, tree.root)
    cut = distinct(np.concatenate(inner))
    cells = np.concatenate([np.setdiff1d(tree.root, cut), np.setdiff1d(tree.children(cut), cut)])
    if len(cells) > MOST_CELLS:
        raise InputError(f"a prior of {len(cells):,} cells is too fine: a question may have {MOST_CELLS:,}")
    return Leaves(tree, np.sort(cells))


def middles_of(tree: Tree, cells: NDArray[np.uint64]) -> PriorCells:
    """Of squares and rectangles the middle of their edges; of other cells a point in them."""
    if isinstance(tree, Quadtree):
        west, south, east, north = tree.bounds(cells)
        return PriorCells((west + east) / 2, (south + north) / 2, tree.area(cells))
    import shapely

    inside = shapely.point_on_surface(tree.outlines(cells))
    lon, lat = shapely.get_coordinates(inside).T
    return PriorCells(np.ascontiguousarray(lon), np.ascontiguousarray(lat), tree.area(cells))


def _coordinates(tree: Tree) -> str:
    """In which coordinates a tree's cells are."""
    plane = plane_of(tree)
    return "degrees" if plane is None else plane.crs or f"{plane.unit} of a plane"


def _listed(file: Path, tree: Tree) -> PriorCells:
    """The cells whose names stand in a text file, one a line: of this tree, or quadkeys of the usual web tiles."""
    said = "it is neither a release nor a text with the name of a cell a line"
    lines = read_text(file, "the prior", LARGEST_LIST, said).splitlines()
    names = list(dict.fromkeys(line.strip() for line in lines if line.strip() and not line.startswith("#")))
    if not names:
        raise InputError(f"the prior {file.name} lists no cells: write the name of one a line")
    quadkeys = all(re.fullmatch(f"[0-3]{{1,{DEEPEST}}}", name, re.ASCII) for name in names)
    named = Quadtree.world(DEEPEST) if quadkeys and isinstance(tree, Quadtree) and not plane_of(tree) else tree
    return middles_of(named, named.named(names))
