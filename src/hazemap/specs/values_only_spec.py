"""Statistics under values-only privacy: which places, whose values, who pays."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hazemap.algorithms import PublicLocationStatistics, PublishedStatistics
from hazemap.algorithms.contribution_selection import ContributionSelection, NoiseScale, best_selection
from hazemap.algorithms.two_stage_statistics import TwoStageStatistics
from hazemap.encoders import KnownCountValues
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.statement import Statement
from hazemap.privacy.statement_facts import NEIGHBOURS, NOT_PROTECTED, UNSAID, StatementFacts
from hazemap.spatial.bounding_box import WORLD
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.specs.estimator_spec import bounding_of, estimated, told_of
from hazemap.specs.quantile_bins import bins_told, chosen_branchings, weights_of
from hazemap.specs.specification import ASSUMPTIONS, shortest
from hazemap.specs.statistics_spec import OWN_MEANS, StatisticsSpec
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import OwnMeans, Sensitivity
from hazemap.tables.person_cell_values import PersonCellSamples, PersonCellValues, SelectedPersonCellValues
from hazemap.values.cell_slot_counters import ObservedCellSlots
from hazemap.values.value_encoding import KnownCountEncoding, ValueEncoding

ROUTES = {
    "drawn": "drawn by a keyed hash",
    "even": "those of their places where the fewest count",
    "chopped": "chosen by CHOP-USER",
}


class LocationSource(Protocol):
    """A table that tells what people measured where."""

    def pairs(self, places: ObservedCellSlots) -> PersonCellValues:
        """What each person measured in each place, added up."""


@dataclass(frozen=True)
class PublicLocationSpec:
    """Statistics that somebody asks for, of a table whose whereabouts are public.

    >>> from hazemap.specs.table_spec import TableSpec
    >>> full = StatisticsSpec(TableSpec(None), PureDP(1), "speed", 0, 65, variance=True, model="values-only")
    >>> spec = PublicLocationSpec.of(full)
    >>> spec.places.tree.depth, spec.value_encoding.degree
    (7, 2)
    """

    full: StatisticsSpec
    places: ObservedCellSlots

    @classmethod
    def of(cls, full: StatisticsSpec) -> "PublicLocationSpec":
        """The same under this model; `InputError` where something is to be found at a price."""
        method = full.inner
        if isinstance(method, TwoStageStatistics):
            raise InputError(
                "under values-only nothing is found at a price: the cells are those with rows (leave --select out), "
                "and bounds are declared (--low and --high, not --bounds private)"
            )
        value_encoding = method.value_encoding
        if value_encoding.bins:
            branchings = chosen_branchings(full.bins, None)
            # Who has other values leaves one bin for another, so bins move by twice as much as moments of one weight.
            moments, *levels = weights_of(branchings, full.budget)
            value_encoding = replace(value_encoding, branchings=branchings, weights=(2 * moments, *levels))
        if full.reach is None and isinstance(method.tree, Hexagons):  # no box is to be found: where rows are is public
            return cls(full, ObservedCellSlots(Hexagons(WORLD, 0, method.tree.finest), full.timeslots, value_encoding))
        return cls(full, ObservedCellSlots(method.tree, full.timeslots, value_encoding, method.measured.cells))

    @property
    def value_encoding(self) -> ValueEncoding:
        """What is measured of each record."""
        return self.places.value_encoding

    def kept(
        self, table: LocationSource
    ) -> tuple[PublicLocationStatistics, SelectedPersonCellValues] | tuple[PublishedStatistics, PersonCellSamples]:
        """What is asked, and those who answer: chosen from whereabouts alone. `InputError` if no place can be told."""
        if self.full.estimator != OWN_MEANS:
            return estimated(self.full, self._pairs(table))
        pairs, records = self._pairs(table), self.full.inner.bounding.records
        best = best_selection(pairs.whereabouts, records, self._noise_scale, self.full.max_cells_per_person)
        rule = OwnMeans(best.places, records, scale=KnownCountEncoding(self.value_encoding).l1)
        asked = KnownCountValues(pairs.tree, rule, pairs.whereabouts.people, best.weight, best.most, best.squares)
        return PublicLocationStatistics(asked, self._route(best)), SelectedPersonCellValues(pairs, best.kept, records)

    def _pairs(self, table: LocationSource) -> PersonCellValues:
        """What each person measured where; `InputError` where no row counts, which is public here."""
        try:
            return table.pairs(self.places)
        except InputError as error:
            column = self.full.table.cell_column
            if column is None:
                raise
            raise InputError(
                f"{error}: a row counts if {column!r} holds an H3 cell of resolution {self.full.resolution} or finer. "
                "Where its cells are coarser, say so: --cells h3:R, with R their own resolution or less"
            ) from error

    @property
    def _noise_scale(self) -> NoiseScale:
        known_encoding = KnownCountEncoding(self.value_encoding)
        noise = noise_for(self.full.budget, Sensitivity(known_encoding.l1, known_encoding.l2_squared))
        width = float(reach(0.95, np.full(1, noise.kurtosis))[0])
        return NoiseScale(noise.stddev / known_encoding.scales[0], not isinstance(self.full.budget, PureDP), width)

    @staticmethod
    def _route(best: ContributionSelection) -> str:
        where = "1 place" if best.places == 1 else f"{best.places} places"
        return f"{best.route}: everybody counts in {where} at most, {ROUTES[best.route]}"

    def statement(
        self,
        dataset: str,
        made: PublicLocationStatistics | PublishedStatistics,
        circumstances: StatementFacts = UNSAID,
    ) -> Statement:
        """What statistics that are made now promise to the people in them, and what not."""
        value_encoding, full = self.value_encoding, self.full
        public = [
            NOT_PROTECTED,
            "numbers of people in every cell and slot, exactly, and of records; which cells are occupied",
            f"the cells: {full.cells}, those with rows",
            f"the slots: {full.timeslots.in_words}",
            *full.times,
            f"the bounds of {full.value!r}, {shortest(value_encoding.low)} to {shortest(value_encoding.high)}, as "
            "declared: "
            "values outside are clipped to them",
            *(told_of(full, made) if isinstance(made, PublishedStatistics) else _told(made)),
            *full.wanted,
            *bins_told(value_encoding),
        ]
        promise = Promise(
            dataset=dataset,
            unit="a person's values alone (not whereabouts): those of all rows of one id",
            neighbours=NEIGHBOURS,
            budget=full.budget,
            bounding=bounding_of(made) if isinstance(made, PublishedStatistics) else made.asked.bounding,
            trust="curator",
            assumptions=(*ASSUMPTIONS, *full.table.dialect.assumptions, "whereabouts do not follow from values"),
            method=f"values of {full.value}, values only, {full.cells}",
        )
        return stated(promise, made.disclosure, box=full.box, public=public, circumstances=circumstances)


def _told(made: PublicLocationStatistics) -> list[str]:
    """Which places are told, and who counts in them."""
    asked = made.asked
    return [
        f"who counts where, chosen from whereabouts and the budget (route {made.route})",
        f"that {len(asked.told):,} of {int((asked.people > 0).sum()):,} occupied places are told, those in which "
        f"{int(asked.weight[asked.told].min()):,} or more count; others cost nobody anything",
    ]
