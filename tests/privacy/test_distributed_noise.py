"""Noise in shares: what many people make together is the noise that was paid for, and fits its modulus.

Statistical tests reject right noise with probability at most 1e-6 (`LEVEL`), on fixed streams.
"""

import math
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from tests.cpu_time import within
from tests.privacy.polya_law import fit, laplace_law, polya_law

from hazemap.errors import InputError
from hazemap.privacy.distributed_noise import DistributedNoise, _bits
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.random_stream import Stream

LEVEL = 1e-6


# The law -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parties", "people", "scale"),
    [(7, 7, Fraction(3)), (40, 40, Fraction(1, 2)), (20, 23, Fraction(8)), (9, 4, Fraction(5)), (1, 3, Fraction(2))],
)
def test_shares_of_many_people_have_the_law_of_their_sum(parties, people, scale):
    """Chi-square at 1e-6, of shares drawn one by one and of shares drawn together."""
    noise, stream = DistributedNoise(scale, parties), Stream.fixed(b"shares")
    exact = polya_law(Fraction(people, parties), scale)
    one_by_one = sum(noise.share(stream, 20_000) for _ in range(people))
    together = noise.together(stream, 100_000, people)
    assert one_by_one.dtype == together.dtype == np.int64
    assert fit(one_by_one, exact) > LEVEL
    assert fit(together, exact) > LEVEL


def test_one_party_makes_discrete_laplace_noise():
    """Chi-square at 1e-6."""
    exact = laplace_law(Fraction(6))
    assert fit(DistributedNoise(Fraction(6), 1).share(Stream.fixed(b"alone"), 200_000), exact) > LEVEL
    assert fit(DistributedNoise(Fraction(6), 50).together(Stream.fixed(b"all"), 200_000, 50), exact) > LEVEL
    assert fit(DistributedNoise(Fraction(6), 50).together(Stream.fixed(b"few"), 200_000, 45), exact) < LEVEL


SHARDS, SUMS = 10_000, 4


def opened(noise: DistributedNoise, people: int) -> np.ndarray:
    """The noise in 4 sums of each of 10,000 shards. A person makes one share for all: places are independent."""
    stream = Stream.fixed(b"opened")
    total = np.zeros(SHARDS * SUMS, dtype=np.int64)
    for _ in range(people):
        total += noise.share(stream, SHARDS * SUMS)
    return total


def gamma_noise(noise: DistributedNoise, people: int, half: bool) -> np.ndarray:
    """The same by Poisson numbers of Gamma numbers of shape 1/N; in half precision, the paper's published simulator.

    That one's library keeps a Gamma number, after it is divided by (1 − r)/r, above the least normal float16, 6.1e-5.
    So everybody adds at least Poisson(6.1e-5) on either side.
    """
    rng = np.random.default_rng(1)
    float_ = np.float16 if half else np.float64
    shape, rate = float_(1 / noise.parties), float_(np.expm1(1 / float(noise.scale)))
    total = np.zeros(SHARDS * SUMS, dtype=np.int64)
    for _ in range(people):
        for sign in (1, -1):
            gamma = np.maximum(np.finfo(float_).tiny, rng.standard_gamma(shape, len(total)).astype(float_) / rate)
            total += sign * rng.poisson(gamma)
    return total


