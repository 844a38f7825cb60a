"""Statistics of a value that somebody orders: slots, bounds and caps understood before anything is paid."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hazemap import __version__
from hazemap.algorithms.cell_values import Asked, CellValues, FoundValues
from hazemap.algorithms.prepared_values import PreparedValues
from hazemap.domains import WORLD, Always, Box, Clock, Gauge, Hexagons, Slots, Spans, Weekdays
from hazemap.errors import InputError
from hazemap.estimate.gauged import Measurements
from hazemap.orders.districts import opened
from hazemap.orders.finding import NOTHING, Finding, found_out
from hazemap.orders.listed import listed
from hazemap.orders.order import ASSUMPTIONS
from hazemap.orders.spelling import DistrictFiles, HexagonList, Hexes, Squares, refuse
from hazemap.orders.ways import SPECK, around, domain
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.mechanisms import noise_for
from hazemap.privacy.statement import A_PERSON, Statement
from hazemap.session import Result
from hazemap.tables.bounding import OwnMeans

SLOTS = "always, hour-of-day, day-of-week, hour, day, clock:HH:MM,HH:MM,…, times:TIME,TIME,…"

FEWEST_PLACES, MOST_PLACES = 8, 24
"""In how many places a person counts, where nobody says it: one in every slot, but at least and at most so many.

Where people are in more places than the cap, noise in pure ε and people grow with it alike, and more records are used;
where they are in fewer, only the noise grows.
"""

LOUDEST = 2.0**48
"""The widest noise, in micro-votes: the samplers' own limit is twice as wide, which leaves room for finding a box."""

BINS = 16
"""Into so many parts the range is cut for quantiles, where nobody says how many."""


def slots(text: str, zone: str, since: str | None, until: str | None) -> Slots:
    """The slots that a text names; hours and days one after another need the time from when until when.

    >>> slots("clock:7:00,9:30,16:00", "Europe/Berlin", None, None).names
    ('07:00-09:30', '09:30-16:00', '16:00-07:00')
    """
    if text == "always":
        return Always()
    if text == "hour-of-day":
        return Clock.hours(zone)
    if text == "day-of-week":
        return Weekdays(zone)
    if text in ("hour", "day"):
        if since is None or until is None:
            raise InputError(
                f"{text}s one after another begin and end at declared times, not where the data does: give since and "
                f"until (--since, --until); for a usual day or week say hour-of-day or day-of-week"
            )
        return Spans.every(3600, zone, since, until) if text == "hour" else Spans.days(zone, since, until)
    if found := re.fullmatch(r"clock:([0-9:,]+)", text):
        times = [re.fullmatch(r"([0-9]{1,2})(?::([0-9]{2}))?", part) for part in found[1].split(",")]
        if all(times):
            return Clock(zone, tuple(3600 * int(time[1]) + 60 * int(time[2] or 0) for time in times if time))
    if found := re.fullmatch(r"times:(.+,.+)", text):
        return Spans.between(zone, found[1].split(","))
    refuse("a way to cut time", SLOTS, text)


