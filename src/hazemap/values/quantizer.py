"""The public integer grid onto which values are rounded: speeds, delays, doses."""

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError

LARGEST, NARROWEST, TOLD_APART = 1e15, 1e-15, 2.0**-40
"""Bounds lie within ±`LARGEST`, so far apart at least, and by this part of themselves: squares and sums of such values
are finite in floats of 32 bits, too, which pictures hold, and no step of a reading is lost beside the bounds."""


def far_enough_apart(low: float, high: float) -> bool:
    """Whether values between these bounds can be told apart.

    >>> far_enough_apart(0, 65), far_enough_apart(1e9, 1e9 + 1e-6)
    (True, False)
    """
    return high - low >= max(NARROWEST, TOLD_APART * max(abs(low), abs(high)))


@dataclass(frozen=True)
class Quantizer:
    """Values from `low` to `high`, read as whole numbers 0 … `steps`; what lies outside is clipped to the ends.

    The bounds are declared, never read from the data: the largest value may be one person's. Sums of readings are
    exact, so their sensitivity is, too; a reading is off by half a step at most.

    >>> quantizer = Quantizer(0, 65, steps=650)
    >>> quantizer.read(np.array([20.04, -3, 99])), quantizer.value(200)
    (array([200,   0, 650]), 20.0)
    """

    low: float
    high: float
    steps: int = 1 << 12

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise InputError(f"the lower bound of values must be below the upper one; found {self.low} and {self.high}")
        if not -LARGEST <= self.low <= self.high <= LARGEST or not far_enough_apart(self.low, self.high):
            raise InputError(
                f"bounds of values lie between -1e15 and 1e15, and at least 1e-15 and a part of 1e-12 of "
                f"themselves apart; found {self.low} and {self.high}: choose another unit, or values less an offset"
            )
        if not 1 <= self.steps <= 1 << 16:
            raise InputError(f"the number of steps must be 1 to 65536, not {self.steps}: sums must fit 64 bits")

    def read(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Readings 0 … steps of any values but NaN (`InputError`); infinite ones are clipped. O(values)."""
        scaled = np.clip(np.asarray(values, dtype=np.float64), self.low, self.high)
        if np.isnan(scaled).any():
            raise InputError("a value is not a number: leave such rows out first")
        scaled -= self.low
        scaled *= self.steps / (self.high - self.low)
        readings: NDArray[np.int64] = np.rint(scaled, out=scaled).astype(np.int64)
        return readings

    def value(self, reading: float) -> float:
        """The value of a reading, which may be a mean of readings."""
        return self.low + self.width(reading)

    def width(self, readings: float) -> float:
        """The difference of values that this many readings make."""
        return readings * (self.high - self.low) / self.steps
