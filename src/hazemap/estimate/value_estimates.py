"""Estimates of a value in each cell and slot from noisy counters.

`Measurements` are those of a value encoding; `KnownPeople` those of a known-count encoding, where numbers of people
are public.

**Variance.** From (1 − y)², 2y(1 − y) and y² summed over people it is V(t) = (t₀ t₂ − t₁²/4)/N², where t are the
three true sums and N what they add up to (`variances`); from y and y(1 − y), where N is known, s − s² − b with s and
b their means (`variances_known`). Neither is a ratio of sums, so Fieller's sets are not to be had. An interval is the
profile set (Venzon and Moolgavkar 1988): all V(t) of sums t that noise could lead from to what was counted, |t − b|
at most `reach` standard deviations in the direction in which V changes. Its ends are found as they are, not by the
slope at what was counted, so it holds near 0 and near 1/4 too, where V is as curved as it is steep.

Sums over people are such that V is not negative. Where noise led out of them, the ends are those around what was
counted or around possible sums near it, whichever are further out: to say that V is 0 for certain is never right.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hazemap.cells import Leaves
from hazemap.encoders.cell_values import KnownCountValues, Values
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import checked_confidence, reach
from hazemap.estimate.mean_intervals import IntervalEstimates, loudest, means, means_known
from hazemap.estimate.quantile_intervals import BinTree
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.noisy_queries import Answer
from hazemap.temporal.time_slots import Always
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import READ, ValueEncoding

Noise = tuple[float | Floats, float]
"""The standard deviation of a counter, one for all or of each place, and its excess kurtosis."""

Function = Callable[[Floats], Floats]

STEPS = 12
"""Each step goes from what was counted in the direction in which V changes at the last one; 12 find an end to 1 %."""


def variances(counters: Floats, noise: Noise, confidence: float | Floats) -> IntervalEstimates:
    """E y² − (E y)² of each place, within 0 … 1/4, of float64[places, 3] counters: O(places · STEPS).

    The confidence is one for all, or float64[places]. `value` is less the bias that the noise of the mean gives to its
    square. Where noise could explain that nobody is there, the interval is all of 0 … 1/4.
    """
    stddev, kurtosis = noise
    people = counters.sum(axis=1)
    some = people > 0
    number = np.where(some, people, 1)
    nodes = np.array([0, 0.5, 1])
    mean = counters @ nodes / number
    off = nodes - np.clip(mean, 0, 1)[:, None]
    value = counters[:, 2] / number - mean**2 + stddev**2 * (off**2).sum(axis=1) / number**2
    slope = _slope(_possible(counters, some))
    found = stddev * np.sqrt((slope**2).sum(axis=1))
    sure = np.broadcast_to(confidence, people.shape)
    unknown = ~some | (people**2 <= _reach(sure, kurtosis / 3) ** 2 * 3 * stddev**2)
    low, high = np.zeros(len(people)), np.full(len(people), 0.25)
    known = np.flatnonzero(~unknown)
    around = counters[known], _possible(counters[known], some[known])
    low[known], high[known] = _ends(around, _variance, _slope, noise, sure[known])
    return IntervalEstimates(np.where(some, np.clip(value, 0, 0.25), np.nan), np.where(some, found, np.inf), low, high)


def variances_known(sums: Floats, bent: Floats, people: Floats, noise: Noise, confidence: float) -> IntervalEstimates:
    """The same from `sums` Σ y and `bent` Σ y(1 − y), float64[places] each, of a known number of people.

    Less the bias σ²/N² that the noise of the mean gives to its square. O(places · STEPS).
    """
    stddev, kurtosis = noise
    counted = np.column_stack([sums, bent]) / people[:, None]
    mean = np.clip(counted[:, 0], 0, 1)
    value = counted[:, 0] * (1 - counted[:, 0]) - counted[:, 1] + (stddev / people) ** 2
    found = stddev / people * np.hypot(1 - 2 * mean, 1)
    around = counted, np.column_stack([mean, np.clip(counted[:, 1], 0, mean * (1 - mean))])
    sure = np.full(len(people), confidence)
    low, high = _ends(around, _variance_known, _slope_known, (stddev / people, kurtosis), sure)
    return IntervalEstimates(np.clip(value, 0, 0.25), found, low, high)


def _ends(
    around: tuple[Floats, Floats], value: Function, slope: Function, noise: Noise, confidence: Floats
) -> tuple[Floats, Floats]:
    """The least and the greatest V within reach of what was counted or of the possible sums near it."""
    low, high = (np.stack([_end(sums, value, slope, noise, confidence, side) for sums in around]) for side in (-1, 1))
    return np.clip(low.min(axis=0), 0, 0.25), np.clip(high.max(axis=0), 0, 0.25)


def _reach(confidence: Floats, kurtosis: Floats | float) -> Floats:
    """`reach` of each place at a confidence of its own."""
    shape = np.broadcast_to(kurtosis, confidence.shape)
    found = np.empty(len(confidence))
    for each in np.unique(confidence):
        same = confidence == each
        found[same] = reach(float(each), shape[same])
    return found


def _end(sums: Floats, value: Function, slope: Function, noise: Noise, confidence: Floats, side: int) -> Floats:
    """The least (−1) or greatest (1) V within reach of some sums."""
    stddev, kurtosis = noise
    at, best = sums, value(sums)
    for _ in range(STEPS):
        there = slope(at)
        energy = (there**2).sum(axis=1)
        energy = np.where(energy > 0, energy, 1)
        far = stddev * _reach(confidence, kurtosis * (there**4).sum(axis=1) / energy**2)
        at = sums + side * (far / np.sqrt(energy))[:, None] * there
        found = value(at)
        best = np.where(side * (found - best) > 0, found, best)
    return best


def _variance_known(means: Floats) -> Floats:
    """V = s − s² − b of the means of y and of y(1 − y); float64[places]."""
    found: Floats = means[:, 0] * (1 - means[:, 0]) - means[:, 1]
    return found


def _slope_known(means: Floats) -> Floats:
    """Its derivative to each mean, float64[places, 2]."""
    return np.column_stack([1 - 2 * means[:, 0], np.full(len(means), -1.0)])


def _variance(sums: Floats) -> Floats:
    """V of sums of a positive number of people; float64[places]."""
    found: Floats = (sums[:, 0] * sums[:, 2] - sums[:, 1] ** 2 / 4) / sums.sum(axis=1) ** 2
    return found


def _slope(sums: Floats) -> Floats:
    """The derivative of V to each sum, float64[places, 3]."""
    number = sums.sum(axis=1)[:, None]
    turned = np.column_stack([sums[:, 2], -sums[:, 1] / 2, sums[:, 0]])
    slope: Floats = turned / number**2 - 2 * _variance(sums)[:, None] / number
    return slope


def _possible(counters: Floats, some: Floats) -> Floats:
    """Sums in the cone near what was counted: [[t₀, t₁/2], [t₁/2, t₂]] without its negative eigenvalues."""
    least = np.where(some[:, None], counters, np.array([1.0, 0, 0]))
    middle, half = (least[:, 0] + least[:, 2]) / 2, (least[:, 0] - least[:, 2]) / 2
    radius = np.hypot(half, least[:, 1] / 2)
    upper, lower = np.maximum(middle + radius, 0), np.maximum(middle - radius, 0)
    # The matrix is its mean eigenvalue and, times half their difference, a reflection.
    turn = np.where(radius > 0, (upper - lower) / 2 / np.where(radius > 0, radius, 1), 0)
    even = (upper + lower) / 2
    return np.column_stack([even + turn * half, turn * least[:, 1], even - turn * half])


TOO_WIDE = 0.5
"""Noise that leaves an interval wider than this part of what is possible says too little to be shown."""

BENT = 0.75
"""A variance is published where noise moves it by at most this part of what is possible, whatever people are like."""

NEAR, SURER = 3.0, 20
"""Where the number of people is within this many standard errors above the threshold of a variance, its interval misses
a 20th as often as elsewhere."""

CHANCE = 0.01
"""How probable it is that noise alone lifts *any* empty place above the threshold."""


@dataclass(frozen=True)
class ValueEstimate:
    """A statistic of every place, float64[places] each, in the unit of the value; `too_few` where it is not published.

    There `value` and `stddev` are NaN; the interval still holds. `bias` is the most by which anything but noise can
    move it, where an estimator says so: the interval holds that as well.
    """

    value: Floats
    stddev: Floats
    low: Floats
    high: Floats
    too_few: Bools
    bias: Floats | None = None


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
        """The counters of the moments, scaled so that they add up to people; and their noise."""
        value_encoding = self.tree.value_encoding
        times = value_encoding.scale / value_encoding.scales[0]
        return self.counters[:, : value_encoding.degree + 1] * times, (self.stddev * times, self.kurtosis)

    @cached_property
    def _levels(self) -> tuple[Floats, BinTree]:
        """The counters of all levels of bins, scaled so that those of a level add up to people; and their noise."""
        value_encoding = self.tree.value_encoding
        first, levels = _first_bin(value_encoding, value_encoding.degree + 1), value_encoding.levels
        times = [value_encoding.scale / scale for scale in value_encoding.scales[1:]]
        known = self.people_stddev, value_encoding.degree + 1
        tree = BinTree(levels, tuple(self.stddev * each for each in times), known, self.kurtosis)
        return self.counters[:, first:] * np.repeat(times, levels), tree

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

    def numbers(self, places: Ints, confidence: float = 0.95) -> tuple[Floats, float, float]:
        """How many are in groups of places, int64[groups, places]; their standard error, and the interval's margin."""
        counters, (_, kurtosis) = self._moments
        size = places.shape[1]
        stddev = self.people_stddev * size**0.5
        margin = float(reach(confidence, kurtosis / (size * counters.shape[1]))) * stddev
        return self.people[places].sum(axis=1), stddev, margin

    def combined(self, places: Ints) -> "list[tuple[Ints, Measurements]]":
        """Groups of places, int64[groups, places], each as a single place: counters add up, and so does their noise.

        Which groups, and what is known of these.
        """
        together, size = self.counters[places].sum(axis=1), places.shape[1]
        made = replace(self, counters=together, stddev=self.stddev * size**0.5, kurtosis=self.kurtosis / size)
        return [(np.arange(len(places)), made)]

    @property
    def threshold(self) -> float:
        """Of fewer people than this nothing is published. Public: it follows from the noise and the number of places.

        Noise alone lifts any empty place above it in less than 1 release of 100; so published places are real. And of
        so many people whose mean is in the middle the interval of the mean is no wider than half of the bounds. (A
        limit on the width of each interval would pick the places whose noise made it too narrow.)
        """
        return self.threshold_of(self.tree.places)

    def threshold_of(self, places: int) -> float:
        """The same, if this many places were asked.

        Noise of standard deviation σ in each of n counters leaves a mean in the middle of the bounds within a quarter
        of them where N ≥ z σ √(8 + n): Fieller's interval ends at (θ − 1/2)² (N² − n z²σ²) = z²σ²/2.
        """
        counters, (stddev, kurtosis) = self._moments
        number = counters.shape[1]
        margin = float(reach(0.95, np.full(1, kurtosis))[0]) * stddev
        needed: float = margin * (2 / TOO_WIDE**2 + number) ** 0.5
        return max(loudest(number, (stddev, kurtosis), CHANCE / places), needed)

    def means(self, confidence: float = 0.95) -> ValueEstimate:
        """The mean: of the people in a place, each with the mean of their own records."""
        counters, noise = self._moments
        found = _as_read(means(counters, np.linspace(0, 1, counters.shape[1]), noise, confidence), READ, 1.0)
        few = (self.people < self.threshold) | np.isnan(found.value)
        return _in_unit(found, few, self.tree.value_encoding.width, self.tree.value_encoding.low)

    def variances(self, confidence: float = 0.95) -> ValueEstimate:
        """The variance, within people and between them, in the unit of the value squared.

        The number of people alone decides whether it is published: a limit on the width of the interval would pick
        the places whose noise made it too narrow. Of those just above what is needed, noise lifted some there, and
        that noise is in their variance too; so their interval is one of a higher confidence.
        """
        if self.tree.value_encoding.degree < 2:
            raise InputError("variances were not asked for: the value encoding has degree 1")
        counters, noise = self._moments
        needed = self.variance_threshold
        near = self.people < needed + NEAR * self.people_stddev
        found = variances(counters, noise, np.where(near, 1 - (1 - confidence) / SURER, confidence))
        found = _as_read(found, READ * (1 + READ), 0.25)
        few = (self.people < needed) | np.isnan(found.value)
        return _in_unit(found, few, self.tree.value_encoding.width**2, 0.0)

    @property
    def variance_threshold(self) -> float:
        """Of fewer people than this no variance is published. Public, like `threshold`.

        A variance lies within 1/4 of the squared width of the bounds. Of this many people noise moves it by at most
        three quarters of that either way (95 %), whatever they are like, and mostly by a third of it: a counter of the
        noise σ moves it by σ/N at most.
        """
        _, (stddev, kurtosis) = self._moments
        margin = float(reach(0.95, np.full(1, kurtosis))[0]) * stddev
        return max(self.threshold, margin / (BENT * 0.25))

    def quantiles(self, rank: float, confidence: float = 0.95) -> ValueEstimate:
        """The values below which a part `rank` lies: see `estimate.quantile_intervals`."""
        counters, tree = self._levels
        found = tree.quantiles(counters, self.people, rank, confidence)
        few = (self.people < max(self.threshold, tree.needed(rank, TOO_WIDE))) | np.isnan(found.value)
        return _in_unit(_at_edges(found, self.tree.value_encoding), few, 1.0, self.tree.value_encoding.low)

    @property
    def histograms(self) -> tuple[Floats, float, float]:
        """People in each bin of the first level, float64[places, bins], unbiased; the noise of each, its kurtosis."""
        counters, tree = self._levels
        return counters[:, : tree.sizes[0]], tree.stddevs[0], tree.kurtosis


