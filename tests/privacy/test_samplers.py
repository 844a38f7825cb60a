"""Samplers: the law is the law.

Every statistical test here rejects a right sampler with probability at most 1e-6 (`LEVEL`). Our draws come from
fixed streams, so they are the same in every run; those of OpenDP and of the standard library's generator are
reproducible only where a seed is given. Each law has twins that are wrong on purpose and must be rejected.
"""

import json
import math
import random
import tracemalloc
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import chi2_contingency, chisquare, kstest

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_gaussian, discrete_laplace, gaussian, geometric, laplace
from hazemap.privacy.samplers.bernoulli import spread

LEVEL = 1e-6
CERTAIN = 1e-9
"""Where a false alarm can happen, as others' noise takes no seed; the twins lie below 1e-200."""
DRAWS = 1 << 20
PUBLISHED = Path(__file__).parents[2] / ".." / "shared" / "vectors" / "libprio"


# The laws ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LaplaceLaw:
    """P(z) = (1 − r)/(1 + r) · r^|z|."""

    scale: Fraction

    def below(self, z: np.ndarray) -> np.ndarray:
        """P(draw < z)."""
        s, r = float(self.scale), math.exp(-1 / float(self.scale))
        far = np.exp(-(np.where(z > 0, z, 1 - z)) / s) / (1 + r)
        return np.where(z > 0, 1 - far, far)

    def at(self, parts: np.ndarray) -> np.ndarray:
        """About the quantile of each part."""
        tail = float(self.scale) * np.log(2 * np.minimum(parts, 1 - parts))
        return np.round(np.where(parts < 0.5, tail, -tail))

    def residues(self, m: int) -> np.ndarray:
        """P(draw mod m = 0, 1, …)."""
        a, s = np.arange(m), float(self.scale)
        weight = np.exp(-a / s) + np.exp(-(m - a) / s)
        weight[0] = 1 + 2 * math.exp(-m / s) / -math.expm1(-m / s) * 1.0
        weight[1:] /= -math.expm1(-m / s)
        return weight / weight.sum()


@dataclass(frozen=True)
class GaussianLaw:
    """P(z) ∝ exp(−z²/2v)."""

    variance: Fraction

    def below(self, z: np.ndarray) -> np.ndarray:
        """P(draw < z): summed up to a standard deviation of 1,000, then a midpoint rule right to 10⁻⁷."""
        stddev = math.sqrt(self.variance)
        if stddev > 1000:
            return ndtr((z - 0.5) / stddev)
        reach = int(40 * stddev) + 2
        weight = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(self.variance)))
        cumulative = np.concatenate([[0], np.cumsum(weight)]) / weight.sum()
        return cumulative[np.clip(z + reach, 0, 2 * reach + 1).astype(int)]

    def at(self, parts: np.ndarray) -> np.ndarray:
        """About the quantile of each part."""
        return np.round(ndtri(parts) * math.sqrt(self.variance))

    def residues(self, m: int) -> np.ndarray:
        """P(draw mod m = 0, 1, …), for a standard deviation so far above m that all are equal."""
        return np.full(m, 1 / m)


PARTS = np.concatenate([[1e-5, 1e-4, 1e-3], np.arange(1, 200) / 200, 1 - np.array([1e-3, 1e-4, 1e-5])])


def fit(drawn: np.ndarray, law, least: float = 10) -> float:
    """The chi-square p-value of draws in about 200 bins of equal probability, with the far tails apart."""
    middle = np.unique(law.at(np.concatenate([PARTS, [0.5]])))
    edges = np.unique(np.concatenate([middle, [middle[0] - 1, -1, 0, 1, 2, middle[-1] + 1]]))
    below = np.concatenate([[0], law.below(edges), [1]]) * len(drawn)
    count = np.concatenate([[0], np.searchsorted(np.sort(drawn), edges), [len(drawn)]])
    kept = [0]  # bins too thin for a chi-square join their neighbour
    for i in range(1, len(below)):
        if below[i] - below[kept[-1]] >= least and len(drawn) - below[i] >= least:
            kept.append(i)
    kept.append(len(below) - 1)
    return chisquare(np.diff(count[kept]), np.diff(below[kept])).pvalue


def fit_residues(drawn: np.ndarray, law, m: int = 16) -> float:
    return chisquare(np.bincount(drawn % m, minlength=m), law.residues(m) * len(drawn)).pvalue


# Discrete Laplace ----------------------------------------------------------------------------------------------

SCALES = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(10, 3), Fraction(10), Fraction(1000), Fraction(10**9)]


