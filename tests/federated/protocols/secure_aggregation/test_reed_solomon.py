"""Liars: named as long as the true shares leave one polynomial only, and never an honest one instead."""

import os
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError, NotOpened
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import (
    decoded,
    interpolated,
    join_with_errors,
    split,
    value,
)


@st.composite
def lies(draw):
    """A secret, a threshold, shares of which some at most ⌊(m − t)/2⌋ were changed, and who changed them."""
    at = draw(st.lists(st.integers(1, 40) | st.integers(1, 2**32 - 1), min_size=1, max_size=14, unique=True))
    threshold = draw(st.integers(1, len(at)))
    secret = draw(st.binary(min_size=32, max_size=32))
    shares = dict(zip(at, split(secret, threshold, at), strict=True))
    liars = draw(st.lists(st.sampled_from(at), max_size=(len(at) - threshold) // 2, unique=True))
    for liar in liars:
        wrong = draw(
            st.binary(min_size=32, max_size=32).map(lambda b: b"\0" + b) | st.sampled_from(list(shares.values()))
        )
        if wrong == shares[liar]:
            wrong = bytes(32) + bytes([wrong[-1] ^ 1]) if wrong[:-1] == bytes(32) else bytes(33)
        shares[liar] = wrong
    return secret, threshold, shares, tuple(sorted(liars))


@given(lies())
def test_liars_are_named_and_the_secret_is_told(case):
    secret, threshold, shares, liars = case
    assert join_with_errors(shares, threshold) == (secret, liars)


def test_a_hundred_shares_with_twenty_four_liars_name_them_all():
    secret = os.urandom(32)
    at = list(range(7, 807, 8))
    shares = dict(zip(at, split(secret, 51, at), strict=True))
    liars = at[3:99:4]
    assert len(liars) == 24
    for liar in liars:
        shares[liar] = b"\0" + os.urandom(32)
    assert join_with_errors(shares, 51) == (secret, tuple(liars))
    shares[at[0]] = b"\0" + os.urandom(32)  # one liar too many: false alarm with probability below 2⁻²⁵⁰
    with pytest.raises(NotOpened):
        join_with_errors(shares, 51)


def test_liars_who_agree_on_another_polynomial_are_named_all_the_same():
    at = list(range(1, 10))
    shares = dict(zip(at, split(b"s" * 32, 3, at), strict=True))
    shares |= dict(zip(at[:3], split(b"l" * 32, 3, at), strict=False))
    assert join_with_errors(shares, 3) == (b"s" * 32, (1, 2, 3))


def test_a_share_that_cannot_be_read_is_a_lie_that_takes_no_room():
    at = list(range(1, 8))
    shares = dict(zip(at, split(b"s" * 32, 3, at), strict=True))
    shares |= {1: b"", 2: b"\xff" * 33, 3: bytes(33)}
    assert join_with_errors(shares, 3) == (b"s" * 32, (1, 2, 3))
    with pytest.raises(NotOpened):
        join_with_errors(shares | dict.fromkeys(range(3, 7), b""), 3)


def test_a_dealer_whose_shares_fit_nothing_is_not_joined():
    with pytest.raises(NotOpened):
        join_with_errors({i: b"\0" + os.urandom(32) for i in range(1, 20)}, 5)
    with pytest.raises(NotOpened):  # a polynomial, but no 32-byte secret
        join_with_errors(dict.fromkeys(range(1, 4), b"\1" + bytes(32)), 1)


def test_no_threshold_is_below_one():
    with pytest.raises(InputError):
        join_with_errors({1: bytes(33)}, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("points", "threshold"), [(4, 1), (4, 2), (5, 1), (5, 3)])
def test_every_word_of_a_small_field_is_decoded_as_by_trying_all_polynomials(points, threshold):
    """Integers modulo 5 or 7, every received word: the polynomial near enough if there is one, else none."""
    prime = 5 if points == 4 else 7
    room = (points - threshold) // 2
    near = {}
    for polynomial in product(range(prime), repeat=threshold):
        word = tuple(value(list(polynomial), x, prime) for x in range(1, points + 1))
        for places in combinations(range(points), room):
            for wrong in product(range(prime), repeat=room):
                received = list(word)
                for place, digit in zip(places, wrong, strict=True):
                    received[place] = digit
                near[tuple(received)] = polynomial
    for received in product(range(prime), repeat=points):
        found = decoded(dict(enumerate(received, 1)), threshold, prime)
        if received in near:
            assert found is not None
            assert tuple(found) + (0,) * (threshold - len(found)) == near[received]
        else:
            assert found is None


@given(st.dictionaries(st.integers(0, 2**32), st.integers(0, 2**256), min_size=1, max_size=8))
def test_an_interpolated_polynomial_has_its_values(values):
    polynomial = interpolated(values)
    assert len(polynomial) <= len(values)
    assert all(value(polynomial, point) == wanted for point, wanted in values.items())
