"""`StatisticsSpec`: statistics of a value to release, typed and checked before anything is read or paid."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.published.place_means import ESTIMATORS, PlaceRules
from hazemap.algorithms.two_stage_statistics import CellMethod, PrivateBoxStatistics, TwoStageStatistics
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.privacy_unit import FULL
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.privacy.statement_facts import UNSAID, StatementFacts
from hazemap.queries.algorithm_disclosure import Learned
from hazemap.queries.algorithm_session import Result
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.specs.h3_cell_list import listed
from hazemap.specs.method_from_name import SPECK, around, domain, opened_districts
from hazemap.specs.parsing import (
    DistrictFiles,
    HexagonCells,
    HexagonList,
    QuadtreeCells,
    cells_of_values,
    values_only,
)
from hazemap.specs.private_bounds_and_cells import ValuePreparation, found_out
from hazemap.specs.quantile_bins import bins_told, chosen_branchings, encoded, known_places, weights_of
from hazemap.specs.slots_by_name import refuse_never, slots
from hazemap.specs.spec_fields import STATISTICS
from hazemap.specs.specification import ASSUMPTIONS, Specification, shortest
from hazemap.specs.table_spec import TableSpec
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import OwnMeans, whose_mean
from hazemap.temporal.time_slots import Slots
from hazemap.values.value_encoding import STEPS, ValueEncoding

FEWEST_PLACES, MOST_PLACES = 8, 24
"""In how many places a person counts, where nobody says it: one in every slot, but at least and at most so many.

Where people are in more places than the cap, noise in pure ε and people grow with it alike, and more records are used;
where they are in fewer, only the noise grows.
"""

LOUDEST = 2.0**48
"""The widest noise, in micro-votes: the samplers' own limit is twice as wide, which leaves room for finding a box."""

RAREST = 1e-9
"""No quantile is told of a rank nearer to 0 or to 1: it would take billions of people in one place."""

OWN_MEANS = "own-means"
"""The estimator that is used where none is named: the mean of people's own means."""

RECORDS, PEOPLE = "records", "people"
"""Of what a mean may be: of records, or of people's own means."""

MOST_RECORDS = 10
"""For so many records a person counts in a mean of records, where nobody says it."""

USUAL_CELLS = HexagonCells(7, 7)


