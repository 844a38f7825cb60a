"""Arithmetic modulo 2^255 - 19 and 2^64 - 2^32 + 1, on arrays and in loops, against whole numbers."""

import random
from itertools import accumulate

import numpy as np

from hazemap.vdaf import field255
from hazemap.vdaf.compiled_loops import compiled
from hazemap.vdaf.field_kernels import (
    accumulated255,
    canonical255,
    element255,
    negative64,
    negative255,
    product255,
    reduced64,
    reduced255,
    store255,
    sum64,
    sum255,
)

ZERO, ALL = np.uint64(0), np.uint64(2**64 - 1)
EDGES = [0, 1, 18, 19, 2**64 - 1, 2**64, 2**128 - 1, 2**192, field255.MODULUS - 1, field255.MODULUS - 19, 2**254]


def test_sums_and_negatives_are_those_of_whole_numbers():
    draw = random.Random(1)
    numbers = EDGES + [draw.randrange(field255.MODULUS) for _ in range(100)]
    a = [x for x in numbers for _ in numbers]
    b = [y for _ in numbers for y in numbers]
    sums = field255.to_ints(field255.add(field255.from_ints(a), field255.from_ints(b)))
    assert sums == [(x + y) % field255.MODULUS for x, y in zip(a, b, strict=True)]
    negatives = field255.to_ints(field255.negative(field255.from_ints(numbers)))
    assert negatives == [-x % field255.MODULUS for x in numbers]


def test_an_element_is_below_the_modulus():
    numbers = [*EDGES, field255.MODULUS, field255.MODULUS + 1, 2**255 - 1, 2**255, 2**256 - 1, 2**255 + 5]
    below = field255.below_modulus(field255.from_ints(numbers))
    assert below.tolist() == [x < field255.MODULUS for x in numbers]


@compiled
def combine(left, right, results):
    """Products, sums and negatives of rows."""
    total = (ZERO, ZERO, ZERO, ZERO, ZERO)
    for i in range(left.shape[0]):
        x, y = element255(left, i), element255(right, i)
        product = product255(x, y)
        store255(reduced255(accumulated255((ZERO, ZERO, ZERO, ZERO, ZERO), product)), results[0], i)
        total = accumulated255(accumulated255(total, product), (x[0], x[1], x[2], ALL))  # of numbers near 2^256 too
        store255(reduced255(total), results[3], i)
        store255(canonical255(sum255(x, y)), results[1], i)
        store255(negative255(canonical255(x)), results[2], i)


def test_loops_multiply_add_and_negate_as_whole_numbers_do():
    """Also numbers from the modulus to 2^255, which sums and products may be."""
    p = field255.MODULUS
    draw = random.Random(2)
    numbers = [*EDGES, p, p + 1, 2**255 - 1, (2**255 - 1) // 3, 37, 38, *(draw.randrange(p) for _ in range(20))]
    a = [x for x in numbers for _ in numbers]
    b = [y for _ in numbers for y in numbers]
    left, right = field255.from_ints(a), field255.from_ints(b)
    results = np.empty((4, len(a), 4), dtype=np.uint64)
    combine(left, right, results)
    assert field255.to_ints(results[0]) == [x * y % p for x, y in zip(a, b, strict=True)]
    assert field255.to_ints(results[1]) == [(x + y) % p for x, y in zip(a, b, strict=True)]
    assert field255.to_ints(results[2]) == [-x % p for x in a]
    terms = [x * y + x % 2**192 + (2**64 - 1 << 192) for x, y in zip(a, b, strict=True)]
    assert field255.to_ints(results[3]) == [total % p for total in accumulate(terms)]


def test_words_of_field64_are_reduced_as_whole_numbers_are():
    p = 2**64 - 2**32 + 1
    edges = [0, 1, 2**32 - 1, 2**32, 2**32 + 1, p - 1, p, 2**64 - 1, 2**64 - 2**32, 2**63]
    words = np.array(edges, dtype=np.uint64)
    for low, a in zip(words, edges, strict=True):
        for high, b in zip(words, edges, strict=True):
            assert int(reduced64(low, high)) == (a + (b << 64)) % p
            if max(a, b) < p:
                assert int(sum64(low, high)) == (a + b) % p
        if a < p:
            assert int(negative64(low)) == -a % p