@pytest.mark.slow
@pytest.mark.parametrize("noise", [DistributedNoise(Fraction(1), 1000), DistributedNoise(Fraction(20), 300)], ids=str)
def test_ten_thousand_shards_open_discrete_laplace_noise_or_more(noise):
    """Chi-square at 1e-6 at the guaranteed number of survivors; each tail at 1e-6 with a tenth more of them."""
    exact = laplace_law(noise.scale)
    assert fit(opened(noise, noise.parties), exact) > LEVEL
    more = opened(noise, noise.parties * 11 // 10)
    assert fit(more, polya_law(Fraction(11, 10), noise.scale)) > LEVEL
    assert fit(more, exact) < LEVEL
    assert more.std() > DiscreteLaplace(noise.scale).stddev
    for edge in np.unique(np.geomspace(1, 6 * float(noise.scale), 10).astype(int)):
        beyond, least = int((np.abs(more) >= edge).sum()), 2 * float(exact[edge:].sum())
        assert binomtest(beyond, len(more), least, alternative="less").pvalue > LEVEL


@pytest.mark.slow
def test_gamma_noise_in_half_precision_is_found_out():
    """By its precision alone: in doubles the same code passes, chi-square at 1e-6."""
    noise = DistributedNoise(Fraction(1), 1000)
    assert fit(gamma_noise(noise, 1000, half=True), laplace_law(noise.scale)) < LEVEL
    assert fit(gamma_noise(noise, 1000, half=False), laplace_law(noise.scale)) > LEVEL


@pytest.mark.slow
def test_shards_whose_people_draw_apart_open_the_same_noise():
    """Chi-square at 1e-6: 1,000 shards of 100 people, each drawing for its own 8 sums only."""
    noise, stream = DistributedNoise(Fraction(3), 100), Stream.fixed(b"apart")
    total = np.concatenate([sum(noise.share(stream, 8) for _ in range(100)) for _ in range(1000)])
    assert fit(total, laplace_law(noise.scale)) > LEVEL


def test_noise_for_a_million_places_takes_little_memory():
    """8 MB of results, and no more than 62 MB for ten rows of discrete Laplace noise and 5 million points of jumps."""
    noise, stream = DistributedNoise(Fraction(20), 2), Stream.from_os()
    noise.together(stream, 8, 221)
    tracemalloc.start()
    drawn = noise.together(stream, 1_000_000, 21)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 70e6
    assert abs(drawn.std() / noise.stddev(21) - 1) < 0.01


# Its description -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("parties", "people"), [(1, 1), (10, 10), (10, 13), (8, 3), (2, 220)])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(2), Fraction(15)])
def test_stddev_and_kurtosis_are_those_of_the_law(parties, people, scale):
    noise = DistributedNoise(scale, parties)
    exact = polya_law(Fraction(people, parties), scale, 1e-25)
    d = np.arange(len(exact), dtype=float)
    variance = 2 * (exact * d**2).sum()
    assert noise.stddev(people) == pytest.approx(math.sqrt(variance))
    assert noise.kurtosis(people) == pytest.approx(2 * (exact * d**4).sum() / variance**2 - 3, abs=1e-9)


# The modulus ---------------------------------------------------------------------------------------------------


def leaves(noise: DistributedNoise, people: int, most: int, size: int, b: int) -> float:
    """The largest probability that one of `size` sums leaves the b digits, for people's worst numbers."""
    positive = polya_law(Fraction(people, noise.parties), noise.scale, 1e-40)

    def beyond(t: int) -> float:  # P(Z ≥ t)
        return float(positive[t:].sum()) if t > 0 else float(1 - positive[1 - t :].sum())

    half = 1 << b - 1
    worst = max(beyond(half - total) + beyond(half + total + 1) for total in (0, people * most))
    return -math.expm1(size * math.log1p(-min(worst, 1 - 1e-16)))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.fractions(Fraction(1, 5), 30, max_denominator=9),
    st.integers(1, 200),
    st.integers(1, 300),
    st.integers(0, 40),
    st.sampled_from([1, 100, 65_536, 1 << 20]),
)
def test_sums_stay_in_their_modulus_and_it_is_hardly_larger_than_need_be(scale, parties, people, most, size):
    """Against the law, summed. A bound that forgets one bit of four times the noise would not hold."""
    noise = DistributedNoise(scale, parties)
    if Fraction(people, parties) > 40:
        people = 40 * parties
    b = noise.bits(people, most, size)
    assert leaves(noise, people, most, size, b) < 2**-40
    assert b <= 2 or leaves(noise, people, most, size, b - 2) > 2**-40


