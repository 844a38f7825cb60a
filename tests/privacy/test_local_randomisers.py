"""Reports of one person and sums of many have the law of their definition, which is private, and are debiased exactly.

Streams are fixed; statistical tests reject what is right with probability below 1e-6 each.
"""

from fractions import Fraction
from itertools import product
from math import exp, log, sqrt

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.privacy.local_randomisers import Asymmetric, Randomiser, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream

LAWS = [Symmetric(Fraction(3, 2)), Asymmetric(Fraction(3, 2)), UnaryEncoding(Fraction(4, 5), Fraction(2, 7))]
EVERY = pytest.mark.parametrize("randomiser", LAWS, ids=lambda law: type(law).__name__)


def chances(randomiser: Randomiser) -> tuple[float, float]:
    """p and q from the definitions."""
    if isinstance(randomiser, UnaryEncoding):
        return float(randomiser.keep), float(randomiser.turn_on)
    q = 1 / (exp(float(randomiser.epsilon)) + 1)
    return (1 - q if isinstance(randomiser, Symmetric) else 0.5), q


def likelihoods(randomiser, size: int, place: int | None) -> dict[tuple[int, ...], float]:
    """The probability of every report, from its definition."""
    kept, q = chances(randomiser)
    one = [kept if i == place else q for i in range(size)]
    return {
        bits: float(np.prod([p if bit else 1 - p for bit, p in zip(bits, one, strict=True)]))
        for bits in product((0, 1), repeat=size)
    }


def distance(one: dict, other: dict) -> float:
    """How far two laws of reports can be told apart: the ε of pure differential privacy."""
    return max(abs(log(one[bits] / other[bits])) for bits in one)


def far_off(reports: np.ndarray, law: dict[tuple[int, ...], float]) -> float:
    """Chi-square of reports of 3 bits: 7 degrees of freedom, above 44 by chance in 1 of 4 million."""
    found = np.bincount(reports @ np.array([4, 2, 1]), minlength=8)
    expected = np.array([law[bits] for bits in product((0, 1), repeat=3)]) * len(reports)
    return float(((found - expected) ** 2 / expected).sum())


OTHERS = [
    *(kind(Fraction(epsilon)) for kind in (Symmetric, Asymmetric) for epsilon in ("0.1", "1", "4", "9")),
    *(UnaryEncoding(Fraction(p), Fraction(q)) for p, q in (("1/2", "1/9"), ("0.96", "0.01"), ("1/3", "1/4"))),
]


@pytest.mark.parametrize("randomiser", OTHERS, ids=str)
def test_a_report_is_told_apart_by_its_epsilons_which_are_rounded_up(randomiser):
    """Over all reports of 3 bits: from silence in either place, and from the report of something else."""
    one, other, none = (likelihoods(randomiser, 3, place) for place in (0, 2, None))
    for epsilon, laws in ((randomiser.removal, (one, none)), (randomiser.replacement, (one, other))):
        assert 0 <= float(epsilon) - distance(*laws) < 2e-12 + 1e-12 * float(epsilon) or float(epsilon) == (
            pytest.approx(distance(*laws), abs=1e-11)
        )
    assert randomiser.chances == pytest.approx(chances(randomiser))


def test_logarithms_that_are_rational_are_not_rounded_below():
    """ε of replacement is that of the removal twice where p = 1 − q; e is irrational, so no multiple of 2^−40 hits."""
    law = UnaryEncoding(Fraction(3, 4), Fraction(1, 4))
    assert 0 < law.removal - Fraction(log(3)) < Fraction(1, 1 << 39)
    assert law.removal < law.replacement <= 2 * law.removal


@EVERY
@pytest.mark.parametrize("place", [None, 0, 2])
def test_a_report_has_the_law_that_its_definition_says(randomiser, place):
    """3,000 reports of 3 bits; the twins are ε doubled, a 1 that is always sent, and a 1 that is a zero."""
    stream = Stream.fixed(f"reports {place}".encode())
    reports = np.array([randomiser.report(stream, place, 3) for _ in range(3_000)])
    assert far_off(reports, likelihoods(randomiser, 3, place)) < 44
    for twin in (Symmetric(Fraction(3)), Asymmetric(Fraction(3)), UnaryEncoding(Fraction(99, 100), Fraction(4, 7))):
        if type(twin) is type(randomiser):
            assert far_off(reports, likelihoods(twin, 3, place)) > 44
    if place is not None:
        assert far_off(reports, likelihoods(randomiser, 3, None)) > 44
        assert 0.1 < reports[:, place].mean() < 0.9, "not always sent"


