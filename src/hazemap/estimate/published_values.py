"""Estimates of a value in places from the answers to the estimators of user-level means, with all of their doubt.

Rameshwar et al. 2024. `Measurements` and `KnownPeople` (`estimate.value_estimates`) are the same for our own
questions.

What an interval holds is the mean (or the variance) of all samples of a place, read and clipped to the bounds,
whatever the samples are; so beside the noise it holds the largest bias that there can be:

* people count for less than their samples, or arrays are not equally full: `SampledPlaces.astray`, times the range;
* means of arrays are clipped to ends that were chosen privately: a part of the arrays may lie beyond, of which only is
  known how large it is at most (`_clipped`);
* the point where people balance is not their mean: `_balanced`;
* values are read in 1024 steps, means in `GRID`.

**Best guesses.** What is published of a place is unbiased, and a picture of it shows more differences than there are:
noise differs too. The best guess of a place lies between its own value and what its cell and its slot are like
elsewhere, by as much as noise explains their difference (empirical Bayes; Robbins 1956, Efron and Morris 1973).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import NamedTuple, NoReturn

import numpy as np

from hazemap.encoders.sample_statistics import (
    GRID,
    PlaceArrayMeans,
    PlaceBalances,
    PlaceBins,
    PlaceMeans,
    PlaceQuantiles,
    PlaceVariances,
)
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import checked_confidence, reach
from hazemap.estimate.value_estimates import BENT, ValueEstimate
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.noisy_queries import Answer, Choice, Measure, Question
from hazemap.tables.sample_grouping import PARTS, UNIT, SampledPlaces
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import STEPS

READ = 1 / (2 * STEPS) + 2 / UNIT
"""By so much of the range a value is off as it is read, and sums as they are rounded."""


class _Found(NamedTuple):
    """Of the places that are told, in parts of the range: an estimate, its noise, and how far bias may lead either way.

    The noise misses its interval with probability `rare`; the rest of what may fail is in `below` and `above` already.
    Choices are private, too: where there are some, the noise of the sum alone is no standard error (not `sure`).
    """

    value: Floats
    stddev: Floats
    kurtosis: float
    below: Floats
    above: Floats
    rare: float
    sure: bool = True


@dataclass(frozen=True, eq=False)
class PublishedValues:
    """Questions about places with their answers, as an estimator asked them.

    `stddev` of an estimate is that of its noise. It is NaN where something is chosen, ends to clip to or the point
    where people balance: how the noise of a choice moves the estimate depends on how people's means lie. `bias` is the
    most by which anything else can move it, such choices included.
    """

    exchanges: tuple[tuple[Question, Answer], ...]

    @classmethod
    def of(cls, exchanges: Sequence[tuple[Question, Answer]]) -> "PublishedValues":
        """`InputError` for questions that no estimator asks."""
        made = cls(tuple((question, answer) for question, answer in exchanges))
        _ = made.places, made._mean
        return made

    @cached_property
    def places(self) -> SampledPlaces:
        """What is public of the places."""
        return self._mean[0].places

    @cached_property
    def _mean(self) -> tuple[PlaceMeans | PlaceArrayMeans | PlaceBalances, Answer]:
        """The question that tells the mean."""
        for question, answer in self.exchanges:
            asked = question.scores if isinstance(question, Measure | Choice) else None
            if isinstance(asked, PlaceMeans | PlaceArrayMeans | PlaceBalances):
                return asked, answer
        _unknown()

    @property
    def tree(self) -> CellTimeSlots:
        """The cells and slots, those with people."""
        return self.places.tree

    @property
    def people(self) -> Floats:
        """How many are in each place: exact and public."""
        return self.places.people.astype(np.float64)

    @property
    def people_stddev(self) -> float:
        """Nothing: they are exact."""
        return 0.0

    @property
    def threshold(self) -> float:
        """The fewest people in a place that is told."""
        return float(self.places.people[self.places.told].min())

    def numbers(self, places: Ints, confidence: float = 0.95) -> tuple[Floats, float, float]:
        """How many are in groups of places, int64[groups, places]: public, so without noise and without a margin."""
        checked_confidence(confidence)
        return self.people[places].sum(axis=1), 0.0, 0.0

    def means(self, confidence: float = 0.95) -> ValueEstimate:
        """The mean of all samples of each place; of people's means, each once, where that was asked."""
        found = self._found(confidence)
        margin = _margin(found)
        encoding = self.tree.value_encoding
        return self._estimate(found, margin, np.isfinite(found.value), encoding.width, encoding.low, 1.0)

    def variances(self, confidence: float = 0.95) -> ValueEstimate:
        """The variance of all samples of each place, in the unit of the value squared.

        Told where noise moves it by at most 3/16 of the squared width of the bounds either way (95 %).
        """
        checked_confidence(confidence)
        asked, answer = self._variance
        kept = self.places.kept[self.places.told]
        one = np.array([by / UNIT**2 for by in asked.reached]) / kept.astype(np.float64) ** 2
        stddev = float(answer.stddev.max()) / UNIT * one
        moved = np.where(self._astray < 0.5, self._astray * (1 - self._astray), 0.25)
        bias = np.minimum(moved + READ * (1 + READ), 0.25)
        value = (answer.sums + 0.5) / UNIT * one
        found = _Found(value, stddev, answer.kurtosis, bias, bias, 1 - confidence)
        known = float(reach(0.95, answer.kurtosis)) * stddev <= BENT * 0.25
        return self._estimate(found, _margin(found), known, self.tree.value_encoding.width**2, 0.0, 0.25)

    def quantiles(self, rank: float, confidence: float = 0.95) -> ValueEstimate:
        """`InputError`: estimators of means tell none."""
        raise InputError(f"no quantile {rank:g} ({confidence:g}) was asked for: published estimators tell means")

    @property
    def histograms(self) -> tuple[Floats, float, float]:
        """`InputError`: estimators of means tell none."""
        raise InputError("no distribution was asked for: published estimators tell means")

    def combined(self, places: Ints) -> "list[tuple[Ints, CombinedMeans]]":
        """Groups of places, int64[groups, places], each as one: those of whom anything is told."""
        told = self.places.told
        return [
            (np.array([group]), CombinedMeans(self, these))
            for group, these in enumerate(places)
            if np.isin(these, told).any()
        ]

    @cached_property
    def _variance(self) -> tuple[PlaceVariances, Answer]:
        for question, answer in self.exchanges:
            if isinstance(question, Measure) and isinstance(question.scores, PlaceVariances):
                return question.scores, answer
        raise InputError("variances were not asked for: say --variance")

    @property
    def _astray(self) -> Floats:
        return self.places.astray[self.places.told] / PARTS

    def _found(self, confidence: float, number: int = 1) -> _Found:
        """The means; the bias bounds of `number` of them hold together."""
        checked_confidence(confidence)
        asked, answer = self._mean
        rare = 1 - confidence
        if isinstance(asked, PlaceBalances):
            return _balanced(asked, answer, self._astray, rare / number)
        if isinstance(asked, PlaceMeans):
            one = asked.places.largest[asked.places.told] / asked.places.kept[asked.places.told]
            value = (answer.sums + 0.5) / UNIT * one
            bias = self._astray + READ
            return _Found(value, float(answer.stddev.max()) / UNIT * one, answer.kurtosis, bias, bias, rare)
        one = (asked.high - asked.low) / (GRID * asked.places.arrays[asked.places.told])
        value = asked.low / GRID + (answer.sums + 0.5) / UNIT * one
        stddev, bias = float(answer.stddev.max()) / UNIT * one, self._astray + READ + 0.5 / GRID
        chosen = [(each.scores, chose) for each, chose in self.exchanges if isinstance(each, Choice)]
        if not chosen:
            return _Found(value, stddev, answer.kurtosis, bias, bias, rare)
        low, high = asked.low / GRID, asked.high / GRID
        beyond = _beyond(*chosen[0], rare / 2 / number)
        return _Found(
            value, stddev, answer.kurtosis, bias + beyond * low, bias + beyond * (1 - high), rare / 2, sure=False
        )

    def _estimate(
        self,
        found: _Found,
        margin: Floats,
        known: Bools,
        unit: float,
        least: float,
        span: float,
    ) -> ValueEstimate:
        """Of all places, in the unit of the value: what is not told has the whole range as its interval."""
        told = self.places.told
        low, high = np.zeros(self.tree.places), np.full(self.tree.places, span)
        low[told] = np.clip(found.value - margin - found.below, 0, span)
        high[told] = np.clip(found.value + margin + found.above, 0, span)
        numbers = np.full((3, self.tree.places), np.nan)
        some = told[known]
        numbers[0, some] = np.clip(found.value[known], 0, span)
        numbers[1, some] = found.stddev[known] if found.sure else np.nan
        numbers[2, some] = np.maximum(found.below, found.above)[known]
        value, stddev, bias = numbers
        return ValueEstimate(
            least + unit * value,
            unit * stddev,
            least + unit * low,
            least + unit * high,
            np.isnan(value),
            unit * np.minimum(bias, span),
        )


