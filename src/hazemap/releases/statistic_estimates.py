"""Estimates from statistics of a value: a number for a place or a region, and a histogram."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.estimate.confidence_margins import leading, reach
from hazemap.estimate.published_values import PublishedValues
from hazemap.estimate.quantile_intervals import monotone
from hazemap.estimate.value_estimates import KnownPeople, Measurements
from hazemap.machine_code.arrays import Floats
from hazemap.releases.estimates import decimals
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable
from hazemap.tables.contribution_bounding import OwnMeans, whose_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class StatisticEstimate(ShownAsTable):
    """One statistic of a cell or a region in one slot. `value` and `stddev` are None where too few people are there.

    The interval holds the truth with the stated confidence even then: it says what can be excluded. An estimator may
    say what else than noise can move its value at most, the `bias`, which the interval holds too; one of whose noise no
    standard deviation is known has a value without a `stddev`.

    >>> print(StatisticEstimate("mean", "89", "08:00", 23.41, 0.52, 22.4, 24.4, 0.95))
    mean of 89 at 08:00: 23.41 (95 % interval 22.40 … 24.40)
    >>> print(StatisticEstimate("mean", "89", "03:00", None, None, 0, 65, 0.95))
    mean of 89 at 03:00: too few people to say (95 % interval 0 … 65)
    >>> print(StatisticEstimate("mean", "89", "08:00", 23.41, 0.52, 20.1, 26.7, 0.95, bias=2.3))
    mean of 89 at 08:00: 23.41, bias at most 2.30 (95 % interval 20.10 … 26.70)

    `population` says of whom or of what the statistic is, and how wide the bins of a quantile are.

    >>> print(StatisticEstimate("mean", "89", "08:00", 23.41, 0.52, 22.4, 24.4, 0.95, population="own means"))
    mean of 89 at 08:00: 23.41 (95 % interval 22.40 … 24.40), of own means
    """

    statistic: str
    cell: str
    slot: str
    value: float | None
    stddev: float | None
    low: float
    high: float
    confidence: float
    bias: float | None = None
    population: str = ""

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; a bias only where an estimator has one, a population of all but numbers."""
        left_out = {"bias": self.bias is None, "population": not self.population}
        return {name: value for name, value in asdict(self).items() if not left_out.get(name)}

    def notebook_table(self) -> NotebookTable:
        """What it is of, the number and its interval."""
        return _in_rows("", (self,), ())

    def words(self) -> tuple[str, str]:
        """The value, or that it cannot be said; and its interval."""
        digits = decimals(self.stddev) if self.stddev is not None else 0 if self.value is None else 2
        said = "too few people to say" if self.value is None else f"{self.value:z,.{digits}f}"
        said += "" if self.bias is None else f", bias at most {self.bias:,.{digits}f}"
        return said, f"{self.low:z,.{digits}f} … {self.high:z,.{digits}f}"

    def __str__(self) -> str:
        said, ends = self.words()
        joint = "in" if self.statistic.startswith(("people", "records")) else "of"
        where = f"{self.statistic}{',' * (',' in self.statistic)} {joint} {self.cell} at {self.slot}"
        whose = f", of {self.population}" if self.population else ""
        return f"{where}: {said} ({100 * self.confidence:.6g} % interval {ends}){whose}"


@dataclass(frozen=True)
class RegionStatistics(ShownAsTable):
    """Statistics of the whole cells that lie in a region with half of their area or more, slot after slot.

    The border of the region cuts `inside` of these `cells`, and `outside` cells more, which do not count. Intervals are
    of the whole cells. The number of people comes first, then the statistics that the release holds. `who_counts` says
    whom the bounding rule leaves out.
    """

    cells: tuple[str, ...]
    inside: int
    outside: int
    counted: str
    estimates: tuple[StatisticEstimate, ...]
    who_counts: str = ""

    @property
    def said(self) -> str:
        """What these numbers are of: some sentences."""
        said = f"These numbers are of {_cells(len(self.cells))}."
        if self.inside or self.outside:
            said = (
                f"These numbers are of {_cells(len(self.cells))} with half of their area or more in the region."
                f" Its border cuts {self.inside} of them, and {self.outside} more that do not count."
            )
        who = "A person" if self.counted.startswith("people") else "A record"
        several = f"{who} in several of these cells counts in each." if len(self.cells) > 1 else ""
        return " ".join(filter(None, (said, several, self.who_counts)))

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"statistics": [each.to_json() for each in self.estimates], "cells": list(self.cells), "said": self.said}

    def notebook_table(self) -> NotebookTable:
        """A row for each number, and what they are of."""
        return _in_rows("Statistics of a region", self.estimates, (self.said,))

    def __str__(self) -> str:
        return "\n".join([*map(str, self.estimates), self.said])