@EVERY
def test_flips_of_long_reports_are_as_many_as_their_law_says_and_anywhere(randomiser):
    """400 reports of 4,096 places: mean and variance of the flips, and their places, within 5 standard errors."""
    stream, size, times = Stream.fixed(b"flips"), 4_096, 400
    p, q = chances(randomiser)
    reports = np.array([randomiser.report(stream, 7, size) for _ in range(times)])
    flips = np.delete(reports, 7, axis=1).sum(axis=1)
    variance = (size - 1) * q * (1 - q)
    assert abs(flips.mean() - (size - 1) * q) < 5 * sqrt(variance / times)
    assert abs(flips.var() / variance - 1) < 5 * sqrt(2 / times)
    assert abs(reports[:, 7].mean() - p) < 5 * sqrt(p * (1 - p) / times)
    columns = np.delete(reports, 7, axis=1).sum(axis=0)
    assert abs(columns.var() / (times * q * (1 - q)) - 1) < 5 * sqrt(2 / size)
    # The twin: as many flips, but each report's in one run, as if gaps were not drawn.
    runs = np.array([np.roll(np.arange(size) < flips[0], shift) for shift in range(0, size, size // times)])
    assert abs(runs.sum(axis=0).var() / (len(runs) * q * (1 - q)) - 1) > 5 * sqrt(2 / size)


@EVERY
def test_sums_drawn_at_once_have_the_chances_of_single_reports(randomiser):
    """Means and variances over 40,000 cells of three kinds, within 5 standard errors."""
    people, cells = 9, 40_000
    kept, q = chances(randomiser)
    for count in (0, 4, 9):
        sums = randomiser.sums(Stream.fixed(b"at once"), np.full(cells, count), people)
        mean, variance = count * kept + (people - count) * q, count * kept * (1 - kept) + (people - count) * q * (1 - q)
        assert abs(sums.mean() - mean) < 5 * sqrt(variance / cells)
        assert abs(sums.var() / variance - 1) < 5 * sqrt(2 / cells)


@pytest.mark.parametrize("randomiser", OTHERS, ids=str)
def test_numbers_are_unbiased_and_vary_as_their_definition_says(randomiser):
    """Without a draw: the mean and the variance of what is sent, from its chances, put through `unbiased`."""
    people, counts = 20, np.array([0, 1, 7, 20])
    kept, q = chances(randomiser)
    mean = counts * kept + (people - counts) * q
    variance = counts * kept * (1 - kept) + (people - counts) * q * (1 - q)
    slope = randomiser.unbiased(np.array([1]), people)[0] - randomiser.unbiased(np.array([0]), people)[0]
    assert np.allclose(randomiser.unbiased(mean, people), counts)
    assert np.allclose(randomiser.variance(people, counts.astype(float)), slope**2 * variance)
    noise = people * q * (1 - q)
    assert randomiser.kurtosis(people) == pytest.approx((1 - 6 * q * (1 - q)) / noise)


def test_the_published_estimator_is_biased_by_what_it_leaves_out():
    """Algorithm 2 of the paper subtracts n/(e^ε − 1), not twice that: off by as much in every bin."""
    law, people = Asymmetric(Fraction(2)), 500
    mean = np.array([people / (exp(2) + 1)])
    published = 2 * (exp(2) + 1) / (exp(2) - 1) * mean - people / (exp(2) - 1)
    assert law.unbiased(mean, people) == pytest.approx([0], abs=1e-9)
    assert published == pytest.approx([people / (exp(2) - 1)])


@EVERY
def test_a_report_has_a_byte_of_0_or_1_for_each_place(randomiser):
    stream = Stream.fixed(b"bits")
    for size in (1, 2, 40, 65_536):
        for place in (None, 0, size - 1):
            bits = randomiser.report(stream, place, size)
            assert bits.shape == (size,) and bits.dtype == np.uint8 and set(bits.tolist()) <= {0, 1}
    for place in (-1, 40):
        with pytest.raises(InputError, match="place of a report"):
            randomiser.report(stream, place, 40)


def test_what_is_no_randomiser_is_refused():
    for kind in (Symmetric, Asymmetric):
        for wrong in (Fraction(0), Fraction(-1), 1, 1.0, True, "1", None):
            with pytest.raises(InputError):
                kind(wrong)
    half = Fraction(1, 2)
    for keep, turn_on in ((half, half), (half, Fraction(0)), (Fraction(1), half), (Fraction(1, 4), half), (1, half)):
        with pytest.raises(InputError):
            UnaryEncoding(keep, turn_on)
    with pytest.raises(InputError, match="denominators"):
        UnaryEncoding(half, Fraction(1, 1 << 63))


@pytest.mark.parametrize("epsilon", [20, 45, 70, 150])
def test_what_removing_somebody_tells_is_known_at_a_large_epsilon_too(epsilon):
    """ln((e^ε + 1)/2) is below ε − ln 2 + e^−ε: enough digits are taken for it."""
    found = float(Asymmetric(Fraction(epsilon)).removal)
    assert epsilon - log(2) <= found <= epsilon - log(2) + exp(-epsilon) + 1e-9