@dataclass(frozen=True, eq=False)
class CombinedMeans:
    """The mean of all samples of several places together; samples of places that are not told may be anything."""

    values: PublishedValues
    members: Ints

    def means(self, confidence: float = 0.95) -> ValueEstimate:
        """One mean: noise adds up as variances, bias as it is."""
        places, encoding = self.values.places, self.values.tree.value_encoding
        inside = np.isin(places.told, self.members)
        found = self.values._found(confidence, int(inside.sum()))
        samples = places.samples.astype(np.float64)
        total = samples[self.members].sum()
        part = samples[places.told[inside]] / total
        untold = max(1 - float(part.sum()), 0.0)
        stddev = float(np.sqrt((part**2 * found.stddev[inside] ** 2).sum()))
        kurtosis = 0.0
        if stddev > 0:
            kurtosis = found.kurtosis * float(((part * found.stddev[inside] / stddev) ** 4).sum())
        mean = float((part * found.value[inside]).sum())
        margin = float(reach(1 - found.rare, kurtosis)) * stddev
        below, above = (float((part * side[inside]).sum()) for side in (found.below, found.above))
        low, high = max(mean - margin - below, 0.0), min(mean + margin + above + untold, 1.0)
        spread = stddev / (1 - untold) if found.sure else np.nan
        value = min(max(mean / (1 - untold), 0.0), 1.0)
        ends = min(low, value), max(high, value)
        said = np.array([value, spread, *ends, max(below, above) + untold])
        best, error, least, most, bias = said[:, None]
        unit, few = encoding.width, np.zeros(1, dtype=np.bool_)
        told = encoding.low + unit * best, unit * error, encoding.low + unit * least, encoding.low + unit * most
        return ValueEstimate(*told, few, unit * np.minimum(bias, 1))

    def variances(self, confidence: float = 0.95) -> ValueEstimate:
        """That of a single place; of several together nothing is said, so everything is possible."""
        if len(self.members) == 1:
            found = self.values.variances(confidence)
            at = self.members
            bias = None if found.bias is None else found.bias[at]
            return ValueEstimate(
                found.value[at], found.stddev[at], found.low[at], found.high[at], found.too_few[at], bias
            )
        nothing, most = np.full(1, np.nan), np.full(1, self.values.tree.value_encoding.width**2 / 4)
        return ValueEstimate(nothing, nothing, np.zeros(1), most, np.ones(1, dtype=np.bool_), nothing)

    def quantiles(self, rank: float, confidence: float = 0.95) -> ValueEstimate:
        """`InputError`: estimators of means tell none."""
        return self.values.quantiles(rank, confidence)


