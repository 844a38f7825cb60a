"""Binomial numbers of irrational coins: their law, and where words begin and end. Fixed streams; levels of 1e-6."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import _CHUNK, Coin, binomial, fair

LEVEL = 1e-6


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
