"""Pólya differences: exactly the law, whatever the shape and the scale.

Statistical tests reject a right sampler with probability at most 1e-6 (`LEVEL`), on fixed streams; each has twins
that are wrong on purpose. What decides a draw is also compared with mpmath, digit by digit, on chosen words.
"""

import math
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binomtest, chisquare
from tests.privacy.polya_law import fit, polya_law

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import polya
from hazemap.privacy.samplers.polya import _far_jump, _heads, _points, _powers, _stays, polya_difference

LEVEL = 1e-6
DRAWS = 1 << 17
WORD = 1 << 64
SCALES = [
    Fraction(1, 20),
    Fraction(1, 2),
    Fraction(1),
    Fraction(20),
    Fraction(20_000, 7),
    Fraction(1 << 30),
    Fraction(12_345_678_901_234_567, 89_012_345),
    Fraction(1 << 50),
]


class Scripted(Stream):
    """A stream whose words were chosen."""

    def __init__(self, *words: int):
        self.left = list(words)

    def words(self, n: int) -> np.ndarray:
        given, self.left = self.left[:n], self.left[n:]
        assert len(given) == n
        return np.array(given, dtype=np.uint64)


# The law -------------------------------------------------------------------------------------------------------


CASES = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(1, 9000), Fraction(20)),
    (Fraction(1, 100), Fraction(1, 2)),
    (Fraction(1, 7), Fraction(10, 3)),
    (Fraction(999, 1000), Fraction(3)),
    (Fraction(1, 3), Fraction(200)),
    (Fraction(1), Fraction(10)),
    (Fraction(5, 2), Fraction(7)),
    (Fraction(110), Fraction(2)),
]


