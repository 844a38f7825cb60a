"""What statistics of a value would tell, before anything is read or paid: from public numbers alone, and exact.

How much noise there is, is public; so is how many people a place needs, and how wide an interval is with so many of
them. Only how many people are where is not known beforehand: a steward who knows about it reads it off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hazemap.algorithms import CellValues, FoundValues
from hazemap.algorithms.prepared_values import PreparedValues
from hazemap.algorithms.selected_cells import first_level
from hazemap.cells import Leaves
from hazemap.domains import Box, Measured
from hazemap.encoders import Values
from hazemap.estimate.gauged import Measurements
from hazemap.privacy.budget import Budget, Number
from hazemap.privacy.mechanisms import noise_for
from hazemap.specs.parsing import budget as parsed_budget
from hazemap.specs.parsing import cells_of_values
from hazemap.specs.statistics import StatisticsSpec
from hazemap.specs.table import TableSpec

PEOPLE = (100, 300, 1_000, 3_000, 10_000)
"""With so many people in a place a plan says how wide an interval is."""

UNKNOWN = 100_000
"""For so many places a plan is made where the box is yet to be found."""


@dataclass(frozen=True)
class Reach:
    """What can be told with a cap on places a person.

    `stddev` is the standard error of each counter, in people; a place needs `threshold` people to be told of;
    `widths[i]` is half the 95 % interval of a mean with `PEOPLE[i]` there (None where it would not be told), in
    the unit of the value, or where its bounds are yet to be found, as a part of their distance. A mean in the middle
    of the bounds: at one of them, intervals are up to √2 times as wide.
    """

    most_cells: int
    stddev: float
    threshold: float
    widths: tuple[float | None, ...]


@dataclass(frozen=True)
class StatsPlan:
    """What an order would give; `reaches` are those of half the cap on places a person, of the cap, and of twice it.

    `cells` and `places` are None where the box is yet to be found; with a selection they are what it selects from.
    `share` is the least part of the budget that is left for the values. `bounds` are None where they are to be found.
    """

    budget: Budget
    cells: int | None
    slots: int
    places: int | None
    share: Fraction
    bounds: tuple[float, float] | None
    selected: bool
    counted: str
    most_cells: int
    reaches: tuple[Reach, ...]

    @property
    def asked(self) -> Reach:
        """With the cap that was asked for."""
        return next(reach for reach in self.reaches if reach.most_cells == self.most_cells)


def plan_stats(
    *,
    value: str = "value",
    low: float | None = None,
    high: float | None = None,
    bounds: str | None = None,
    time_zone: str = "UTC",
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    box: Box | str | None = None,
    since: str | None = None,
    until: str | None = None,
    cells: str = "h3:7",
    slots: str = "always",
    variance: bool = False,
    quantiles: Sequence[float] = (),
    bins: int | None = None,
    most_cells: int | None = None,
    most_records: int = 1,
    select: bool = False,
) -> StatsPlan:
    """What `stats` with these options would tell. Nothing is read, and nothing is paid.

    >>> made = plan_stats(low=0, high=65, epsilon=1, box="13.2,52.4,13.6,52.6", slots="hour-of-day")
    >>> made.places, round(made.asked.threshold), [reach.most_cells for reach in made.reaches]
    (3864, 342, [12, 24, 48])
    """
    spec = StatisticsSpec(
        TableSpec(None, since=since, until=until),
        parsed_budget(epsilon, delta, rho),
        value,
        low,
        high,
        bounds,
        Box.parse(box) if isinstance(box, str) else box,
        cells_of_values(cells),
        slots,
        time_zone,
        variance,
        tuple(float(rank) for rank in quantiles),
        bins,
        most_cells,
        most_records,
        select,
    )
    return planned(spec)


def planned(spec: StatisticsSpec) -> StatsPlan:
    """What the statistics of a specification would tell. Nothing is read, and nothing is paid."""
    money, select = spec.budget, spec.select
    method = spec.inner.method if isinstance(spec.inner, PreparedValues) else spec.inner
    number = None if isinstance(spec.algorithm, FoundValues) else _cells(method, select)
    share, cap = left_for_values(spec.algorithm), method.bounding.cells
    many = len(spec.timeslots.names)
    places = None if number is None else number * many
    caps = sorted({max(1, cap // 2), cap, min(2 * cap, 1 << 16)})
    width = 1.0 if spec.finding.bounds else method.gauge.high - method.gauge.low
    reaches = tuple(_reach(method, each, money.part(share), places or UNKNOWN, width) for each in caps)
    known = None if spec.finding.bounds else (method.gauge.low, method.gauge.high)
    return StatsPlan(money, number, many, places, share, known, select, method.bounding.counted, cap, reaches)


def left_for_values(method: CellValues | PreparedValues | FoundValues) -> Fraction:
    """The part of the budget that the values get, if all is found with the first share for it."""
    if isinstance(method, FoundValues):
        return (1 - method.shares[0]) * left_for_values(method.method)
    left = Fraction(1)
    if isinstance(method, PreparedValues):
        left -= method.bounds.shares[0] if method.bounds else 0
        left -= method.selection.share if method.selection else 0
    return left


def _cells(method: CellValues, select: bool) -> int:
    """How many cells the box has; about how many, where there are too many to list."""
    if method.only:
        return len(method.only)
    level, cells = first_level(method.tree, method.level)
    if level == method.level:
        return method.measured.cells.size if not select else len(cells)
    below = method.tree.children(cells[:1])
    return int(len(cells) * len(below) ** (method.level - level))


def _reach(method: CellValues, cap: int, budget: Budget, places: int, width: float) -> Reach:
    gauge, rule = method.gauge, replace(method.bounding, cells=cap)
    one = Measured(Leaves(method.tree, method.tree.root[:1]), method.slots, gauge)
    noise = noise_for(budget, Values(one, rule).sensitivity)
    shape = np.zeros((len(PEOPLE), gauge.size))
    moments = [0.5, 0.5] if gauge.degree == 1 else [0.25, 0.5, 0.25]
    for row, people in enumerate(PEOPLE):
        shape[row, : gauge.degree + 1] = people * np.array(moments) * gauge.scales[0] / gauge.scale
    found = Measurements(one, shape, noise.stddev / gauge.scale, noise.kurtosis)
    mean, needed = found.means(), found.threshold_of(places)
    part = (mean.high - mean.low) / 2 / (gauge.high - gauge.low)
    told = (np.array(PEOPLE) >= needed) & (2 * part <= 0.5)
    widths = tuple(width * float(each) if fine else None for each, fine in zip(part, told, strict=True))
    return Reach(cap, found.people_stddev / np.sqrt(gauge.degree + 1), needed, widths)
