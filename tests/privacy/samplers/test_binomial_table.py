"""Binomial numbers: certified tables, uniform numbers that are read further where they must be."""

from fractions import Fraction
from itertools import accumulate
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import binomial_table
from hazemap.privacy.samplers.bernoulli import Coin, RationalCoin
from hazemap.privacy.samplers.binomial_table import heads, number_of_heads

LEVEL = 1e-6


class Scripted(Stream):
    """A stream whose words were chosen."""

    def __init__(self, *words: int):
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        given, self.left = self.left[:n], self.left[n:]
        assert len(given) == n
        return np.array(given, dtype=np.uint64)


def exact(p: Fraction, tosses: int) -> list[Fraction]:
    """F(0), F(1), …"""
    return [*accumulate(comb(tosses, k) * p**k * (1 - p) ** (tosses - k) for k in range(tosses + 1))]


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 3), Fraction(6, 7), Fraction(1, 10**9)], ids=str)
@pytest.mark.parametrize("tosses", [1, 2, 7, 60])
@pytest.mark.parametrize("digits", [64, 128])
def test_a_table_encloses_the_exact_distribution_narrowly(p, tosses, digits):
    table, law = binomial_table._table(RationalCoin(p), tosses, digits), exact(p, tosses)
    for place, (low, high) in enumerate(zip(table.low, table.high, strict=True)):
        assert low <= law[table.first + place] * 2**digits <= high <= low + 2
    assert table.low == sorted(table.low)
    assert table.first == 0 or law[table.first - 1] * 2**digits < 1


def test_a_table_of_many_tosses_is_near_what_floats_say():
    for coin, p in ((Coin(Fraction(4), plus=1), 1 / (np.exp(4) + 1)), (RationalCoin(Fraction(3, 4)), 0.75)):
        table = binomial_table._table(coin, 100_000, 64)
        steps = np.arange(table.first, table.first + len(table.low))
        assert np.allclose(np.array(table.low, dtype=float) / 2**64, binom.cdf(steps, 100_000, p), atol=1e-11)


@pytest.mark.parametrize("tosses", [1, 5, 30])
def test_numbers_have_the_binomial_law(tosses):
    """20,000 draws; the twin is a coin with a tenth more."""
    stream, coin = Stream.fixed(b"heads"), RationalCoin(Fraction(2, 5))
    drawn = np.bincount([number_of_heads(stream, coin, tosses) for _ in range(20_000)], minlength=tosses + 1)

    def fit(p: float) -> float:
        expected = binom.pmf(np.arange(tosses + 1), tosses, p) * drawn.sum()
        enough = expected >= 10
        seen = np.append(drawn[enough], drawn[~enough].sum())
        wanted = np.append(expected[enough], drawn.sum() - expected[enough].sum())
        some = wanted > 1e-6
        return float(chisquare(seen[some], wanted[some] * (seen[some].sum() / wanted[some].sum())).pvalue)

    assert fit(0.4) > LEVEL > fit(0.44)


def test_a_word_between_the_bounds_is_read_further():
    """F(0) of one toss of a coin of 1/3 is 0.10101…: words that agree with its digits are settled by a later one."""
    coin, tie = RationalCoin(Fraction(1, 3)), int(Fraction(2, 3) * 2**64)
    assert number_of_heads(Scripted(tie - 1), coin, 1) == 0
    assert number_of_heads(Scripted(tie + 1), coin, 1) == 1
    for _ in range(2):  # the finer table is kept
        assert number_of_heads(Scripted(tie, 0), coin, 1) == 0
        assert number_of_heads(Scripted(tie, (1 << 64) - 1), coin, 1) == 1
        assert number_of_heads(Scripted(tie, tie, 0), coin, 1) == 0


def test_the_ends_of_the_line_are_read_further():
    coin = Coin(Fraction(4), plus=1)
    table = binomial_table._table(coin, 100_000, 64)
    assert table.first > 0
    low, high = (
        number_of_heads(Scripted(0, 1 << 63), coin, 100_000),
        number_of_heads(Scripted((1 << 64) - 1, 1 << 63), coin, 100_000),
    )
    law = binom(100_000, 1 / (np.exp(4) + 1))
    assert law.cdf(low - 1) < 2.0**-65 < law.cdf(low)
    assert law.sf(high) < 2.0**-65 < law.sf(high - 1)
    assert number_of_heads(Scripted(), coin, 0) == 0
    for wrong in (-1, (1 << 32) + 1):
        with pytest.raises(InputError, match="tossed 0 to 2"):
            number_of_heads(Scripted(), coin, wrong)


def test_one_toss_compares_digits_until_they_differ():
    third, half = RationalCoin(Fraction(1, 3)), RationalCoin(Fraction(1, 2))
    digits = third.digits(64)
    assert heads(Scripted(digits - 1), third) and not heads(Scripted(digits + 1), third)
    assert heads(Scripted(digits, digits - 1), third) and not heads(Scripted(digits, digits + 1), third)
    assert heads(Scripted((1 << 63) - 1), half) and not heads(Scripted(1 << 63, 1), half)
    stream = Stream.fixed(b"toss")
    assert abs(sum(heads(stream, third) for _ in range(9_000)) - 3_000) < 5 * (9_000 * 2 / 9) ** 0.5
    for wrong in (Fraction(0), Fraction(1), Fraction(3, 2)):
        with pytest.raises(InputError, match="between 0 and 1"):
            RationalCoin(wrong)
