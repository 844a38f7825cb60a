"""Field elements of many messages at once, as plain Python draws them; and the draws that come once in 2^32."""

import random

import numpy as np
import pytest

from hazemap.vdaf import field255, turboshake128_kernels
from hazemap.vdaf.aes128_kernels import expand_key
from hazemap.vdaf.idpf import MODULUS_INNER, elements
from hazemap.vdaf.poplar1_kernels import redraw, walk
from hazemap.vdaf.xofs import TurboShake128, XofFixedKeyAes128

AGAIN_AES = 246_910_565
"""Under a key of zeros, a seed whose expansion has a word in the first two after block 0 that is no element."""
AGAIN_TURBOSHAKE = 56_854_638
"""As a message's first word, before 16 bytes of zeros: word 16 of the output is no element."""


@pytest.mark.parametrize(("count", "length", "skipped"), [(1, 0, 0), (7, 166, 5), (9, 167, 0), (16, 400, 60)])
def test_elements_of_many_messages_are_those_of_each(count, length, skipped):
    draw = random.Random(count)
    head, tails = draw.randbytes(length // 2), [draw.randbytes(length - length // 2) for _ in range(count)]
    rows = np.frombuffer(b"".join(tails), dtype=np.uint8).reshape(count, -1)
    messages = turboshake128_kernels.padded([head, rows, b""], 1)
    assert len(messages) == count
    inner, leaf = np.empty((count, 70), dtype=np.uint64), np.empty((count, 70, 4), dtype=np.uint64)
    words = np.empty((count, 21), dtype=np.uint64)
    turboshake128_kernels.elements64(messages, skipped, inner)
    turboshake128_kernels.elements255(messages, leaf)
    turboshake128_kernels.squeezed(messages, words)
    for i, tail in enumerate(tails):
        plain = elements(TurboShake128(head + tail, 1), MODULUS_INNER, 8, skipped + 70)
        assert inner[i].tolist() == plain[skipped:]
        assert field255.to_ints(leaf[i]) == elements(TurboShake128(head + tail, 1), field255.MODULUS, 32, 70)
        assert words[i].tobytes() == TurboShake128(head + tail, 1).next(168)


def test_a_word_that_is_no_element_is_drawn_again():
    message = AGAIN_TURBOSHAKE.to_bytes(8, "little") + bytes(16)
    stream = TurboShake128(message, 1).next(21 * 8)
    assert int.from_bytes(stream[16 * 8 : 17 * 8], "little") >= MODULUS_INNER
    found = np.empty((1, 40), dtype=np.uint64)
    turboshake128_kernels.elements64(turboshake128_kernels.padded([message], 1), 0, found)
    assert found[0].tolist() == elements(TurboShake128(message, 1), MODULUS_INNER, 8, 40)


def test_an_element_of_a_node_is_drawn_again_where_the_first_is_none():
    seed, zeros = AGAIN_AES.to_bytes(16, "little"), bytes(16)
    plain = XofFixedKeyAes128(seed, zeros)
    next_seed = plain.next(16)
    expected = elements(plain, MODULUS_INNER, 8, 2)
    raw = XofFixedKeyAes128(seed, zeros).next(32)
    assert max(int.from_bytes(raw[at : at + 8], "little") for at in (16, 24)) >= MODULUS_INNER
    keys, drawn = np.empty((11, 2), dtype=np.uint64), np.zeros(2, dtype=np.uint64)
    expand_key(np.uint64(0), np.uint64(0), keys)
    redraw(keys, np.array([AGAIN_AES, 0], dtype=np.uint64), drawn)
    assert drawn.tolist() == expected
    left = int.from_bytes(XofFixedKeyAes128(zeros, zeros).next(16), "little") & ~1
    word = left ^ AGAIN_AES & ~1  # a correction that leads to this seed, but for its lowest bit
    assert AGAIN_AES & 1
    word |= 1
    ends, bits, values = np.empty((1, 1, 2), np.uint64), np.empty((1, 1), np.uint8), np.zeros((1, 1, 2), np.uint64)
    walk(
        np.zeros((1, 2, 2), dtype=np.uint64),
        np.array([[[word & 2**64 - 1, word >> 64]]], dtype=np.uint64),
        np.zeros((1, 1, 2), dtype=np.uint8),
        np.array([0]),
        np.array([0, 1]),
        0,
        np.zeros((1, 1, 2), dtype=np.uint64),
        np.ones((1, 1), dtype=np.uint8),
        ends,
        bits,
        values,
    )
    assert ends.tobytes() == next_seed
    assert values[0, 0].tolist() == expected
