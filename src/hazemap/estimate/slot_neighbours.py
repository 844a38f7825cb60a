"""What the slots before and after one say of it: a prediction to judge its own answers by, from noisy numbers alone.

A part is *predicted* to hold, in slot t, P_t: what the map of the day makes of it. Measured is x_t = P_t(1 + θ_t) +
noise. Where people move little by little, θ changes little from one slot to the next, so

    θ̂_t = Σ_k K_k P d / σ² ÷ (Σ_k K_k P² / σ² + 1/τ²),    d = x − P,

over the slots t + k other than t itself, the nearer the heavier: the ridge estimate of a θ that is 0 but for some τ.
Its error has nothing to do with the noise of x_t, so Σ (x_t − P_t(1 + θ̂_t))²/σ² is the noise, the same for every
choice, and how far the predictions are off. So how far neighbours reach, how large τ is, and whether neighbours say
anything at all, is read off the answers themselves (cross-validation by leaving one out; Stone 1974), level by level:
where slots have nothing to do with their neighbours, the prediction stays that of the day.
"""

from collections.abc import Iterator

import numpy as np

from hazemap.estimate.empirical_bayes import LEAST
from hazemap.machine_code.arrays import Floats
from hazemap.temporal.time_slots import Clock, Slots, Weekdays

REACHES = (1, 2, 3, 4)
"""How many slots before and after may count."""

APART = (0.1, 0.3, 1.0)
"""How far slots may differ from the day, as a part of it: the τ that are tried."""


def from_neighbours(measured: Floats, predicted: Floats, stddev: Floats, slots: Slots) -> Floats:
    """The numbers that the neighbours of each slot predict, float64[slots, parts]; `predicted` where they do not help.

    `measured` have independent errors `stddev` in each slot. The hours of a day and the days of a week are a ring.

    >>> slots = Clock.hours("UTC")
    >>> day = np.full((24, 1), 100.0)
    >>> wave = day * (1 + 0.5 * np.sin(np.arange(24) / 24 * 2 * np.pi))[:, None]
    >>> found = from_neighbours(wave, day, np.full((24, 1), 5.0), slots)
    >>> bool(np.abs(found - wave).max() < 5), bool(np.abs(day - wave).max() > 49)
    (True, True)
    """
    precision = 1 / np.maximum(stddev, LEAST) ** 2
    away = measured - predicted
    told, known = predicted * away * precision, predicted**2 * precision
    best, found = float((away**2 * precision).sum()), predicted
    ring = isinstance(slots, Clock | Weekdays)
    for reach in REACHES:
        if 2 * reach + 1 > len(measured):
            break
        above, below = _around(told, reach, ring), _around(known, reach, ring)
        for apart in APART:
            tried = predicted * (1 + np.maximum(above / (below + apart**-2), -1))
            misses = float(((measured - tried) ** 2 * precision).sum())
            if misses < best:
                best, found = misses, tried
    return np.asarray(found)


def _around(numbers: Floats, reach: int, ring: bool) -> Floats:
    """The weighted sums of what slots before and after each have, without its own."""
    return np.asarray(sum(weight * each for weight, each in _moved(numbers, reach, ring)))


def _moved(numbers: Floats, reach: int, ring: bool) -> Iterator[tuple[float, Floats]]:
    """Each neighbour's numbers in the place of the slot's own, and its weight: a triangle's."""
    for step in (step for step in range(-reach, reach + 1) if step):
        moved = np.roll(numbers, step, axis=0)
        if not ring and step > 0:
            moved[:step] = 0
        if not ring and step < 0:
            moved[step:] = 0
        yield 1 - abs(step) / (reach + 1), moved
