"""Statistics of a value that somebody orders under values-only: which places, whose values, who pays."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

import numpy as np

from hazemap import __version__
from hazemap.algorithms import ValuesOnly
from hazemap.algorithms.keeping import Keeping, Loudness, best_keeping
from hazemap.algorithms.prepared_values import PreparedValues
from hazemap.domains import WORLD, Gauge, Hexagons
from hazemap.domains.dial import Dial
from hazemap.domains.places import Places
from hazemap.encoders import KeptValues
from hazemap.errors import CapExceeded, InputError
from hazemap.estimate.ratios import reach
from hazemap.orders.order import ASSUMPTIONS
from hazemap.orders.spelling import refuse
from hazemap.orders.values import ValueOrder, describe
from hazemap.privacy.budget import PureDP
from hazemap.privacy.ledger import Account, Ledger
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.statement import Statement
from hazemap.privacy.values_only import APART, NOT_PROTECTED, VALUES_ONLY
from hazemap.tables.bounding import OwnMeans, Sensitivity
from hazemap.tables.pairs import KeptPairs, Pairs

FULL, ONLY_VALUES = "full", "values-only"
MODELS = f"{FULL}, {ONLY_VALUES}"

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


def values_only(model: str) -> bool:
    """Whether a text names the model of values only, and not the full one.

    >>> values_only("values-only"), values_only("full")
    (True, False)
    """
    if model not in (FULL, ONLY_VALUES):
        refuse("a model of privacy", MODELS, model)
    return model == ONLY_VALUES


def of_full_model(dataset: str) -> str:
    """The name of a data set that pays for the full model; `InputError` for one whose charges are of values alone.

    >>> of_full_model("rides")
    'rides'
    """
    if " ".join(dataset.split()).endswith(APART.strip()):
        raise InputError(
            f"the data set {dataset!r} pays for releases under values-only, whose prices mean something else: name "
            "another one with --dataset (dataset=… in Python)"
        )
    return dataset


@dataclass(frozen=True)
class ValuesOnlyOrder:
    """Statistics that somebody wants, of a table whose whereabouts are public.

    >>> from hazemap.domains import Always
    >>> from hazemap.orders.spelling import Hexes
    >>> full = ValueOrder.understood(
    ...     value="speed", bounds=(0, 65), cells=Hexes(7, 7), box=None, slots=Always(), variance=True, quantiles=(),
    ...     bins=None, most=(None, 1), window=(None, None), budget=PureDP(1),
    ... )
    >>> order = ValuesOnlyOrder.of(full, most_cells=None)
    >>> order.places.tree.depth, order.gauge.degree
    (7, 2)
    """

    full: ValueOrder
    places: Places
    most_cells: int | None

    @classmethod
    def of(cls, full: ValueOrder, most_cells: int | None) -> "ValuesOnlyOrder":
        """The same order under this model; `InputError` where something is to be found at a price."""
        method = full.inner
        if isinstance(method, PreparedValues):
            raise InputError(
                "under values-only nothing is found at a price: the cells are those with rows (leave --select out), "
                "and bounds are declared (--low and --high, not --bounds private)"
            )
        gauge = replace(method.gauge, weights=WEIGHTS) if method.gauge.bins else method.gauge
        if full.reach is None and isinstance(method.tree, Hexagons):  # no box is to be found: where rows are is public
            return cls(full, Places(Hexagons(WORLD, 0, method.tree.finest), full.slots, gauge), most_cells)
        return cls(full, Places(method.tree, full.slots, gauge, method.measured.cells), most_cells)

    @property
    def gauge(self) -> Gauge:
        """What is measured of each record."""
        return self.places.gauge

    def account(self, book: Ledger, name: str, what: str) -> Account:
        """Who pays: a data set beside `name`, of its own. `CapExceeded` where that one has a cap and this one none."""
        plain = name.removesuffix(APART)
        own = book.account(plain + APART, what)
        capped = {status.name: status.cap for status in book.datasets()}
        there = book.account(plain, what).dataset
        if capped.get(there) is not None and capped.get(own.dataset) is None:
            raise CapExceeded(
                f"the data set {there!r} has a cap, {capped[there]}, which is about whereabouts too: values-only"
                " tells these exactly, so no cap of that kind covers it; if the people's agreement allows it, say how"
                f" much may be spent on their values alone, with `hazemap ledger cap {own.dataset!r} …`"
            )
        own.check(self.full.budget)
        return own

    def kept(self, table: Source) -> tuple[ValuesOnly, KeptPairs]:
        """What is asked, and those who answer: chosen from whereabouts alone. `InputError` if no place can be told."""
        pairs, records = table.pairs(self.places), self.full.inner.bounding.records
        best = best_keeping(pairs.whereabouts, records, self._loudness, self.most_cells)
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

    def statement(self, dataset: str, made: ValuesOnly) -> Statement:
        """What statistics that are made now promise to the people in them, and what not."""
        asked, gauge, full = made.asked, self.gauge, self.full
        public = [
            NOT_PROTECTED,
            "numbers of people in every cell and slot, exactly, and of records; which cells are occupied",
            f"the box {full.box}, as declared" if full.box else "",
            f"the cells: {full.cells}, those with rows",
            f"the slots: {describe(full.slots)}",
            f"the bounds of {full.value!r}, {gauge.low:g} to {gauge.high:g}, as declared: "
            "values outside are clipped to them",
            f"who counts where, chosen from whereabouts and the budget (route {made.route})",
            f"that {len(asked.told):,} of {int((asked.people > 0).sum()):,} occupied places are told, those in which "
            f"{int(asked.weight[asked.told].min()):,} or more count; others cost nobody anything",
            *full.wanted,
        ]
        return Statement(
            dataset=dataset,
            unit="a person's values alone (not whereabouts): those of all rows of one id",
            neighbours=VALUES_ONLY,
            budget=full.budget,
            bounding=asked.bounding,
            trust="curator",
            assumptions=(*ASSUMPTIONS, "whereabouts do not follow from values"),
            noise="discrete Laplace" if isinstance(full.budget, PureDP) else "discrete Gaussian",
            public=tuple(filter(None, public)),
            charged=("every number that is made of values",),
            method=f"values of {full.value}, values only, {full.cells}",
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=__version__,
        )
