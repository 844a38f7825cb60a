"""c₀ of the prefix tree, chosen on similar public maps (Bagdasaryan et al. 2022, appendix A.2).

Which c₀ is best depends on how people lie in space, and asking the table would cost. So it is tried on people who are
drawn from maps that have been published already, as many as the new map is to have, at its price. A map is similar by
facts that are declared or published alone: how large its box is, and how many people it counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from hazemap.algorithms.published.adaptive_hierarchical_histogram import AdaptiveHierarchicalHistogram
from hazemap.cells import Cells, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.planning.synthetic_city import Quarter
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement_facts import Randomness
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.releases import Release
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import method_options
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import Outside
from hazemap.trust.curator import Curator

TRIED = tuple(Fraction(text) for text in ("0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"))
DEPTH, TIMES = 8, 3
"""People are drawn, and errors seen, in 256² plots; each c₀ is tried so often on each map."""
MOST_PEOPLE = 200_000
"""More take too long to try."""
AREAS, NUMBERS = 8.0, 30.0
"""Limits of similarity: the ratio of two maps' sizes, and of their counts."""


@dataclass(frozen=True)
class TriedConstant:
    """A c₀, the mean of its L1 error on all maps as a part of all people, its standard error, and its rounds."""

    c0: Fraction
    l1: float
    band: float
    rounds: float


def try_constants(spec: ReleaseSpec, people: int, files: Sequence[Path]) -> tuple[TriedConstant, ...]:
    """Try each c₀ on people drawn from these maps; the same every time.

    `InputError` for a method that has no c₀, for a map that is not similar, and for one that is no release.
    """
    if spec.method.partition(":")[0] != "prefix" or "c0" in method_options(spec.method):
        raise InputError("similar maps choose the c0 of prefix: say --method prefix, without a c0")
    if spec.box is None or spec.plane is not None:
        raise InputError("similar maps are looked for by the size of a box: declare it, in degrees (--box)")
    if not 2 <= people <= MOST_PEOPLE:
        raise InputError(f"similar maps are tried with 2 to {MOST_PEOPLE:,} people; found {people:,}")
    tables = [_drawn(_similar(file, spec, people), people) for file in files]
    settings = {name: value for name, value in method_options(spec.method).items() if name != "people"}
    found = []
    for c0 in TRIED:
        errors, rounds = [], []
        for number, (tree, table, truth) in enumerate(tables):
            rule = replace(spec.bounding, outside=Outside.DROP)
            method = AdaptiveHierarchicalHistogram(tree, rule, c0=c0, **settings)
            for turn in range(TIMES):
                trust = Curator(table, Stream.fixed(f"similar maps {number} {turn}".encode()))
                made = run(method, trust, spec.budget, Unrecorded())
                shown = _picture(made.value.cells, made.value.values, np.sort(tree.grid(DEPTH).ravel()))
                errors.append(float(np.abs(shown - truth).sum() / truth.sum()))
                rounds.append(len(made.transcript))
        spread = float(np.std(errors, ddof=1)) / len(errors) ** 0.5
        found.append(TriedConstant(c0, float(np.mean(errors)), spread, float(np.mean(rounds))))
    return tuple(found)


def _similar(file: Path, spec: ReleaseSpec, people: int) -> Release:
    """A release that is similar by what is declared and published; `InputError` says what is not."""
    release = Release.open(file)
    if release.statement.circumstances.randomness is Randomness.TEST_STREAM or plane_of(release.cells.tree):
        raise InputError(f"{file.name} is a test, or on a plane: a similar map is a release of the ground")
    box = Quadtree.around(spec.box, 0) if spec.box else Quadtree.world(0)
    larger = float(release.ground.km2.sum() * 1e6 / box.area(box.root)[0])
    more = max(release.total().best_guess, 1.0) / people
    if not (1 / AREAS <= larger <= AREAS and 1 / NUMBERS <= more <= NUMBERS):
        raise InputError(
            f"{file.name} is not similar: its area is {larger:.3g} times that of your box, and it counts {more:.3g} "
            f"times as many; similar is within {AREAS:g} and {NUMBERS:g} times"
        )
    return release


def _drawn(release: Release, people: int) -> tuple[Quadtree, MemoryTable, Floats]:
    """Draw people from a map in plots of 1/256 of its side, the same every time; and the number in each plot."""
    west, south, east, north = release.ground.extent
    tree = Quadtree.around(Box(west, max(south, -85.0), east, min(north, 85.0)), DEPTH)
    plots = np.sort(tree.grid(DEPTH).ravel())
    left, low, right, high = tree.bounds(plots)
    columns = {"lon": (left + right) / 2, "lat": (low + high) / 2}
    own = release.cells.tree
    density = _picture(release.cells, np.maximum(release.map.values, 0), own.cell_at(columns, own.depth))
    counts = Quarter(density / density.sum()).counts(Stream.fixed(b"the people of a similar map"), people)
    table = MemoryTable(np.arange(counts.sum()), {name: np.repeat(each, counts) for name, each in columns.items()})
    return tree, table, counts.astype(float)


def _picture(cells: Leaves, numbers: Floats, base: Cells) -> Floats:
    """The numbers of cells spread evenly over the plots in them, of which these are the base cells."""
    owner = cells.locate(base)
    plots = np.maximum(np.bincount(owner + 1, minlength=cells.size + 1)[1:], 1)
    return np.append(numbers / plots, 0.0)[owner]
