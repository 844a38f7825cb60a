"""How a value is encoded in a few counters that tell its mean, its variance and its distribution.

Adding people up in one counter and their values in another spends a budget twice. Here every record is divided into
parts that are never negative and always add up to the same: then a person moves *all* counters together by no more than
they move one, and each counter gets the noise of the whole budget.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul

import numpy as np

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.values.quantizer import Quantizer

STEPS = 1 << 10
MOST_BINS = 1 << 10

READ = 1 / (2 * STEPS) + 2 / STEPS**2
"""By so much of the range a value is off as it is read, and a sum of values a person as it is rounded."""


@dataclass(frozen=True)
class ValueEncoding:
    """A value between declared bounds, divided over `degree` + 1 counters for its moments, then over a tree of bins for
    its distribution, level by level: the first has `branchings[0]` bins, the next `branchings[1]` times as many.

    The moments' parts are Bernstein's polynomials: with y the place of the value between the bounds, 0 to 1, a record
    gives (1 − y, y) for the mean (degree 1), or ((1 − y)², 2y(1 − y), y²) for the variance too (degree 2). They add up
    to 1. So Σ y is Σ of the second part, and N is the sum of both. Whole numbers: y is read in steps of 1/1024, and a
    record is `weights[0]` · 2²⁰ in all for the moments, and `weights[i]` · 2²⁰ in its one bin of level i; (1,) stands
    for weights that are all 1.

    >>> value_encoding = ValueEncoding(0, 65, degree=1)
    >>> value_encoding.parts[value_encoding.quantizer.read(np.array([0, 13, 65]))] / value_encoding.scale
    array([[1.        , 0.        ],
           [0.79980469, 0.20019531],
           [0.        , 1.        ]])
    >>> ValueEncoding(0, 64, branchings=(4, 2), weights=(5, 4, 1)).edges(1).tolist()
    [0.0, 15.96875, 31.96875, 47.96875, 64.0]
    """

    low: float
    high: float
    degree: int = 1
    branchings: tuple[int, ...] = ()
    weights: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "branchings", tuple(int(branching) for branching in self.branchings))
        object.__setattr__(self, "weights", tuple(int(weight) for weight in self.weights))
        Quantizer(self.low, self.high, STEPS)
        many = len(self.branchings) >= MOST_BINS.bit_length()  # each level has twice as many bins, or more
        if self.degree not in (1, 2) or any(each < 2 for each in self.branchings) or many or self.bins > MOST_BINS:
            raise InputError(
                f"a value encoding needs degree 1 (means) or 2 (variances too), and no bins or 2 to {MOST_BINS:,}, "
                "each level of them at least twice as many as the one before"
            )
        given, alike = self.weights, set(self.weights) == {1}
        if not all(1 <= weight <= 64 for weight in given) or len(given) != (1 if alike else self.groups):
            raise InputError(
                "the weights of moments and of each level of bins must be whole numbers from 1 to 64; where all are 1, "
                "one of them stands for all"
            )

    @cached_property
    def quantizer(self) -> Quantizer:
        """How values are read; what lies outside the bounds is clipped to them."""
        return Quantizer(self.low, self.high, STEPS)

    @property
    def width(self) -> float:
        """From one bound to the other."""
        return self.high - self.low

    @property
    def groups(self) -> int:
        """In how many groups of counters a record counts: in that of the moments, and in each level of bins."""
        return 1 + len(self.branchings)

    @property
    def levels(self) -> tuple[int, ...]:
        """How many bins each level has."""
        return tuple(accumulate(self.branchings, mul))

    @property
    def bins(self) -> int:
        """How many bins the finest level has; 0 without bins."""
        return self.levels[-1] if self.branchings else 0

    @property
    def size(self) -> int:
        """How many counters."""
        return self.degree + 1 + sum(self.levels)

    @property
    def scales(self) -> tuple[int, ...]:
        """What a record gives to the moments, and to the bins of each level: exactly, whatever its value."""
        weights = self.weights if len(self.weights) == self.groups else self.weights * self.groups
        return tuple(STEPS**2 * weight for weight in weights)

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
        groups = [np.stack(moments, axis=1) * self.weights[0]]
        for size, scale in zip(self.levels, self.scales[1:], strict=True):
            groups.append((self.bin_of(size)[:, None] == np.arange(size)) * scale)
        return np.concatenate(groups, axis=1)

    @staticmethod
    def bin_of(size: int) -> Ints:
        """Which of so many bins each reading lies in, int64[1025]."""
        return np.minimum(np.arange(STEPS + 1, dtype=np.int64) * size // STEPS, size - 1)

    def edges(self, level: int) -> Floats:
        """Where the bins of a level (from 1 on) begin, and where the last one ends; float64[bins + 1].

        A value is read as the nearest step. So a bin begins half a step below its first reading, and holds all values
        from there to the edge behind, where a tie may be read either way.
        """
        size = self.levels[level - 1]
        first = -(-np.arange(size + 1) * STEPS // size)  # the first reading of each bin
        found: Floats = self.low + self.width * (first - 0.5) / STEPS
        found[0], found[-1] = self.low, self.high
        return found


@dataclass(frozen=True)
class KnownCountEncoding:
    """A value encoding where the numbers of people are public (VALUES ONLY), so that no counter is spent on them.

    With y the place of a value between the bounds, 0 to 1, counters are y for the mean, y(1 − y) beside it for the
    variance (which is m(1 − m) less their mean, m being that of y), and the bins of the value encoding. A person whose
    values change moves the first two together by |Δy| + |Δy(1 − y)| ≤ 1, as far as y alone: the variance costs the mean
    nothing. In (1 − y)², 2y(1 − y) and y² they would move by 2. Bins move by 2 in any case. All of them
    are asked, because their sum is known, and that removes part of the noise.

    >>> encodings = ValueEncoding(0, 65), ValueEncoding(0, 65, 2), ValueEncoding(0, 65, 2, (16,))
    >>> [KnownCountEncoding(each).l1 >> 20 for each in encodings]
    [1, 1, 3]
    """

    value_encoding: ValueEncoding

    @property
    def size(self) -> int:
        """How many counters: 1 for the mean, perhaps 1 for the variance, and the bins of all levels."""
        return self.value_encoding.degree + sum(self.value_encoding.levels)

    @property
    def scales(self) -> tuple[int, ...]:
        """What y = 1 is in the counters of the moments, and a person in a bin of each level."""
        return self.value_encoding.scales

    @property
    def l1(self) -> int:
        """How far the counters of a person of weight 1 move in all when the values change: reached from end to end."""
        moments, *bins = self.scales
        return moments + 2 * sum(bins)

    @property
    def l2_squared(self) -> int:
        """The same in squares."""
        moments, *bins = self.scales
        return moments**2 + 2 * sum(scale**2 for scale in bins)

    @cached_property
    def marks(self) -> Ints:
        """What is added up of each reading, int64[1025, degree + bins − 1]; `shared` makes counters of the sums.

        For the mean y; with the variance u = 1 − (1 − y)² and v = y², since y = (u + v)/2 and y(1 − y) = (u − v)/2;
        and for the finest bins whether the reading is in this one or in one before, in which coarser ones are held.
        """
        value_encoding = self.value_encoding
        y = np.arange(STEPS + 1, dtype=np.int64)
        moments = [y * STEPS] if value_encoding.degree == 1 else [STEPS**2 - (STEPS - y) ** 2, y**2]
        marks = [np.stack(moments, axis=1) * self.scales[0] // STEPS**2]
        if value_encoding.bins:
            until = np.arange(value_encoding.bins - 1)
            marks.append((value_encoding.bin_of(value_encoding.bins)[:, None] <= until) * np.int64(1))
        return np.concatenate(marks, axis=1)

    def shared(self, sums: Ints, records: Ints, weights: Ints) -> Ints:
        """The counters of people, int64[people, size]: `weights` times the means of their records' readings, in whole
        numbers; `sums` are Σ marks of each.

        Rounding never breaks the bound. y is rounded to whole numbers, which keeps order and ends. With the variance u
        and v are each rounded to even numbers, so that counters are whole, and |Δy| + |Δy(1 − y)| = max(|Δu|, |Δv|).
        Bins are rounded level by level so that they are never negative and those of a level add up to weight · scale
        exactly. O(people · size).
        """
        value_encoding, degree = self.value_encoding, self.value_encoding.degree
        if degree == 1:
            groups = [_rounded(sums[:, :1], records, weights)]
        else:
            u, v = (2 * _rounded(sums[:, at], 2 * records, weights) for at in (0, 1))
            groups = [np.stack([(u + v) // 2, (u - v) // 2], axis=1)]
        for size, scale in zip(value_encoding.levels, self.scales[1:], strict=True):
            until = np.empty((len(sums), size), dtype=np.int64)
            step = value_encoding.bins // size
            until[:, :-1] = _rounded(scale * sums[:, degree + step - 1 :: step], records, weights)
            until[:, -1] = weights * scale
            groups.append(np.diff(until, axis=1, prepend=0))
        return np.concatenate(groups, axis=1)


def _rounded(sums: Ints, numbers: Ints, times: Ints) -> Ints:
    """Sums · times / numbers to the nearest whole numbers, halves up: quotient and rest apart never overflow."""
    if sums.ndim == 2:
        numbers, times = numbers[:, None], times[:, None]
    whole, rest = np.divmod(sums, numbers)
    found: Ints = times * whole + (2 * times * rest + numbers) // (2 * numbers)
    return found