def _first_bin(value_encoding: ValueEncoding, moments: int) -> int:
    """The first counter of bins, behind those of the moments."""
    if not value_encoding.bins:
        raise InputError("quantiles were not asked for (--quantiles, --bins): the value encoding has no bins")
    return moments


def _as_read(found: IntervalEstimates, off: float, most: float) -> IntervalEstimates:
    """An interval that also holds what reading values in steps can move, within 0 … `most`."""
    return found._replace(low=np.maximum(found.low - off, 0), high=np.minimum(found.high + off, most))


def _at_edges(found: IntervalEstimates, value_encoding: ValueEncoding) -> IntervalEstimates:
    """An interval of finest bins as one of values, from the lower bound on: it ends at the very edges of bins."""
    edges = value_encoding.edges(len(value_encoding.levels)) - value_encoding.low
    value, low, high = (np.interp(each, np.arange(len(edges)), edges) for each in (found.value, found.low, found.high))
    return IntervalEstimates(value, found.stddev * value_encoding.width / value_encoding.bins, low, high)


def _in_unit(found: IntervalEstimates, few: Bools, unit: float, least: float) -> ValueEstimate:
    """In the unit of the value; where a value is published, its interval is long enough to hold it."""
    value, stddev = np.where(few, np.nan, found.value), np.where(few, np.nan, found.stddev)
    low, high = np.fmin(found.low, value), np.fmax(found.high, value)
    return ValueEstimate(least + unit * value, unit * stddev, least + unit * low, least + unit * high, few)


