"""Divergences of one coordinate in floats are never below those in 50 digits, and near to them."""

import mpmath
import numpy as np
import pytest

from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import BinomialWindow, add, binomial
from hazemap.privacy.amplification.sum_of_reports import CoordinatePair


def exactly(epsilon_0: int, others: int, epsilon: float) -> tuple[float, float]:
    """H(P‖Q) and H(Q‖P) for asymmetric reports, X = Bin(others, q), in 50 digits."""
    with mpmath.workdps(50):
        q = 1 / (mpmath.exp(epsilon_0) + 1)
        mass = [(1 - q) ** others]
        for s in range(others):
            mass.append(mass[-1] * (others - s) / (s + 1) * q / (1 - q))
            if s > others * q and mass[-1] < mpmath.mpf(10) ** -45:
                break
        one, zero = [mpmath.mpf(0), *mass], [*mass, mpmath.mpf(0)]
        gamma = mpmath.exp(mpmath.mpf(epsilon))
        pairs = [((a + b) / 2, q * a + (1 - q) * b) for a, b in zip(one, zero, strict=True)]
        forward = mpmath.fsum(max(0, p - gamma * r) for p, r in pairs)
        return forward, mpmath.fsum(max(0, r - gamma * p) for p, r in pairs)


@pytest.mark.parametrize(("epsilon_0", "others"), [(1, 0), (1, 1), (3, 40), (6, 40), (2, 3000), (8, 20_000)])
def test_floats_round_outward(epsilon_0, others):
    keep, _, lit, dark = chances = BitFlipLaw.asymmetric(epsilon_0).chances
    pair = CoordinatePair(chances, binomial(others, lit, dark, 1e-30))
    deviation = (keep - lit) / np.sqrt(others * lit * dark + 1)
    for epsilon in (-deviation, 0.0, deviation / 3, deviation, 3 * deviation, 5 * deviation):
        forward, backward = exactly(epsilon_0, others, epsilon)
        assert forward <= pair.forward(np.array([epsilon]))[0] <= forward * (1 + 1e-7) + mpmath.mpf(10) ** -13
        assert backward <= pair.backward(np.array([epsilon]))[0] <= backward * (1 + 1e-7) + mpmath.mpf(10) ** -13


def test_a_long_window_is_added_within_its_stated_error():
    a, b = binomial(400_000, 0.3, 0.7, 1e-18), binomial(300_000, 0.5, 0.5, 1e-18)
    assert len(a.mass) * len(b.mass) > 4_000_000
    quick, slow = add(a, b), np.convolve(a.mass, b.mass)
    cut = quick.start - a.start - b.start
    error = np.abs(slow[cut : cut + len(quick.mass)] - quick.mass).sum()
    assert 0 < error < quick.absolute < 1e-12
    assert slow.sum() - slow[cut : cut + len(quick.mass)].sum() < quick.outside < 1e-11


@pytest.mark.parametrize(
    ("coins", "heads"), [(1, 1e-12), (10, 0.5), (1000, 1e-3), (10**6, 1e-6), (10**6, 0.9), (10**8, 0.377)]
)
def test_a_window_holds_all_but_its_tails(coins, heads):
    from scipy.stats import binom

    law = binomial(coins, heads, 1 - heads, 1e-12)
    end = law.start + len(law.mass) - 1
    assert binom.cdf(law.start - 1, coins, heads) + binom.sf(end, coins, heads) <= law.outside
    middle = law.start + int(np.argmax(law.mass))
    assert law.mass.max() == pytest.approx(binom.pmf(middle, coins, heads), rel=1e-7)


def test_what_a_window_leaves_out_is_added():
    mass, chances = np.array([0.2, 0.5, 0.3]), (0.5, 0.5, 0.25, 0.75)
    sure = CoordinatePair(chances, BinomialWindow(0, mass, 0.0, 0.0, 0.0))
    vague = CoordinatePair(chances, BinomialWindow(0, mass, 0.0, 0.001, 0.02))
    epsilon = np.array([-0.2, 0.0, 0.3])
    missing = 0.02 + 0.001 * (1 + np.exp(epsilon))
    assert vague.forward(epsilon) == pytest.approx(sure.forward(epsilon) + missing)
    assert vague.backward(epsilon) == pytest.approx(sure.backward(epsilon) + missing)


def test_ratios_that_errors_have_shuffled_are_sorted():
    mass = np.array([0.1, 0.3, 0.05, 0.4, 0.15])
    pair = CoordinatePair((0.5, 0.5, 0.25, 0.75), BinomialWindow(0, mass, 0.0, 1e-15, 0.0))
    one, zero = np.append(0, mass), np.append(mass, 0)
    p, q = (one + zero) / 2, (one + 3 * zero) / 4
    for epsilon in (-0.3, 0.0, 0.1, 0.4):
        truth = np.maximum(0, p - np.exp(epsilon) * q).sum()
        assert truth <= pair.forward(np.array([epsilon]))[0] <= truth + 1e-12
        truth = np.maximum(0, q - np.exp(epsilon) * p).sum()
        assert truth <= pair.backward(np.array([epsilon]))[0] <= truth + 1e-12


def test_a_person_without_others_is_told_apart_by_their_own_coins():
    pair = CoordinatePair((0.5, 0.5, 0.25, 0.75), BinomialWindow(0, np.ones(1), 0.0, 0.0, 0.0))
    assert pair.forward(np.zeros(1))[0] == pytest.approx(0.25, abs=1e-12)
    assert pair.backward(np.array([np.log(1.25)]))[0] == pytest.approx(0.75 - 1.25 * 0.5, abs=1e-12)
