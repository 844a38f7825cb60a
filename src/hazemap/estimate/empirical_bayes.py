"""The most plausible map given the answers and what maps are usually like (empirical Bayes).

Least squares believe every answer as far as its noise allows, and know nothing of maps. But most cells of most maps
are empty or like their neighbours, and how many are, the answers themselves tell. So from the top down, level by
level, the number P of a cell is shared out to its parts:

* a part of area a is *predicted* to hold m ∝ a · (mean density of what lies around it, a level up), scaled so that
  the parts sum to P; a tenth of P is predicted by area alone;
* it was *measured* as y = ẑ + given · (P − ẑ of the cell around), its least-squares number if P is right, with the
  variance that this has for known P;
* it is *likely* to hold the posterior mean under a prior that all parts of the level have in common, relative to m
  (`empirical_bayes_kernels.py`); of √x and squared again, which lies between mean and median: few people are as bad
  where there are none as many fewer where there are many.

In the end the parts are scaled to sum to P. So the total is kept, and nothing is negative. Places where noise alone
explains what was measured become empty or even; where one cell in a thousand holds all the people, it keeps them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hazemap.cells import Leaves
from hazemap.estimate.shrinkage import TreeLevel, TreeLevels
from hazemap.estimate.tree_least_squares import Measurement, consistent
from hazemap.machine_code.arrays import Floats, Ints

BY_AREA = 0.1
"""The part of a prediction that does not look around."""


class LevelParts(NamedTuple):
    """The parts of all cells of a level: what was measured, what was predicted, the error of what was measured."""

    generation: TreeLevel
    measured: Floats
    predicted: Floats
    stddev: Floats


def likely(asked: Sequence[Measurement], cells: Leaves, total: float) -> Floats:
    """The most plausible number of each cell, float64[cells]; cells do not lie in each other, and `total` is positive.

    `NOWHERE` keeps its least-squares number, or 0. O(cells · log cells).
    """
    from hazemap.estimate.empirical_bayes_kernels import SCALES, START, WIDTHS, posterior

    weights = START

    def judge(parts: LevelParts) -> Floats:
        nonlocal weights
        found, common = posterior(parts.measured, parts.predicted, parts.stddev, weights, SCALES, WIDTHS)
        weights = (START + common) / 2
        return found

    return _walk(asked, cells, total, judge)


def roughness(asked: Sequence[Measurement], cells: Leaves, low: float, high: float) -> float:
    """How much parts differ from what is predicted, relative to it, beyond noise: of cells predicted low to high.

    √(Σ((y − m)² − variance)/Σ m²) over the cells of the map: about 0.2 where people are spread smoothly, 1 where every
    street is another world. 1 where too few cells are known well enough.
    """
    seen = list[Floats]()

    def judge(parts: LevelParts) -> Floats:
        own = parts.generation.leaf >= 0
        seen.append(np.stack([parts.predicted, (parts.measured - parts.predicted) ** 2 - parts.stddev**2])[:, own])
        return np.maximum(parts.measured, 0)

    _walk(asked, cells, None, judge)
    predicted, beyond = np.concatenate(seen, axis=1)
    for chosen in ((predicted > low) & (predicted < high), predicted > low):
        if chosen.sum() >= FEW:
            return float(np.sqrt(max(beyond[chosen].sum(), 0) / (predicted[chosen] ** 2).sum()))
    return 1.0


FEW = 8  # cells that tell too little about roughness


def _walk(
    asked: Sequence[Measurement], cells: Leaves, total: float | None, judge: Callable[[LevelParts], Floats]
) -> Floats:
    """Everything shared out from the top down, by the judgement of all parts of each level."""
    generations = TreeLevels(cells)
    guess = consistent([*generations.unknown, *asked], cells, total)
    place = np.full(len(guess.whole), -1)
    place[guess.regions.forest.row] = np.arange(len(place))
    values, density = np.maximum(guess.numbers, 0), np.zeros(cells.size)
    start, upper_numbers = 0, np.empty(0)
    for level, here in enumerate(generations.levels):
        at = place[start : start + len(here.cells)]
        start += len(here.cells)
        numbers, above = guess.whole[at], here.parent
        if not level:
            upper = np.array([max(numbers.sum(), 0) if total is None else total])
            upper_numbers, upper_area = np.array([numbers.sum()]), np.array([here.area.sum()])
        measured = numbers + guess.given[at] * (upper - upper_numbers)[above]
        stddev = np.maximum(np.sqrt(guess.below[at] * np.maximum(1 - guess.given[at], LEAST)), NOISELESS)
        predicted = _predicted(generations, level, upper, upper_area, density)
        found = judge(LevelParts(here, measured, np.maximum(predicted, LEAST * stddev), stddev))
        found = shared(found, here.area, above, upper)
        own = here.leaf >= 0
        values[here.leaf[own]] = found[own]
        density[here.leaf[own]] = found[own] / here.area[own]
        upper, upper_numbers, upper_area = found, numbers, here.area
    return values


LEAST = 1e-3
"""Predictions and variances below this part of the noise are taken for it."""

NOISELESS = 1e-9
"""Standard errors below a billionth of a person, at an ε of hundreds, are taken for it: they may be exactly 0."""


def shared(found: Floats, areas: Floats, above: Ints, upper: Floats) -> Floats:
    """Numbers scaled to the total of their family; by area where none is positive."""
    shares = np.where((np.bincount(above, found, len(upper)) > 0)[above], found, areas)
    return np.asarray(shares * (upper[above] / np.bincount(above, shares, len(upper))[above]))


def _predicted(generations: TreeLevels, level: int, upper: Floats, areas: Floats, density: Floats) -> Floats:
    """What each cell of a level holds if it is as dense as the cells a level up are around it."""
    here = generations.levels[level]
    by_area = here.area * (upper / areas)[here.parent]
    around = generations.around(level)
    if not around.shape[1]:
        return by_area
    # Places of the level above, then cells of the map from the end (place −2 is the one before the last), then nothing.
    known = np.concatenate([upper / areas, density[::-1], [0.0]])
    mean = known[around].sum(axis=1) / np.maximum((around != -1).sum(axis=1), 1)
    drawn = shared(here.area * mean, here.area, here.parent, upper)
    return BY_AREA * by_area + (1 - BY_AREA) * drawn
