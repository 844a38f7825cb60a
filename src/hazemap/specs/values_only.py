"""Statistics of a value that somebody asks for under values-only: which places, whose values, who pays."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from hazemap.algorithms import ValuesOnly
from hazemap.algorithms.keeping import Keeping, Loudness, best_keeping
from hazemap.algorithms.prepared_values import PreparedValues
from hazemap.domains import WORLD, Gauge, Hexagons
from hazemap.domains.dial import Dial
from hazemap.domains.places import Places
from hazemap.encoders import KeptValues
from hazemap.errors import InputError
from hazemap.estimate.reach import reach
from hazemap.privacy.budget import PureDP
from hazemap.privacy.circumstances import UNSAID, Circumstances
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.statement import Statement
from hazemap.privacy.values_only import NEIGHBOURS, NOT_PROTECTED
from hazemap.specs.document import shortest
from hazemap.specs.release import ASSUMPTIONS
from hazemap.specs.statistics import StatisticsSpec, describe
from hazemap.stating import Promise, stated
from hazemap.tables.bounding import OwnMeans, Sensitivity
from hazemap.tables.pairs import KeptPairs, Pairs

WEIGHTS = (2, 1)
"""Of moments and bins: where quantiles are asked for too, a person moves both parts by as much."""

ROUTES = {
    "drawn": "drawn by a keyed hash",
    "even": "those of their places where the fewest count",
    "chopped": "chosen by CHOP-USER",
}


class Source(Protocol):
    """A table that tells what people measured where."""

    def pairs(self, places: Places) -> Pairs:
        """What each person measured in each place, added up."""
        ...


@dataclass(frozen=True)
class ValuesOnlySpec:
    """Statistics that somebody asks for, of a table whose whereabouts are public.

    >>> from hazemap.specs.table import TableSpec
    >>> full = StatisticsSpec(TableSpec(None), PureDP(1), "speed", 0, 65, variance=True, model="values-only")
    >>> spec = ValuesOnlySpec.of(full)
    >>> spec.places.tree.depth, spec.gauge.degree
    (7, 2)
    """

    full: StatisticsSpec
    places: Places

    @classmethod
    def of(cls, full: StatisticsSpec) -> "ValuesOnlySpec":
        """The same under this model; `InputError` where something is to be found at a price."""
        method = full.inner
        if isinstance(method, PreparedValues):
            raise InputError(
                "under values-only nothing is found at a price: the cells are those with rows (leave --select out), "
                "and bounds are declared (--low and --high, not --bounds private)"
            )
        gauge = replace(method.gauge, weights=WEIGHTS) if method.gauge.bins else method.gauge
        if full.reach is None and isinstance(method.tree, Hexagons):  # no box is to be found: where rows are is public
            return cls(full, Places(Hexagons(WORLD, 0, method.tree.finest), full.timeslots, gauge))
        return cls(full, Places(method.tree, full.timeslots, gauge, method.measured.cells))

    @property
    def gauge(self) -> Gauge:
        """What is measured of each record."""
        return self.places.gauge

    def kept(self, table: Source) -> tuple[ValuesOnly, KeptPairs]:
        """What is asked, and those who answer: chosen from whereabouts alone. `InputError` if no place can be told."""
        pairs, records = table.pairs(self.places), self.full.inner.bounding.records
        best = best_keeping(pairs.whereabouts, records, self._loudness, self.full.most_cells)
        rule = OwnMeans(best.places, records, scale=Dial(self.gauge).l1)
        asked = KeptValues(pairs.tree, rule, pairs.whereabouts.people, best.weight, best.most, best.squares)
        return ValuesOnly(asked, self._route(best)), KeptPairs(pairs, best.kept, records)

    @property
    def _loudness(self) -> Loudness:
        dial = Dial(self.gauge)
        noise = noise_for(self.full.budget, Sensitivity(dial.l1, dial.l2_squared))
        width = float(reach(0.95, np.full(1, noise.kurtosis))[0])
        return Loudness(noise.stddev / dial.scales[0], not isinstance(self.full.budget, PureDP), width)

    @staticmethod
    def _route(best: Keeping) -> str:
        where = "1 place" if best.places == 1 else f"{best.places} places"
        return f"{best.route}: everybody counts in {where} at most, {ROUTES[best.route]}"

    def statement(self, dataset: str, made: ValuesOnly, circumstances: Circumstances = UNSAID) -> Statement:
        """What statistics that are made now promise to the people in them, and what not."""
        asked, gauge, full = made.asked, self.gauge, self.full
        public = [
            NOT_PROTECTED,
            "numbers of people in every cell and slot, exactly, and of records; which cells are occupied",
            f"the cells: {full.cells}, those with rows",
            f"the slots: {describe(full.timeslots)}",
            f"the bounds of {full.value!r}, {shortest(gauge.low)} to {shortest(gauge.high)}, as declared: "
            "values outside are clipped to them",
            f"who counts where, chosen from whereabouts and the budget (route {made.route})",
            f"that {len(asked.told):,} of {int((asked.people > 0).sum()):,} occupied places are told, those in which "
            f"{int(asked.weight[asked.told].min()):,} or more count; others cost nobody anything",
            *full.wanted,
        ]
        promise = Promise(
            dataset=dataset,
            unit="a person's values alone (not whereabouts): those of all rows of one id",
            neighbours=NEIGHBOURS,
            budget=full.budget,
            bounding=asked.bounding,
            trust="curator",
            assumptions=(*ASSUMPTIONS, *full.table.dialect.assumptions, "whereabouts do not follow from values"),
            method=f"values of {full.value}, values only, {full.cells}",
        )
        return stated(promise, made.disclosure, box=full.box, public=public, circumstances=circumstances)
