"""Masks: the published keystream, words that wrap, and sums from which every mask has gone."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.masks import add_mask, subtract_mask

LENGTHS = [0, 1, 7, 8, 9, 1 << 14, (1 << 14) + 1, (1 << 15) - 1, 1 << 15, 65_536, 100_003]


def keystream(key: bytes, length: int) -> bytes:
    """Counter mode as the standard writes it: encrypt 0, 1, 2, …, big-endian, one block at a time."""
    block = Cipher(algorithms.AES128(key), modes.ECB()).encryptor()
    return block.update(b"".join(i.to_bytes(16, "big") for i in range(-(-length // 16))))[:length]


def test_counter_mode_is_the_published_one():
    """NIST SP 800-38A, F.5.1."""
    cipher = Cipher(
        algorithms.AES128(bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")),
        modes.CTR(bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")),
    ).encryptor()
    plain = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    sealed = "874d6191b620e3261bef6864990db6ce9806f66b7970fdff8617187bb9fffdff"
    assert cipher.update(bytes.fromhex(plain)).hex() == sealed


def test_the_mask_of_the_zero_key_is_the_published_blocks():
    """AES-128 of the blocks 0 and 1 under the zero key (McGrew and Viega 2004, GCM, test cases 1 and 2)."""
    vector = np.zeros(8, dtype=np.uint32)
    add_mask(vector, bytes(16))
    assert vector.astype("<u4").tobytes().hex() == "66e94bd4ef8a2c3b884cfa59ca342b2e58e2fccefa7e3061367f1d57a4e7455a"


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_mask_is_the_keystream_added_word_by_word_and_wraps(kind, length):
    key = os.urandom(16)
    start = np.random.default_rng(1).integers(0, np.iinfo(kind).max, length, endpoint=True).astype(kind)
    words = np.frombuffer(keystream(key, start.nbytes), dtype=np.dtype(kind).newbyteorder("<"))
    modulus = 1 << 8 * start.itemsize
    vector = start.copy()
    add_mask(vector, key)
    assert np.array_equal(vector, (start.astype(np.int64) + words) % modulus)
    subtract_mask(vector, key)
    assert np.array_equal(vector, start)
    subtract_mask(vector, key)
    assert np.array_equal(vector, (start.astype(np.int64) - words) % modulus)


@given(st.integers(2, 8), st.integers(1, 40), st.sampled_from([np.uint16, np.uint32]), st.integers(0, 2**32))
def test_the_masks_of_all_pairs_cancel_in_the_sum(people, size, kind, seed):
    rng = np.random.default_rng(seed)
    plain = rng.integers(0, np.iinfo(kind).max, (people, size), endpoint=True).astype(kind)
    masked = plain.copy()
    for one in range(people):
        for other in range(one):
            key = rng.bytes(16)
            add_mask(masked[one], key)
            subtract_mask(masked[other], key)
    assert np.array_equal(masked.sum(axis=0, dtype=kind), plain.sum(axis=0, dtype=kind))
    assert not np.array_equal(masked, plain) or size * 8 * plain.itemsize < 40


def test_a_piece_of_a_vector_is_masked_and_its_neighbours_are_not():
    vector = np.zeros(30, dtype=np.uint16)
    add_mask(vector[10:20], b"k" * 16)
    assert vector[10:20].any() and not vector[:10].any() and not vector[20:].any()


def test_threads_mask_at_once_without_mixing_their_masks():
    keys = [bytes([i]) * 16 for i in range(8)]

    def masked(key: bytes) -> bytes:
        vector = np.zeros(100_000, dtype=np.uint32)
        for _ in range(21):
            add_mask(vector, key)
        for _ in range(20):
            subtract_mask(vector, key)
        return vector.astype("<u4").tobytes()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(masked, keys)) == [keystream(key, 400_000) for key in keys]


def test_a_mask_is_for_words_that_can_be_written_in_place():
    frozen = np.zeros(4, dtype=np.uint32)
    frozen.flags.writeable = False
    wrong = [
        frozen,
        np.zeros(4, dtype=np.int64),
        np.zeros(4, dtype=np.uint64),
        np.zeros(4, dtype=">u4"),
        np.zeros((2, 2), dtype=np.uint32),
        np.zeros(8, dtype=np.uint32)[::2],
    ]
    for vector in wrong:
        with pytest.raises(InputError):
            add_mask(vector, bytes(16))
        assert not vector.any()


@pytest.mark.parametrize("length", [0, 15, 17, 32])
def test_a_mask_has_a_key_of_sixteen_bytes(length):
    with pytest.raises(InputError):
        subtract_mask(np.zeros(4, dtype=np.uint32), bytes(length))
