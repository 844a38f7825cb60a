"""How a value is shared out over a few counters, so that its mean, its variance and its distribution can be asked for.

Adding people up in one counter and their values in another spends a budget twice. Here every record is divided into
parts that are never negative and always add up to the same: then a person moves *all* counters together by no more than
they move one, and each counter gets the noise of the whole budget.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.arrays import Floats, Ints
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.values.quantizer import Quantizer

STEPS = 1 << 10
MOST_BINS = 1 << 10


@dataclass(frozen=True)
class ValueEncoding:
    """A value between declared bounds, divided over `degree` + 1 counters for its moments, then over `bins` of equal
    width for its distribution.

    The moments' parts are Bernstein's polynomials: with y the place of the value between the bounds, 0 to 1, a record
    gives (1 − y, y) for the mean (degree 1), or ((1 − y)², 2y(1 − y), y²) for the variance too (degree 2). They add up
    to 1. So Σ y is Σ of the second part, and N is the sum of both. Whole numbers: y is read in steps of 1/1024, and a
    record is `weights[0]` · 2²⁰ in all for the moments, and `weights[1]` · 2²⁰ in its one bin.

    >>> value_encoding = ValueEncoding(0, 65, degree=1)
    >>> value_encoding.parts[value_encoding.quantizer.read(np.array([0, 13, 65]))] / value_encoding.scale
    array([[1.        , 0.        ],
           [0.79980469, 0.20019531],
           [0.        , 1.        ]])
    """

    low: float
    high: float
    degree: int = 1
    bins: int = 0
    weights: tuple[int, int] = (1, 1)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "weights", tuple(int(weight) for weight in self.weights))
        Quantizer(self.low, self.high, STEPS)
        if self.degree not in (1, 2) or not (self.bins == 0 or 2 <= self.bins <= MOST_BINS):
            raise InputError(
                f"a value encoding has degree 1 (means) or 2 (variances too), and no bins or 2 to {MOST_BINS:,}"
            )
        if len(self.weights) != 2 or not all(1 <= weight <= 64 for weight in self.weights):
            raise InputError("moments and bins have a whole weight each, 1 to 64")

    @cached_property
    def quantizer(self) -> Quantizer:
        """How values are read; what lies outside the bounds is clipped to them."""
        return Quantizer(self.low, self.high, STEPS)

    @property
    def size(self) -> int:
        """How many counters."""
        return self.degree + 1 + self.bins

    @property
    def scales(self) -> tuple[int, ...]:
        """What a record gives to the moments, and to the bins: exactly, whatever its value."""
        return tuple(STEPS**2 * weight for weight in self.weights[: 1 + bool(self.bins)])

    @property
    def scale(self) -> int:
        """What a record gives in all."""
        return sum(self.scales)

    @cached_property
    def parts(self) -> Ints:
        """What a record of each reading gives to each counter, int64[1025, size]; every row adds up to `scale`."""
        y = np.arange(STEPS + 1, dtype=np.int64)
        x = STEPS - y
        moments = [x * STEPS, y * STEPS] if self.degree == 1 else [x * x, 2 * x * y, y * y]
        parts = np.zeros((STEPS + 1, self.size), dtype=np.int64)
        parts[:, : self.degree + 1] = np.stack(moments, axis=1) * self.weights[0]
        if self.bins:
            bin_of = np.minimum(y * self.bins // STEPS, self.bins - 1)
            parts[y, self.degree + 1 + bin_of] = STEPS**2 * self.weights[1]
        return parts

    @property
    def edges(self) -> Floats:
        """Where bins begin, and where the last one ends; float64[bins + 1]."""
        return np.linspace(self.low, self.high, self.bins + 1)