@dataclass(frozen=True)
class ValueOrder:
    """Statistics that somebody wants, all of it public."""

    value: str
    cells: Squares | Hexes | HexagonList | DistrictFiles
    box: Box | None
    slots: Slots
    ranks: tuple[float, ...]
    window: tuple[str | None, str | None]
    budget: Budget
    method: Asked | FoundValues
    finding: Finding = NOTHING

    @classmethod
    def understood(
        cls,
        *,
        value: str,
        bounds: tuple[float | None, float | None],
        cells: Squares | Hexes | HexagonList | DistrictFiles,
        box: Box | None,
        slots: Slots,
        variance: bool,
        quantiles: Sequence[float],
        bins: int | None,
        most: tuple[int | None, int],
        window: tuple[str | None, str | None],
        budget: Budget,
        finding: Finding = NOTHING,
    ) -> "ValueOrder":
        """The order, or `InputError` for one that cannot be."""
        low, high = finding.stand_ins(*bounds) if finding.bounds else bounds
        if low is None or high is None:
            raise InputError(
                f"between which bounds do the values of {value!r} lie? Declare low and high (--low, --high): they "
                "cannot be read from the data, where the largest value may be one person's; take what the instrument "
                "or the law allows, values outside are clipped to it; or have a share of the budget find them "
                "(--bounds private, bounds='private')"
            )
        ranks = tuple(float(rank) for rank in quantiles)
        if not all(0 < rank < 1 for rank in ranks) or len(set(ranks)) < len(ranks):
            raise InputError(f"quantiles have ranks between 0 and 1, none twice, such as 0.1,0.5,0.9; found {ranks}")
        gauge = Gauge(float(low), float(high), 1 + variance, (bins or BINS) if ranks or bins else 0)
        places, records = most
        rule = OwnMeans(
            min(max(len(slots.names), FEWEST_PLACES), MOST_PLACES) if places is None else places,
            records,
            scale=gauge.scale,
        )
        if noise_for(budget, rule.sensitivity).stddev > LOUDEST:
            raise InputError(
                "so little is spent, and a person may say so much, that the noise would not fit: spend more, or lower "
                "--most-cells or --most-records"
            )
        method = _method(cells, box, slots, gauge, rule, finding, bounds, budget)
        return cls(value, cells, box, slots, ranks, window, budget, method, finding)

    @property
    def inner(self) -> Asked:
        """What asks for the values, in the box that may have to be found first."""
        return self.method.method if isinstance(self.method, FoundValues) else self.method

    @property
    def reach(self) -> Box | None:
        """A box that holds every cell; none where one has to be found."""
        return None if isinstance(self.method, FoundValues) else around(self.method.tree)

    @property
    def wanted(self) -> list[str]:
        """What a statement says of the question: which statistics, and of when."""
        spread = ["the variance"] if self.inner.gauge.degree > 1 else []
        ranks = [f"quantiles {', '.join(f'{rank:g}' for rank in self.ranks)}"] if self.ranks else []
        window = [f"{word} {time}" for word, time in zip(("from", "until before"), self.window, strict=True) if time]
        return [
            f"which statistics: {', '.join(['the mean', *spread, *ranks])}",
            *([f"the time: {' '.join(window)}"] if window else []),
            "the names and types of the table's columns",
        ]

    def statement(self, dataset: str, done: Result[Measurements] | None = None) -> Statement:
        """What statistics that are made now promise to the people in them."""
        gauge, rule = self.inner.gauge, self.inner.bounding
        borders = isinstance(self.cells, DistrictFiles | HexagonList)
        which = "those selected" if self.finding.cells else "all"
        where = "" if borders else f"{which} of the box" + ("" if self.box else " that was found")
        public = [
            f"the box {self.box}, as declared" if self.box else "",
            f"the cells: {self.cells}" + (f", {where}" if where else ""),
            f"the slots: {describe(self.slots)}",
            self._bounds(gauge),
            f"the caps: {rule}",
            *self.wanted,
        ]
        charged = [
            "" if self.box or borders else "the box, found by two coarse grids of the world from one row a person",
            *(found_out(self.method, self.value, done) if done else ()),
            "every number, of people and of values, in every cell and slot",
        ]
        return Statement(
            dataset=dataset,
            unit=A_PERSON,
            neighbours="one of them added or removed (the full model: also how many records a person has, and where)",
            budget=self.budget,
            bounding=rule,
            trust="curator",
            assumptions=ASSUMPTIONS,
            noise="discrete Laplace" if isinstance(self.budget, PureDP) else "discrete Gaussian",
            public=tuple(filter(None, public)),
            charged=tuple(filter(None, charged)),
            method=f"values of {self.value}, {self.cells}",
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=__version__,
        )

    def _bounds(self, gauge: Gauge) -> str:
        """What was declared of the bounds."""
        clipped = "values outside are clipped to "
        if not self.finding.bounds:
            return f"the bounds of {self.value!r}, {gauge.low:g} to {gauge.high:g}, as declared: {clipped}them"
        bounds = self.inner.bounds if isinstance(self.inner, PreparedValues) else None
        if bounds is None or bounds.low == bounds.high:
            return ""
        end, number = ("high", bounds.high) if bounds.low is None else ("low", bounds.low)
        return f"the {end} bound of {self.value!r}, {number:g}, as declared: {clipped}it"


def describe(slots: Slots) -> str:
    """Slots in words.

    >>> describe(Clock.hours("Europe/Berlin"))
    'hours of the day, as clocks of Europe/Berlin show it'
    """
    if isinstance(slots, Always):
        return "one, of all times"
    if isinstance(slots, Weekdays):
        return f"days of the week in {slots.zone}"
    if isinstance(slots, Spans):
        return f"{len(slots.names):,} stretches of time in {slots.zone}, the first from {slots.names[0]}"
    what = "hours of the day" if len(slots.edges) == 24 else f"parts of the day ({', '.join(slots.names)})"
    return f"{what}, as clocks of {slots.zone} show it"


def _method(
    cells: Squares | Hexes | HexagonList | DistrictFiles,
    box: Box | None,
    slots: Slots,
    gauge: Gauge,
    rule: OwnMeans,
    finding: Finding,
    bounds: tuple[float | None, float | None],
    budget: Budget,
) -> Asked | FoundValues:
    """The method over these cells of the box; of a box that it finds, where there is none."""

    def found(method: CellValues) -> Asked:
        return finding.prepared(method, bounds, slots, budget)

    if isinstance(cells, DistrictFiles):
        if box is not None:
            raise InputError("districts say themselves where the map is: leave the box out")
        districts = opened(cells)
        return found(CellValues(districts, districts.depth, slots, gauge, rule))
    if isinstance(cells, Squares):
        if box is None or cells.depth is None:
            raise InputError(
                "squares for values are cut from a declared box, so many times: give both, such as "
                "--box=west,south,east,north --cells quadtree:6; for hexagons (h3:7) a box can be found"
            )
        return found(CellValues(domain(cells, box), cells.depth, slots, gauge, rule))
    if isinstance(cells, HexagonList):
        if box is not None:
            raise InputError("a list of hexagons says itself where the map is: leave the box out")
        names = listed(Path(cells.file))
        return found(
            CellValues(Hexagons(WORLD, 0, int(names[0][1], 16)), int(names[0][1], 16), slots, gauge, rule, names)
        )
    if cells.coarsest != cells.finest:
        raise InputError(f"values are told for hexagons of one resolution: say h3:{cells.finest}")
    if box is None:
        return FoundValues(found(CellValues(Hexagons(SPECK, cells.finest, cells.finest), 0, slots, gauge, rule)))
    tree = finding.hexagons(box, cells.finest)
    made = CellValues(tree, tree.depth, slots, gauge, rule)
    if not finding.cells:
        made.measured  # noqa: B018 - too many places are found out now
    return found(made)
