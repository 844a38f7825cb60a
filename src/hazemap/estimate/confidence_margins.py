"""Confidence intervals of noise with a stated coverage, from its standard deviation and kurtosis.

Noise here is a sum of independent Laplace and Gaussian numbers (the discrete laws are these, as far as whole people
can tell). Its excess kurtosis κ is 3 Σ p², p the shares of the Laplace numbers in its variance. Of all such sums of
one κ no two reach equally far, but those that reach farthest are of two kinds: 3/κ Laplace numbers of equal shares,
or one Laplace number of the share √(κ/3) and a Gaussian one. So the farther of both is safe, whatever was summed
(tests/estimate/test_confidence_margins.py tries others).

**Leading.** Two numbers are known of a place, and `leading` says which stands in tables, pictures and exports. The
unbiased one has an interval, of the noise alone. The best guess is the one to show: it is never below 0, and knows
what is around. It may lie outside of that interval, in up to one cell of twenty. To move it would put people into
cells that are most likely empty, so the interval is made longer instead: it reaches to the best guess, and holds the
truth at least as often as before. Nobody counts fewer than 0, so an interval holds numbers below 0 only down to a
best guess that is there itself, and 0 with them.
"""

from functools import cache, lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats

LAPLACE = 3.0
"""The excess kurtosis of Laplace's law: more only have discrete laws that are mostly exactly 0."""

SHARES = np.linspace(0, 1, 65)
"""√(κ/3) of the laws that are tabulated."""

FAR = np.concatenate([np.arange(0, 6, 0.05), np.arange(6, 30, 0.25)])
"""Standard deviations at which they are: farther out is less than one in 10¹⁸ of any."""


def checked_confidence(confidence: float) -> None:
    """`InputError` for one that is no probability between 0 and 1, or is 1 but for the last digits of floats."""
    if not 0 < confidence < 1 or (1 + confidence) / 2 == 1:
        raise InputError(f"a confidence level must be between 0 and 1, such as 0.95; found {confidence:.17g}")


def reach(confidence: float, kurtosis: Floats | float, *, at_most: bool = False) -> Floats:
    """Standard deviations that hold noise of an excess kurtosis with this probability or more, of its shape.

    With `at_most` the kurtosis is only known to be no larger: below a confidence of about 0.9 noise of less kurtosis
    reaches farther. Never more than Chebyshev's 1/√(1 − confidence), which holds for every law.

    >>> reach(0.95, np.array([0.0, 1, 3])).round(3)
    array([1.96 , 2.028, 2.118])
    >>> print(reach(0.5, 3).round(3), reach(0.5, 3, at_most=True).round(3))
    0.49 0.674
    """
    checked_confidence(confidence)
    knots = _reaches(confidence)
    z = knots[0]
    if at_most:
        knots = np.maximum.accumulate(knots)
    given = np.asarray(kurtosis, dtype=np.float64)
    found = np.interp(np.sqrt(np.clip(given, 0, LAPLACE) / LAPLACE), SHARES, knots)
    # Beyond Laplace's law Cornish and Fisher's term says where it goes: to nothing, or as far as Chebyshev lets it.
    turn = z**3 - 3 * z
    found = found + np.maximum(given - LAPLACE, 0) * (max(turn, 0.0) if at_most else turn) / 24
    reached: Floats = np.clip(found, 0.0, 1 / np.sqrt(1 - confidence))
    return reached


USUAL, USUAL_REACHES = 0.95, (
    1.9599639845400536, 1.960014396823645, 1.960165751325382, 1.9604183958657768, 1.960772893145763,
    1.9612299955988255, 1.9617906109216154, 1.9624557590845675, 1.9632265219262988, 1.9641039867732795,
    1.9650891858746795, 1.9661830337695088, 1.9673862649643898, 1.9686993744461943, 1.9701225635383022,
    1.9716556934026013, 1.973298248089497, 1.975049308474256, 1.9769075377495706, 1.9788711784478294,
    1.9809380603219349, 1.9831056178849598, 1.9853709160375277, 1.9877306820096812, 1.9901813417995926,
    1.992719059376428, 1.995339777092362, 1.9980392559823916, 2.0008191612520894, 2.0036849922150495,
    2.0066180606576793, 2.0096136924118175, 2.012667197570088, 2.0157738972375134, 2.018929146985884,
    2.022128357146097, 2.025367010128518, 2.02864067499535, 2.0319450195266455, 2.0352758200269236,
    2.0386289691156305, 2.0420004817348056, 2.0453864995932234, 2.048783294249919, 2.052209686676188,
    2.05565296086924, 2.0590973766595395, 2.06253964978145, 2.0659766301712432, 2.069405300158003,
    2.072822772218913, 2.0762262863816354, 2.0796132073452807, 2.0829810213815003, 2.0863273330684273,
    2.0896498619025374, 2.092946438826714, 2.0962150027069733, 2.099453596785195, 2.102690486802646,
    2.1058999300525283, 2.1090740599226905, 2.1122112569561065, 2.1153099911595175, 2.118368818567102,
)  # fmt: skip
"""The confidence that most are asked with, and what `_found` says of it: so most questions need not load scipy."""


