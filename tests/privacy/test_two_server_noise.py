"""Noise of two servers: each adds the whole price, both together have the law that is stated.

Statistical tests reject right noise with probability at most 1e-6 (`LEVEL`), on fixed streams.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.privacy.polya_law import fit, laplace_law, polya_law

from hazemap.errors import InputError, Refused
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.two_server_noise import TwoServerNoise, lifted, residues
from hazemap.tables.contribution_bounding import Sensitivity

LEVEL = 1e-6
FIELDS = (2**64 - 2**32 + 1, 2**128 - 7 * 2**66 + 1, 2**255 - 19)


def gaussian_law(variance, far):
    z = np.arange(-far, far + 1)
    weight = np.exp(-(z**2) / (2 * float(variance)))
    return weight / weight.sum()


def test_one_server_adds_the_whole_price_and_both_add_it_twice():
    """Chi-square at 1e-6; the twin takes one server's noise for that of both."""
    noise, scale = TwoServerNoise.within(PureDP("0.5"), Sensitivity(2, 4)), Fraction(4)
    both = noise.together(Stream.fixed(b"both"), 100_000)
    assert fit(noise.share(Stream.fixed(b"one"), 100_000), laplace_law(scale)) > LEVEL
    assert fit(both, polya_law(Fraction(2), scale)) > LEVEL
    assert fit(both, laplace_law(scale)) < LEVEL


@pytest.mark.parametrize("each", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(7, 2))])
def test_the_spread_of_both_is_that_of_the_sum_of_two_draws(each):
    """From the exact law of the sum, by convolution; no draw."""
    if isinstance(each, DiscreteGaussian):
        law = np.convolve(gaussian_law(each.variance, 60), gaussian_law(each.variance, 60))
    else:
        z = np.arange(-200, 201)
        one = np.exp(-np.abs(z) / float(each.scale))
        law = np.convolve(one / one.sum(), one / one.sum())
    z = np.arange(len(law)) - len(law) // 2
    variance = float((z**2 * law).sum())
    noise = TwoServerNoise(each)
    assert noise.stddev == pytest.approx(variance**0.5, rel=1e-9)
    assert noise.kurtosis == pytest.approx(float((z**4 * law).sum()) / variance**2 - 3, rel=1e-6, abs=1e-9)


def test_gaussian_noise_is_what_zcdp_buys_from_each():
    noise = TwoServerNoise.within(ZCDP("0.5"), Sensitivity(2, 2))
    assert noise.each == DiscreteGaussian(Fraction(2))
    drawn = noise.together(Stream.fixed(b"gauss"), 100_000)
    assert abs(drawn.var() / 4 - 1) < 0.03  # 6.7 standard errors
    assert noise.fits and not TwoServerNoise(DiscreteLaplace(Fraction(1 << 51))).fits


@given(st.lists(st.integers(-(2**62), 2**62), max_size=9), st.lists(st.integers(0, 2**256), min_size=9, max_size=9))
def test_noise_goes_through_shares_in_any_field_and_comes_out_signed(numbers, masks):
    for modulus in FIELDS:
        ours = residues(np.array(numbers, dtype=np.int64), modulus)
        theirs = [mask % modulus for mask in masks[: len(ours)]]
        first = [(one + mask) % modulus for one, mask in zip(ours, theirs, strict=True)]
        opened = [(one - mask) % modulus for one, mask in zip(first, theirs, strict=True)]
        assert lifted(opened, modulus).tolist() == numbers


def test_shares_of_other_batches_are_refused_and_so_are_small_fields():
    with pytest.raises(Refused, match="not of the same batch"):
        lifted([1, FIELDS[1] // 3], FIELDS[1])
    with pytest.raises(InputError, match="below its modulus"):
        lifted([FIELDS[0]], FIELDS[0])
    for wrong in (2**61 - 1, 2.0**64):
        with pytest.raises(InputError, match="does not wrap"):
            residues(np.array([1]), wrong)


def test_numbers_are_lifted_to_the_last_one_that_can_be():
    """In the smallest field that is allowed, and in one in which some elements are no number of people and noise."""
    least, field64 = 1 << 63, 2**64 - 2**32 + 1
    assert lifted([4 * 10**18, least - 1], least).tolist() == [4 * 10**18, -1]
    assert lifted([1 << 62, field64 - (1 << 62)], field64).tolist() == [1 << 62, -(1 << 62)]
    for beyond in ((1 << 62) + 1, field64 - (1 << 62) - 1):
        with pytest.raises(Refused, match="do not add up"):
            lifted([beyond], field64)
    for number in (-1, int(str(field64)), field64 + 1):
        with pytest.raises(InputError, match="an element of a field"):
            lifted([number], field64)
