"""Poisson counts: certified tables, uniform numbers that are read further where they must be."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chisquare
from scipy.stats import poisson as poisson_law

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.polya import cumulative, poisson

LEVEL = 1e-6
DRAWS = 1 << 18
MEANS = [Fraction(1, 1 << 40), Fraction(1, 9000), Fraction(2, 3), Fraction(8), Fraction(123_456_789, 7_777_777)]


class Scripted(Stream):
    """A stream whose words were chosen."""

    def __init__(self, *words: int):
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        given, self.left = self.left[:n], self.left[n:]
        assert len(given) == n
        return np.array(given, dtype=np.uint64)


def below(mean: Fraction, digits: int, length: int) -> list[mpmath.mpf]:
    """F(0), F(1), …, to so many binary digits."""
    with mpmath.workprec(digits):
        m = mpmath.mpf(mean.numerator) / mean.denominator
        return [mpmath.exp(-m) * mpmath.fsum(m**k / mpmath.factorial(k) for k in range(n + 1)) for n in range(length)]


@pytest.mark.parametrize("mean", [*MEANS, Fraction(1024)])
@pytest.mark.parametrize("n", [1, 64, 128, 700])
def test_every_digit_of_a_table_is_the_true_one(mean, n):
    """Against mpmath at 400 digits more; for the largest mean every 50th entry."""
    digits = cumulative(mean, n)
    assert digits[-1] == (1 << n) - 1
    assert (1 << n) - 1 not in digits[:-1]
    with mpmath.workprec(n + 1600):
        m = mpmath.mpf(mean.numerator) / mean.denominator
        for k in range(0, len(digits), 1 if mean < 100 else 50):
            total = mpmath.gammainc(k + 1, m, mpmath.inf, regularized=True)
            assert digits[k] == int(mpmath.floor(total * 2**n))


def fit(drawn: np.ndarray, mean: Fraction) -> float:
    """Chi-square p-value over the counts that are expected ten times or more."""
    expected = poisson_law.pmf(np.arange(60), float(mean)) * len(drawn)
    seen = np.bincount(np.minimum(drawn, 59), minlength=60)
    enough = expected >= 10
    rest = len(drawn) - expected[enough].sum()
    seen, expected = np.append(seen[enough], seen[~enough].sum()), np.append(expected[enough], rest)
    if rest < 10:
        seen, expected = np.append(seen[:-2], seen[-2:].sum()), np.append(expected[:-2], expected[-2:].sum())
    return chisquare(seen, expected).pvalue


@pytest.mark.parametrize("mean", MEANS[1:])
def test_counts_have_their_law(mean):
    """Chi-square at 1e-6; a mean 2 % off, and a tail that is cut off at three standard deviations, are found out."""
    drawn = poisson(Stream.fixed(b"poisson"), mean, DRAWS)
    assert drawn.dtype == np.int64
    assert fit(drawn, mean) > LEVEL
    if mean > 1:
        assert fit(poisson(Stream.fixed(b"twin"), mean * Fraction(102, 100), DRAWS), mean) < LEVEL
        assert fit(np.minimum(drawn, int(mean + 3 * mean**0.5)), mean) < LEVEL


def test_nearly_nothing_is_drawn_of_nearly_nothing():
    assert not poisson(Stream.fixed(b"none"), MEANS[0], DRAWS).any()


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_word_that_is_just_the_digits_of_the_table_is_read_further(mean, off):
    """The count is the least n with U < F(n), whatever U: here U agrees with an F(k) in 128 or 192 digits."""
    exact = below(mean, 1000, 40)
    with mpmath.workprec(1000):
        for k in (0, 1, 3, 7, 25):
            for words in (2, 3):
                uniform = int(mpmath.floor(exact[k] * 2 ** (64 * words))) + off
                pieces = [uniform >> 64 * i & (1 << 64) - 1 for i in reversed(range(words))]
                further = 1 << 63  # settles what is left open
                u = (mpmath.mpf(uniform) + mpmath.mpf(0.5)) / 2 ** (64 * words)
                if u < exact[-1]:
                    stream = Scripted(*pieces, further, further, further)
                    assert poisson(stream, mean, 1)[0] == sum(1 for total in exact if total <= u)


def test_the_tail_goes_on_for_as_long_as_the_words_are_all_ones():
    """After w words of ones and a zero, the count is the first whose tail 1 − F is below 2^−64w."""
    mean = Fraction(2, 3)
    for words in (1, 2, 5):
        exact = below(mean, 1000, 200)
        with mpmath.workprec(1000):
            expected = sum(1 for total in exact if 1 - total >= mpmath.mpf(2) ** (-64 * words))
        assert poisson(Scripted(*[(1 << 64) - 1] * words, 0), mean, 1)[0] == expected


@pytest.mark.parametrize(
    ("mean", "size"), [(Fraction(0), 1), (Fraction(1025), 1), (Fraction(-1), 1), (Fraction(1), -1)]
)
def test_what_has_no_poisson_law_here_is_refused(mean, size):
    with pytest.raises(InputError):
        poisson(Stream.from_os(), Fraction(mean), size)
