"""People inside partly covered cells: the law of how many of them lie in a region.

Of the n people of a cell a part F is in the region, of which the mean f is guessed. Its variance is D f (1 − f), and
D is learnt from many cells (`clumping`). Whether all of them are as uneven as D says, or some are towers and the
others even, nobody knows. So there are two laws of F with that mean and that variance, and an interval holds by
either. By the first each cell's people are shared out by a Dirichlet law, so F is Beta: from nearly f, where people
are spread evenly, to all or nothing, where they are in one place. By the second they are all in one place in a part
of the cells, and anywhere on their own in the others. So the law is skewed where few cells are cut, ends at 0 and n,
and comes to a Gaussian one where many are. That of noise and of all cut cells together is that of a sum of
independent numbers: the product of their characteristic functions, turned back by the fast Fourier transform.

Who asks may know where people are, and ask because somebody is there, or is not. Around somebody who is in a cell,
its F follows the size-biased law, that of one person more inside: much the same where people are spread evenly, 1
where they are all in one place, however small a part of the area is asked about. Nobody knows how a region was
chosen. So the upper end of an interval is that of a region which is anywhere or around one of its people, evenly
likely, and the lower end that of one which is anywhere or leaves out one of the people outside: they are in a cell as
often as people are. The distribution function of Beta laws is here, for questions that are not to wait for SciPy.
"""

from math import inf, lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Spread
from hazemap.estimate.confidence_margins import reach
from hazemap.machine_code.arrays import Floats

ENOUGH = 1e-13
"""How much of a fraction a further step may change for it to be the last."""

TINY = 1e-300
"""What stands for a denominator of 0 (Lentz's method)."""


def beta_distribution(a: Floats, b: Floats, at: Floats) -> Floats:
    """I_x(a, b), the probability that a Beta variable is at most x; float64[n] of one shape each, a and b above 0.

    Lentz's method of the continued fraction of DLMF 8.17.22, on that side of the law's middle where it converges fast:
    O(√max(a, b)) steps at the middle and few elsewhere, which only points that still change take. Off by less than
    10⁻⁸ where a and b are at most 10⁶, and than 10⁻⁴ up to 10⁹.

    >>> beta_distribution(np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([0.3, 0.5])).round(9)
    array([0.3, 0.5])
    """
    upper = at > (a + 1) / (a + b + 2)
    a, b, x = np.where(upper, b, a), np.where(upper, a, b), np.where(upper, 1 - at, at)
    found = np.zeros(len(x))
    some = np.flatnonzero(x > 0)
    a, b, x = a[some], b[some], x[some]
    front = a * np.log(x) + b * np.log1p(-x) - _log_beta(a, b)
    found[some] = np.clip(np.exp(front) * _fraction(a, b, x), 0, 1)
    return np.where(upper, 1 - found, found)


def _log_beta(a: Floats, b: Floats) -> Floats:
    """The logarithm of a B(a, b), which the same cells' points share."""
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    logs = {(one, other): lgamma(one + 1) + lgamma(other) - lgamma(one + other) for one, other in set(pairs)}
    return np.array([logs[pair] for pair in pairs], dtype=np.float64)


def _fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """1 / (1 + d₁/(1 + d₂/(1 + …)))."""
    found = np.ones(len(x))
    going: NDArray[np.int64] = np.arange(len(x))
    product, c = np.ones(len(x)), np.ones(len(x))
    d = 1 / _apart(1 - (a + b) * x / (a + 1))
    product *= d
    step = 0
    while len(going):
        step += 1
        twice = a + 2 * step
        even = step * (b - step) * x / ((twice - 1) * twice)
        d, c = 1 / _apart(1 + even * d), _apart(1 + even / c)
        product *= d * c
        odd = -(a + step) * (a + b + step) * x / (twice * (twice + 1))
        d, c = 1 / _apart(1 + odd * d), _apart(1 + odd / c)
        product *= d * c
        changing = np.abs(d * c - 1) > ENOUGH
        if not changing.all():
            found[going[~changing]] = product[~changing]
            going = going[changing]
            a, b, x, product, c, d = (each[changing] for each in (a, b, x, product, c, d))
    return found


def _apart(number: Floats) -> Floats:
    return np.where(np.abs(number) < TINY, TINY, number)


STEPS = 1024
"""A law is tabulated at this many numbers; an interval is made longer by one of these steps at either end."""

MOST = 96
"""This many cut cells at most have a law of their own. The others add what a Gaussian of their variance does, which is
what many small ones come to."""

SMALL = 1 / 400
"""Cells with less than this part of the whole variance are among the others."""

UNSEEN = 0.5
"""People whom noise may hide from a best guess, in variances of a cell's number."""


class RegionUncertainty(NamedTuple):
    """How far the number of people in a region may be from the guess: its standard deviation if the region is anywhere,
    and the ends of an interval, relative to it.
    """

    stddev: float
    low: float
    high: float


def held(people: Floats, unbiased: Floats, stddev: Floats) -> Floats:
    """How many people a cell may hold, a root mean square: by its best guess, or by its own number if that says more.

    A best guess may draw people who are all in one cell toward those around it, by many standard errors.
    """
    own = np.maximum(unbiased, 0) ** 2 - stddev**2
    return np.sqrt(np.maximum(people**2 + UNSEEN * stddev**2, own))