Measured = Measurements | KnownPeople | PublishedValues


def records_of(bounding: object, measured: Measured) -> int | None:
    """For how many records a person counts in a mean: 1 in one of people's own means; None in one of all records."""
    if isinstance(measured, PublishedValues):
        return 1 if measured.places.by_people else None
    return bounding.records if isinstance(bounding, OwnMeans) else 1


def populations_of(statistics: Iterable[str], bounding: object, measured: Measured) -> dict[str, str]:
    """Of what each statistic is, in words that follow "mean of": whom the bounding rule counts, each for how much.

    A variance and a quantile are of single records: one drawn from those of a person, who is drawn before. Quantiles
    say how wide the finest bins are, to whose edges intervals reach.
    """
    encoding, records = measured.tree.value_encoding, records_of(bounding, measured)
    every = "all records, each once"
    single = whose_mean(records) if records and records > 1 else "people's records, each person once"
    single = every if isinstance(measured, PublishedValues) else single
    wide = f", in bins {encoding.width / encoding.bins:.6g} wide" if encoding.bins else ""
    of = {"mean": every if records is None else whose_mean(records), "variance": single}
    return {name: of.get(name, single + wide) for name in statistics}


def _in_rows(heading: str, estimates: tuple[StatisticEstimate, ...], notes: tuple[str, ...]) -> NotebookTable:
    sure = {100 * each.confidence for each in estimates}
    interval = f"{sure.pop():.6g} % interval" if len(sure) == 1 else "interval"
    rows = tuple((each.statistic, each.cell, each.slot, *each.words()) for each in estimates)
    columns = ("statistic", "of", "at", "value", interval)
    return NotebookTable(heading, columns, rows, notes, words=3)


def _cells(number: int) -> str:
    return "1 whole cell" if number == 1 else f"{number:,} whole cells"


@dataclass(frozen=True, eq=False)
class Histogram:
    """Unbiased numbers of people in bins of a value, float64[bins], all with the same noise, independent of each other.

    `edges` are float64[bins + 1], in the unit of the value. A person who has records in several bins is in each of them
    by the part of their records there.

    >>> some = Histogram("89", "08:00", np.array([0.0, 10, 20, 30]), np.array([40.0, -3, 63]), 5.0, 3.0)
    >>> some.parts
    array([0.385, 0.385, 1.   ])
    >>> some.to_dataframe().round(2).iloc[0].tolist()
    [0.0, 10.0, 40.0, 5.0, 29.41, 50.59, 0.38]
    """

    cell: str
    slot: str
    edges: Floats
    people: Floats
    stddev: float
    kurtosis: float

    @cached_property
    def parts(self) -> Floats:
        """Which part of all people is below the upper end of each bin: never falling, in [0, 1], float64[bins].

        The nearest such numbers in ℓ₂ to the sums of bins; NaN where noise leaves nobody.
        """
        upto = np.cumsum(self.people)
        if upto[-1] <= 0:
            return np.full(len(upto), np.nan)
        parts = monotone(upto / upto[-1])
        parts[-1] = 1.0
        return parts

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Ends between which the number of people in each bin is so often."""
        margin = float(reach(confidence, np.array(self.kurtosis))) * self.stddev
        return leading(self.people, self.people - margin, self.people + margin)

    def to_dataframe(self, confidence: float = 0.95) -> "DataFrame":
        """A row for every bin: its ends, people with their standard error and interval, and the part below its end."""
        import pandas as pd

        low, high = self.interval(confidence)
        return pd.DataFrame(
            {
                "from": self.edges[:-1],
                "to": self.edges[1:],
                "people": self.people,
                "stddev": self.stddev,
                "low": low,
                "high": high,
                "part_below": self.parts,
            }
        )

    def plot(self, **options: Any) -> "Figure":
        """Bars with their intervals. Options are those of `hazemap.draw.value_charts.draw_histogram`."""
        from hazemap.draw.value_charts import draw_histogram

        look = {"heading": "people, with 95 % intervals"} | options
        return draw_histogram(self.edges, self.people, *self.interval(), **look)
