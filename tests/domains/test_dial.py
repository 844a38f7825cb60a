"""What a dial asks: how far values move it, by brute force, and that rounding never breaks the bound."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.domains import Gauge
from hazemap.domains.dial import Dial
from hazemap.domains.gauge import STEPS

GAUGES = [Gauge(0, 60), Gauge(0, 60, 2), Gauge(0, 60, 1, 3), Gauge(0, 60, 2, 16, (2, 1)), Gauge(0, 60, 2, 2, (3, 5))]
every_gauge = pytest.mark.parametrize("gauge", GAUGES, ids=str)


def counters(dial: Dial, readings: np.ndarray, weight: int = 1) -> np.ndarray:
    """Of one person with these readings."""
    sums = dial.marks[readings].sum(axis=0)[None]
    return dial.shared(sums, np.array([len(readings)]), np.array([weight]))[0]


@every_gauge
def test_the_sensitivity_is_the_largest_difference_of_two_readings(gauge):
    """All 1025 × 1025 pairs; that mixtures of readings are no further apart is convexity."""
    dial = Dial(gauge)
    readings = np.arange(STEPS + 1)
    each = dial.shared(dial.marks, np.ones_like(readings), np.ones_like(readings))
    l1 = l2_squared = 0
    for one in each:
        moved = np.abs(each - one)
        l1, l2_squared = max(l1, int(moved.sum(axis=1).max())), max(l2_squared, int((moved**2).sum(axis=1).max()))
    assert (l1, l2_squared) == (dial.l1, dial.l2_squared)


@every_gauge
@given(
    st.lists(st.integers(0, STEPS), min_size=1, max_size=9),
    st.lists(st.sampled_from([0, 1, 2, 511, 512, STEPS - 2, STEPS - 1, STEPS]), min_size=1, max_size=9),
    st.integers(1, 9),
)
def test_rounding_never_breaks_the_bound(gauge, some, others, weight):
    number = min(len(some), len(others))
    weight = min(weight, number)
    dial = Dial(gauge)
    before, after = (counters(dial, np.array(each[:number]), weight) for each in (some, others))
    moved = np.abs(after - before)
    assert moved.sum() <= weight * dial.l1
    assert (moved**2).sum() <= weight**2 * dial.l2_squared


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


@every_gauge
@given(st.lists(st.integers(0, STEPS), min_size=1, max_size=30))
def test_counters_are_the_means_of_what_records_say(gauge, readings):
    dial, y = Dial(gauge), np.array(readings) / STEPS
    found = counters(dial, np.array(readings)).astype(float)
    assert found[0] / dial.scales[0] == pytest.approx(y.mean(), abs=2e-6)
    if gauge.degree == 2:
        assert found[1] / dial.scales[0] == pytest.approx((y * (1 - y)).mean(), abs=2e-6)
    if gauge.bins:
        bins = found[gauge.degree :]
        assert bins.min() >= 0 and bins.sum() == dial.scales[1]
        wanted = np.histogram(np.minimum((y * gauge.bins).astype(int), gauge.bins - 1), np.arange(gauge.bins + 1))[0]
        assert bins / dial.scales[1] == pytest.approx(wanted / len(y), abs=2e-6)


def test_a_person_with_very_many_records_does_not_overflow():
    dial = Dial(GAUGES[3])
    number = 1 << 34
    sums = dial.marks[STEPS][None] * number
    assert (dial.shared(sums, np.array([number]), np.array([1 << 16]))[0, 0] >> 16) == dial.scales[0]
