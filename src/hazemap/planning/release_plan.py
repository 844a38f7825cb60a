"""Plans of maps before any data is touched: the error of cells of each size.

The error bars are exact, since noise is public. How people are spread is unknown beforehand, so everything that depends
on it is tried on a city that does not exist (`synthetic_city.py`), with so many people and real prices; it is an
expectation for a typical city, and says so. A plan has the same words in a terminal and in a browser. `simulated` draws
the map of the city beside its truth.
"""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Unpack, cast

import numpy as np

from hazemap.algorithms import Adaptive, AdaptiveSlots, FittedLevel, PrivateBoundingBox
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.cellmap import CellMap
from hazemap.cells import Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats
from hazemap.planning.synthetic_city import DETAIL, CityInSlots, PlotLevel, SyntheticTable, median, middle
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import Noise, noise_for
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.statement_facts import Estimand, estimand
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import domain, in_slots, method_from_name, sums_only
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import ReleaseOptions, takes
from hazemap.tables.contribution_bounding import Bounding, Outside
from hazemap.trust.curator import Curator


def metres(length: float) -> str:
    """A length as people say it."""
    return f"{length / 1000:.3g} km" if length >= 1000 else f"{length:.3g} m"


def percent(part: float) -> str:
    """A part of 1 as people say it.

    >>> percent(0.0023), percent(0.251), percent(0.9951), percent(15.97)
    ('0.23 %', '25 %', '100 %', '1,597 %')
    """
    return f"{100 * part:.2g} %" if part < 0.995 else f"{100 * part:,.0f} %"


FEWEST, MOST = 100, 10**10
"""People that a plan is for."""

SURE = 0.2
"""A count is well known when its 95 % interval is at most this part of it to either side."""


@dataclass(frozen=True)
class PlannedLevel:
    """A flat map of one level.

    * `metres`: the side of a square of a cell's area, in the middle of the box; `cells`: how many.
    * `stddev`: standard error of each count; `average`: the same as a part of an average cell's count.
    * `least`: the smallest count that is well known.
    * In a made-up city: `typical`, the standard error as a part of the count in whose cell half the people
      or more live, and `misplaced`, the part of all people that the map puts in a wrong place.
    """

    level: int
    name: str
    metres: float
    cells: int
    stddev: float
    average: float
    least: float
    typical: float
    misplaced: float


@dataclass(frozen=True)
class Expected:
    """A method's result on the made-up city: its cells, the size of the finest and of a typical person's cell, the part
    of all people it puts in a wrong place, and the standard error of the total.
    """

    cells: int
    finest: float
    typical: float
    misplaced: float
    total: float


@dataclass(frozen=True)
class ExpectedSlots:
    """Expected maps of slots in the made-up city, for all `number` slots.

    * `expected`: of the map of all slots together, whose detail every slot shows.
    * `cells`: how many are counted in each slot, and `typical`, the size of the one that a typical person is in.
    * `stddev`: the standard error of the number of everybody in a slot, and `cell` that of one of its cells.
    * `misplaced`: the part of a slot's people that its map puts in a wrong place.
    """

    slots: str
    number: int
    expected: Expected
    cells: int
    typical: float
    stddev: float
    cell: float
    misplaced: float


@dataclass(frozen=True)
class Plan(ShownAsTable):
    """Expectations for a box, a budget, a bounding rule and a number of people.

    `uniform` is the level that the uniform grid would choose, of those that were tried. `method` is what to expect of
    the method that was asked for by name, if one was, and `slots` of maps with time.

    >>> plan("2.2,48.8,2.5,48.95", people=100_000, epsilon=1, cells="h3:6-8").levels[0].name
    'resolution 6'
    """

    box: Box
    people: int
    budget: Budget
    bounding: Bounding
    cells: QuadtreeCells | HexagonCells
    levels: tuple[PlannedLevel, ...]
    uniform: PlannedLevel
    adaptive: Expected
    method: Expected | None = None
    slots: ExpectedSlots | None = None

    @property
    def flat(self) -> PlannedLevel:
        """The level that put the fewest people of the made-up city in a wrong place."""
        return min(self.levels, key=lambda level: level.misplaced)

    @property
    def heading(self) -> str:
        """The question of the plan."""
        return (
            f"{self.people:,} people in {self.box}, {self.budget}, {self.bounding}: "
            "expectations for a typical city (made up; no data was touched)"
        )

    def notebook_table(self) -> NotebookTable:
        """A line for each level of flat maps, and what the adaptive map would make of the same."""
        names = ("flat map", "cell side", "cells", "± a cell", "average cell", "typical cell", "misplaced", "")
        rows = []
        for level in self.levels:
            parts = (percent(part) for part in (level.average, level.typical, level.misplaced))
            chosen = "◂ best" if level == self.flat else ""
            rows.append((level.name, metres(level.metres), f"{level.cells:,}", f"{level.stddev:.3g}", *parts, chosen))
        made = self.adaptive
        note = (
            f"Adaptive (the default): about {made.cells:,} cells, a typical person's {metres(made.typical)}; it"
            f" misplaces {percent(made.misplaced)} of all people. Errors are standard errors."
        )
        return NotebookTable(self.heading, names, tuple(rows), (note,))


