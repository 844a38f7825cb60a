"""A ruler reads any number as a whole one between its ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.domains.ruler import Ruler
from hazemap.errors import InputError


@given(st.floats(-10, 80), st.integers(1, 1 << 16))
def test_a_reading_is_off_by_half_a_step_at_most_after_clipping(value, steps):
    ruler = Ruler(-3, 65, steps)
    reading = int(ruler.read(np.array([value]))[0])
    assert 0 <= reading <= steps
    assert abs(ruler.value(reading) - min(max(value, -3), 65)) <= ruler.width(0.5) * (1 + 1e-9)


def test_infinite_values_are_clipped_and_nan_is_refused():
    assert Ruler(0, 1, 8).read(np.array([-np.inf, np.inf])).tolist() == [0, 8]
    with pytest.raises(InputError, match="leave such rows out"):
        Ruler(0, 1).read(np.array([np.nan]))


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_a_ruler_needs_two_ends_in_order(ends):
    with pytest.raises(InputError, match="two numbers"):
        Ruler(*ends)


@pytest.mark.parametrize("steps", [0, (1 << 16) + 1])
def test_a_ruler_has_steps_of_which_sums_fit(steps):
    with pytest.raises(InputError, match="steps"):
        Ruler(0, 1, steps)