@pytest.mark.parametrize("scale", [*SCALES, Fraction(1 << 50)])
def test_discrete_laplace_has_its_law(scale):
    """Chi-square at 1e-6 over quantiles and over residues modulo 16."""
    drawn = discrete_laplace(Stream.fixed(b"laplace"), scale, DRAWS)
    assert drawn.dtype == np.int64
    assert fit(drawn, LaplaceLaw(scale)) > LEVEL
    assert scale < 1 or fit_residues(drawn, LaplaceLaw(scale)) > LEVEL


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(5), Fraction(10**6)])
def test_geometric_is_the_magnitude_of_that_law(scale):
    """Chi-square at 1e-6: with a fair sign, and zero kept once, it must be discrete Laplace."""
    stream = Stream.fixed(b"geometric")
    magnitude = geometric(stream, scale, DRAWS).astype(np.int64)
    negative = spread(stream.words(DRAWS // 64)) == 1
    drawn = np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))]
    assert fit(drawn, LaplaceLaw(scale)) > LEVEL


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10)])
def test_a_long_tail_is_counted_coin_by_coin(monkeypatch, scale):
    """Chi-square at 1e-6, with so few digits tossed that most draws are in the tail, some many coins deep."""
    monkeypatch.setattr(laplace, "_TAIL", Fraction(1, 8))
    assert fit(discrete_laplace(Stream.fixed(b"tail"), scale, DRAWS), LaplaceLaw(scale)) > LEVEL


@pytest.mark.parametrize("lag", [1, 63, 64, 1 << 13])
def test_draws_are_independent_of_their_neighbours(lag):
    """Chi-square of a 6 × 6 table of (draw, later draw) at 1e-6."""
    drawn = discrete_laplace(Stream.fixed(b"pairs"), Fraction(5), DRAWS)
    sort = np.digitize(drawn, [-5, -1, 0, 2, 6])
    table = np.bincount(6 * sort[:-lag] + sort[lag:], minlength=36).reshape(6, 6)
    assert chi2_contingency(table).pvalue > LEVEL


