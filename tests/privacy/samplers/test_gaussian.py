"""How a Gaussian proposal is judged: 64-bit bounds that always hold, and rationals where they leave it open.

Statistical tests reject a right sampler with probability at most 1e-6 (`LEVEL`), on fixed streams.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_gaussian, gaussian

LEVEL = 1e-6


@settings(max_examples=300)
@given(
    numerator=st.integers(1, 10**40),
    denominator=st.integers(1, 10**40),
    parts=st.lists(st.floats(0, 40), min_size=1, max_size=20),
)
def test_gamma_lies_between_its_bounds(numerator, denominator, parts):
    variance = Fraction(numerator, denominator)
    if variance > gaussian.LARGEST_VARIANCE:
        variance = 1 / variance
    scale = math.isqrt(int(variance)) + 1
    magnitude = np.array([0, *(int(part * scale) for part in parts)])
    for m, low, high in zip(magnitude, *gaussian._gamma_bounds(variance, scale, magnitude), strict=True):
        gamma = (int(m) - variance / scale) ** 2 / (2 * variance)
        assert int(low) <= gamma * 2**20
        assert gamma * 2**20 <= int(high) or high == np.iinfo(np.int64).max  # which says: no bound
        assert gamma > 1 or high - low <= 3


@pytest.mark.parametrize("variance", [Fraction(10**20, 991), Fraction(2**99, 3), Fraction(10**12)])
def test_gamma_lies_between_its_bounds_all_over_the_middle(variance):
    """An error of one unit of 2⁻²⁶ standard deviations shows in a few of these only."""
    scale = math.isqrt(int(variance)) + 1
    magnitude = np.array([scale * i // 6000 + i for i in range(12_000)])
    low, high = (bound.tolist() for bound in gaussian._gamma_bounds(variance, scale, magnitude))
    gamma = [(m - variance / scale) ** 2 * 2**19 / variance for m in magnitude.tolist()]
    assert all(a <= b <= c for a, b, c in zip(low, gamma, high, strict=True))


def test_a_far_proposal_is_given_a_lower_bound_only():
    low, high = gaussian._gamma_bounds(Fraction(10**12), 10**6 + 1, np.array([0, 10**9, 1 << 56]))
    assert (low[1:] > 200 << 20).all()
    assert (high[1:] == np.iinfo(np.int64).max).all()


@pytest.mark.parametrize("part", [Fraction(1, 10), Fraction(1, 2), Fraction(99, 100)])
def test_an_open_question_is_settled_by_further_digits(part):
    """Binomial test at 1e-6: between two neighbouring 2⁻²⁰ an exponential number is uniform to 10⁻⁶."""
    stream, k, n = Stream.fixed(b"open"), 700_000, 3000
    yes = sum(gaussian._exceeds(stream, k, (k + part) / 2**20) for _ in range(n))
    assert binomtest(yes, n, float(1 - part)).pvalue > LEVEL
    assert gaussian._exceeds(stream, k, Fraction(k, 2**20))
    assert not gaussian._exceeds(stream, k, Fraction(k + 1, 2**20))


def test_open_questions_are_met_and_rare(monkeypatch):
    asked = []
    settle = gaussian._exceeds
    monkeypatch.setattr(gaussian, "_exceeds", lambda *question: asked.append(question) or settle(*question))
    discrete_gaussian(Stream.fixed(b"rare"), Fraction(50), 1 << 21)
    assert 0 < len(asked) < 30
