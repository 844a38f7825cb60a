"""Statistics of a value in every cell and slot, published: with intervals, statement and transcript."""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, InputError
from hazemap.estimate.partial_pooling import pooled
from hazemap.estimate.value_estimates import KnownPeople, Measurements, ValueEstimate
from hazemap.privacy.statement import Statement
from hazemap.queries import Algorithm, Prices
from hazemap.releases.estimates import decimals
from hazemap.releases.file_metadata import UnknownMethod
from hazemap.releases.map_columns import name_column
from hazemap.releases.value_histogram import Histogram
from hazemap.session import Transcript

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.figure import Figure
    from pandas import DataFrame

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class StatisticEstimate:
    """One statistic of one cell in one slot. `value` and `stddev` are None where there are too few people to say.

    The interval holds the truth so often even then: it says what can be excluded.

    >>> print(StatisticEstimate("mean", "89", "08:00", 23.41, 0.52, 22.4, 24.4, 0.95))
    mean of 89 at 08:00: 23.41 ± 0.52 (95 % interval 22.40 … 24.40)
    >>> print(StatisticEstimate("mean", "89", "03:00", None, None, 0, 65, 0.95))
    mean of 89 at 03:00: too few people to say (95 % interval 0 … 65)
    """

    statistic: str
    cell: str
    slot: str
    value: float | None
    stddev: float | None
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        digits = decimals(self.stddev) if self.stddev is not None else 0
        said = (
            "too few people to say" if self.value is None else f"{self.value:,.{digits}f} ± {self.stddev:,.{digits}f}"
        )
        ends = f"{self.low:,.{digits}f} … {self.high:,.{digits}f}"
        return f"{self.statistic} of {self.cell} at {self.slot}: {said} ({100 * self.confidence:.6g} % interval {ends})"


