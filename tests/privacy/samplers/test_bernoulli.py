"""Coins: certified digits, and every lane the digit it is owed.

Statistical tests reject a right coin with probability at most 1e-6 (`LEVEL`), on fixed streams.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chisquare

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import _CHUNK, Coin, binomial, exp_bounds, fair, spread, toss, toss_once

LEVEL = 1e-6
TOSSES = 1 << 20

positive = st.fractions(min_value=Fraction(1, 10**20), max_value=Fraction(10**4), max_denominator=10**20)


@given(x=positive, bits=st.integers(8, 600))
def test_bounds_of_the_exponential_hold_it_tightly(x, bits):
    mpmath = pytest.importorskip("mpmath")
    low, high = exp_bounds(x, bits)
    with mpmath.workprec(bits + 200):
        exact = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * mpmath.mpf(2) ** bits
        assert low <= exact <= high <= low + 2


@given(
    x=positive,
    shape=st.sampled_from([(1, 0), (1, 1), (2, 1)]),
    n=st.sampled_from([1, 63, 64, 65, 128, 256, 1000]),
)
def test_digits_of_a_coin_are_those_of_its_probability(x, shape, n):
    mpmath = pytest.importorskip("mpmath")
    top, plus = shape
    with mpmath.workprec(3 * n + 300 + 3 * int(x)):
        p = mpmath.mpf(top) / (mpmath.exp(mpmath.mpf(x.numerator) / x.denominator) + plus)
        assert Coin(x, top, plus).digits(n) == int(mpmath.floor(p * mpmath.mpf(2) ** n))


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(1), Fraction(10**9), Fraction(2**50)])
def test_tables_that_the_samplers_use_are_right_to_128_digits(scale):
    mpmath = pytest.importorskip("mpmath")
    for i in range(54):
        x = (1 << i) / scale
        if x < 1000:
            with mpmath.workprec(400 + 3 * int(x)):
                p = 1 / (1 + mpmath.exp(mpmath.mpf(x.numerator) / x.denominator))
                assert Coin(x, plus=1).digits(128) == int(mpmath.floor(p * 2**128))


class Scripted:
    """A stream whose fair coins show tails for the first time where it is told."""

    def __init__(self, first_tails: np.ndarray):
        self.going = first_tails.reshape(-1, 64)
        self.tosses = 0

    def words(self, n: int) -> np.ndarray:
        if not self.tosses:  # the first digits come in one piece, all lanes
            self.tosses = n // len(self.going)
            return np.concatenate([self.row(d + 1) for d in range(self.tosses)])
        self.going = self.going[(self.going > self.tosses).any(axis=1)]
        self.tosses += 1
        assert n == len(self.going)
        return self.row(self.tosses)

    def row(self, d: int) -> np.ndarray:
        return np.packbits(self.going > d, axis=1, bitorder="little").view("<u8")[:, 0]


@pytest.mark.parametrize(
    "coin", [Coin(Fraction(1, 7)), Coin(Fraction(1, 10**6), plus=1), Coin(Fraction(3), top=2, plus=1)]
)
def test_a_lane_shows_the_digit_at_which_its_fair_coin_first_shows_tails(coin):
    """With P(first tails at d) = 2^−d this is the whole proof of the law; also far past the first table."""
    first_tails = np.random.default_rng(1).geometric(0.5, size=64 * 40)
    first_tails[::97] = np.random.default_rng(2).integers(1, 200, size=len(first_tails[::97]))
    digits = coin.digits(300)
    expected = [digits >> (300 - int(d)) & 1 for d in first_tails]
    assert spread(toss(Scripted(first_tails), coin, 40)).tolist() == expected


@pytest.mark.parametrize("x", [Fraction(1, 1000), Fraction(1), Fraction(8)])
def test_a_coin_shows_heads_as_often_as_it_should(x):
    """Binomial test at 1e-6."""
    heads = int(spread(toss(Stream.fixed(b"coin"), Coin(x), TOSSES // 64)).sum())
    assert binomtest(heads, TOSSES, math.exp(-x)).pvalue > LEVEL


def test_a_single_toss_is_a_toss():
    """Binomial test at 1e-6."""
    stream = Stream.fixed(b"once")
    assert binomtest(sum(toss_once(stream, Coin(Fraction(1))) for _ in range(5000)), 5000, math.exp(-1)).pvalue > LEVEL


def fits(drawn: np.ndarray, trials: int, p: float) -> float:
    """The p-value of a chi-square test against the binomial law, rare values taken together."""
    expected = binom.pmf(np.arange(trials + 1), trials, p) * len(drawn)
    observed = np.bincount(drawn, minlength=trials + 1)
    common = expected >= 5
    rest = (observed[~common].sum(), max(expected[~common].sum(), 1e-9))
    found, wanted = np.append(observed[common], rest[0]), np.append(expected[common], rest[1])
    return chisquare(found, wanted * found.sum() / wanted.sum()).pvalue


@pytest.mark.parametrize("trials", [1, 7, 63, 64, 65, 500])
def test_numbers_have_the_binomial_law(trials):
    coin, p = Coin(Fraction(1, 2), plus=1), 1 / (1 + np.exp(0.5))
    drawn = binomial(Stream.fixed(b"binomial %d" % trials), coin, np.full(50_000, trials))
    assert fits(drawn, trials, p) > LEVEL
    assert fits(drawn, trials, p + 0.02) < LEVEL  # the twin: a coin that is a little off


@pytest.mark.parametrize("trials", [1, 5, 64, 130])
def test_fair_coins_are_fair(trials):
    assert fits(fair(Stream.fixed(b"fair"), np.full(50_000, trials)), trials, 0.5) > LEVEL


def test_entries_of_every_size_side_by_side():
    """Means and covariances of a row of unlike entries, over 4,000 rows, within 6 standard errors (below 1e-8)."""
    trials = np.array([0, 1, 63, 64, 65, 0, 1000, 128, 2])
    drawn = np.array([fair(Stream.fixed(b"row %d" % i), trials) for i in range(4_000)])
    assert (drawn <= trials).all() and (drawn >= 0).all()
    error = np.sqrt(np.maximum(trials, 1e-9) / 4 / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - trials / 2) <= 6 * error).all()
    covariance = np.cov(drawn.T)
    scale = np.sqrt(np.outer(np.maximum(trials, 1), np.maximum(trials, 1))) / 4
    assert (np.abs(covariance - np.diag(trials / 4)) <= 6 * scale * np.sqrt(2 / len(drawn))).all()


def test_entries_longer_than_a_chunk_of_words():
    trials = np.array([3, 64 * _CHUNK + 5, 64 * _CHUNK - 1, 64])
    drawn = fair(Stream.fixed(b"long"), trials)
    assert (np.abs(drawn - trials / 2) <= 6 * np.sqrt(trials) / 2).all()


def test_certain_numbers():
    assert binomial(Stream.from_os(), Coin(Fraction(1)), np.zeros(3, dtype=np.int64)).tolist() == [0, 0, 0]
    assert fair(Stream.from_os(), np.zeros(0, dtype=np.int64)).tolist() == []
    assert binomial(Stream.from_os(), Coin(Fraction(400)), np.array([10**6])).tolist() == [0]
    with pytest.raises(InputError):
        binomial(Stream.from_os(), Coin(Fraction(1)), np.array([-1]))