@dataclass(frozen=True)
class StatisticsSpec(Specification):
    """Statistics of the column `value` that somebody asks for; all of it is public. The fields are `hazemap.stats`'s.

    Whatever can be known to be wrong without looking at rows is found when this is made: `InputError`, or `FileError`
    for files of districts and lists of cells.

    >>> from hazemap.privacy.budget import PureDP
    >>> spec = StatisticsSpec(TableSpec("rides.csv"), PureDP(1), "speed", 0, 65, slots="hour-of-day", quantiles=(0.5,))
    >>> spec.dataset, StatisticsSpec.from_toml(spec.to_toml()) == spec
    ('rides', True)
    """

    NAMES = STATISTICS

    table: TableSpec
    budget: Budget
    value: str
    low: float | None = None
    high: float | None = None
    bounds: str | None = None
    box: Box | None = None
    cells: QuadtreeCells | HexagonCells | HexagonList | DistrictFiles = USUAL_CELLS
    slots: str = "always"
    time_zone: str = "UTC"
    variance: bool = False
    quantiles: tuple[float, ...] = ()
    bins: int | None = None
    max_cells_per_person: int | None = None
    max_records_per_cell: int | None = None
    select: bool = False
    model: str = FULL
    dataset: str = ""
    output: str | None = None
    overwrite: bool = False
    estimator: str = OWN_MEANS
    length: str | None = None
    mean_of: str | None = None
    chop_user: bool = False
    known: CellMethod | PrivateBoxStatistics | None = field(default=None, repr=False, compare=False)
    """The algorithm, where a journal holds it already; else it follows from the rest."""

    def __post_init__(self) -> None:
        self.check()
        values_only(self.model)
        ranks = self.quantiles
        if not all(isinstance(rank, float) and 0 < rank < 1 for rank in ranks) or len(set(ranks)) < len(ranks):
            raise InputError(f"quantiles must be distinct ranks between 0 and 1, such as 0.1,0.5,0.9; found {ranks}")
        if ranks and not RAREST <= min(ranks) <= max(ranks) <= 1 - RAREST:
            raise InputError(
                f"nobody can tell what one of a billion has: say ranks from 1e-9 to 1 - 1e-9; found {ranks}"
            )
        if self.table.cell_column is not None and not isinstance(self.cells, HexagonCells | HexagonList):
            raise InputError("a column of H3 cells (--cell-column) is for hexagons: say --cells h3:7, or hexagons:FILE")
        self._check_estimator()
        _ = self.finding, self.timeslots, self.algorithm
        refuse_never(self.timeslots, self.time_zone, *self.table.window)

    def _check_estimator(self) -> None:
        """`InputError` where an estimator is not known, does not hold, or has no use for what was asked."""
        if self.mean_of not in (None, RECORDS, PEOPLE):
            raise InputError(f"a mean is of {RECORDS} or of {PEOPLE}, not of {self.mean_of!r:.40}")
        if self.estimator == OWN_MEANS:
            if self.mean_of == PEOPLE and self.records > 1:
                raise InputError(
                    f"in a mean of people's own means each counts once, not for {self.records} records: leave "
                    f"--max-records-per-cell out, or say --mean-of {RECORDS}"
                )
            for name, given in (("length", self.length), ("chop-user", self.chop_user)):
                if given:
                    raise InputError(
                        f"--{name} is for an --estimator other than {OWN_MEANS}, which counts people's own means and "
                        f"chooses who counts where by itself: say one of {', '.join(ESTIMATORS)}"
                    )
            return
        if self.estimator not in ESTIMATORS:
            raise InputError(f"an estimator is one of: {', '.join((OWN_MEANS, *ESTIMATORS))}; found {self.estimator!r}")
        if not values_only(self.model):
            raise InputError(
                f"the estimator {self.estimator} holds only where it is public who is where with how many samples: it "
                "hides the values of a person, not that somebody is there, so a person more would show. If presence is "
                f"public, say --model values-only; if not, use --estimator {OWN_MEANS}"
            )
        if self.quantiles or self.bins:
            raise InputError(f"the estimator {self.estimator} tells means; for quantiles use --estimator {OWN_MEANS}")
        if self.max_records_per_cell not in (None, 1):
            raise InputError("with an estimator --length says for how many samples a person counts")
        _ = self.place_rules

    @property
    def place_rules(self) -> PlaceRules:
        """How an estimator chooses places, and for how much people count."""
        return PlaceRules(
            self.estimator,
            self.length or "",
            self.chop_user,
            self.max_cells_per_person,
            self.variance,
            self.mean_of == PEOPLE,
        )

    @property
    def records(self) -> int:
        """For how many records of theirs a person counts in a cell and slot at most."""
        usual = MOST_RECORDS if self.mean_of == RECORDS else 1
        return usual if self.max_records_per_cell is None else self.max_records_per_cell

    @cached_property
    def finding(self) -> ValuePreparation:
        """What has to be found out at a price."""
        return ValuePreparation.understood(self.bounds, self.low, self.high, self.select)

    @cached_property
    def timeslots(self) -> Slots:
        """The slots that `slots` names."""
        return slots(self.slots, self.time_zone, *self.table.window)

    @cached_property
    def algorithm(self) -> CellMethod | PrivateBoxStatistics:
        """Who asks, under the full model."""
        if self.known is not None:
            return self.known
        low, high = self.finding.stand_ins(self.low, self.high) if self.finding.bounds else (self.low, self.high)
        if low is None or high is None:
            raise InputError(
                f"between which bounds do the values of {self.value!r} lie? Declare low and high (--low, --high): they "
                "cannot be read from the data, where the largest value may be one person's; take what the instrument "
                "or the law allows, values outside are clipped to it; or have a share of the budget find them "
                "(--bounds private, bounds='private')"
            )
        value_encoding = ValueEncoding(float(low), float(high), 1 + self.variance)
        usual = min(max(len(self.timeslots.names), FEWEST_PLACES), MOST_PLACES)
        cells = usual if self.max_cells_per_person is None else self.max_cells_per_person
        rule = OwnMeans(cells, self.records, scale=value_encoding.scale)
        declared = (self.low, self.high)
        made = _method(self.cells, self.box, self.timeslots, value_encoding, rule, self.finding, declared, self.budget)
        if self.quantiles or self.bins is not None:
            branchings = chosen_branchings(self.bins, known_places(made))
            weights = weights_of(branchings, self.budget)
            value_encoding = replace(value_encoding, branchings=branchings, weights=weights)
            made, rule = encoded(made, value_encoding), replace(rule, scale=value_encoding.scale)
        if noise_for(self.budget, rule.sensitivity).stddev > LOUDEST:
            raise InputError(
                "so little is spent, and a person may say so much, that the noise would not fit: spend more, or lower "
                "--max-cells-per-person or --max-records-per-cell"
            )
        return made

    @classmethod
    def read(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The fields that only statistics have, understood where they are texts."""
        if "value" not in given:
            raise InputError("statistics need a value: name its column")
        if isinstance(given.get("cells"), str):
            given["cells"] = cells_of_values(given["cells"])
        if type(given.get("length")) is int:
            given["length"] = str(given["length"])
        ranks = given.get("quantiles", ())
        if isinstance(ranks, str) or not isinstance(ranks, Iterable):
            raise InputError(f"quantiles are a list of ranks, such as (0.1, 0.5, 0.9); found {ranks!r:.80}")
        try:
            return given | {"quantiles": tuple(map(float, ranks))}
        except (TypeError, ValueError):
            raise InputError(f"quantiles are ranks, such as (0.1, 0.5, 0.9); found {ranks!r:.80}") from None

    def written(self) -> dict[str, Any]:
        """The fields that are no text, number or flag already, as a file has them."""
        return {
            "box": self.box and str(self.box),
            "cells": self.cells.text,
            "quantiles": list(self.quantiles),
            **{name: float(bound) for name in ("low", "high") if (bound := getattr(self, name)) is not None},
        }

    @property
    def inner(self) -> CellMethod:
        """What asks for the values, in the box that may have to be found first."""
        return self.algorithm.method if isinstance(self.algorithm, PrivateBoxStatistics) else self.algorithm

    @property
    def reach(self) -> Box | None:
        """A box that holds every cell; none where one has to be found."""
        return None if isinstance(self.algorithm, PrivateBoxStatistics) else around(self.algorithm.tree)

    @property
    def resolution(self) -> int:
        """That of the hexagons in which values are told: H3 cells in a table are read as their ancestors there."""
        tree = self.inner.tree
        if not isinstance(tree, Hexagons):
            raise InputError("only hexagons have a resolution")
        return tree.finest

    @property
    def wanted(self) -> list[str]:
        """What a statement says of the question: which statistics, and of when."""
        value_encoding = self.inner.value_encoding
        spread = ["the variance"] if value_encoding.degree > 1 else []
        ranks = [f"quantiles {', '.join(map(shortest, self.quantiles))}"] if self.quantiles else []
        return [
            f"which statistics: {', '.join([f'the mean of {self.mean_told}', *spread, *ranks])}",
            f"values are read in {STEPS:,} steps; intervals hold what that may move",
            *([self._in_column] if self.table.cell_column else []),
            *([f"the time: {self.table.when}"] if self.table.when else []),
            "the names and types of the table's columns",
        ]

    @property
    def _in_column(self) -> str:
        where = f"the H3 cell in its column {self.table.cell_column!r}, or the ancestor of that"
        return f"where a row is: in {where}; rows with a coarser cell are nowhere"

    @property
    def mean_told(self) -> str:
        """Of what the mean is, in words."""
        if self.estimator == OWN_MEANS:
            return whose_mean(self.records)
        return whose_mean(1) if self.mean_of == PEOPLE else "all records, each once"

    def statement(
        self, dataset: str, done: Result[Measurements] | None = None, circumstances: StatementFacts = UNSAID
    ) -> Statement:
        """What statistics that are made now promise to the people in them."""
        value_encoding, rule = self.inner.value_encoding, self.inner.bounding
        borders = isinstance(self.cells, DistrictFiles | HexagonList)
        which = "those selected" if self.finding.cells else "all"
        where = "" if borders else f"{which} of the box" + ("" if self.box else " that was found")
        public = [
            f"the cells: {self.cells}" + (f", {where}" if where else ""),
            f"the slots: {self.timeslots.in_words}",
            *self.times,
            self._bounds(value_encoding),
            f"the caps: {rule}",
            *self.wanted,
            *([] if self.finding.bounds else bins_told(value_encoding)),
        ]
        details = found_out(self.algorithm, self.value, done) if done else {}
        if isinstance(self.algorithm, PrivateBoxStatistics):
            details[Learned.BOX] = f"{Learned.BOX.value} from one row a person"
        promise = Promise(
            dataset=dataset,
            unit=A_PERSON,
            neighbours="one of them added or removed (the full model: also how many records a person has, and where)",
            budget=self.budget,
            bounding=rule,
            trust="curator",
            assumptions=(*ASSUMPTIONS, *self.table.dialect.assumptions),
            method=f"values of {self.value}, {self.cells}",
        )
        return stated(
            promise,
            self.algorithm.disclosure,
            box=self.box,
            public=public,
            details=details,
            circumstances=circumstances,
        )

    def _bounds(self, value_encoding: ValueEncoding) -> str:
        """What was declared of the bounds."""
        clipped = "values outside are clipped to "
        if not self.finding.bounds:
            ends = f"{shortest(value_encoding.low)} to {shortest(value_encoding.high)}"
            return f"the bounds of {self.value!r}, {ends}, as declared: {clipped}them"
        bounds = self.inner.bounds if isinstance(self.inner, TwoStageStatistics) else None
        if bounds is None or bounds.low == bounds.high:
            return ""
        end, number = ("high", bounds.high) if bounds.low is None else ("low", bounds.low)
        return f"the {end} bound of {self.value!r}, {shortest(number or 0)}, as declared: {clipped}it"


def _method(
    cells: QuadtreeCells | HexagonCells | HexagonList | DistrictFiles,
    box: Box | None,
    slots: Slots,
    value_encoding: ValueEncoding,
    rule: OwnMeans,
    finding: ValuePreparation,
    bounds: tuple[float | None, float | None],
    budget: Budget,
) -> CellMethod | PrivateBoxStatistics:
    """The method over these cells of the box; of a box that it finds, where there is none."""

    def found(method: CellStatistics) -> CellMethod:
        return finding.prepared(method, bounds, slots, budget)

    if isinstance(cells, DistrictFiles):
        if box is not None:
            raise InputError("districts already say where the map is: leave the box out")
        districts = opened_districts(cells)
        return found(CellStatistics(districts, districts.depth, slots, value_encoding, rule))
    if isinstance(cells, QuadtreeCells):
        if box is None or cells.depth is None:
            raise InputError(
                "squares for values are cut from a declared box, so many times: give both, such as "
                "--box=west,south,east,north --cells quadtree:6; for hexagons (h3:7) a box can be found"
            )
        return found(CellStatistics(domain(cells, box), cells.depth, slots, value_encoding, rule))
    if isinstance(cells, HexagonList):
        if box is not None:
            raise InputError("a list of hexagons already says where the map is: leave the box out")
        names = listed(Path(cells.file))
        return found(
            CellStatistics(
                Hexagons(WORLD, 0, int(names[0][1], 16)), int(names[0][1], 16), slots, value_encoding, rule, names
            )
        )
    if cells.coarsest != cells.finest:
        raise InputError(f"values are told for hexagons of one resolution: say h3:{cells.finest}")
    if box is None:
        return PrivateBoxStatistics(
            found(CellStatistics(Hexagons(SPECK, cells.finest, cells.finest), 0, slots, value_encoding, rule))
        )
    tree = finding.hexagons(box, cells.finest)
    made = CellStatistics(tree, tree.depth, slots, value_encoding, rule)
    if not finding.cells:
        made.measured  # noqa: B018 - too many places are found out now
    return found(made)
