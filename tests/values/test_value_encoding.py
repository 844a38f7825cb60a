"""What a known-count encoding asks: how far values move it, by brute force, and that rounding never breaks the
bound."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.values.value_encoding import STEPS, KnownCountEncoding, ValueEncoding

VALUE_ENCODINGS = [
    ValueEncoding(0, 60),
    ValueEncoding(0, 60, 2),
    ValueEncoding(0, 60, 1, (3,)),
    ValueEncoding(0, 60, 2, (16,), (2, 1)),
    ValueEncoding(0, 60, 2, (2, 4, 3), (20, 9, 2, 1)),
]
every_value_encoding = pytest.mark.parametrize("value_encoding", VALUE_ENCODINGS, ids=str)


def counters(known_encoding: KnownCountEncoding, readings: np.ndarray, weight: int = 1) -> np.ndarray:
    """Of one person with these readings."""
    sums = known_encoding.marks[readings].sum(axis=0)[None]
    return known_encoding.shared(sums, np.array([len(readings)]), np.array([weight]))[0]


@every_value_encoding
def test_the_sensitivity_is_the_largest_difference_of_two_readings(value_encoding):
    """All 1025 × 1025 pairs; that mixtures of readings are no further apart is convexity."""
    known_encoding = KnownCountEncoding(value_encoding)
    readings = np.arange(STEPS + 1)
    each = known_encoding.shared(known_encoding.marks, np.ones_like(readings), np.ones_like(readings))
    l1 = l2_squared = 0
    for one in each:
        moved = np.abs(each - one)
        l1, l2_squared = max(l1, int(moved.sum(axis=1).max())), max(l2_squared, int((moved**2).sum(axis=1).max()))
    assert (l1, l2_squared) == (known_encoding.l1, known_encoding.l2_squared)


@every_value_encoding
@given(
    st.lists(st.integers(0, STEPS), min_size=1, max_size=9),
    st.lists(st.sampled_from([0, 1, 2, 511, 512, STEPS - 2, STEPS - 1, STEPS]), min_size=1, max_size=9),
    st.integers(1, 9),
)
def test_rounding_never_breaks_the_bound(value_encoding, some, others, weight):
    number = min(len(some), len(others))
    weight = min(weight, number)
    known_encoding = KnownCountEncoding(value_encoding)
    before, after = (counters(known_encoding, np.array(each[:number]), weight) for each in (some, others))
    moved = np.abs(after - before)
    assert moved.sum() <= weight * known_encoding.l1
    assert (moved**2).sum() <= weight**2 * known_encoding.l2_squared


def test_rounding_each_counter_on_its_own_would_break_it():
    """The twin that must fail: the two counters of the moments, rounded to whole numbers one by one, at weight 1."""
    y = np.arange(STEPS + 1)
    exact = np.stack([y * STEPS, y * (STEPS - y)])
    far = 0
    for number in range(2, 8):
        for near in range(number + 1):
            for away in range(number + 1):
                low = [Fraction(near * int(c[1]) + (number - near) * int(c[0]), number) for c in exact]
                high = [Fraction(away * int(c[-2]) + (number - away) * int(c[-1]), number) for c in exact]
                ends = zip(low, high, strict=True)
                far = max(far, sum(abs(-((-b) // 1) - a // 1) for a, b in ends))
    assert far > STEPS**2


@every_value_encoding
@given(st.lists(st.integers(0, STEPS), min_size=1, max_size=30))
def test_counters_are_the_means_of_what_records_say(value_encoding, readings):
    known_encoding, y = KnownCountEncoding(value_encoding), np.array(readings) / STEPS
    found = counters(known_encoding, np.array(readings)).astype(float)
    assert found[0] / known_encoding.scales[0] == pytest.approx(y.mean(), abs=2e-6)
    if value_encoding.degree == 2:
        assert found[1] / known_encoding.scales[0] == pytest.approx((y * (1 - y)).mean(), abs=2e-6)
    first = value_encoding.degree
    for size, scale in zip(value_encoding.levels, known_encoding.scales[1:], strict=True):
        bins = found[first : first + size]
        assert bins.min() >= 0 and bins.sum() == scale
        wanted = np.histogram(np.minimum((y * size).astype(int), size - 1), np.arange(size + 1))[0]
        assert bins / scale == pytest.approx(wanted / len(y), abs=2e-6)
        first += size
    assert first == len(found)


def test_a_person_with_very_many_records_does_not_overflow():
    known_encoding = KnownCountEncoding(VALUE_ENCODINGS[3])
    number = 1 << 34
    sums = known_encoding.marks[STEPS][None] * number
    assert (known_encoding.shared(sums, np.array([number]), np.array([1 << 16]))[0, 0] >> 16) == known_encoding.scales[
        0
    ]