@lru_cache(maxsize=1024)
def _reaches(confidence: float) -> Floats:
    """The reach of each tabulated law; float64[SHARES]."""
    return np.array(USUAL_REACHES) if confidence == USUAL else _found(confidence)


def _found(confidence: float) -> Floats:
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return np.array([z, *(np.interp(z, law, FAR) for law in _laws())])


@cache
def _laws() -> Floats:
    """How far a Gaussian number reaches as rarely as these laws reach `FAR`: a nearly straight line of each."""
    from scipy.special import ndtri

    rest = SHARES[1:, None]  # the first is Gaussian itself
    tails = np.maximum(_equal(rest), _one_and_gaussian(rest))
    laws: Floats = -ndtri(np.minimum(tails, 1) / 2)
    return laws


def _equal(share: Floats) -> Floats:
    """P(|X| > FAR) of 1/share² Laplace numbers: a Gaussian one of a variance that is Gamma distributed."""
    from scipy.special import erfc, gammaln

    number, tails = share[:, 0] ** -2, np.zeros((len(share), len(FAR)))
    for step in np.arange(-35, 12, 0.2):
        log = step * share[:, 0]
        weight = np.exp(number * (np.log(number) + log - np.exp(log)) - gammaln(number)) * 0.2 * share[:, 0]
        tails += weight[:, None] * erfc(FAR * np.exp(-log / 2)[:, None] / np.sqrt(2))
    return tails


def _one_and_gaussian(share: Floats) -> Floats:
    """P(|X| > FAR) of a Laplace number with a share of the variance and a Gaussian one with the rest."""
    from scipy.special import erfcx, ndtr

    scale, rest = np.sqrt(share / 2), np.sqrt(np.maximum(1 - share, 1e-12))
    out, turn = FAR / rest, rest / scale
    near = np.exp(-(out**2) / 2)
    rising = np.where(
        turn > out,
        near * erfcx(np.maximum(turn - out, 0) / np.sqrt(2)) / 2,
        np.exp(np.minimum(turn**2 / 2 - FAR / scale, 0)) * ndtr(out - turn),
    )
    tails: Floats = 2 * ndtr(-out) + rising - near * erfcx((turn + out) / np.sqrt(2)) / 2
    return tails


class Ends(NamedTuple):
    """The ends of an interval, or of many."""

    low: Floats
    high: Floats


def leading(best_guess: Floats | float, low: Floats | float, high: Floats | float) -> Ends:
    """The interval of the leading number, from that of the unbiased one.

    >>> low, high = leading(np.array([1.0, 5.0, -9.0]), np.array([3.0, -4.0, -13.0]), np.array([16.0, 7.0, -5.0]))
    >>> low.tolist(), high.tolist()
    ([1.0, 0.0, -9.0], [16.0, 7.0, 0.0])
    """
    return Ends(np.minimum(np.maximum(low, 0.0), best_guess), np.maximum(np.maximum(high, 0.0), best_guess))


def intervals(
    best_guess: Floats,
    unbiased: Floats,
    stddev: Floats,
    kurtosis: float,
    confidence: float = 0.95,
    asymmetry: float = 0.0,
) -> Ends:
    """The interval of each cell on its own, of the leading number."""
    margin = margins(stddev, kurtosis, confidence, asymmetry)
    return leading(best_guess, unbiased - margin, unbiased + margin)


def margins(stddev: Floats, kurtosis: float, confidence: float = 0.95, asymmetry: float = 0.0) -> Floats:
    """How far noise reaches to either side of each unbiased number: a whole number of people.

    `kurtosis` is the largest of any cell, and so is `asymmetry`, what skewed noise adds to a margin.
    """
    margin: Floats = np.ceil(reach(confidence, kurtosis, at_most=True) * stddev + asymmetry)
    return margin
