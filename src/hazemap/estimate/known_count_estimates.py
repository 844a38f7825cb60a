"""What the noisy counters of a known-count encoding say of a value in each place, where numbers of people are
public.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.encoders.public_location_values import PublicLocationValues
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.ratio_estimates import Interval, means_known, quantiles_known
from hazemap.estimate.value_estimates import BENT, TOO_WIDE, ValueEstimate
from hazemap.estimate.variance_estimates import variances_known
from hazemap.queries import Answer
from hazemap.values.cell_time_slots import CellTimeSlots


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """Counters of the places that were asked about, float64[told, counters], in people (or records); see
    `Measurements`.

    Intervals speak of the noise alone: they hold the statistic of those who count. Whether a mean is told follows from
    the noise and from numbers of people, so it is public.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import OwnMeans
    >>> one = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=0), 0), Always(), ValueEncoding(0, 60))
    >>> rule, people = OwnMeans(1, scale=1 << 20), np.array([120])
    >>> asked = PublicLocationValues(one, rule, people, np.array([100]), most=1, squares=1)
    >>> found = KnownPeople.of(asked, Answer(np.array([25 << 20]), np.array([2.0**20]), kurtosis=0.0))
    >>> found.means().value, found.means().low.round(2), found.people
    (array([15.]), array([13.82]), array([120.]))
    """

    asked: PublicLocationValues
    counters: Floats
    stddev: float
    kurtosis: float

    @classmethod
    def of(cls, asked: PublicLocationValues, answer: Answer) -> "KnownPeople":
        """From the question and its answer."""
        counters = answer.sums.reshape(-1, asked.known_encoding.size).astype(np.float64)
        return cls(asked, counters, float(answer.stddev.max()), answer.kurtosis)

    @property
    def tree(self) -> CellTimeSlots:
        """The cells and slots, those with people."""
        return self.asked.tree

    @property
    def people(self) -> Floats:
        """How many are in each place: exact and public."""
        return self.asked.people.astype(np.float64)

    @property
    def people_stddev(self) -> float:
        """Nothing: they are exact."""
        return 0.0

    @property
    def threshold(self) -> float:
        """Of a place in which fewer people count nothing is told: its interval would be too wide."""
        wide = reach(0.95, np.full(1, self.kurtosis))[0] * self.stddev / self.asked.known_encoding.scales[0]
        return float(2 * wide / TOO_WIDE)

    def means(self, confidence: float = 0.95) -> ValueEstimate:
        """The mean over the people who count, of the mean of their own records."""
        sums, noise = self._moments
        found = means_known(sums[:, 0], self._weight, noise, confidence)
        return self._known(found, self._width, self.tree.value_encoding.low, 1.0)

    def variances(self, confidence: float = 0.95) -> ValueEstimate:
        """The variance, within people and between them, in the unit of the value squared.

        Told where noise moves it by at most 3/16 of the squared width of the bounds either way (95 %).
        """
        if self.tree.value_encoding.degree < 2:
            raise InputError("variances were not asked for: the value encoding has degree 1")
        sums, noise = self._moments
        found = variances_known(sums[:, 0], sums[:, 1], self._weight, noise, confidence)
        # Told or not by the number of people, which is public: the width of the interval hangs on what is not.
        wide = reach(0.95, np.full(1, noise[1]))[0] * noise[0] * 2**0.5 / self._weight
        return self._told(found, wide <= BENT * 0.25, self._width**2, 0.0, 0.25)

    def quantiles(self, rank: float, confidence: float = 0.95) -> ValueEstimate:
        """The value below which a part `rank` lies."""
        value_encoding, (bins, noise) = self.tree.value_encoding, self._bins
        found = quantiles_known(bins, rank, self._weight, noise, confidence)
        return self._known(found, self._width / value_encoding.bins, value_encoding.low, float(value_encoding.bins))

    @property
    def histograms(self) -> tuple[Floats, float, float]:
        """People in each bin of each place, float64[places, bins], unbiased (NaN where nothing was asked); the noise of
        each, and its kurtosis.
        """
        bins, (stddev, kurtosis) = self._bins
        spread = np.full((self.tree.places, bins.shape[1]), np.nan)
        spread[self.asked.told] = bins
        return spread, stddev, kurtosis

    @property
    def _bins(self) -> tuple[Floats, tuple[float, float]]:
        value_encoding = self.tree.value_encoding
        if not value_encoding.bins:
            raise InputError("quantiles were not asked for (--quantiles, --bins): the value encoding has no bins")
        scale = self.asked.known_encoding.scales[1]
        return self.counters[:, value_encoding.degree :] / scale, (self.stddev / scale, self.kurtosis)

    @property
    def _moments(self) -> tuple[Floats, tuple[float, float]]:
        scale = self.asked.known_encoding.scales[0]
        return self.counters[:, : self.tree.value_encoding.degree] / scale, (self.stddev / scale, self.kurtosis)

    @property
    def _weight(self) -> Floats:
        return self.asked.weight[self.asked.told].astype(np.float64)

    @property
    def _width(self) -> float:
        return self.tree.value_encoding.high - self.tree.value_encoding.low

    def _known(self, found: Interval, unit: float, least: float, span: float) -> ValueEstimate:
        """Of all places, without the values of which too little is known."""
        return self._told(found, found.high - found.low <= TOO_WIDE * span, unit, least, span)

    def _told(
        self, found: Interval, narrow: NDArray[np.bool_], unit: float, least: float, span: float
    ) -> ValueEstimate:
        """Of all places, in the unit of the value: what is not told has the whole range as its interval."""
        told = self.asked.told
        value, stddev = self._spread(found.value, narrow), self._spread(found.stddev, narrow)
        low, high = np.zeros(self.tree.places), np.full(self.tree.places, span)
        low[told], high[told] = np.clip(found.low, 0, span), np.clip(found.high, 0, span)
        return ValueEstimate(
            least + unit * value, unit * stddev, least + unit * low, least + unit * high, np.isnan(value)
        )

    def _spread(self, numbers: Floats, known: NDArray[np.bool_]) -> Floats:
        """Numbers of the places that are told, NaN elsewhere."""
        spread = np.full(self.tree.places, np.nan)
        spread[self.asked.told[known]] = numbers[known]
        return spread