@dataclass(frozen=True, eq=False)
class KnownPeople:
    """Counters of the places that were asked about, float64[told, counters], in people (or records); see
    `Measurements`.

    Intervals speak of the noise alone: they hold the statistic of those who count. Whether a mean is
    published follows from the noise and from numbers of people, so it is public.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import OwnMeans
    >>> one = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=0), 0), Always(), ValueEncoding(0, 60))
    >>> rule, people = OwnMeans(1, scale=1 << 20), np.array([120])
    >>> asked = KnownCountValues(one, rule, people, np.array([100]), most=1, squares=1)
    >>> found = KnownPeople.of(asked, Answer(np.array([25 << 20]), np.array([2.0**20]), kurtosis=0.0))
    >>> found.means().value, found.means().low.round(2), found.people
    (array([15.]), array([13.79]), array([120.]))
    """

    asked: KnownCountValues
    counters: Floats
    stddev: float
    kurtosis: float

    @classmethod
    def of(cls, asked: KnownCountValues, answer: Answer) -> "KnownPeople":
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

    def numbers(self, places: Ints, confidence: float = 0.95) -> tuple[Floats, float, float]:
        """How many are in groups of places, int64[groups, places]: public, so without noise and without a margin."""
        checked_confidence(confidence)
        return self.people[places].sum(axis=1), 0.0, 0.0

    def combined(self, places: Ints) -> "list[tuple[Ints, KnownPeople]]":
        """Groups of places, int64[groups, places], each as a single place: counters add up, and so does their noise.

        Each group on its own, since noise comes only from the places that were asked about. Groups without any are
        left out.
        """
        found, tree = [], self.tree
        one = replace(tree, cells=Leaves(tree.cells.tree, tree.cells.cells[:1]), slots=Always())
        for group, these in enumerate(places):
            asked = np.flatnonzero(np.isin(self.asked.told, these))
            if len(asked):
                people, weight = (np.array([each[these].sum()]) for each in (self.asked.people, self.asked.weight))
                question = replace(self.asked, tree=one, people=people, weight=weight)
                together, size = self.counters[asked].sum(axis=0, keepdims=True), len(asked)
                made = KnownPeople(question, together, self.stddev * size**0.5, self.kurtosis / size)
                found.append((np.array([group]), made))
        return found

    @property
    def threshold(self) -> float:
        """A place in which fewer people count is not published: its interval would be too wide."""
        _, (stddev, kurtosis) = self._moments
        return float(2 * reach(0.95, np.full(1, kurtosis))[0] * stddev / TOO_WIDE)

    def means(self, confidence: float = 0.95) -> ValueEstimate:
        """The mean over the people who count, of the mean of their own records."""
        sums, noise = self._moments
        found = _as_read(means_known(sums[:, 0], self._weight, noise, confidence), READ, 1.0)
        value_encoding = self.tree.value_encoding
        return self._told(found, self._weight >= self.threshold, value_encoding.width, value_encoding.low, 1.0)

    def variances(self, confidence: float = 0.95) -> ValueEstimate:
        """The variance, within people and between them, in the unit of the value squared.

        Told where noise moves it by at most 3/16 of the squared width of the bounds either way (95 %).
        """
        if self.tree.value_encoding.degree < 2:
            raise InputError("variances were not asked for: the value encoding has degree 1")
        sums, noise = self._moments
        found = variances_known(sums[:, 0], sums[:, 1], self._weight, noise, confidence)
        found = _as_read(found, READ * (1 + READ), 0.25)
        # Told or not by the number of people, which is public: the width of the interval hangs on what is not.
        wide = reach(0.95, np.full(1, noise[1]))[0] * noise[0] * 2**0.5 / self._weight
        return self._told(found, wide <= BENT * 0.25, self.tree.value_encoding.width**2, 0.0, 0.25)

    def quantiles(self, rank: float, confidence: float = 0.95) -> ValueEstimate:
        """The values below which a part `rank` lies: see `estimate.quantile_intervals`."""
        value_encoding, (bins, tree) = self.tree.value_encoding, self._levels
        found = _at_edges(tree.quantiles(bins, self._weight, rank, confidence), value_encoding)
        enough = self._weight >= tree.needed(rank, TOO_WIDE)
        return self._told(found, enough, 1.0, value_encoding.low, value_encoding.width)

    @property
    def histograms(self) -> tuple[Floats, float, float]:
        """People in each bin of the first level of each place, float64[places, bins], unbiased (NaN where nothing was
        asked); the noise of each, and its kurtosis.
        """
        bins, tree = self._levels
        spread = np.full((self.tree.places, tree.sizes[0]), np.nan)
        spread[self.asked.told] = bins[:, : tree.sizes[0]]
        return spread, tree.stddevs[0], tree.kurtosis

    @property
    def _levels(self) -> tuple[Floats, BinTree]:
        """The counters of all levels of bins, in people; and their noise."""
        value_encoding, scales = self.tree.value_encoding, self.asked.known_encoding.scales[1:]
        first, levels = _first_bin(value_encoding, value_encoding.degree), value_encoding.levels
        tree = BinTree(levels, tuple(self.stddev / scale for scale in scales), (0.0, 1), self.kurtosis)
        return self.counters[:, first:] / np.repeat(scales, levels), tree

    @property
    def _moments(self) -> tuple[Floats, tuple[float, float]]:
        scale = self.asked.known_encoding.scales[0]
        return self.counters[:, : self.tree.value_encoding.degree] / scale, (self.stddev / scale, self.kurtosis)

    @property
    def _weight(self) -> Floats:
        return self.asked.weight[self.asked.told].astype(np.float64)

    def _told(self, found: IntervalEstimates, enough: Bools, unit: float, least: float, span: float) -> ValueEstimate:
        """Of all places, in the unit of the value: what is not told has the whole range as its interval."""
        told = self.asked.told
        value, stddev = self._spread(found.value, enough), self._spread(found.stddev, enough)
        low, high = np.zeros(self.tree.places), np.full(self.tree.places, span)
        low[told], high[told] = np.clip(found.low, 0, span), np.clip(found.high, 0, span)
        return _in_unit(IntervalEstimates(value, stddev, low, high), np.isnan(value), unit, least)

    def _spread(self, numbers: Floats, known: Bools) -> Floats:
        """Numbers of the published places, NaN elsewhere."""
        spread = np.full(self.tree.places, np.nan)
        spread[self.asked.told[known]] = numbers[known]
        return spread
