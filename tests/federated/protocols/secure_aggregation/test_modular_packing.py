"""Numbers modulo 2^b: what is reduced is lifted again, and sums survive."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError, InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import (
    lifted,
    pack,
    packed_length,
    reduced,
    unpack,
    word,
)


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


EVERY = range(1, 33)


def by_the_book(numbers, bits) -> bytes:
    """One big number whose b-bit digits are the vector: slow and plain."""
    whole = sum((number % 2**bits) << i * bits for i, number in enumerate(numbers))
    return whole.to_bytes((len(numbers) * bits + 7) // 8, "little")


@pytest.mark.parametrize("bits", EVERY)
def test_every_width_is_packed_by_the_book_and_comes_back(bits):
    for size in (0, 1, 2, 7, 8, 31, 33, 1000):
        numbers = np.random.default_rng(bits).integers(0, 2**bits, size).astype(word(bits))
        numbers[: size // 3] = 2**bits - 1
        data = pack(numbers, bits)
        assert data == by_the_book(numbers.tolist(), bits)
        assert len(data) == packed_length(size, bits)
        again = unpack(data, size, bits)
        assert again.dtype == word(bits)
        assert np.array_equal(again, numbers)
        again[:] = 0  # the caller's own


@given(st.integers(1, 32), st.data())
def test_bits_above_the_modulus_are_left_behind(bits, data):
    numbers = data.draw(st.lists(st.integers(0, np.iinfo(word(bits)).max), max_size=50))
    packed = pack(np.array(numbers, dtype=word(bits)), bits)
    assert packed == by_the_book(numbers, bits)
    assert unpack(packed, len(numbers), bits).tolist() == [number % 2**bits for number in numbers]


@given(st.integers(1, 32), st.integers(0, 40), st.binary(max_size=200))
def test_any_bytes_are_a_vector_with_this_one_encoding_or_no_vector(bits, size, data):
    try:
        vector = unpack(data, size, bits)
    except CodecError:
        spare = -size * bits % 8
        assert len(data) != packed_length(size, bits) or data[-1] >> (8 - spare)
    else:
        assert pack(vector, bits) == data


def test_a_padding_bit_that_is_set_is_refused():
    for bits in EVERY:
        for size in range(1, 9):
            data = bytearray(pack(np.zeros(size, dtype=word(bits)), bits))
            for bit in range(size * bits, 8 * len(data)):
                data[-1] = 1 << bit % 8
                with pytest.raises(CodecError):
                    unpack(bytes(data), size, bits)


def test_a_vector_of_every_other_word_is_packed_as_it_reads():
    for bits in (12, 16, 20, 32):
        vector = np.arange(20, dtype=word(bits))
        assert pack(vector[::2], bits) == pack(vector[::2].copy(), bits)


def test_a_vector_of_other_words_than_its_width_asks_for_is_an_error():
    for vector, bits in [
        (np.zeros(3, np.uint32), 16),
        (np.zeros(3, np.uint16), 17),
        (np.zeros((3, 1), np.uint16), 16),
        (np.zeros(3, np.int64), 32),
    ]:
        with pytest.raises(InputError):
            pack(vector, bits)
    for bits in (0, 33):
        with pytest.raises(InputError):
            unpack(b"", 0, bits)


def test_a_size_that_nobody_could_send_is_refused_before_memory_is_taken():
    for size in (-1, 2**62):
        with pytest.raises(CodecError):
            unpack(b"", size, 20)