@pytest.mark.parametrize("scale", [Fraction(20), Fraction(1 << 20), Fraction(10**12, 7)])
def test_bits_follow_chernoffs_bound(scale):
    """b holds for some κ, b − 1 for none: mpmath at 50 digits, on a finer grid of κ only for b."""
    noise, people, most, size = DistributedNoise(scale, 8000), 9000, 1, 65_536
    b = noise.bits(people, most, size)
    with mpmath.workdps(50):

        def bound(k: mpmath.mpf, b: int) -> mpmath.mpf:
            moment = (1 - k**2) ** (-mpmath.mpf(people) / noise.parties)
            ends = (2 ** (b - 1) - people * most, 2 ** (b - 1) + 1)
            return size * moment * sum(mpmath.exp(-k * end * scale.denominator / scale.numerator) for end in ends)

        tilts = [mpmath.mpf(k) / 16 for k in range(1, 16)]
        assert min(bound(k, b) for k in tilts) < mpmath.mpf(2) ** -40
        assert min(bound(k, b - 1) for k in tilts) > mpmath.mpf(2) ** -40


@given(st.fractions(Fraction(1, 50), 1 << 45), st.fractions(0, 1).filter(lambda k: 0 < k < 1))
def test_the_moment_of_the_noise_is_below_its_bound(scale, tilt):
    """f = (cosh 1/s − 1)/(cosh 1/s − cosh κ/s) ≤ 1/(1 − κ²): the inequality that `bits` rests on."""
    with mpmath.workdps(80):
        h, k = mpmath.mpf(scale.denominator) / scale.numerator, mpmath.mpf(tilt.numerator) / tilt.denominator
        moment = (mpmath.cosh(h) - 1) / (mpmath.cosh(h) - mpmath.cosh(k * h))
        assert moment <= 1 / (1 - k**2) * (1 + mpmath.mpf(10) ** -30)


def test_more_of_anything_takes_no_fewer_bits():
    noise = DistributedNoise(Fraction(20), 800)
    bits = noise.bits(1000, 1, 65_536)
    assert noise.bits(4000, 1, 65_536) > bits
    assert noise.bits(1000, 8, 65_536) > bits
    assert noise.bits(1000, 1, 1 << 40) >= bits
    assert DistributedNoise(Fraction(2000), 800).bits(1000, 1, 65_536) > bits


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: DistributedNoise(Fraction(0), 1),
        lambda: DistributedNoise(Fraction((1 << 50) + 1), 1),
        lambda: DistributedNoise(Fraction(1), 0),
        lambda: DistributedNoise(Fraction(1), 1 << 40),
        lambda: DistributedNoise(Fraction(1), 5).together(Stream.from_os(), 4, 0),
        lambda: DistributedNoise(Fraction(1), 5).stddev(0),
        lambda: DistributedNoise(Fraction(1), 5).bits(0, 1, 1),
        lambda: DistributedNoise(Fraction(1), 5).bits(5, -1, 1),
        lambda: DistributedNoise(Fraction(1), 5).bits(5, 1, 0),
    ],
)
def test_noise_that_nobody_can_make_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


@pytest.mark.parametrize("size", [1 << 63, 1 << 200])
def test_more_sums_than_any_modulus_is_enough_for_are_refused_soon(size):
    """Bounds are rounded up to 2^-104 or more, so for 2^63 sums no modulus was found, and the search had no end."""
    with within(1), pytest.raises(InputError, match="do not fit 62 bits"):
        DistributedNoise(Fraction(999, 1000), 500).bits(1_000, 1, size)


def test_a_modulus_has_62_bits_and_no_more():
    one = Fraction(1)
    assert _bits(one, one, 2**60 - 1, 1) == 62 == _bits(one, one, 2**61 - 2**59, 1)
    with pytest.raises(InputError, match="fewer people together"):
        _bits(one, one, 2**61, 1)
    with pytest.raises(InputError, match="1 sums with noise"):
        _bits(one, one, 2**61 - 1, 1)
