"""Whether two answers to one question differ by more than their noise explains: a test that is exact about the noise.

Let d be the differences of the n sums of two answers, and v the variances of their noise together. If nobody's count
has changed, every d is the difference of two numbers of known laws, so T = Σ d²/v has a known law too, of mean n: a
chi-squared one only for Gaussian noise. Its distribution is found by Fourier transforms on a grid. Every d²/v is
rounded up to the grid, and what is cut off and what could wrap around is added: the p-value is never below the true
one, and hardly above it (tests/estimate/test_noise_drift.py).

Of many p-values `holm` says what they are worth together (Holm 1979), however they hang together.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.signal import fftconvolve

from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats, Ints

LEAST = 1e-9
"""No p-value is said to be smaller: sums of a million floats are not more exact."""

MOST_NUMBERS = 1 << 11
"""More sums are added up in groups of neighbours before they are tested."""

POINTS = 1 << 19
"""Of the grid on which T is distributed."""

WIDEST = 1 << 21
"""Numbers that the law of a difference may have; that of wider noise is not found, and nothing is tested."""

_WRAPPED = 1e-10
_CUT = 34.0  # e^−34: what is cut off the tails of a law
_ALIKE = 1e-6

Law = tuple[str, float]
"""The family of discrete noise and its parameter: the scale of a Laplace law, or the variance of a Gaussian one."""


def law_of(stddev: float, kurtosis: float) -> Law | None:
    """The law of a curator's noise, from what an answer tells of it; None for any other noise.

    >>> law_of(2.7991777675, 3.1276259652)
    ('laplace', 2.0)
    >>> law_of(5.0, 0.0), law_of(5.0, 1.0)
    (('gaussian', 25.0), None)
    """
    if not 0 < stddev < math.inf:
        return None
    if math.isclose(kurtosis, 3 + stddev**-2, rel_tol=_ALIKE):
        return "laplace", round(1 / (2 * math.asinh(1 / (math.sqrt(2) * stddev))), 6)
    if stddev >= 2 and abs(kurtosis) < _ALIKE:
        return "gaussian", stddev**2
    return None


def changed_p(before: Ints, after: Ints, laws: tuple[Law, Law]) -> float | None:
    """How often noise alone would make two answers differ so much, or more; int64[n] each, of noise of these laws.

    None where the noise is so wide that its law is not worked out. It is 1 for answers that are the same.

    >>> quiet = np.zeros(64, dtype=np.int64)
    >>> changed_p(quiet, quiet, (("laplace", 2.0), ("laplace", 2.0)))
    1.0
    >>> changed_p(quiet, quiet + 9, (("laplace", 2.0), ("laplace", 2.0)))
    1e-09
    """
    difference = after.astype(np.float64) - before
    if not difference.any():
        return 1.0
    together = -(-len(difference) // MOST_NUMBERS)
    sizes = [together] * (len(difference) // together)
    if rest := len(difference) - sum(sizes):
        sizes.append(rest)
    groups = np.add.reduceat(difference, np.r_[0, np.cumsum(sizes)[:-1]])
    found = _distribution(laws, tuple(sorted((size, sizes.count(size)) for size in set(sizes))))
    if found is None:
        return None
    variance, step, below = found
    seen = float((groups**2 / (variance * np.array(sizes))).sum())
    place = math.ceil(seen / step * (1 - 1e-12)) - 1
    if place < 0:
        return 1.0
    return float(min(max(1 - below[min(place, len(below) - 1)] + 2 * _WRAPPED, LEAST), 1.0))


@lru_cache(maxsize=64)
def _distribution(laws: tuple[Law, Law], numbers: tuple[tuple[int, int], ...]) -> tuple[float, float, Floats] | None:
    """The variance of a difference, the step of the grid, and P(T ≤ each of its points), at most.

    `numbers` says of how many differences a group is made, and how many such groups there are.
    """
    one = _difference(*laws)
    if one is None:
        return None
    half = len(one) // 2
    variance = float((one * np.arange(-half, half + 1.0) ** 2).sum() / one.sum())
    squares, mean, spread, most = [], 0.0, 0.0, 0.0
    for size, times in numbers:
        law = _sum_of(one, size)
        if law is None:
            return None
        law = _trimmed(law, _WRAPPED / times)
        middle = len(law) // 2
        value = np.arange(-middle, middle + 1.0) ** 2 / (variance * size)
        squares.append((value, law, times))
        mean += times * float((law * value).sum())
        spread += times * float((law * value**2).sum())
        most = max(most, float(value.max()))
    # Bernstein: P(T − mean ≥ beyond) ≤ _WRAPPED, so that no more than that wraps around to the beginning
    tail = -math.log(_WRAPPED)
    beyond = tail * most / 3 + math.sqrt((tail * most / 3) ** 2 + 2 * tail * spread)
    step = (mean + beyond) / POINTS
    transform = np.ones(POINTS + 1, dtype=np.complex128)
    for value, law, times in squares:
        place = np.ceil(value / step * (1 - 1e-12)).astype(np.int64)
        grid = np.bincount(np.minimum(place, 2 * POINTS - 1), law, 2 * POINTS)
        transform *= np.fft.rfft(grid) ** times
    below = np.cumsum(np.maximum(np.fft.irfft(transform, 2 * POINTS)[:POINTS], 0.0))
    return variance, step, below


def _difference(first: Law, second: Law) -> Floats | None:
    """P(x − y = z) for z from −h to h, of two independent noises; None where that is too wide."""
    one, other = _chances(first), _chances(second)
    if one is None or other is None:
        return None
    return np.asarray(np.maximum(fftconvolve(one, other[::-1]), 0.0))


def _chances(law: Law) -> Floats | None:
    """P(z) for z from −h to h, of which e^−34 is cut off; they sum to a little less than 1."""
    family, width = law
    half = math.ceil(_CUT * width if family == "laplace" else math.sqrt(2 * _CUT * width)) + 1
    if not half < WIDEST // 4:
        return None
    z = np.abs(np.arange(-half, half + 1.0))
    if family == "laplace":
        ratio = math.exp(-1 / width)
        return np.asarray((1 - ratio) / (1 + ratio) * ratio**z)
    weight = np.exp(-(z**2) / (2 * width))
    return np.asarray(weight / (weight.sum() + 2 * math.exp(-_CUT)))


def _trimmed(law: Floats, most: float) -> Floats:
    """A law without its tails, of which each has this chance at most."""
    cut = int(np.searchsorted(np.cumsum(law), most / 2))
    return law[cut : len(law) - cut]


def _sum_of(law: Floats, size: int) -> Floats | None:
    """The law of the sum of so many; None where that is too wide."""
    made, power = None, law
    while size:
        if len(power) > WIDEST:
            return None
        if size & 1:
            made = power if made is None else fftconvolve(made, power)
        size >>= 1
        if size:
            power = fftconvolve(power, power)
    return None if made is None or len(made) > WIDEST else np.maximum(made, 0.0)


def moved_p(difference: float, stddev: float, kurtosis: float) -> float:
    """How often noise of a standard deviation and kurtosis would move one number so far, or farther: an upper bound.

    It is one of ten for each factor of ten, from above. One is taken off, since noise comes in whole people.

    >>> moved_p(0.0, 10.0, 3.0), moved_p(40.0, 10.0, 0.0), moved_p(900.0, 10.0, 0.0)
    (1.0, 0.0001, 1e-09)
    """
    return float(moved_ps(np.array([difference]), np.array([stddev]), kurtosis)[0])


def moved_ps(
    differences: Floats, stddevs: Floats, kurtosis: float, asymmetry: Callable[[float], float] = lambda _: 0.0
) -> Floats:
    """The same of many numbers, each on its own: float64[n].

    `asymmetry` is what skewed noise adds to the margin of a number, for a confidence.

    >>> moved_ps(np.array([0.0, 40.0, 900.0]), np.full(3, 10.0), 0.0).tolist()
    [1.0, 0.0001, 1e-09]
    """
    far, chances = np.abs(differences) - 1, np.append(1.0, _chances_of_tails())
    passed = far > 0
    held = np.zeros(len(far), dtype=np.int64)
    for place, chance in enumerate(_chances_of_tails(), 1):
        margin = float(reach(1 - chance, kurtosis, at_most=True)) * stddevs + asymmetry(1 - chance)
        passed &= margin <= far
        held[passed] = place
    return np.asarray(np.where(stddevs > 0, chances[held], np.where(far <= 0, 1.0, LEAST)))


@lru_cache
def _chances_of_tails() -> tuple[float, ...]:
    return tuple(10 ** (-step / 10) for step in range(1, 91))


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """P-values that hold together: the chance that any of those with p ≤ α is wrong is α at most (Holm 1979).

    What was not tested (None) stays so, and costs nothing.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    tested = sorted((chance, place) for place, chance in enumerate(chances) if chance is not None)
    corrected: list[float | None] = [None] * len(chances)
    so_far = 0.0
    for rank, (chance, place) in enumerate(tested):
        so_far = max(so_far, min((len(tested) - rank) * chance, 1.0))
        corrected[place] = so_far
    return corrected