@takes(ReleaseOptions)
def plan(box: Box | str | None = None, /, *, people: int, **asked: Unpack[ReleaseOptions]) -> Plan:
    """Plan a release with these options without any data; the plan is public, and the same every time.

    With a rule that lets a person give several rows or cells, everybody is taken to give all of them.
    """
    return planned(ReleaseSpec.of(**{"box": box, **asked}), people)


def planned(spec: ReleaseSpec, people: int) -> Plan:
    """Plan the map of a specification; its table does not matter.

    A method other than auto is tried too, if it asks for nothing but sums over people.
    """
    trial, money = trial_for(spec, people), spec.budget
    rule = replace(spec.bounding, outside=Outside.DROP)
    trust = Curator(trial, Stream.fixed(b"the noise of a plan"))
    noise = noise_for(money, rule.sensitivity)
    levels = tuple(_level(trial, layer, noise, rule, people, trust.stream) for layer in trial.layers())
    adaptive = _expected(trial, Adaptive(trial.tree, rule), trust, money)
    named = None if spec.method == "auto" else _expected(trial, method_for_trial(spec, trial, rule), trust, money)
    uniform = _uniform(FittedLevel(trial.tree, rule), trust.prices(money), people)
    cells = cast(QuadtreeCells | HexagonCells, spec.cells)  # `trial_for` has refused others
    timed = _in_slots(trial, spec, rule, people) if spec.timeslots.timed else None
    return Plan(trial.box, people, money, rule, cells, levels, levels[uniform], adaptive, named, timed)


def _in_slots(trial: SyntheticTable, spec: ReleaseSpec, rule: Bounding, people: int) -> ExpectedSlots:
    """The result of maps with slots on the made-up city."""
    city = CityInSlots.of(trial, spec.timeslots, people)
    method = cast(AdaptiveSlots, in_slots(cast(MethodOfBox, Adaptive(trial.tree, rule)), spec.timeslots))
    made = run(method, Curator(city, Stream.fixed(b"the noise of slots")), spec.budget, Unrecorded()).value
    first = made.during([0])
    at = made.cells.locate(trial.base_in(made.cells.tree))
    return ExpectedSlots(
        spec.timeslots.in_words,
        len(spec.timeslots.names),
        _of_map(trial, made.total),
        made.cells.size,
        median(np.sqrt(made.cells.areas)[at], trial.people),
        first.noise.of(np.ones(made.cells.size)).stddev,
        float(np.median(first.stddev)),
        city.misplaced(made),
    )


def trial_for(spec: ReleaseSpec, people: int) -> SyntheticTable:
    """The made-up city on which a specification is tried; `InputError` for one that cannot be planned."""
    if not FEWEST <= people <= MOST:
        raise InputError(f"a plan needs {FEWEST:,} to {MOST:,} people; found {people:,}")
    refuse_shares_in_slots(spec)
    if spec.plane is not None:
        raise InputError("a plan is made for a city on the ground: leave the plane out")
    if isinstance(spec.cells, DistrictFiles):
        raise InputError("a plan needs squares or hexagons: nobody chooses how large districts are")
    if spec.box is None:
        raise InputError("a plan needs a box: declare one, west,south,east,north (--box, box)")
    return _table(spec.cells, spec.box, people)


def refuse_shares_in_slots(spec: ReleaseSpec) -> None:
    """`InputError` for marks in slots: what is expected of a map says nothing of them."""
    if spec.mark and spec.timeslots.timed:
        raise InputError("a plan is of maps, not of shares in slots: leave the marks or the slots out")


