"""Arithmetic modulo 2^255 - 19 on arrays of words, against whole numbers."""

import random

from hazemap.protocols.vdaf import field255

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
