"""The field in limbs against whole numbers: every operation, at the ends of its range first."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from hazemap.federated.protocols.secure_aggregation.shamir_sharing import (
    PRIME,
    PRIME_BYTES,
    _multiplied,
    _negated,
    elements_of,
    evaluated,
    inverted,
    limbs_of,
    weighed,
    weights_at_zero,
)

LAST = PRIME - 1
ends = st.sampled_from([0, 1, 92, 93, 94, 2**24 - 1, 2**256 - 1, 2**256, 2**257 - 187, LAST - 1, LAST])
elements = ends | st.integers(0, LAST)
points = st.sampled_from([1, 2, 2**32 - 2, 2**32 - 1]) | st.integers(1, 2**32 - 1)
loose = st.lists(st.sampled_from([0, 1, 2**17 - 1, 2**24 - 1, 2**24, 2**25 - 1]), min_size=11, max_size=11)


def limbs(numbers) -> np.ndarray:
    return limbs_of(np.frombuffer(b"".join(n.to_bytes(33, "big") for n in numbers), np.uint8).reshape(-1, 33))


def whole(rows) -> list[int]:
    """What loose limbs are, as whole numbers, without the code under test."""
    return [sum(int(limb) << 24 * i for i, limb in enumerate(row)) for row in rows.reshape(-1, 11)]


def settled(rows) -> list[int]:
    return [int.from_bytes(element.tobytes(), "big") for element in elements_of(rows.reshape(-1, 11).copy())]


def test_the_modulus_is_a_prime_above_every_secret():
    """Miller and Rabin's test to 64 bases: a composite passes with probability below 2⁻¹²⁸."""
    assert PRIME > 2**256 and int.from_bytes(PRIME_BYTES, "big") == PRIME
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    rng = np.random.default_rng(0)
    for _ in range(64):
        x = pow(int.from_bytes(rng.bytes(32), "big"), odd, PRIME)
        assert x == 1 or any(pow(x, 2**i, PRIME) == PRIME - 1 for i in range(twos))


@given(st.lists(elements, min_size=1))
def test_elements_become_limbs_and_elements_again(numbers):
    assert whole(limbs(numbers)) == numbers
    assert settled(limbs(numbers)) == numbers


@given(loose)
@example([2**25 - 1] * 11)
@example([2**24 - 93] + [2**24 - 1] * 9 + [2**17 - 1])  # p itself
@example([2**24 - 94] + [2**24 - 1] * 9 + [2**17 - 1])
@example([2**24 - 1] * 10 + [2**17 - 1])
@example([2**24 - 1] * 10 + [2**18 - 1])
@example([2**24 - 1] * 11)
def test_loose_limbs_are_settled_below_the_prime(limbs):
    rows = np.array([limbs], dtype=np.uint64)
    assert settled(rows) == [whole(rows)[0] % PRIME]


@given(loose, loose)
@example([2**25 - 1] * 11, [2**25 - 1] * 11)
def test_products_are_those_of_whole_numbers(left, right):
    left, right = np.array(left, dtype=np.uint64), np.array(right, dtype=np.uint64)
    expected = whole(left)[0] * whole(right)[0] % PRIME
    columns, product = np.empty(22, dtype=np.uint64), np.empty(11, dtype=np.uint64)
    _multiplied(left, right, columns, product)
    assert product.max() < 2**25
    assert whole(product)[0] % PRIME == expected == settled(product)[0]
    _multiplied(left, right, columns, left)  # in place
    assert settled(left) == [expected]


@given(loose)
@example([0] * 11)
def test_negatives_cancel(limbs):
    row = np.array(limbs, dtype=np.uint64)
    expected = -whole(row)[0] % PRIME
    _negated(row)
    assert row.max() < 2**24
    assert settled(row) == [expected]


@given(st.lists(elements.filter(bool), min_size=1, max_size=20))
def test_inverses_are_those_of_whole_numbers(numbers):
    rows = limbs(numbers)
    inverted(rows)
    assert settled(rows) == [pow(number, -1, PRIME) for number in numbers]


@given(
    st.integers(1, 6).flatmap(lambda t: st.lists(st.lists(elements, min_size=t, max_size=t), min_size=1, max_size=3)),
    st.lists(points, min_size=1, max_size=6),
)
@example([[LAST] * 60], [2**32 - 1, 1])
def test_polynomials_have_the_values_of_whole_numbers(coefficients, at):
    rows = np.array([limbs(row) for row in coefficients])
    values = evaluated(rows, np.array(at, dtype=np.uint32))
    expected = [sum(c * x**i for i, c in enumerate(row)) % PRIME for row in coefficients for x in at]
    assert values.max() < 2**25
    assert settled(values) == expected


@given(st.lists(st.lists(points, min_size=4, max_size=4, unique=True).map(sorted), min_size=1, max_size=3))
def test_weights_are_lagranges(sets):
    weights = weights_at_zero(np.array(sets, dtype=np.uint32))
    expected = []
    for xs in sets:
        for x in xs:
            top = bottom = 1
            for other in xs:
                if other != x:
                    top, bottom = top * other % PRIME, bottom * (other - x) % PRIME
            expected.append(top * pow(bottom, -1, PRIME) % PRIME)
    assert settled(weights) == expected


@given(st.integers(1, 3), st.integers(1, 5), st.data())
def test_weighed_sums_are_those_of_whole_numbers(sets, size, data):
    rows = st.lists(elements, min_size=size, max_size=size)
    weights = data.draw(st.lists(rows, min_size=sets, max_size=sets))
    which = data.draw(st.lists(st.integers(0, sets - 1), min_size=1, max_size=4))
    values = [data.draw(rows) for _ in which]
    told = weighed(np.array([limbs(w) for w in weights]), np.array(which), np.array([limbs(v) for v in values]))
    assert settled(told) == [
        sum(w * v for w, v in zip(weights[s], row, strict=True)) % PRIME for s, row in zip(which, values, strict=True)
    ]


def test_a_long_sum_of_the_largest_products_does_not_run_over():
    most = np.full((1, 1000, 11), 2**24 - 1, dtype=np.uint64)
    assert settled(weighed(most, np.array([0]), most)) == [1000 * (2**264 - 1) ** 2 % PRIME]
