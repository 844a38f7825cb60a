"""Answers over samples: scaled to each other, and with the error that a sample has beside its noise."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.estimate.tree_least_squares import Consistent, Measurement, MeasurementSample


def with_sampling(measurements: Sequence[Measurement], guess: Consistent) -> list[Measurement]:
    """The same measurements, each variance raised by what a sample errs as a picture of everybody.

    Of n people drawn, each adds x to a region's number, 0 ≤ x ≤ m, with mean c/n and variance at most c/n · (m − c/n):
    the number has at most n times that. c is read off `guess`, one estimate from all rounds, so that what the noise
    of one round did to its own number does not decide how much that number is believed. Measurements that do not say
    over how many people they are stay as they are. `guess` must come from the same measurements.
    """
    row = guess.regions.forest.row
    numbers = np.zeros(row.max() + 1)
    numbers[row] = guess.whole
    found, start = [], 0
    for part in measurements:
        own = numbers[-1:]  # the last row of a forest is everything
        if isinstance(part.cells, Leaves):
            own, start = numbers[start : start + part.cells.size], start + part.cells.size
        found.append(part if part.sample is None else _raised(part, part.sample, own))
    return found


def _raised(part: Measurement, sample: MeasurementSample, numbers: NDArray[np.float64]) -> Measurement:
    count = np.clip(numbers, 0, sample.most * sample.people)
    return part._replace(variances=part.variances + sample.factor * count * (sample.most - count / sample.people))