@pytest.mark.parametrize(("shape", "scale"), CASES)
def test_differences_have_their_law(shape, scale):
    """Chi-square at 1e-6."""
    drawn = polya_difference(Stream.fixed(b"polya"), shape, scale, 16 * DRAWS if shape < Fraction(1, 1000) else DRAWS)
    assert drawn.dtype == np.int64
    assert fit(drawn, polya_law(shape, scale)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_three_shares_of_a_third_are_discrete_laplace(scale):
    """Chi-square at 1e-6, at every scale: a symmetric law has one third root only, so the sum tells the share."""
    stream = Stream.fixed(b"thirds")
    drawn = sum(polya_difference(stream, Fraction(1, 3), scale, DRAWS) for _ in range(3))
    r = math.exp(-1 / scale)
    edges = np.unique(
        np.floor(scale * -np.log(np.arange(1, 60) / 60)).astype(np.int64) + 1
    )  # |z| ≥ edge: 2r^edge/(1 + r)
    above = np.concatenate([[1], 2 * np.exp(-edges.astype(float) / float(scale)) / (1 + r), [0]]) * DRAWS
    seen = np.concatenate([[DRAWS], [(np.abs(drawn) >= edge).sum() for edge in edges], [0]])
    while above[-2] < 20:
        above, seen = np.delete(above, -2), np.delete(seen, -2)
        if len(above) == 2:
            return  # noise of scale 1/20 is 0: 4e-9 of it is not
    assert chisquare(-np.diff(seen), -np.diff(above)).pvalue > LEVEL
    nonzero = int((drawn != 0).sum())
    assert nonzero == 0 or binomtest(int((drawn > 0).sum()), nonzero).pvalue > LEVEL


def no_tail(shape: Fraction, scale: Fraction, size: int, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """The last cell is one level like the others: jumps end at about 2 · scale."""
    monkeypatch.setattr(polya, "_heads", lambda _, n: np.zeros(n, dtype=np.int64))
    return polya_difference(Stream.fixed(b"twin"), shape, scale, size)


def two_percent_more(shape: Fraction, scale: Fraction, size: int, _: pytest.MonkeyPatch) -> np.ndarray:
    return polya_difference(Stream.fixed(b"twin"), shape * Fraction(102, 100), scale, size)


def two_percent_wider(shape: Fraction, scale: Fraction, size: int, _: pytest.MonkeyPatch) -> np.ndarray:
    return polya_difference(Stream.fixed(b"twin"), shape, scale * Fraction(102, 100), size)


def doubled_zero(shape: Fraction, scale: Fraction, size: int, _: pytest.MonkeyPatch) -> np.ndarray:
    """A fair sign before a magnitude, and what comes out −0 is drawn again as 0."""
    drawn = polya_difference(Stream.fixed(b"twin"), shape, scale, 2 * size)
    magnitude = np.abs(drawn)
    thinned = magnitude[(magnitude == 0) | (np.arange(2 * size) % 2 == 0)]
    return np.random.default_rng(1).choice([-1, 1], size) * thinned[:size]


def one_point_a_place(shape: Fraction, scale: Fraction, size: int, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Points that fall on the same cell count once."""
    points = polya._points
    monkeypatch.setattr(polya, "_points", lambda *of: (np.unique(cell) for cell in points(*of)))
    return polya_difference(Stream.fixed(b"twin"), shape, scale, size)


def no_thinning_by_length(shape: Fraction, scale: Fraction, size: int, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Lengths that do not fall as 1/j in their level."""
    rng = np.random.default_rng(1)

    def stays(stream, powers, level, length):
        bonus = np.maximum(level - powers.last + 1, 0)
        return rng.random(len(level)) < np.exp(-length / float(scale)) * 2.0**bonus * 0.7

    monkeypatch.setattr(polya, "_stays", stays)
    return polya_difference(Stream.fixed(b"twin"), shape, scale, size)


@pytest.mark.parametrize(
    "twin", [no_tail, two_percent_more, two_percent_wider, doubled_zero, one_point_a_place, no_thinning_by_length]
)
def test_a_wrong_difference_is_found_out(twin, monkeypatch):
    shape, scale = Fraction(1, 3), Fraction(10)
    assert fit(twin(shape, scale, 8 * DRAWS, monkeypatch), polya_law(shape, scale)) < LEVEL


def test_places_do_not_know_of_each_other():
    """Chi-square of neighbours and of the two halves at 1e-6: whether the one is 0 and whether the other is."""
    drawn = polya_difference(Stream.fixed(b"pairs"), Fraction(1, 10), Fraction(5), 4 * DRAWS) != 0
    for lag in (1, 2, 512, len(drawn) // 2):
        table = np.bincount(2 * drawn[:-lag] + drawn[lag:], minlength=4)
        p = drawn.mean()
        expected = np.array([(1 - p) ** 2, p * (1 - p), p * (1 - p), p * p]) * (len(drawn) - lag)
        assert chisquare(table, expected * (table.sum() / expected.sum()), ddof=1).pvalue > LEVEL


# What decides --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_powers_are_below_the_true_ones_by_less_than_two(scale):
    """Against mpmath at 60 digits: every entry. And r^(2^K) ≤ 1/2, at the least such K but for the rounding of ln 2."""
    powers = _powers(scale)
    with mpmath.workdps(60):
        log = -mpmath.mpf(scale.denominator) / scale.numerator
        for d, row in enumerate(powers.octets.tolist()):
            for v, entry in enumerate(row):
                assert 0 <= mpmath.exp(log * (v << 8 * d)) * 2**31 - entry < 2
        assert mpmath.exp(log * 2**powers.last) <= 0.5
        assert powers.last == 0 or mpmath.exp(log * 2 ** (powers.last - 1)) > 0.49
    assert powers.last + 11 <= powers.top <= 61


def chance(powers, level: int, length: int) -> mpmath.mpf:
    """P(a point stays), in mpmath's working precision."""
    bonus = max(level - powers.last + 1, 0)
    return mpmath.exp(-mpmath.mpf(length) * powers.scale.denominator / powers.scale.numerator) * (
        mpmath.mpf(2) ** (level + bonus) / length
    )


@pytest.mark.parametrize("scale", SCALES)
def test_a_point_stays_if_and_only_if_its_uniform_number_is_below(scale):
    """Words around 64 digits of the probability, so that the fast bounds cannot tell and 128 digits must."""
    powers, rng = _powers(scale), np.random.default_rng(5)
    below = []
    with mpmath.workprec(900):
        for level in range(powers.top + 1):
            for end in {0, (1 << level) - 1, int(rng.integers(0, 1 << level))}:
                length = (1 << level) + end
                p = chance(powers, level, length)
                assert 0 < p <= 1
                for words in (1, 2, 3):
                    for off in (-3, -1, 0, 1, 3):
                        uniform = int(mpmath.floor(p * mpmath.mpf(WORD) ** words)) + off
                        if not 0 <= uniform < WORD**words:
                            continue
                        pieces = [uniform >> 64 * i & (WORD - 1) for i in reversed(range(words))]
                        stream = Scripted(*pieces, *[1 << 63] * 9)
                        stays = _stays(stream, powers, np.array([level]), np.array([length]))[0]
                        assert stays == ((uniform + mpmath.mpf(0.5)) / mpmath.mpf(WORD) ** words < p)
                        below.append(stays)
    assert 0 < np.mean(below) < 1


def test_open_questions_are_rare(monkeypatch):
    """Fewer than one point in a million; an expected 0.1 here of 1.6 million."""
    asked = []
    monkeypatch.setattr(polya, "_stays_once", lambda *question: asked.append(question) or False)
    monkeypatch.setattr(polya, "_far_jump", lambda *_: np.int64(0))
    polya_difference(Stream.fixed(b"rare"), Fraction(1, 2), Fraction(1 << 30), 50_000)
    assert len(asked) < 4


@pytest.mark.slow
def test_far_jumps_have_their_law(monkeypatch):
    """Chi-square at 1e-6, with nearly every jump left to Python's integers."""
    few = polya._Powers(Fraction(3), 2, 0, _powers(Fraction(3)).octets)
    assert _powers(Fraction(3)).last == 2
    monkeypatch.setattr(polya, "_powers", lambda _: few)
    drawn = polya_difference(Stream.fixed(b"far"), Fraction(1, 3), Fraction(3), 1 << 13)
    assert fit(drawn, polya_law(Fraction(1, 3), Fraction(3))) > LEVEL


def test_a_jump_may_pass_the_end_of_64_bits(monkeypatch):
    """What is added is its length modulo 2⁶⁴; here it stays by decree, as P is about e^−2²¹."""
    within = (5 << 32) + 7  # of level 70, so below 2⁷⁰: two words, the first of them the low one, without its last 58
    words = [within << 58 & (WORD - 1), within << 58 >> 64, 1]
    powers = _powers(Fraction(1 << 50))
    assert _far_jump(Scripted(*words), powers, 70, 1) == 0
    monkeypatch.setattr(polya, "_stays_once", lambda *_: True)
    drawn = polya_difference(Stream.fixed(b"none"), Fraction(1, 1 << 40), Fraction(1), 3)
    for sign in (1, -1):
        jump = _far_jump(Scripted(*words), powers, 70, sign)
        assert int(jump) == sign * within
        np.add.at(drawn, np.int64(1), jump)
        np.add.at(drawn, np.int64(1), np.int64(-(1 << 63)))
    assert drawn.tolist() == [0, 0, 0]


def test_heads_are_counted_past_the_end_of_a_word():
    stream = Scripted(1, 0b1000, 0, 0, 1 << 63, 0, 0b100, 0b10)
    assert _heads(stream, 5).tolist() == [0, 3, 64 + 64 + 1, 64 + 2, 63]
    assert not stream.left


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "cells"), [(Fraction(1, 9000), 40), (Fraction(1, 3), 37), (Fraction(7, 2), 5)])
def test_points_fall_on_every_cell_at_their_rate(rate, cells):
    """Chi-square at 1e-6 of the cells, and of the numbers of all points (a Poisson law with its mean)."""
    stream = Stream.fixed(b"points")
    times = 20_000
    found = [np.concatenate(list(_points(stream, rate, cells))) for _ in range(times)]
    everywhere = np.concatenate(found)
    assert ((everywhere >= 0) & (everywhere < cells)).all()
    mean = float(rate * cells)
    assert abs(len(everywhere) - mean * times) < 5 * math.sqrt(mean * times)
    assert chisquare(np.bincount(everywhere, minlength=cells)).pvalue > LEVEL
    numbers = np.array([len(points) for points in found])
    assert abs(numbers.var() - mean) < 6 * math.sqrt((mean + 2 * mean**2) / times)


# Sizes and limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 63, 1000, (1 << 19) + 1])
@pytest.mark.parametrize("shape", [Fraction(1, 9000), Fraction(1, 2), Fraction(1), Fraction(7, 3)])
def test_every_size_is_drawn(shape, size):
    assert len(polya_difference(Stream.from_os(), shape, Fraction(3), size)) == size


def test_draws_repeat_only_under_a_fixed_stream():
    def draw(stream):
        return polya_difference(stream, Fraction(1, 2), Fraction(9), 500)

    assert np.array_equal(draw(Stream.fixed(b"a")), draw(Stream.fixed(b"a")))
    assert not np.array_equal(draw(Stream.from_os()), draw(Stream.from_os()))


def test_a_share_of_nearly_nothing_is_nothing():
    assert not polya_difference(Stream.fixed(b"least"), Fraction(1, 1 << 40), Fraction(1 << 50), 1 << 20).any()


def test_memory_does_not_grow_with_the_number_of_points():
    """8 MB for the numbers, and no more than 60 MB for 5 million points of their jumps and 4 rows of Laplace."""
    stream = Stream.from_os()
    polya_difference(stream, Fraction(1, 2), Fraction(20), 64)
    tracemalloc.start()
    polya_difference(stream, Fraction(9, 2), Fraction(20), 1 << 20)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 68e6


@pytest.mark.parametrize(
    ("shape", "scale", "size"),
    [
        (Fraction(0), Fraction(1), 1),
        (Fraction(1, 1 << 41), Fraction(1), 1),
        (Fraction(1), Fraction(0), 1),
        (Fraction(1), Fraction((1 << 50) + 1), 1),
        (Fraction(1), Fraction(1), -1),
    ],
)
def test_what_has_no_law_here_is_refused(shape, scale, size):
    with pytest.raises(InputError):
        polya_difference(Stream.from_os(), shape, scale, size)
