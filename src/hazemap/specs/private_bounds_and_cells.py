"""What a table reveals at a price before its values are asked: their bounds, and the cells worth asking."""

from dataclasses import dataclass

from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.partition_selection import PartitionSelection
from hazemap.algorithms.private_value_bounds import PrivateValueBounds, ValueBounds
from hazemap.algorithms.two_stage_statistics import CellMethod, PrivateBoxStatistics, TwoStageStatistics
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.privacy.budget import Budget, PureDP
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.queries.algorithm_session import Result
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.specs.parsing import refuse
from hazemap.specs.specification import shortest
from hazemap.temporal.time_slots import Slots
from hazemap.values.histogram_bins import FloatGrid

PRIVATE = "private"

VOTES = 8
"""For how many cells a person votes where the noise grows with the root of them; in pure ε, for one."""


@dataclass(frozen=True)
class ValuePreparation:
    """What shall be found out. A bound that is declared beside `bounds` is kept, and the other one is found.

    >>> ValuePreparation.understood("private", 0, None, False).stand_ins(0, None)
    (0.0, 1.0)
    """

    bounds: bool = False
    cells: bool = False

    @classmethod
    def understood(cls, bounds: str | None, low: float | None, high: float | None, select: bool) -> "ValuePreparation":
        """From the options, or `InputError` where they contradict each other."""
        if bounds not in (None, PRIVATE):
            refuse("a way to find bounds", f"{PRIVATE} (or none: declare low and high)", bounds)
        if bounds and low is not None and high is not None:
            raise InputError(
                "both bounds are declared, so there is nothing left to find: leave out "
                "--bounds private (bounds), or --low "
                "or --high (low, high); a declared bound is kept, and the other is found"
            )
        return cls(bounds is not None, select)

    def stand_ins(self, low: float | None, high: float | None) -> tuple[float, float]:
        """Bounds for a value encoding until they are found; what is declared is kept."""
        if low is not None:
            return float(low), float(low) + max(1.0, abs(low))
        return (0.0, 1.0) if high is None else (float(high) - max(1.0, abs(high)), float(high))

    def hexagons(self, box: Box, finest: int) -> Hexagons:
        """Those of one resolution; from as coarse ones as the box needs, where cells are selected."""
        if not self.cells:
            return Hexagons(box, finest, finest)
        for coarsest in range(finest, 0, -1):
            try:
                return Hexagons(box, coarsest, finest)
            except InputError:
                continue
        return Hexagons(box, 0, finest)

    def prepared(
        self, method: CellStatistics, declared: tuple[float | None, float | None], slots: Slots, budget: Budget
    ) -> CellMethod:
        """The method, after what has to be found out for it."""
        if self == NOTHING:
            return method
        bounds = PrivateValueBounds(FloatGrid(None, slots), *declared) if self.bounds else None
        votes = min(VOTES, method.bounding.cells)
        cells = PartitionSelection(most=1 if isinstance(budget, PureDP) else votes) if self.cells else None
        return TwoStageStatistics(method, bounds, cells)


NOTHING = ValuePreparation()
"""Nothing is found out first: bounds and cells are declared."""


def found_out(
    method: CellStatistics | PrivateBoxStatistics | TwoStageStatistics, value: str, done: Result[Measurements]
) -> dict[Learned, str]:
    """What was found out for a method, and what it cost: more than its disclosure can say before it has run."""
    inner = method.method if isinstance(method, PrivateBoxStatistics) else method
    if not isinstance(inner, TwoStageStatistics):
        return {}
    said: dict[Learned, str] = {}
    tree = done.value.tree
    if inner.bounds is not None:
        found = bounds_in(inner.bounds, done)
        paid = sum(exchange.question.share for exchange in done.transcript if _of_bounds(exchange.question))
        outside = [
            f"{100 * part:.2g} % {side}"
            for part, side, declared in (
                (found.below, "below", inner.bounds.low),
                (found.above, "above", inner.bounds.high),
            )
            if declared is None
        ]
        said[Learned.BOUNDS] = (
            f"the bounds of {value!r}, found to be {shortest(tree.value_encoding.low)} to "
            f"{shortest(tree.value_encoding.high)} with "
            f"{100 * float(paid):.2g} % of the budget, from one vote a person, spread over their records: "
            f"values outside are clipped to them; of people's values no more than about {' and '.join(outside)}"
        )
    if inner.selection is not None:
        votes = inner.selection.most
        what = "one vote" if votes == 1 else f"votes for at most {votes} cells"
        said[Learned.SELECTION] = (
            f"in which cells many people are, with {100 * float(inner.selection.share):.2g} % of the budget, from "
            f"{what} a person: {tree.cells.size:,} were kept, "
            "and values were asked in these alone"
        )
    return said


def bounds_in(bounds: PrivateValueBounds, done: Result[Measurements]) -> ValueBounds:
    """The bounds that a run found, with what is known of them."""
    answers = [exchange.answer for exchange in done.transcript if _of_bounds(exchange.question)]
    return bounds.read(answers)


def _of_bounds(question: object) -> bool:
    cells = getattr(getattr(question, "encoder", None), "cells", None)
    return isinstance(getattr(cells, "tree", None), FloatGrid)