def _unknown() -> NoReturn:
    raise InputError("these questions are not those of an estimator of means")


def _margin(found: _Found) -> Floats:
    """How far the noise of sums reaches."""
    margin: Floats = float(reach(1 - found.rare, found.kurtosis)) * found.stddev
    return margin


def _beyond(asked: object, answer: Answer, rare: float) -> Floats:
    """Which part of a place's arrays may lie below the lower end, and which above the upper one; both hold but rarely.

    Permute-and-flip is report noisy max with exponential noise (Ding et al. 2021) of scale s Δ, s = 2/ε; so with n
    candidates the score of the chosen one is below the best by s Δ ln(n/β) with probability β at most. A candidate with
    no mean below it has the score −rank · all, and so has the one above all means with respect to 1 − rank; so at most
    2 rank · all + s ln(n/β) lie beyond. Of Levy's bins one holds a median, and has at most half of all on either side.
    """
    spread = float(answer.stddev.max())
    if isinstance(asked, PlaceQuantiles):
        arrays = asked.places.arrays[asked.places.told]
        part: Floats = 2 * float(asked.rank) + spread * log((GRID + 2) * 2 / rare) / arrays
    elif isinstance(asked, PlaceBins):
        arrays = asked.places.arrays[asked.places.told]
        part = 0.5 + spread * np.log((GRID // asked.width + 1) / rare) / arrays
    else:
        _unknown()
    return np.minimum(part, 1.0)


def _balanced(asked: PlaceBalances, answer: Answer, astray: Floats, rare: float) -> _Found:
    """The weighted mean of people's means, which balance at t but for a pull of B = (s Δ ln(n/β) + one step of all).

    With a pull of at most B · h to either side, h the reach, the mean is largest if a part q of the weight lies at the
    upper bound and the rest just out of reach below t: q · min(h, 1 − t) − (1 − q) · min(h, t) ≤ B.
    """
    told, h = asked.places.told, asked.reach / GRID
    t = answer.sums / GRID
    weight = asked.places.kept[told].astype(np.float64)
    pull = float(answer.stddev.max()) * 2 * h * asked.places.largest[told] * log((GRID + 1) / rare) / weight + 1 / GRID
    ends = []
    for far in (1 - t, t):  # towards the upper bound, and towards the lower one
        out, back = np.minimum(h, far), np.minimum(h, 1 - far)
        part = np.minimum((pull + back) / np.maximum(out + back, 1e-300), 1.0)
        ends.append(np.maximum(part * far - (1 - part) * back, 0.0) + astray + READ + 0.5 / GRID)
    above, below = ends
    return _Found(t, np.zeros(len(t)), 0.0, below, above, rare, sure=False)


ROUNDS = 200
ENOUGH = 1e-4
"""Rounds end when no variance changes by more than this part."""


def pooled(values: Floats, stddev: Floats) -> tuple[Floats, Floats]:
    """Best guesses and their standard errors, float64[cells, slots] each, of values with noise of these deviations.

    A value is μ + its cell's part + its slot's part + its own + noise, each part normal around 0 with a variance that
    is the most plausible one (variational EM over the parts). Where there is no value (NaN) there is no guess. The
    error leaves out that of μ and of the variances. O(cells · slots) a round.

    >>> guess, _ = pooled(np.array([[20.0, 22.0], [21.0, 19.0], [30.0, 31.0]]), np.full((3, 2), 1.5))
    >>> guess.round(1)
    array([[21.1, 21.2],
           [20.2, 20.2],
           [30.1, 30.2]])
    """
    known = np.isfinite(values)
    noise = np.where(known, stddev, 1.0) ** 2
    number = known.sum()
    if number < 2:
        return values.copy(), np.where(known, stddev, np.nan)
    weight = known / noise
    centre = float((np.where(known, values, 0) * weight).sum() / weight.sum())
    spread = max(float(np.where(known, (values - centre) ** 2, 0).sum() / number), 1e-300)
    cell, slot, own = (np.zeros(shape) for shape in ((len(values), 1), (1, values.shape[1]), values.shape))
    variances = np.full(3, spread / 3)
    somewhere = known.any(axis=1, keepdims=True), known.any(axis=0, keepdims=True), known
    for _ in range(ROUNDS):
        found = []
        rest = np.where(known, values - centre, 0)
        cell, doubt = _part(rest - slot - own, weight, variances[0], 1)
        found.append((cell**2 + doubt)[somewhere[0]].mean())
        slot, doubt_slot = _part(rest - cell - own, weight, variances[1], 0)
        found.append((slot**2 + doubt_slot)[somewhere[1]].mean())
        own, doubt_own = _part(rest - cell - slot, weight, variances[2], None)
        found.append((own**2 + doubt_own)[known].mean())
        centre += float(((rest - cell - slot - own) * weight).sum() / weight.sum())
        before, variances = variances, np.array(found)
        if (np.abs(variances - before) <= ENOUGH * spread).all():
            break
    guess = np.where(known, centre + cell + slot + own, np.nan)
    lent = noise / (noise + variances[2])  # what of a guess comes from the cell and the slot
    error = np.sqrt(doubt_own + lent**2 * (doubt + doubt_slot))
    return guess, np.where(known, error, np.nan)


def _part(rest: Floats, weight: Floats, variance: float, axis: int | None) -> tuple[Floats, Floats]:
    """The mean and the variance of parts with this variance beforehand, given what is left to explain."""
    kept = axis is not None
    information = weight.sum(axis=axis, keepdims=True) if kept else weight
    explained = (rest * weight).sum(axis=axis, keepdims=True) if kept else rest * weight
    after = 1 / (information + 1 / max(variance, 1e-300))
    return explained * after, after