@dataclass(frozen=True, eq=False)
class Statistics:
    """Published numbers of a value, place by place: every question is answered from them, at no price.

    `value` is the name of what was measured; `ranks` are the quantiles that the file shows; others may be asked.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.values.cell_time_slots import CellTimeSlots
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.tables.contribution_bounding import OwnMeans
    >>> tree = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=0), 0), Always(), ValueEncoding(0, 60))
    >>> statement = Statement(
    ...     "demo", "a person", "one of them added or removed", PureDP(1), OwnMeans(1), "curator",
    ...     (), "discrete Laplace", (), (), "values", "2026-01-02T03:04:05Z", "0.1.0",
    ... )
    >>> made = Statistics(Measurements(tree, np.array([[800.0, 400.0]]), 10.0, 3.0), "speed", (), statement, None, ())
    >>> print(made.ask(tree.cells.tree.names(tree.cells.cells)[0])[0])
    mean of root at always: 20.00 ± 0.37 (95 % interval 19.22 … 20.77)
    """

    measurements: Measurements | KnownPeople
    value: str
    ranks: tuple[float, ...]
    statement: Statement
    algorithm: object
    transcript: Transcript

    @classmethod
    def open(cls, path: AnyPath) -> "Statistics":
        """What `save` wrote; `FileError` for a foreign, damaged or newer file, and for a map."""
        from hazemap.releases import statistics_geoparquet as statistics_file

        return cls(*statistics_file.read(Path(path)))

    def save(self, path: AnyPath) -> None:
        """Write everything to one GeoParquet file: a row for every cell in every slot."""
        from hazemap.releases import statistics_geoparquet as statistics_file

        if Path(path).suffix.lower() != ".parquet":
            raise FileError(f"statistics are saved as .parquet; found {str(path)!r}")
        statistics_file.write(self, Path(path))

    def replay(self, prices: Prices) -> "Statistics":
        """The same statistics, made again from the stored answers: `TranscriptMismatch` if they do not fit.

        `prices` are those of the trust model that answered, for the budget of the statement.
        """
        from hazemap.session import replay

        if isinstance(self.algorithm, UnknownMethod):
            raise FileError(
                f"this was made by a method that this hazemap does not know ({self.statement.method},"
                f" hazemap {self.statement.version}): replay it with that version or a newer one"
            )
        algorithm = cast(Algorithm[Measurements | KnownPeople], self.algorithm)
        return replace(self, measurements=replay(algorithm, prices, self.statement.budget, self.transcript).value)

    @property
    def counted(self) -> str:
        """Of what a place has so many: people, or records."""
        return self.statement.bounding.counted

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots, in order."""
        return self.measurements.tree.slots.names

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the cells, in order."""
        leaves = self.measurements.tree.cells
        return tuple(leaves.tree.names(leaves.cells))

    @property
    def statistics(self) -> tuple[str, ...]:
        """What is told of each place: the mean, perhaps the variance, perhaps quantiles such as q0.5."""
        spread = ("variance",) if self.measurements.tree.value_encoding.degree > 1 else ()
        return ("mean", *spread, *(f"q{rank:g}" for rank in self.ranks))

    def found(self, statistic: str, confidence: float = 0.95) -> ValueEstimate:
        """One statistic of every place, in the order of cells and of slots within each."""
        if statistic == "mean":
            return self.measurements.means(confidence)
        if statistic == "variance":
            return self.measurements.variances(confidence)
        try:
            return self.measurements.quantiles(float(statistic.removeprefix("q")), confidence)
        except ValueError:
            raise InputError(f"a statistic is mean, variance or a quantile such as q0.5; found {statistic!r}") from None

    @cached_property
    def guesses(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The best guess of the mean of every place that is told, and its standard error: for pictures.

        Between its own mean and what its cell and its slot are like elsewhere (`estimate.partial_pooling`).
        """
        mean, shape = self.found("mean"), (len(self.names), len(self.slots))
        guess, error = pooled(mean.value.reshape(shape), mean.stddev.reshape(shape))
        value_encoding = self.measurements.tree.value_encoding
        return np.clip(guess.ravel(), value_encoding.low, value_encoding.high), error.ravel()

    def ask(self, cell: str, slot: str | None = None, confidence: float = 0.95) -> list[StatisticEstimate]:
        """What is told of a cell, in one slot (its name, or its number from 0 on) or in all."""
        which = self._slots(slot)
        places = self._cell(cell) * len(self.slots) + np.array(which)
        answers = []
        for statistic in self.statistics:
            found = self.found(statistic, confidence)
            for at, number in zip(places.tolist(), which, strict=True):
                few = bool(found.too_few[at])
                value, stddev = (None, None) if few else (float(found.value[at]), float(found.stddev[at]))
                ends = float(found.low[at]), float(found.high[at])
                answers.append(StatisticEstimate(statistic, cell, self.slots[number], value, stddev, *ends, confidence))
        return answers

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
            cell, self.slots[which], self.measurements.tree.value_encoding.edges, people[at], stddev, kurtosis
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
        if slot.isdecimal() and int(slot) < len(self.slots):
            return [int(slot)]
        raise InputError(
            f"no slot of this file is called {slot!r}: they are {', '.join(self.slots[:3])} … {self.slots[-1]}, "
            f"or 0 to {len(self.slots) - 1}"
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Every place as a row: names, numbers and error bars; geometry is apart."""
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
        return columns | dict(zip(("guess", "guess_stddev"), self.guesses, strict=True))

    def to_dataframe(self) -> "DataFrame":
        """A row for every cell in every slot: names, `people`, the mean as `value`, then what else was asked for."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def to_geodataframe(self) -> "GeoDataFrame":
        """`to_dataframe` with the outline of each row's cell."""
        import geopandas as gpd

        leaves = self.measurements.tree.cells
        outlines = np.repeat(leaves.tree.outlines(leaves.cells), len(self.slots))
        return gpd.GeoDataFrame(self.columns(), geometry=outlines, crs="EPSG:4326")

    def plot(self, statistic: str | None = None, cell: str | None = None, **options: Any) -> "Figure":
        """Small maps, one a slot; with a `cell`, its profile over all slots. The statement stands beneath.

        Maps show the best guess of the mean, unless a `statistic` is named; profiles show the mean with its intervals.
        Options are those of `hazemap.draw.value_charts.draw_slots` and `draw_profile`.
        """
        from hazemap.draw.value_charts import draw_profile, draw_slots

        shown, tree = statistic or "mean", self.measurements.tree
        found, unit = self.found(shown), f"{shown} of {self.value}"
        look: dict[str, Any] = {"caption": self.statement.line(), "unit": unit, "bounds": self._bounds(shown)}
        if cell is None:
            few = f"too few to say: a place needs about {self.measurements.threshold:,.0f} {self.counted}"
            values, errors = self.guesses if statistic is None else (found.value, found.stddev)
            unit += ", best guess" if statistic is None else ""
            look |= {"unit": unit, "few": few, "note": self.shown(statistic, **_frame(options))}
            return draw_slots(tree, values, errors=errors, **look | options)
        places = self._cell(cell) * len(self.slots) + np.arange(len(self.slots))
        ends = (found.low[places], found.high[places])
        return draw_profile(self.slots, found.value[places], *ends, **look | options)

    def shown(self, statistic: str | None = None, **frame: Any) -> str:
        """What the small maps show, in words: which part of the world, how many of the cells, and who is in none."""
        from hazemap.draw.value_charts import extent_of

        values = self.guesses[0] if statistic is None else self.found(statistic).value
        return f"{extent_of(self.measurements.tree, values, **frame)} People outside the cells were not counted."

    def _bounds(self, statistic: str) -> tuple[float, float]:
        value_encoding = self.measurements.tree.value_encoding
        return (
            (0.0, (value_encoding.high - value_encoding.low) ** 2 / 4)
            if statistic == "variance"
            else (value_encoding.low, value_encoding.high)
        )


def _frame(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("frame", "box") if name in options}
