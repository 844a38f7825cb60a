"""What the noisy counters of a value encoding say of a value in each cell and slot."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.encoders.cell_values import Values
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.ratio_estimates import Interval, loudest, means, quantiles
from hazemap.estimate.variance_estimates import variances
from hazemap.queries import Answer
from hazemap.values.cell_time_slots import CellTimeSlots

TOO_WIDE = 0.5
"""An interval wider than this part of what is possible says too little to be shown."""

BENT = 0.75
"""A variance is told where noise moves it either way by this part of what is possible at most, whatever people are."""

NEAR, SURER = 3.0, 20
"""Within so many standard errors of the number of people above the threshold of a variance, its interval misses a 20th
as often as elsewhere."""

CHANCE = 0.01
"""How probable it is that noise alone lifts *any* empty place above the threshold."""


@dataclass(frozen=True)
class ValueEstimate:
    """A statistic of every place, float64[places] each, in the unit of the value; `too_few` where it cannot be told.

    There `value` and `stddev` are NaN; the interval still holds.
    """

    value: Floats
    stddev: Floats
    low: Floats
    high: Floats
    too_few: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Measurements:
    """Unbiased counters of every place, float64[places, counters], in people (or records) and with their noise.

    A place is a cell in a slot, in the order of `tree`. Intervals speak of the noise alone: they hold the statistic of
    the records as the bounding rule left them. Everything here is computed from the answer, so nothing of it costs.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> one = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=0), 0), Always(), ValueEncoding(0, 60))
    >>> found = Measurements(one, np.array([[800.0, 400.0]]), stddev=10.0, kurtosis=3.0)
    >>> mean = found.means()
    >>> mean.value, mean.low.round(1), mean.high.round(1), found.people
    (array([20.]), array([19.2]), array([20.8]), array([1200.]))
    """

    tree: CellTimeSlots
    counters: Floats
    stddev: float
    kurtosis: float

    @classmethod
    def of(cls, asked: Values, answer: Answer) -> "Measurements":
        """From the question and its answer."""
        unit = asked.tree.value_encoding.scale
        value_encoding = asked.tree.value_encoding
        counters = answer.sums.reshape(-1, value_encoding.size).astype(np.float64)
        return cls(asked.tree, counters / unit, float(answer.stddev.max()) / unit, answer.kurtosis)

    @cached_property
    def _moments(self) -> tuple[Floats, tuple[float, float]]:
        """The counters of the moments, times so much that they add up to people; and their noise."""
        value_encoding = self.tree.value_encoding
        times = value_encoding.scale / value_encoding.scales[0]
        return self.counters[:, : value_encoding.degree + 1] * times, (self.stddev * times, self.kurtosis)

    @cached_property
    def _bins(self) -> tuple[Floats, tuple[float, float]]:
        value_encoding = self.tree.value_encoding
        if not value_encoding.bins:
            raise InputError("quantiles were not asked for (--quantiles, --bins): the value encoding has no bins")
        times = value_encoding.scale / value_encoding.scales[1]
        return self.counters[:, value_encoding.degree + 1 :] * times, (self.stddev * times, self.kurtosis)

    @property
    def people(self) -> Floats:
        """How many are in each place, unbiased: in people, or in what the rule counts."""
        people: Floats = self._moments[0].sum(axis=1)
        return people

    @property
    def people_stddev(self) -> float:
        """The standard error of `people`."""
        counters, (stddev, _) = self._moments
        return float(stddev * np.sqrt(counters.shape[1]))

    @property
    def threshold(self) -> float:
        """Of fewer people than this nothing is told. Public: it follows from the noise and the number of places.

        Noise alone lifts any empty place above it in less than 1 release of 100; so what is told is of real places.
        """
        return self.threshold_of(self.tree.places)

    def threshold_of(self, places: int) -> float:
        """The same, if so many places were asked."""
        counters, noise = self._moments
        return loudest(counters.shape[1], noise, CHANCE / places)

    def means(self, confidence: float = 0.95) -> ValueEstimate:
        """The mean: of the people in a place, each with the mean of their own records."""
        counters, noise = self._moments
        found = means(counters, np.linspace(0, 1, counters.shape[1]), noise, confidence)
        return self._known(found, self._width, self.tree.value_encoding.low, 1.0)

    def variances(self, confidence: float = 0.95) -> ValueEstimate:
        """The variance, within people and between them, in the unit of the value squared.

        Whether it is told is decided by the number of people alone: a limit on the width of the interval would pick
        the places whose noise made it too narrow. Of those just above what is needed, noise lifted some there, and
        that noise is in their variance too; so their interval is one of a higher confidence.
        """
        if self.tree.value_encoding.degree < 2:
            raise InputError("variances were not asked for: the value encoding has degree 1")
        counters, noise = self._moments
        needed = self.variance_threshold
        near = self.people < needed + NEAR * self.people_stddev
        found = variances(counters, noise, np.where(near, 1 - (1 - confidence) / SURER, confidence))
        few = (self.people < needed) | np.isnan(found.value)
        return _in_unit(found, few, self._width**2, 0.0)

    @property
    def variance_threshold(self) -> float:
        """Of fewer people than this no variance is told. Public, like `threshold`.

        A variance lies within 1/4 of the squared width of the bounds. Of so many people noise moves it by at most
        three quarters of that either way (95 %), whatever they are like, and mostly by a third of it: a counter of the
        noise σ moves it by σ/N at most.
        """
        _, (stddev, kurtosis) = self._moments
        margin = float(reach(0.95, np.full(1, kurtosis))[0]) * stddev
        return max(self.threshold, margin / (BENT * 0.25))

    def quantiles(self, rank: float, confidence: float = 0.95) -> ValueEstimate:
        """The value below which a part `rank` lies."""
        counters, noise = self._bins
        found = quantiles(counters, rank, noise, confidence)
        return self._known(
            found, self._width / counters.shape[1], self.tree.value_encoding.low, float(counters.shape[1])
        )

    @property
    def histograms(self) -> tuple[Floats, float, float]:
        """People in each bin of each place, float64[places, bins], unbiased; the noise of each, and its kurtosis."""
        counters, (stddev, kurtosis) = self._bins
        return counters, stddev, kurtosis

    @property
    def _width(self) -> float:
        return self.tree.value_encoding.high - self.tree.value_encoding.low

    def _known(self, found: Interval, unit: float, least: float, span: float) -> ValueEstimate:
        """In the unit of the value, without the values of which too little is known."""
        few = ~(found.high - found.low <= TOO_WIDE * span) | (self.people < self.threshold) | np.isnan(found.value)
        return _in_unit(found, few, unit, least)


def _in_unit(found: Interval, few: NDArray[np.bool_], unit: float, least: float) -> ValueEstimate:
    value, stddev = np.where(few, np.nan, found.value), np.where(few, np.nan, found.stddev)
    return ValueEstimate(least + unit * value, unit * stddev, least + unit * found.low, least + unit * found.high, few)