@lru_cache(maxsize=1)
def _table(cells: QuadtreeCells | HexagonCells, box: Box, people: int) -> SyntheticTable:
    """The last one is kept, since several prices are often tried on one city."""
    return SyntheticTable.of(domain(cells, box), box, people)


def method_for_trial(spec: ReleaseSpec, trial: SyntheticTable, rule: Bounding) -> MethodOfBox:
    """The method that is asked for, over the cells of the made-up city."""
    tree = trial.tree
    cells = QuadtreeCells(tree.depth) if isinstance(tree, Quadtree) else HexagonCells(tree.coarsest, tree.finest)
    method = method_from_name(spec.method, cells, trial.box, rule, spec.budget)
    if isinstance(method, PrivateBoundingBox) or not sums_only(method):
        raise InputError(f"{spec.method} cannot be planned: it asks for more than sums over people")
    return method


def _expected(trial: SyntheticTable, method: MethodOfBox, trust: Curator, budget: Budget) -> Expected:
    """The result of a method on the made-up city."""
    return _of_map(trial, run(method, trust, budget, Unrecorded()).value)


def _of_map(trial: SyntheticTable, made: CellMap) -> Expected:
    """Compare a map with the made-up city."""
    at, sides = made.cells.locate(trial.base_in(made.cells.tree)), np.sqrt(made.cells.areas)
    return Expected(
        made.cells.size,
        float(sides.min()),
        median(sides[at], trial.people),
        trial.misplaced(at, made.values),
        made.noise.of(made.places.astype(float)).stddev,
    )


def _level(
    trial: SyntheticTable, layer: PlotLevel, noise: Noise, rule: Bounding, people: int, stream: Stream
) -> PlannedLevel:
    counts = np.bincount(layer.at, trial.people, layer.touched)
    given = rule.sensitivity.l1 / rule.unit
    stddev = noise.stddev / rule.unit
    noisy = counts * given + noise.draw(stream, layer.touched) / rule.unit
    cell = middle(trial.tree, trial.box, layer.level)
    return PlannedLevel(
        level=layer.level,
        name=_name(trial.tree, layer.level),
        metres=float(np.sqrt(trial.tree.area(cell)[0])),
        cells=layer.cells,
        stddev=stddev,
        average=stddev * layer.cells / (given * people),
        least=float(reach(0.95, noise.kurtosis)) * stddev / SURE,
        typical=stddev / (given * median(counts.astype(np.float64), counts)),
        misplaced=trial.misplaced(layer.at, noisy),
    )


def _name(tree: Tree, level: int) -> str:
    return f"resolution {tree.coarsest + level}" if isinstance(tree, Hexagons) else f"level {level}"


def _uniform(method: FittedLevel, prices: Prices, people: int) -> int:
    """The level that the uniform grid would choose if it learned the number of people without noise."""
    rounds = method.rounds(prices)
    roots = np.zeros(_asked(next(rounds)).size, dtype=np.int64)
    roots[0] = people * method.bounding.sensitivity.l1
    return int(_asked(rounds.send(Answer(roots, np.zeros(1)))).levels.max())


def _asked(question: Question) -> Leaves:
    """The cells that a query counts."""
    if isinstance(question, Query) and isinstance(question.encoder, Counts):
        cells = question.encoder.cells
        if isinstance(cells, Leaves):
            return cells
    raise InputError(f"a uniform grid needs counts of cells, not {type(question).__name__}")


def facts(made: Plan, method: str) -> dict[str, Any]:
    """A plan for machines; `method` is the name of the one that was asked for."""
    return {
        "box": str(made.box),
        "people": made.people,
        "budget": str(made.budget),
        "bounding": str(made.bounding),
        "cells": str(made.cells),
        "levels": [asdict(level) for level in made.levels],
        "recommended": {"flat": made.flat.name, "uniform": made.uniform.name},
        "adaptive": asdict(made.adaptive),
        "method": made.method and {"name": method, **asdict(made.method)},
        "slots": made.slots and asdict(made.slots),
    }


