"""Forecasts of orders from public facts alone: shown before payment, and refused if all answers would be noise."""

from dataclasses import dataclass

from hazemap.algorithms.first_look import FEW_PLACES
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.planning.statistics_plan import planned
from hazemap.privacy.estimand import Estimand
from hazemap.privacy.mechanisms import noise_for
from hazemap.specs.parsing import values_only
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec

SURE = 0.2
"""A count is well known when its 95 % interval is at most this part of it to either side."""


@dataclass(frozen=True)
class OrderForecast:
    """A `sentence` about what numbers an order can tell, and why it can tell nothing at all, if that is `known`.

    >>> asked = {"value": "speed", "low": 0, "high": 65, "epsilon": 1, "box": "13.2,52.4,13.6,52.6"}
    >>> made = OrderForecast.of(StatisticsSpec.of("rides.csv", slots="hour-of-day", **asked), 200)
    >>> made.known[:69]
    'in hardly any of 3,864 cells and slots could anything be told: 200 pe'
    """

    sentence: str
    known: str | None = None

    @classmethod
    def of(cls, spec: ReleaseSpec | StatisticsSpec, people: int | None) -> "OrderForecast | None":
        """The forecast of a specification for the declared number of people, if any; None if numbers are exact."""
        if people is not None and people < 1:
            raise InputError(f"a declared number of people is 1 or more; found {people}")
        if isinstance(spec, ReleaseSpec):
            return cls._of_map(spec, people)
        return None if values_only(spec.model) else cls._of_statistics(spec, people)

    @classmethod
    def _of_map(cls, spec: ReleaseSpec, people: int | None) -> "OrderForecast":
        noise = noise_for(spec.budget, spec.bounding.sensitivity)
        margin = float(reach(0.95, noise.kurtosis)) * noise.stddev / spec.bounding.unit
        counted = Estimand.of(spec.bounding).noun
        sentence = f"a cell with {margin / SURE:,.0f} {counted} or more can be known to ± 20 % at best"
        given = None if people is None else people * spec.bounding.sensitivity.l1 / spec.bounding.unit
        if given is None or given >= margin:
            return cls(sentence)
        few = (
            f"{people:,} people in one cell could not be told from nobody, whose noise is up to {margin:,.0f} {counted}"
        )
        return cls(sentence, few)

    @classmethod
    def _of_statistics(cls, spec: StatisticsSpec, people: int | None) -> "OrderForecast":
        plan = planned(spec)
        needed, cap = plan.asked.threshold, plan.max_cells_per_person
        where = "" if plan.places is None else f"; there are {plan.places:,} cells and slots to tell of"
        bins = ""
        if plan.bin_width is not None:
            unit = "" if plan.bounds else " of the range"
            wide = f"{plan.bin_width:.3g}" if plan.bounds else f"{100 * plan.bin_width:.2g} %"
            bins = f"; an interval of a quantile ends at edges of bins, {wide}{unit} wide"
        sentence = f"a cell needs about {needed:,.0f} {plan.counted} in a slot to be told of{where}{bins}"
        if people is None:
            return cls(sentence)
        told = 0.0 if people < needed else people * cap / needed
        places = plan.places if plan.places is not None and not plan.selected else None
        if told >= 1 and (places is None or told > FEW_PLACES * places):
            return cls(sentence)
        among = "" if places is None else f" of {places:,} cells and slots"
        return cls(
            sentence,
            f"in hardly any{among} could anything be told: {people:,} people, each in {cap} of them at most, fill "
            f"{told:,.0f}, as a cell needs about {needed:,.0f} in a slot; ask for coarser cells, fewer slots or more "
            "budget",
        )
