"""What is asked of a value where numbers of people are public: fewer counters than a value encoding has, and quieter
ones.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.arrays import Ints
from hazemap.values.value_encoding import STEPS, ValueEncoding


@dataclass(frozen=True)
class KnownCountEncoding:
    """A value encoding, read by somebody who knows how many people there are (VALUES ONLY), so that no counter is for
    that.

    With y the place of a value between the bounds, 0 to 1, counters are y for the mean, y(1 − y) beside it for the
    variance (which is m(1 − m) less their mean, m being that of y), and the bins of the value encoding. A person whose
    values change moves the first two together by |Δy| + |Δy(1 − y)| ≤ 1, as far as y alone: the variance costs the mean
    nothing. In (1 − y)², 2y(1 − y) and y² they would move by 2. Bins move by 2, whatever they are told beside; all of
    them are asked, because that they add up to a known number takes a part of the noise away.

    >>> encodings = ValueEncoding(0, 65), ValueEncoding(0, 65, 2), ValueEncoding(0, 65, 2, 16)
    >>> [KnownCountEncoding(each).l1 >> 20 for each in encodings]
    [1, 1, 3]
    """

    value_encoding: ValueEncoding

    @property
    def size(self) -> int:
        """How many counters: 1 for the mean, perhaps 1 for the variance, and the bins."""
        return self.value_encoding.degree + self.value_encoding.bins

    @property
    def scales(self) -> tuple[int, ...]:
        """What y = 1 is in the counters of the moments, and a person in a bin."""
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
        and for bins whether the reading is in this one or in one before.
        """
        value_encoding = self.value_encoding
        y = np.arange(STEPS + 1, dtype=np.int64)
        moments = [y * STEPS] if value_encoding.degree == 1 else [STEPS**2 - (STEPS - y) ** 2, y**2]
        marks = np.zeros((STEPS + 1, value_encoding.degree + max(value_encoding.bins - 1, 0)), dtype=np.int64)
        marks[:, : value_encoding.degree] = np.stack(moments, axis=1) * self.scales[0]
        marks[:, : value_encoding.degree] //= STEPS**2
        if value_encoding.bins:
            bin_of = np.minimum(y * value_encoding.bins // STEPS, value_encoding.bins - 1)
            marks[:, value_encoding.degree :] = (bin_of[:, None] <= np.arange(value_encoding.bins - 1)) * self.scales[1]
        return marks

    def shared(self, sums: Ints, records: Ints, weights: Ints) -> Ints:
        """The counters of people, int64[people, size]: `weights` times the means of their records' readings, in whole
        numbers; `sums` are Σ marks of each.

        Rounding never breaks the bound. y is rounded to whole numbers, which keeps order and ends. With the variance u
        and v are each rounded to even numbers, so that counters are whole, and |Δy| + |Δy(1 − y)| = max(|Δu|, |Δv|).
        Bins are rounded so that they are never negative and add up to weight · scale exactly. O(people · size).
        """
        degree, bins = self.value_encoding.degree, self.value_encoding.bins
        if degree == 1:
            moments = _rounded(sums[:, :1], records, weights)
        else:
            u, v = (2 * _rounded(sums[:, at], 2 * records, weights) for at in (0, 1))
            moments = np.stack([(u + v) // 2, (u - v) // 2], axis=1)
        if not bins:
            return moments
        until = np.empty((len(sums), bins), dtype=np.int64)
        until[:, :-1] = _rounded(sums[:, degree:], records, weights)
        until[:, -1] = weights * self.scales[1]
        return np.concatenate([moments, np.diff(until, axis=1, prepend=0)], axis=1)


def _rounded(sums: Ints, numbers: Ints, times: Ints) -> Ints:
    """Sums · times / numbers to the nearest whole numbers, halves up: quotient and rest apart never overflow."""
    if sums.ndim == 2:
        numbers, times = numbers[:, None], times[:, None]
    whole, rest = np.divmod(sums, numbers)
    found: Ints = times * whole + (2 * times * rest + numbers) // (2 * numbers)
    return found