def placed(
    part: Floats,
    people: Floats,
    clumped: Floats,
    noise: Spread,
    confidence: float,
    whole: tuple[float, float] = (inf, inf),
    stddev: float | Floats = 0.0,
) -> RegionUncertainty:
    """The doubt about cut cells and noise together; float64[cut cells] in: f, n and D. O(MOST · STEPS).

    `whole` is how many people are in cells that are wholly inside and outside, so how likely it is that a region was
    chosen for people of a cut cell; infinite if it was chosen without knowing anybody. `stddev` is that of the numbers
    n, of which `noise` has the parts f; where more of the people may be inside, more of it counts. What is returned is
    that of the placement alone, without noise. People come whole, so the ends are given for a guess of 0, and the
    caller rounds.
    """
    some = (part > 0) & (part < 1) & (people > 0)
    part, people, clumped = part[some], people[some], np.clip(clumped[some], 1e-9, 1 - 1e-9)
    error = np.broadcast_to(stddev, some.shape)[some]
    variance = people**2 * clumped * part * (1 - part)
    alone, guess = float(variance.sum()) ** 0.5, float((part * people).sum())
    if noise.stddev == 0 == alone:
        return RegionUncertainty(0.0, 0.0, 0.0)
    ends = list[float]()
    for inside, share, others in ((False, 1 - part, whole[1]), (True, part, whole[0])):
        chosen = share * people / (2 * max(others + float((share * people).sum()), 1e-300))
        doubt = variance + chosen * (people * clumped * (1 - share)) ** 2
        # The noise of the cell that was chosen counts in full where all of its people may be inside.
        most = 1 - part**2 if inside else np.zeros(len(part))
        more = float((error**2 * most * np.minimum(2 * chosen / (1 - confidence), 1)).max(initial=0.0))
        louder = Spread(float(np.hypot(noise.stddev, more**0.5)), noise.kurtosis)
        ends.append(_ends(part, people, clumped, louder, confidence, chosen, doubt, inside=inside)[inside])
    low, high = ends
    return RegionUncertainty(alone, min(low - guess, 0.0), max(high - guess, 0.0))


def _ends(
    part: Floats,
    people: Floats,
    clumped: Floats,
    noise: Spread,
    confidence: float,
    chosen: Floats,
    doubt: Floats,
    *,
    inside: bool,
) -> tuple[float, float]:
    """The ends of the number of people in cut cells and noise, if each was chosen for somebody with a probability."""
    total = noise.stddev**2 + float(doubt.sum())
    own = doubt > SMALL * total
    if own.sum() > MOST:
        own = doubt >= np.partition(doubt, -MOST)[-MOST]
    others, around = float(doubt[~own].sum()), float((part * people)[~own].sum())
    part, people, clumped, chosen = part[own], people[own], clumped[own], chosen[own]
    margin = 1.5 * float(reach(confidence, np.full(1, noise.kurtosis))[0]) + 5
    margin *= np.hypot(noise.stddev, others**0.5)
    step = (people.sum() + 2 * margin) / (STEPS - 2)
    before = int(margin / step) + 1
    turn = 2 * np.pi * np.fft.rfftfreq(STEPS) / step
    law = _noise(turn, noise) * np.exp(-others * turn**2 / 2)
    miss = (1 - confidence) / 2
    more, ends = ((1, 0) if inside else (0, 1)), np.empty((2, 2))
    for way, parts in enumerate((_betas, _towers)):
        anywhere = parts(part, clumped, people, step)
        known = parts(part, clumped, people, step, more)
        whole = law
        for each in np.fft.rfft(anywhere + chosen[:, None] * (known - anywhere), axis=1):
            whole = whole * each
        until = np.cumsum(np.maximum(np.roll(np.fft.irfft(whole, STEPS), before), 0))
        until /= until[-1]
        ends[way] = np.searchsorted(until, miss, "right") - 1, np.searchsorted(until, 1 - miss) + 1
    low, high = ends[:, 0].min() - before, ends[:, 1].max() - before
    return float(low * step + around), float(high * step + around)


def _noise(turn: Floats, noise: Spread) -> Floats:
    """The characteristic function of noise of an excess kurtosis κ: that of a sum of 3/κ Laplace numbers."""
    energy = (noise.stddev * turn) ** 2 / 2
    if noise.kurtosis < 1e-3:
        return np.asarray(np.exp(-energy))
    number = 3 / noise.kurtosis
    return np.asarray((1 + energy / number) ** -number)


def _betas(part: Floats, clumped: Floats, people: Floats, step: float, more: tuple[int, int] = (0, 0)) -> Floats:
    """The law of n F of each cell at 0, 1, 2 … steps, float64[cells, STEPS], if F is Beta.

    `more` are people who are known to be inside and outside.
    """
    alike = 1 / clumped - 1
    at = (np.arange(STEPS) + 0.5) * step / people[:, None]
    some, until = at < 1, np.ones(at.shape)
    own = np.nonzero(some)[0]  # of all cells together, not many more points than STEPS
    until[some] = beta_distribution(part[own] * alike[own] + more[0], (1 - part[own]) * alike[own] + more[1], at[some])
    return np.diff(until, axis=1, prepend=0)


def _towers(part: Floats, clumped: Floats, people: Floats, step: float, more: tuple[int, int] = (0, 0)) -> Floats:
    """The same if all are in one place in some cells, and everybody is anywhere on their own in the others."""
    own = np.minimum(1 / np.maximum(people, 1), 1 - 1e-9)
    together = np.clip((clumped - own) / (1 - own), 0, 1)
    law: Floats = (1 - together)[:, None] * _betas(part, own, people, step, more)
    inside = np.where(sum(more), float(more[0]), part)
    law[:, 0] += together * (1 - inside)
    law[np.arange(len(part)), np.rint(people / step).astype(np.int64)] += together * inside
    return law
