"""How a value is distributed over the people of one cell in one slot."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.arrays import Floats
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.isotonic_regression import monotone

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


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
        return self.people - margin, self.people + margin

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

        return draw_histogram(self.edges, self.people, *self.interval(), **options)
