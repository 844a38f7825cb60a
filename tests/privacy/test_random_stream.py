"""Words: uniform, reproducible only where asked, and never given twice."""

import copy
import os
import pickle
import threading
from hashlib import sha256

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.stats import chisquare

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream


def counter_mode(seed: bytes, blocks: int) -> np.ndarray:
    """AES-256 in counter mode as the standard (NIST SP 800-38A) writes it: encrypt 0, 1, 2, …, big-endian."""
    one_block = Cipher(algorithms.AES(sha256(seed).digest()), modes.ECB()).encryptor()
    keystream = b"".join(one_block.update(i.to_bytes(16, "big")) for i in range(blocks))
    return np.array([int.from_bytes(keystream[i : i + 8], "little") for i in range(0, 16 * blocks, 8)], dtype=np.uint64)


def in_a_child(work) -> bytes:
    """What `work` returns in a forked child."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(send, work())
        finally:
            os._exit(0)
    os.close(send)
    said = b""
    while part := os.read(receive, 1 << 16):
        said += part
    os.close(receive)
    os.waitpid(child, 0)
    return said


def test_words_are_the_keystream_of_aes_256_in_counter_mode():
    assert np.array_equal(Stream.fixed(b"seed").words(1 << 15), counter_mode(b"seed", 1 << 14))


def test_words_taken_in_pieces_are_the_words_taken_at_once():
    whole, pieces = Stream.fixed(b"seed"), Stream.fixed(b"seed")
    lengths = [0, 1, 1, 2, 3, 1 << 14, (1 << 14) + 1, 5]
    assert np.array_equal(whole.words(sum(lengths)), np.concatenate([pieces.words(n) for n in lengths]))


def test_a_fixed_stream_repeats_and_another_seed_differs():
    assert np.array_equal(Stream.fixed(b"a").words(100), Stream.fixed(b"a").words(100))
    assert not np.intersect1d(Stream.fixed(b"a").words(100), Stream.fixed(b"b").words(100)).size


def test_streams_of_the_system_never_agree():
    words = np.concatenate([Stream.from_os().words(1000) for _ in range(10)])
    assert len(np.unique(words)) == len(words)  # false alarm: 10⁸ / 2⁶⁵ < 10⁻¹¹


def test_words_can_be_written_to():
    words = Stream.from_os().words(2)
    words[:] = 0
    assert words.dtype == np.uint64


def test_a_forked_child_does_not_repeat_its_parents_words():
    stream = Stream.from_os()
    stream.words(3)
    child = np.frombuffer(in_a_child(lambda: stream.words(1000).tobytes()), dtype=np.uint64)
    parent = stream.words(1000)
    assert len(child) == 1000
    assert not np.intersect1d(child, parent).size


def test_a_child_forked_while_another_thread_draws_does_not_wait_for_that_thread():
    stream = Stream.from_os()
    with stream._keystream.lock:
        assert len(in_a_child(lambda: stream.words(4).tobytes())) == 32


def test_a_fixed_stream_refuses_to_be_used_in_a_forked_child():
    stream = Stream.fixed(b"seed")

    def attempt() -> bytes:
        try:
            return stream.words(1).tobytes()
        except InputError as error:
            return str(error).encode()

    assert b"repeat its parent's words" in in_a_child(attempt)


def test_threads_share_the_words_between_them():
    stream = Stream.fixed(b"threads")
    drawn: list[np.ndarray] = []

    def draw() -> None:
        drawn.extend([stream.words(1 + i % 7) for i in range(2000)])

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = np.concatenate(drawn)
    assert np.array_equal(np.sort(together), np.sort(Stream.fixed(b"threads").words(len(together))))


@pytest.mark.parametrize("again", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_stream_cannot_be_copied(again):
    with pytest.raises(TypeError, match="used twice"):
        again(Stream.from_os())


def test_a_negative_number_of_words_is_refused():
    with pytest.raises(InputError, match="negative number of words: -1"):
        Stream.from_os().words(-1)


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 100])
def test_below_is_uniform(bound):
    """Chi-square at 1e-6, on a fixed stream."""
    stream = Stream.fixed(b"below")
    assert chisquare(np.bincount([stream.below(bound) for _ in range(20_000)], minlength=bound)).pvalue > 1e-6


def test_below_reaches_past_one_word():
    stream = Stream.fixed(b"below")
    bound = 3 << 100
    drawn = [stream.below(bound) for _ in range(3000)]
    assert all(0 <= value < bound for value in drawn)
    assert chisquare(np.bincount([value >> 100 for value in drawn])).pvalue > 1e-6
    assert len(set(drawn)) == 3000


def test_below_one_is_zero_and_below_zero_is_refused():
    assert Stream.from_os().below(1) == 0
    with pytest.raises(InputError, match="at least 1"):
        Stream.from_os().below(0)
