"""Published statistics of a value in every cell and slot: with intervals, statement and transcript."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.errors import FileError, InputError
from hazemap.estimate.confidence_margins import leading
from hazemap.estimate.published_values import CombinedMeans, PublishedValues, pooled
from hazemap.estimate.value_estimates import KnownPeople, Measurements, ValueEstimate
from hazemap.files.number_text import noun
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.statement import Statement
from hazemap.queries.algorithm_session import Transcript
from hazemap.releases.base_release import Bands, BaseRelease, Rows
from hazemap.releases.cell_geometry import name_column
from hazemap.releases.file_metadata import NEWEST, OF_VALUES, StatisticsContents
from hazemap.releases.region_weights import Region, weights
from hazemap.releases.statistic_estimates import Histogram, RegionStatistics, StatisticEstimate, populations_of
from hazemap.tables.contribution_bounding import OwnMeans

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hazemap.releases.gis.layer_styles import LayerStyle

HALF = 0.5
"""Of its area: a cell that lies in a region with less does not count there."""


GUESS = "guess"
"""What a picture calls the best guess of the mean, which it may show where too few people are for a mean."""


@dataclass(frozen=True, eq=False, repr=False)
class Statistics(BaseRelease, contents=StatisticsContents):
    """Published numbers of a value, place by place: every question is answered from them, at no price.

    `value` is the name of what was measured; `ranks` are the quantiles that the file shows; others may be asked.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.values.cell_slot_counters import CellTimeSlots
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.tables.contribution_bounding import OwnMeans
    >>> tree = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=0), 0), Always(), ValueEncoding(0, 60))
    >>> statement = Statement(
    ...     "demo", "a person", "one of them added or removed", PureDP(1), OwnMeans(1), "curator",
    ...     (), "discrete Laplace", (), (), "values", "2026-01-02", "0.1.0",
    ... )
    >>> made = Statistics(Measurements(tree, np.array([[800.0, 400.0]]), 10.0, 3.0), "speed", (), statement, None, ())
    >>> print(made.ask(tree.cells.tree.names(tree.cells.cells)[0])[0])
    mean of root at always: 20.00 (95 % interval 19.19 … 20.80), of people's own means, each once
    """

    measurements: Measurements | KnownPeople | PublishedValues
    value: str
    ranks: tuple[float, ...]
    statement: Statement
    algorithm: object
    transcript: Transcript

    HOLDS: ClassVar[str] = "statistics of a value"
    SUFFIXES: ClassVar[tuple[str, ...]] = (".parquet",)
    MADE: ClassVar[str] = "measurements"

    @property
    def cells(self) -> Leaves:
        """The cells, which are disjoint."""
        return self.measurements.tree.cells

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, in order."""
        return self.measurements.tree.slots.names

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the cells, in order."""
        return tuple(self.cells.tree.names(self.cells.cells))

    @property
    def counted(self) -> str:
        """What a count of 1 is: people, or records where the rule counts those."""
        return "people" if isinstance(self.measurements, PublishedValues) else super().counted

    @property
    def who_counts(self) -> str:
        """Whom numbers of people and statistics leave out by the bounding rule: a sentence, or nothing."""
        rule, places = self.statement.bounding, self.measurements.tree.places
        if not isinstance(rule, OwnMeans) or not isinstance(self.measurements, Measurements) or rule.cells >= places:
            return ""
        most = "one cell and slot" if rule.cells == 1 else f"at most {rule.cells:,} cells and slots"
        return f"A person counts in {most}, drawn at random if they were in more, so more people may have been there."

    @property
    def statistics(self) -> tuple[str, ...]:
        """What the release says of each place: the mean, perhaps the variance, perhaps quantiles such as q0.5."""
        spread = ("variance",) if self.measurements.tree.value_encoding.degree > 1 else ()
        return ("mean", *spread, *(f"q{rank!r}" for rank in self.ranks))

    @cached_property
    def populations(self) -> dict[str, str]:
        """Of what each statistic is: people's own means or records, each for how much; and how wide bins are."""
        return populations_of(self.statistics, self.statement.bounding, self.measurements)

    def found(self, statistic: str, confidence: float = 0.95) -> ValueEstimate:
        """One statistic of every place, in the order of cells and of slots within each."""
        return _found(self.measurements, statistic, confidence)

    @cached_property
    def guesses(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The best guess of the mean of every place that has one, and its standard error: for pictures.

        Between its own mean and what its cell and its slot are like elsewhere (`estimate.published_values`).
        """
        mean, shape = self.found("mean"), (len(self.names), len(self.slots))
        if not np.isfinite(mean.stddev[~mean.too_few]).all():  # nobody knows how sure an estimate is: it is the guess
            return mean.value, mean.stddev
        guess, error = pooled(mean.value.reshape(shape), mean.stddev.reshape(shape))
        value_encoding = self.measurements.tree.value_encoding
        return np.clip(guess.ravel(), value_encoding.low, value_encoding.high), error.ravel()

    def ask(self, cell: str, slot: str | None = None, confidence: float = 0.95) -> list[StatisticEstimate]:
        """What the release says of a cell, in one slot (its name, or its number from 0 on) or in all."""
        which = self._slots(slot)
        places = self._places(np.array([self._cell(cell)]), which).ravel()
        names = [self.slots[number] for number in which]
        return [
            estimate
            for statistic in self.statistics
            for estimate in self._estimates(
                self.found(statistic, confidence), places, statistic, cell, names, confidence
            )
        ]

    def at(self, lon: float, lat: float, slot: str | None = None, confidence: float = 0.95) -> list[StatisticEstimate]:
        """How many people are in the cell around a point in degrees, and what the release says of it: see `ask`."""
        name = self.names[self.cell_at(lon, lat)]
        return [*self._people(np.array([self._cell(name)]), name, slot, confidence), *self.ask(name, slot, confidence)]

    def region(
        self, region: Region | None = None, slot: str | None = None, confidence: float = 0.95
    ) -> RegionStatistics:
        """How many people are in a region, with the statistics of all of them: combined from cells, slot by slot.

        A region is a `Box`, a polygon in degrees (shapely, GeoJSON), a cell's name or several, or None for all cells.
        Where its border cuts cells, the file does not know who is on which side. So the answer is of whole cells: all
        that lie in the region with half of their area or more, and its intervals hold for these. Noisy sums of cells
        add up, and so does their noise: a mean is the ratio of two such sums, and its interval is Fieller's, as that of
        a cell. It holds for a region that is chosen before its numbers are seen. `InputError` for a region without
        cells.
        """
        shares = np.ones(self.cells.size) if region is None else weights(self.ground, region)
        chosen = np.flatnonzero(shares >= HALF)
        if not chosen.size:
            raise InputError("no cell lies in this region with half of its area or more: ask for a larger region")
        label = self.names[chosen[0]] if chosen.size == 1 else f"{chosen.size:,} cells"
        which = self._slots(slot)
        names = [self.slots[number] for number in which]
        answers = [[people] for people in self._people(chosen, label, slot, confidence)]
        for rows, together in self.measurements.combined(self._places(chosen, which)):
            some = [names[row] for row in rows.tolist()]
            for statistic in self.statistics:
                found = _found(together, statistic, confidence)
                each = self._estimates(found, np.arange(len(rows)), statistic, label, some, confidence)
                for row, answer in zip(rows.tolist(), each, strict=True):
                    answers[row].append(answer)
        for row, name in enumerate(names):
            if len(answers[row]) == 1:  # nothing was asked there, so everything is possible
                nothing = [
                    (statistic, label, name, None, None, *self._bounds(statistic)) for statistic in self.statistics
                ]
                answers[row] += [
                    StatisticEstimate(*each, confidence, population=self.populations[each[0]]) for each in nothing
                ]
        cut = (shares > 0) & (shares < 1)
        inside, outside = int((cut & (shares >= HALF)).sum()), int((cut & (shares < HALF)).sum())
        cells = tuple(self.names[at] for at in chosen.tolist())
        told = tuple(chain.from_iterable(answers))
        return RegionStatistics(cells, inside, outside, self.counted, told, self.who_counts)

    def _people(self, cells: Ints, label: str, slot: str | None, confidence: float) -> list[StatisticEstimate]:
        """How many people are in some cells together, in each of the slots."""
        which = self._slots(slot)
        numbers, stddev, margin = self.measurements.numbers(self._places(cells, which), confidence)
        return [
            StatisticEstimate(
                self.counted,
                label,
                self.slots[each],
                value,
                stddev,
                *_ends(value, margin),
                confidence,
            )
            for each, value in zip(which, numbers.tolist(), strict=True)
        ]

    def _estimates(
        self, found: ValueEstimate, places: Ints, statistic: str, cell: str, slots: list[str], confidence: float
    ) -> list[StatisticEstimate]:
        """One statistic of some places of a cell, each with the name of its slot."""
        answers, of = [], self.populations[statistic]
        for at, slot in zip(places.tolist(), slots, strict=True):
            few = bool(found.too_few[at])
            value = None if few else float(found.value[at])
            stddev = None if few or np.isnan(found.stddev[at]) else float(found.stddev[at])
            bias = None if few or found.bias is None else float(found.bias[at])
            ends = float(found.low[at]), float(found.high[at])
            answers.append(StatisticEstimate(statistic, cell, slot, value, stddev, *ends, confidence, bias, of))
        return answers

    def _places(self, cells: Ints, slots: list[int]) -> Ints:
        """The places of some cells in some slots, int64[slots, cells]."""
        places: Ints = cells * len(self.slots) + np.array(slots)[:, None]
        return places

    def histogram(self, cell: str, slot: str) -> Histogram:
        """How the value is distributed over the people of a cell in a slot (its name, or its number from 0 on).

        `InputError` where no bins were asked for.
        """
        [which] = self._slots(slot)
        people, stddev, kurtosis = self.measurements.histograms
        at = self._cell(cell) * len(self.slots) + which
        if np.isnan(people[at]).any():
            raise InputError(f"too few people are in {cell} at {self.slots[which]}: nothing was asked there")
        return Histogram(
            cell, self.slots[which], self.measurements.tree.value_encoding.edges(1), people[at], stddev, kurtosis
        )

    def _cell(self, cell: str) -> int:
        if cell not in self.names:
            raise InputError(f"no cell of this file is called {cell!r}; its cells are called like {self.names[0]!r}")
        return self.names.index(cell)

    def _slots(self, slot: str | None) -> list[int]:
        if slot is None:
            return list(range(len(self.slots)))
        if slot in self.slots:
            return [self.slots.index(slot)]
        if slot.isascii() and slot.isdecimal() and int(slot) < len(self.slots):
            return [int(slot)]
        raise InputError(
            f"no slot of this file is called {slot!r}: they are {', '.join(self.slots[:3])} … {self.slots[-1]}, "
            f"or 0 to {len(self.slots) - 1}"
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row for every cell in every slot: names, `people`, the mean as `value`, then what else was asked for."""
        tree, slots = self.measurements.tree, np.array(self.slots, dtype=object)
        columns: dict[str, NDArray[Any]] = {
            name_column(tree.cells.tree): np.repeat(np.array(self.names, dtype=object), len(slots)),
            "slot": np.tile(slots, len(self.names)),
            "people": self.measurements.people,
            "people_stddev": np.full(tree.places, self.measurements.people_stddev),
        }
        for statistic in self.statistics:
            found = self.found(statistic)
            value, before = ("value", "") if statistic == "mean" else (statistic, f"{statistic}_")
            columns |= {value: found.value, f"{before}stddev": found.stddev}
            columns |= {f"{before}low": found.low, f"{before}high": found.high, f"{before}too_few": found.too_few}
            columns |= {} if found.bias is None else {f"{before}bias": found.bias}
        return columns | dict(zip(("guess", "guess_stddev"), self.guesses, strict=True))

    def outlines(self) -> NDArray[Any]:
        """The polygon of each row's cell, in degrees."""
        outlines: NDArray[Any] = np.repeat(self.cells.tree.outlines(self.cells.cells), len(self.slots))
        return outlines

    def rows(self, most: int) -> Iterator[Rows]:
        """The table in blocks of about so many rows, of whole cells; before them a block without rows."""
        columns, leaves, slots = self.columns(), self.cells, len(self.slots)
        step = max(1, most // slots)
        for start in (-1, *range(0, leaves.size, step)):
            cells = slice(0, 0) if start < 0 else slice(start, start + step)
            rows = slice(cells.start * slots, cells.stop * slots)
            some = {name: column[rows] for name, column in columns.items()}
            yield Rows(some, leaves.tree.outlines(leaves.cells[cells]), slots)

    def label(self) -> dict[str, Any]:
        """The name of the value, and the ranks of the quantiles; cells, slots and bounds are in the transcript."""
        return {"format": NEWEST, "kind": OF_VALUES, "value": self.value, "ranks": list(self.ranks)}

    def bands(self, column: str | None) -> Bands:
        """A column of numbers, by default the mean, in a band for every slot."""
        columns, wanted = self.columns(), column or "value"
        fit = [name for name, numbers in columns.items() if numbers.dtype.kind == "f" and "people" not in name]
        if wanted not in fit:
            raise FileError(f"a .tif of statistics holds one of the columns {', '.join(fit)}; found {wanted!r}")
        numbers = columns[wanted].reshape(self.cells.size, len(self.slots))
        return Bands(self.slots, list(numbers.T), False, {"COLUMN": wanted, "VALUE": self.value}, self.ground)

    def layer_styles(self) -> "tuple[LayerStyle, ...]":
        """The mean in each slot, in one scale; grey where too few were there to publish one."""
        from hazemap.releases.gis.layer_styles import for_each_slot, value_style

        style = value_style(f"mean of {self.value}", "value", self.found("mean").value, self._bounds("mean"))
        return for_each_slot(style, self.slots)

    def summary(self) -> list[str]:
        """Statement, size, in how many places the mean is published, and what the picture shows."""
        few = self.found("mean").too_few
        size = f"{len(self.names):,} cells × {len(self.slots):,} slots; mean of {self.value} in "
        picture = "The picture shows the best guess of the mean" + (", averaged over slots" * (len(self.slots) > 1))
        return [self.statement.line(), f"{size}{(~few).sum():,} of {few.size:,} places", f"{picture}."]

    @property
    def thumbnail(self) -> tuple[Floats, bool]:
        """The mean, averaged over the slots in which it is known."""
        mean = self.found("mean").value.reshape(self.cells.size, len(self.slots))
        known = np.isfinite(mean)
        number = known.sum(axis=1)
        return np.where(number > 0, np.where(known, mean, 0).sum(axis=1) / np.maximum(number, 1), np.nan), False

    def plot(self, statistic: str | None = None, cell: str | None = None, **options: Any) -> "Figure":
        """Small maps, one a slot, and how sure each cell is; with a `cell`, its profile over all slots.

        They show the mean, as pages and answers do, unless another `statistic` is named: `guess` is the best guess of
        the mean where too few people are for one. The statement stands beneath.
        Options are those of `hazemap.draw.value_charts.draw_slots` and `draw_profile`.
        """
        from hazemap.draw.value_charts import draw_profile, draw_slots

        shown, tree = statistic or "mean", self.measurements.tree
        guessed, of = shown == GUESS, "mean" if shown == GUESS else shown
        found, unit = self.found(of), f"{of} of {self.value}"
        look: dict[str, Any] = {"caption": self.statement.line(), "unit": unit, "bounds": self._bounds(of)}
        if cell is None:
            few = f"too few to say: a place needs about {self.measurements.threshold:,.0f} {noun(self.counted)}"
            values, errors = self.guesses if guessed else (found.value, found.stddev)
            unit += ", best guess" if guessed else ""
            look |= {"unit": unit, "few": few, "note": self.shown(statistic, **_frame(options))}
            return draw_slots(tree, values, errors=errors, **look | options)
        places = self._cell(cell) * len(self.slots) + np.arange(len(self.slots))
        ends = (found.low[places], found.high[places])
        look["unit"] = f"{unit} in {cell}, with 95 % intervals"
        return draw_profile(self.slots, found.value[places], *ends, **look | options)

    def shown(self, statistic: str | None = None, **frame: Any) -> str:
        """What the small maps show, in words: which part of the world, how many of the cells, and who is in none."""
        from hazemap.draw.value_charts import extent_of

        values = self.guesses[0] if statistic == GUESS else self.found(statistic or "mean").value
        return f"{extent_of(self.measurements.tree, values, **frame)} People outside the cells were not counted."

    def page_data(self, title: str | None = None) -> dict[str, Any]:
        """What a page is told of the statistics."""
        from hazemap.releases.page.map_payload import values_payload

        return values_payload(self, title)

    @property
    def told(self) -> int:
        """How many places are told: every cell in every slot."""
        return self.measurements.tree.places

    def _bounds(self, statistic: str) -> tuple[float, float]:
        value_encoding = self.measurements.tree.value_encoding
        return (
            (0.0, value_encoding.width**2 / 4) if statistic == "variance" else (value_encoding.low, value_encoding.high)
        )


def _ends(value: float, margin: float) -> tuple[float, float]:
    """The interval of a number of people."""
    low, high = leading(value, value - margin, value + margin)
    return float(low), float(high)


def _frame(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("frame", "box") if name in options}


def _found(
    measurements: Measurements | KnownPeople | PublishedValues | CombinedMeans, statistic: str, confidence: float
) -> ValueEstimate:
    """A statistic by name, of every place."""
    if statistic == "mean":
        return measurements.means(confidence)
    if statistic == "variance":
        return measurements.variances(confidence)
    try:
        rank = float(statistic.removeprefix("q"))
    except ValueError:
        raise InputError(f"a statistic is mean, variance or a quantile such as q0.5; found {statistic!r}") from None
    return measurements.quantiles(rank, confidence)
