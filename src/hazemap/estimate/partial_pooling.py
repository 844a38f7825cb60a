"""Shrinkage of noisy values across cells and slots: the best guess of each, arrays in, arrays out.

What is published of a place is unbiased, and a picture of it shows more differences than there are: noise differs too.
The best guess of a place lies between its own value and what its cell and its slot are like elsewhere, by as much as
noise explains their difference (empirical Bayes; Robbins 1956, Efron and Morris 1973).
"""

import numpy as np

from hazemap.machine_code.arrays import Floats

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
