"""Plans of statistics before anything is read or paid: exact, from public numbers alone.

How much noise there is, is public; so is how many people a place needs, and how wide an interval is with so many of
them. Only how many people are where is not known beforehand: a steward who knows about it reads it off. Forecasts of
orders are shown before payment, and refused if all answers would be noise.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Unpack

import numpy as np

from hazemap.algorithms import CellStatistics, PrivateBoxStatistics
from hazemap.algorithms.first_look import FEW_PLACES
from hazemap.algorithms.two_stage_statistics import TwoStageStatistics
from hazemap.cells import Leaves
from hazemap.encoders import Values
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.value_estimates import Measurements
from hazemap.machine_code.arrays import Bools, Floats
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.statement_facts import Estimand
from hazemap.specs.parsing import values_only
from hazemap.specs.quantile_bins import number_of_cells
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import StatisticsOptions, takes
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.values.cell_slot_counters import CellTimeSlots

PEOPLE = (100, 300, 1_000, 3_000, 10_000)
"""Numbers of people in a place for which a plan gives the width of an interval."""

UNKNOWN = 100_000
"""Number of places of a plan if the box is yet to be found."""


@dataclass(frozen=True)
class Reach:
    """The reach of statistics with a cap on places per person.

    `stddev` is the standard error of each counter, in people; a place needs `threshold` people to be told of;
    `widths[i]` is half the 95 % interval of a mean with `PEOPLE[i]` there (None where it would not be told), in
    the unit of the value, or where its bounds are yet to be found, as a part of their distance. A mean in the middle
    of the bounds: at one of them, intervals are up to √2 times as wide. `medians[i]` is the same of a median of values
    that are spread evenly between the bounds, for lack of a better guess; empty where no quantiles were asked for.
    """

    max_cells_per_person: int
    stddev: float
    threshold: float
    widths: tuple[float | None, ...]
    medians: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class StatsPlan:
    """The plan of an order; `reaches` are for half the cap on places per person, the cap, and twice the cap.

    `cells` and `places` are None where the box is yet to be found; with a selection they are what it selects from.
    `share` is the least part of the budget that is left for the values. `bounds` are None where they are to be found.
    An interval of a quantile ends at edges of bins of this `bin_width`, in the unit of `Reach.widths`.
    """

    budget: Budget
    cells: int | None
    slots: int
    places: int | None
    share: Fraction
    bounds: tuple[float, float] | None
    selected: bool
    counted: str
    max_cells_per_person: int
    reaches: tuple[Reach, ...]
    bin_width: float | None = None

    @property
    def asked(self) -> Reach:
        """With the cap that was asked for."""
        return next(reach for reach in self.reaches if reach.max_cells_per_person == self.max_cells_per_person)


@takes(StatisticsOptions)
def plan_stats(**asked: Unpack[StatisticsOptions]) -> StatsPlan:
    """Plan `stats` with these options. Nothing is read, and nothing is paid.

    >>> made = plan_stats(low=0, high=65, epsilon=1, box="13.2,52.4,13.6,52.6", slots="hour-of-day")
    >>> made.places, round(made.asked.threshold), [reach.max_cells_per_person for reach in made.reaches]
    (3864, 342, [12, 24, 48])
    """
    return planned(StatisticsSpec.of(**{"value": "value", **asked}))


def planned(spec: StatisticsSpec) -> StatsPlan:
    """Plan the statistics of a specification. Nothing is read, and nothing is paid."""
    money, select = spec.budget, spec.select
    method = spec.inner.method if isinstance(spec.inner, TwoStageStatistics) else spec.inner
    number = None if isinstance(spec.algorithm, PrivateBoxStatistics) else number_of_cells(method, selected=select)
    share, cap = left_for_values(spec.algorithm), method.bounding.cells
    many = len(spec.timeslots.names)
    places = None if number is None else number * many
    caps = sorted({max(1, cap // 2), cap, min(2 * cap, 1 << 16)})
    width = 1.0 if spec.finding.bounds else method.value_encoding.width
    reaches = tuple(_reach(method, each, money.part(share), places or UNKNOWN, width) for each in caps)
    known = None if spec.finding.bounds else (method.value_encoding.low, method.value_encoding.high)
    finest = width / method.value_encoding.bins if method.value_encoding.bins else None
    counted = Estimand.of(method.bounding).noun
    return StatsPlan(money, number, many, places, share, known, select, counted, cap, reaches, finest)


def left_for_values(method: CellStatistics | TwoStageStatistics | PrivateBoxStatistics) -> Fraction:
    """The part of the budget that the values get, if all is found with the first share for it."""
    if isinstance(method, PrivateBoxStatistics):
        return (1 - method.shares[0]) * left_for_values(method.method)
    left = Fraction(1)
    if isinstance(method, TwoStageStatistics):
        left -= method.bounds.shares[0] if method.bounds else 0
        left -= method.selection.share if method.selection else 0
    return left


def _reach(method: CellStatistics, cap: int, budget: Budget, places: int, width: float) -> Reach:
    value_encoding, rule = method.value_encoding, replace(method.bounding, cells=cap)
    one = CellTimeSlots(Leaves(method.tree, method.tree.root[:1]), method.slots, value_encoding)
    noise = noise_for(budget, Values(one, rule).sensitivity)
    moments = [0.5, 0.5] if value_encoding.degree == 1 else [0.25, 0.5, 0.25]
    parts = [np.array(moments), *(np.full(size, 1 / size) for size in value_encoding.levels)]  # of each group, evenly
    each = np.concatenate([part * scale for part, scale in zip(parts, value_encoding.scales, strict=True)])
    shape = np.outer(PEOPLE, each / value_encoding.scale)
    found = Measurements(one, shape, noise.stddev / value_encoding.scale, noise.kurtosis)
    mean, needed = found.means(), found.threshold_of(places)
    part = (mean.high - mean.low) / 2 / value_encoding.width
    told = np.array(PEOPLE) >= needed
    medians: tuple[float | None, ...] = ()
    if value_encoding.bins:
        median = found.quantiles(0.5)
        half = (median.high - median.low) / 2 / value_encoding.width
        medians = _widths(width * half, told & ~median.too_few)
    stddev = found.people_stddev / np.sqrt(value_encoding.degree + 1)
    return Reach(cap, stddev, needed, _widths(width * part, told), medians)


def _widths(found: Floats, told: Bools) -> tuple[float | None, ...]:
    return tuple(float(each) if fine else None for each, fine in zip(found, told, strict=True))


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
