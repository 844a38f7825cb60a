"""A quantizer reads any number as a whole one between its ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.values.quantizer import Quantizer


@given(st.floats(-10, 80), st.integers(1, 1 << 16))
def test_a_reading_is_off_by_half_a_step_at_most_after_clipping(value, steps):
    quantizer = Quantizer(-3, 65, steps)
    reading = int(quantizer.read(np.array([value]))[0])
    assert 0 <= reading <= steps
    assert abs(quantizer.value(reading) - min(max(value, -3), 65)) <= quantizer.width(0.5) * (1 + 1e-9)


def test_infinite_values_are_clipped_and_nan_is_refused():
    assert Quantizer(0, 1, 8).read(np.array([-np.inf, np.inf])).tolist() == [0, 8]
    with pytest.raises(InputError, match="leave such rows out"):
        Quantizer(0, 1).read(np.array([np.nan]))


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_a_quantizer_needs_two_ends_in_order(ends):
    with pytest.raises(InputError, match="below the upper one"):
        Quantizer(*ends)


@pytest.mark.parametrize("ends", [(-1e200, 0), (0, 1.1e15), (0, 1e-16), (1e6, 1e6 + 1e-7), (-2.0 - 1e-12, -2.0)])
def test_bounds_whose_squares_or_steps_a_float_does_not_hold_are_refused(ends):
    with pytest.raises(InputError, match="choose another unit"):
        Quantizer(*ends)
    assert np.isfinite(np.float32(Quantizer(-1e15, 1e15).width(1 << 12)) ** 2)


@pytest.mark.parametrize("steps", [0, (1 << 16) + 1])
def test_a_quantizer_has_steps_of_which_sums_fit(steps):
    with pytest.raises(InputError, match="steps"):
        Quantizer(0, 1, steps)
