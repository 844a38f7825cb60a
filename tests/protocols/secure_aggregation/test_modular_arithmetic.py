"""Numbers modulo 2^b: what is reduced is lifted again, and sums survive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.protocols.secure_aggregation.modular_arithmetic import lifted, reduced, word


@given(st.integers(1, 32), st.data())
def test_a_sum_of_reduced_vectors_is_lifted_to_the_sum_if_it_fits(bits, data):
    half = 1 << bits - 1
    total = data.draw(st.lists(st.integers(-half, half - 1), min_size=1, max_size=5))
    parts = [data.draw(st.lists(st.integers(-(2**62), 2**62), min_size=len(total), max_size=len(total)))] * 3
    last = [whole - sum(part[i] for part in parts) for i, whole in enumerate(total)]
    exact = [(value + 2**63) % 2**64 - 2**63 for value in last]  # modulo 2⁶⁴, which 2^b divides
    running = reduced(np.array(exact, dtype=np.int64), bits)
    for part in parts:
        running += reduced(np.array(part, dtype=np.int64), bits)
    assert lifted(running, bits).tolist() == total


@given(st.integers(1, 32), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_reduction_is_that_of_whole_numbers(bits, numbers):
    vector = np.array(numbers, dtype=np.int64)
    kept = vector.copy()
    words = reduced(vector, bits)
    assert words.dtype == word(bits)
    assert words.tolist() == [number % 2**bits for number in numbers]
    assert np.array_equal(vector, kept)


def test_the_ends_of_the_range_are_lifted_to_themselves():
    for bits in range(1, 33):
        ends = [-(1 << bits - 1), -1, 0, (1 << bits - 1) - 1]
        assert lifted(reduced(np.array(ends), bits), bits).tolist() == ends


@pytest.mark.parametrize("bits", [0, -1, 33])
def test_no_word_holds_another_modulus(bits):
    for ask in (word, lambda b: reduced(np.zeros(1, np.int64), b), lambda b: lifted(np.zeros(1, np.uint16), b)):
        with pytest.raises(InputError):
            ask(bits)