def advice(made: Plan, method: str | None = None) -> list[str]:
    """The plan in sentences."""
    level, counted = made.flat, Estimand.of(made.bounding).noun
    number = f"{level.level}" if level.name.startswith("level") else level.name.split()[1]
    return [
        f"A cell with {level.least:,.0f} {counted} or more is known to ± 20 % (95 % interval), at any level.",
        f"Best flat map: {level.name}, cells of {metres(level.metres)} (--method flat:{number}). "
        f"The method fitted-level would take {made.uniform.name}.",
        _expectation("Adaptive (the default)", made, made.adaptive),
        *([_expectation(str(method), made, made.method)] if made.method else []),
        *(_of_slots(made, made.slots) if made.slots else []),
        "Typical: the cell that half the people are in, or a fuller one. "
        "Misplaced: people that the map shows in a wrong place, of all.",
    ]


def _expectation(name: str, made: Plan, expected: Expected) -> str:
    return (
        f"{name}: about {expected.cells:,} cells, the finest {metres(expected.finest)}, a typical "
        f"person's {metres(expected.typical)}; it misplaces {percent(expected.misplaced)} "
        f"of all people, the best flat map {percent(made.flat.misplaced)}. Its total is known to "
        f"± {expected.total:,.0f} {estimand(made.bounding)} (standard error)."
    )


def _of_slots(made: Plan, slots: ExpectedSlots) -> list[str]:
    counted = estimand(made.bounding)
    counted_in = "1 cell is" if slots.cells == 1 else f"{slots.cells:,} cells are"
    return [
        f"Maps of {slots.number:,} slots ({slots.slots}), all for this one price:",
        _expectation("all slots together", made, slots.expected),
        f"In each slot about {counted_in} counted, a typical person's {metres(slots.typical)}; a cell is known to "
        f"± {slots.cell:,.3g} {counted} (standard error), everybody in a slot to ± {slots.stddev:,.3g}. A slot's map "
        f"misplaces {percent(slots.misplaced)} of its people.",
    ]


@dataclass(frozen=True, eq=False)
class SimulatedMap:
    """People per km² on the plots of the made-up city, float64[side, side], north at the top; NaN outside of the box.

    `truth` is how they live there, `shown` what the map tells of it, in so many `cells`.

    >>> made = simulated(ReleaseSpec.of(box="2.2,48.8,2.5,48.95", epsilon=1), people=10_000)
    >>> made.truth.shape == made.shown.shape == (512, 512), made.cells > 100
    (True, True)
    """

    truth: Floats
    shown: Floats
    cells: int

    @property
    def scale(self) -> tuple[float, float]:
        """Densities between which colours change: from where a tenth of the people live less densely, to the top 1 %.

        It is that of the truth, whatever the map shows, so that pictures at two prices can be compared.
        """
        density = np.sort(self.truth[self.truth > 0])
        until = np.cumsum(density)
        low, high = (float(density[np.searchsorted(until, share * until[-1])]) for share in (0.1, 0.99))
        return low, high


def simulated(spec: ReleaseSpec, people: int) -> SimulatedMap:
    """Simulate the map of a specification on the made-up city with this many people; the same every time.

    Errors are those of `planned`.
    """
    trial = trial_for(spec, people)
    rule = replace(spec.bounding, outside=Outside.DROP)
    method = Adaptive(trial.tree, rule) if spec.method == "auto" else method_for_trial(spec, trial, rule)
    trust = Curator(trial, Stream.fixed(b"the noise of a picture"))
    made = run(method, trust, spec.budget, Unrecorded()).value
    at = made.cells.locate(trial.base_in(made.cells.tree))
    km2 = _plot_area(trial.box)
    plots = np.bincount(at, minlength=made.cells.size)[at]  # a cell's people lie evenly on its plots
    shown = np.maximum(made.values, 0)[at] / (rule.sensitivity.l1 / rule.unit) / plots
    return SimulatedMap(_grid(trial.box, trial.density * people / km2), _grid(trial.box, shown / km2), made.cells.size)


def _plot_area(box: Box) -> float:
    """The km² of a plot in the middle of the box."""
    square = Quadtree.around(box, DETAIL)
    plots = square.grid(DETAIL)
    return float(square.area(plots[len(plots) // 2, len(plots) // 2 : len(plots) // 2 + 1])[0]) / 1e6


def _grid(box: Box, numbers: Floats) -> Floats:
    """Numbers of the plots inside a box, as they lie on the ground."""
    square = Quadtree.around(box, DETAIL)
    plots = square.grid(DETAIL)
    west, south, east, north = square.bounds(plots.ravel())
    inside = box.holds((west + east) / 2, (south + north) / 2)
    found = np.full(plots.size, np.nan)
    found[inside] = numbers
    return found.reshape(plots.shape)