def doubled_zero(scale: Fraction) -> np.ndarray:
    stream = Stream.fixed(b"twin")
    magnitude = geometric(stream, scale, DRAWS).astype(np.int64)
    return np.where(spread(stream.words(DRAWS // 64)) == 1, -magnitude, magnitude)


def no_tail(scale: Fraction) -> np.ndarray:
    """Digits are tossed up to e^−8, and what is above them forgotten."""
    drawn = discrete_laplace(Stream.fixed(b"no tail"), scale, DRAWS)
    top = 1 << (math.ceil(8 * scale) - 1).bit_length()
    return np.sign(drawn) * (np.abs(drawn) % top)


def half_precision(scale: Fraction) -> np.ndarray:
    return np.round(np.random.default_rng(3).laplace(0, float(scale), DRAWS).astype(np.float16)).astype(np.int64)


def rounded_reals(scale: Fraction) -> np.ndarray:
    return np.round(np.random.default_rng(3).laplace(0, float(scale), DRAWS)).astype(np.int64)


def one_percent_wide(scale: Fraction) -> np.ndarray:
    return discrete_laplace(Stream.fixed(b"twin"), scale * Fraction(101, 100), DRAWS)


@pytest.mark.parametrize(
    ("twin", "scale"),
    [
        (doubled_zero, Fraction(10)),
        (doubled_zero, Fraction(1, 2)),
        (no_tail, Fraction(8)),
        (half_precision, Fraction(1000)),
        (rounded_reals, Fraction(1)),
        (one_percent_wide, Fraction(1)),
        (one_percent_wide, Fraction(10**9)),
    ],
)
def test_a_wrong_discrete_laplace_is_found_out(twin, scale):
    drawn = twin(scale)
    assert min(fit(drawn, LaplaceLaw(scale)), fit_residues(drawn, LaplaceLaw(scale))) < LEVEL


# Discrete Gaussian ---------------------------------------------------------------------------------------------

VARIANCES = [
    Fraction(1, 10**12),
    Fraction(1, 10),
    Fraction(1, 2),
    Fraction(7, 3),
    Fraction(100),
    Fraction(123_456_789_123_456_789, 987_654_321),
    Fraction(10**12),
    Fraction((1 << 50) - 1) ** 2,
]


@pytest.mark.parametrize("variance", VARIANCES)
def test_discrete_gaussian_has_its_law(variance):
    """Chi-square at 1e-6 over quantiles and, where they are equally likely, residues modulo 16."""
    drawn = discrete_gaussian(Stream.fixed(b"gaussian"), variance, DRAWS)
    assert drawn.dtype == np.int64
    assert fit(drawn, GaussianLaw(variance)) > LEVEL if variance > Fraction(1, 100) else not drawn.any()
    assert variance < 1000 or fit_residues(drawn, GaussianLaw(variance)) > LEVEL


@pytest.mark.parametrize(
    ("twin", "variance"),
    [
        (lambda v: np.round(np.random.default_rng(4).normal(0, math.sqrt(v), DRAWS)).astype(np.int64), Fraction(1, 2)),
        (
            lambda v: np.round(np.random.default_rng(4).normal(0, math.sqrt(v), DRAWS).astype(np.float16)).astype(int),
            Fraction(10**8),
        ),
        (lambda v: discrete_laplace(Stream.fixed(b"twin"), Fraction(math.isqrt(int(v))), DRAWS), Fraction(100)),
        (lambda v: discrete_gaussian(Stream.fixed(b"twin"), v * Fraction(99, 100), DRAWS), Fraction(7, 3)),
        (lambda v: discrete_gaussian(Stream.fixed(b"twin"), v * Fraction(98, 100), DRAWS), Fraction(10**12)),
    ],
    ids=["rounded", "half precision", "laplace", "1 % narrow", "2 % narrow"],
)
def test_a_wrong_discrete_gaussian_is_found_out(twin, variance):
    drawn = twin(variance)
    law = GaussianLaw(variance)
    assert min(fit(drawn, law), fit_residues(drawn, law) if variance > 1000 else 1) < LEVEL


# Oracles: the same laws by somebody else's hand ----------------------------------------------------------------


class BigIntegers:
    """Canonne, Kamath and Steinke 2020, algorithms 1–3, in rationals of Python, one draw at a time."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)

    def bernoulli(self, p: Fraction) -> bool:
        return self.random.randrange(p.denominator) < p.numerator

    def bernoulli_exp(self, gamma: Fraction) -> bool:
        while gamma > 1:
            if not self.bernoulli_exp(Fraction(1)):
                return False
            gamma -= 1
        k = 1
        while self.bernoulli(gamma / k):
            k += 1
        return k % 2 == 1

    def laplace(self, scale: Fraction) -> int:
        t, s = scale.numerator, scale.denominator
        while True:
            u = self.random.randrange(t)
            if not self.bernoulli_exp(Fraction(u, t)):
                continue
            v = 0
            while self.bernoulli_exp(Fraction(1)):
                v += 1
            magnitude, negative = (u + t * v) // s, self.random.randrange(2)
            if magnitude or not negative:
                return -magnitude if negative else magnitude

    def gaussian(self, variance: Fraction) -> int:
        t = math.isqrt(int(variance)) + 1
        while True:
            y = self.laplace(Fraction(t))
            if self.bernoulli_exp((abs(y) - variance / t) ** 2 / (2 * variance)):
                return y


def same_law(one: np.ndarray, other: np.ndarray, bins: int = 40) -> float:
    """The chi-square p-value of two samples in bins of equal size."""
    edges = np.unique(np.quantile(np.concatenate([one, other]), np.arange(1, bins) / bins, method="lower"))
    table = np.array([np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1) for sample in (one, other)])
    return chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue


@pytest.mark.slow
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(10, 3), Fraction(1000)])
def test_discrete_laplace_agrees_with_its_big_integer_twin(scale):
    """Two-sample chi-square at 1e-6."""
    twin = BigIntegers(1)
    drawn = np.array([twin.laplace(scale) for _ in range(15_000)])
    assert same_law(drawn, discrete_laplace(Stream.fixed(b"twin"), scale, DRAWS)) > LEVEL
    assert same_law(drawn, discrete_laplace(Stream.fixed(b"twin"), scale * Fraction(6, 5), DRAWS)) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(7, 3), Fraction(10**6)])
def test_discrete_gaussian_agrees_with_its_big_integer_twin(variance):
    """Two-sample chi-square at 1e-6."""
    twin = BigIntegers(2)
    drawn = np.array([twin.gaussian(variance) for _ in range(6_000)])
    assert same_law(drawn, discrete_gaussian(Stream.fixed(b"twin"), variance, DRAWS)) > LEVEL
    assert same_law(drawn, discrete_gaussian(Stream.fixed(b"twin"), variance * Fraction(3, 2), DRAWS)) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_discrete_laplace_agrees_with_opendp(scale):
    """Two-sample chi-square at 1e-9; OpenDP takes no seed, so here a false alarm can happen."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    mechanism = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale)
    theirs = np.array(mechanism([0] * 40_000))
    assert same_law(theirs, discrete_laplace(Stream.fixed(b"opendp"), Fraction(scale), DRAWS)) > CERTAIN
    assert same_law(theirs, discrete_laplace(Stream.fixed(b"opendp"), Fraction(scale) * 6 / 5, DRAWS)) < CERTAIN


@pytest.mark.slow
@pytest.mark.parametrize("stddev", [0.75, 10.0])
def test_discrete_gaussian_agrees_with_opendp(stddev):
    """Two-sample chi-square at 1e-9; OpenDP takes no seed, so here a false alarm can happen."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    mechanism = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float), stddev)
    theirs = np.array(mechanism([0] * 20_000))
    variance = Fraction(stddev) ** 2
    assert same_law(theirs, discrete_gaussian(Stream.fixed(b"opendp"), variance, DRAWS)) > CERTAIN
    assert same_law(theirs, discrete_gaussian(Stream.fixed(b"opendp"), variance * 3 / 2, DRAWS)) < CERTAIN


def test_samples_published_by_libprio_have_the_law_we_test_against():
    """Chi-square at 1e-6 for each of its standard deviations: the law, written here, is the one they meant."""
    files = sorted(PUBLISHED.glob("discrete_gauss_*.json"))
    if not files:
        pytest.skip("the published samples are not here")
    for file in files:
        stddev = Fraction(file.stem.removeprefix("discrete_gauss_"))
        samples = np.array(json.loads(file.read_text())["samples"], dtype=float)
        assert fit(samples, GaussianLaw(stddev**2), least=8) > LEVEL
        assert fit(samples, GaussianLaw(9 * stddev**2), least=8) < 1e-3  # 50 samples tell no more


def test_samples_published_by_libprio_have_the_law_of_our_sampler():
    """Kolmogorov and Smirnov at 1e-6 over all files: where each sample would stand among our draws is uniform.

    The twins draw with half and twice the standard deviation.
    """
    files = sorted(PUBLISHED.glob("discrete_gauss_*.json"))
    if not files:
        pytest.skip("the published samples are not here")
    published = {
        Fraction(file.stem.removeprefix("discrete_gauss_")): np.array(json.loads(file.read_text())["samples"])
        for file in files
    }
    luck, stream = np.random.default_rng(7), Stream.fixed(b"libprio")

    def places(factor: Fraction) -> np.ndarray:
        found = []
        for stddev, samples in published.items():
            try:
                drawn = np.sort(discrete_gaussian(stream, (factor * stddev) ** 2, 1 << 18))
            except InputError:
                assert stddev**2 > gaussian.LARGEST_VARIANCE
                continue
            first, last = (np.searchsorted(drawn, samples, side) for side in ("left", "right"))
            found.append((first + luck.random(len(samples)) * (last - first)) / len(drawn))
        assert len(found) == len(published) - 1, "one is wider than 64 bits hold"
        return np.concatenate(found)

    assert kstest(places(Fraction(1)), "uniform").pvalue > LEVEL
    for factor in (Fraction(1, 2), Fraction(2)):
        assert kstest(places(factor), "uniform").pvalue < LEVEL


# Sizes and limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, (1 << 19) + 1])
def test_every_size_is_drawn(size):
    stream = Stream.from_os()
    assert len(discrete_laplace(stream, Fraction(3), size)) == size
    assert len(discrete_gaussian(stream, Fraction(3), size)) == size
    assert len(geometric(stream, Fraction(3), size)) == size


def test_draws_repeat_only_under_a_fixed_stream():
    assert np.array_equal(*(discrete_laplace(Stream.fixed(b"a"), Fraction(9), 500) for _ in range(2)))
    assert not np.array_equal(*(discrete_laplace(Stream.from_os(), Fraction(9), 500) for _ in range(2)))


@pytest.mark.parametrize("number", [Fraction(0), Fraction(-1), Fraction((1 << 50) + 1), Fraction(10**400)])
def test_a_scale_that_64_bits_cannot_hold_is_refused(number):
    with pytest.raises(InputError, match=r"at most 2\^50"):
        discrete_laplace(Stream.from_os(), number, 1)
    with pytest.raises(InputError, match=r"at most 2\^100"):
        discrete_gaussian(Stream.from_os(), number * abs(number), 1)


def test_a_negative_size_is_refused():
    for sample in (discrete_laplace, discrete_gaussian, geometric):
        with pytest.raises(InputError, match="negative number of values: -1"):
            sample(Stream.from_os(), Fraction(1), -1)


def test_memory_is_bounded_beside_the_result():
    def peak(size: int) -> float:
        tracemalloc.start()
        discrete_laplace(Stream.from_os(), Fraction(10**9), size)
        found = tracemalloc.get_traced_memory()[1] - 8 * size
        tracemalloc.stop()
        return found / 1e6

    assert peak(1 << 22) < peak(1 << 20) + 2 < 20


def test_an_epsilon_of_a_hundred_draws_nothing_but_zeros():
    """P(not 0) is 10⁻⁴³, and below any float for the second."""
    assert not discrete_laplace(Stream.from_os(), Fraction(1, 100), 10_000).any()
    assert not discrete_laplace(Stream.from_os(), Fraction(1, 10**9), 100).any()
