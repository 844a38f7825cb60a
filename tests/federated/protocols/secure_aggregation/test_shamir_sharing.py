"""Shared secrets: any t shares tell them, t − 1 shares fit every secret alike, and nothing else is a share."""

import os
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import CodecError, InputError, NotOpened
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import (
    PRIME,
    SHARE,
    checked,
    is_share,
    join,
    join_all,
    split,
    split_all,
)

secrets = st.sampled_from([bytes(32), b"\xff" * 32, b"\0" * 31 + b"\1"]) | st.binary(min_size=32, max_size=32)
places = st.integers(1, 30) | st.integers(1, 2**32 - 1)


@st.composite
def dealings(draw):
    """A secret, a threshold, points and the shares at them."""
    at = draw(st.lists(places, min_size=1, max_size=12, unique=True))
    threshold = draw(st.integers(1, len(at)))
    secret = draw(secrets)
    return secret, threshold, at, split(secret, threshold, at)


def number(element: bytes) -> int:
    return int.from_bytes(element, "big")


def through(values: dict[int, int]) -> list[int]:
    """The coefficients of the polynomial of least degree through these values, by Gauss: slow and plain."""
    rows = [[pow(x, i, PRIME) for i in range(len(values))] + [y] for x, y in values.items()]
    for i in range(len(rows)):
        pivot = next(j for j in range(i, len(rows)) if rows[j][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        inverse = pow(rows[i][i], -1, PRIME)
        rows[i] = [entry * inverse % PRIME for entry in rows[i]]
        for j in range(len(rows)):
            if j != i:
                times = rows[j][i]
                rows[j] = [(a - times * b) % PRIME for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[-1] for row in rows]


@given(dealings(), st.randoms())
def test_any_threshold_of_the_shares_tells_the_secret(dealing, random):
    secret, threshold, at, shares = dealing
    some = random.sample(list(zip(at, shares, strict=True)), random.randint(threshold, len(at)))
    assert join(dict(some), threshold) == secret


@pytest.mark.parametrize("m", range(1, 7))
def test_every_set_of_threshold_shares_tells_the_secret_and_no_smaller_set_is_joined(m):
    at = [3, 1, 4, 15, 9, 26][:m]
    for threshold in range(1, m + 1):
        secret = os.urandom(32)
        shares = dict(zip(at, split(secret, threshold, at), strict=True))
        for size in range(m + 1):
            for chosen in combinations(at, size):
                some = {point: shares[point] for point in chosen}
                if size >= threshold:
                    assert join(some, threshold) == secret
                else:
                    with pytest.raises(NotOpened):
                        join(some, threshold)


@given(dealings())
def test_the_shares_are_the_values_of_one_polynomial_of_degree_below_the_threshold(dealing):
    secret, threshold, at, shares = dealing
    coefficients = through({point: number(share) for point, share in zip(at, shares, strict=True)})
    assert coefficients[0] == number(secret)
    assert not any(coefficients[threshold:])


@given(secrets, secrets, st.lists(places, min_size=2, max_size=8, unique=True))
def test_one_share_too_few_fits_every_secret_under_exactly_one_draw(secret, other, at):
    """Perfect secrecy of the code itself: the draws under which t − 1 shares belong to `secret` and those under
    which the very same shares belong to `other` are one to one, and all draws are equally likely."""
    threshold = len(at)
    known = split(secret, threshold, at)[:-1]
    seen = dict(zip(at[:-1], map(number, known), strict=True))
    fitting = through({0: number(other)} | seen)  # unique: t values, t coefficients
    drawn = b"".join(coefficient.to_bytes(33, "big") for coefficient in fitting[1:])
    assert split(other, threshold, at, lambda n: drawn[:n])[:-1] == known


def two_of_three(random) -> float:
    """How the lowest bytes of two shares of 3,000 zero secrets under threshold 3 correlate: |r|."""
    shares = split_all([bytes(32)] * 3000, 3, [1, 2, 3], random)
    pairs = np.array([[share[-1] for share in each[:2]] for each in shares])
    return abs(float(np.corrcoef(pairs.T)[0, 1]))


def short_coefficients(n: int) -> bytes:
    """The twin's wrong draw: coefficients that do not fill the field."""
    return b"".join(bytes(32) + bytes([byte % 16]) for byte in os.urandom(n // 33))


def test_two_of_three_shares_of_a_known_secret_are_as_independent_as_noise_unless_coefficients_are_short():
    bound = 5.1 / sqrt(3000)  # |r| of 3,000 independent pairs is above it with probability below 4·10⁻⁷
    assert two_of_three(os.urandom) < bound
    assert two_of_three(short_coefficients) > bound


def test_every_coefficient_has_its_own_uniform_bytes():
    asked = []

    def random(n: int) -> bytes:
        asked.append(n)
        return os.urandom(n)

    split_all([bytes(32)] * 2, 5, range(1, 8), random)
    assert sum(asked) == 2 * 4 * 33
    assert split(bytes(32), 3, [1, 2, 3]) != split(bytes(32), 3, [1, 2, 3])


def test_a_draw_outside_the_field_is_drawn_again_and_never_reduced():
    draws = [
        b"\xff" * 33 + b"\x01" + b"\xff" * 31 + bytes([256 - 93]),
        b"\xff" * 33,
        b"\0" * 32 + b"\x05",
        b"\0" * 32 + b"\x07",
    ]
    answers = iter([draws[0], draws[1] + draws[2], draws[3]])
    shares = split(bytes(32), 3, [1, 2, 3], lambda _: next(answers))
    assert [number(share) for share in shares] == [5 + 7, 5 * 2 + 7 * 4, 5 * 3 + 7 * 9]


@given(st.lists(dealings(), max_size=6))
def test_many_dealings_are_joined_as_one_by_one(many):
    for threshold in (1, 2, 3):
        given_ = [dict(zip(at, shares, strict=True)) for _, _, at, shares in many]
        told = join_all(given_, threshold)
        assert len(told) == len(many)
        for secret, dealing, (whole, t, _, _) in zip(told, given_, many, strict=True):
            if len(dealing) < threshold:
                assert secret is None
            elif t == threshold:
                assert secret == whole
            else:  # another threshold than the dealer's: whatever comes, it is what `join` says
                try:
                    assert secret == join(dealing, threshold)
                except NotOpened:
                    assert secret is None


def test_more_dealings_than_are_joined_at_once_come_back_in_order():
    wanted = [os.urandom(32) for _ in range(600)]
    points = [sorted(np.random.default_rng(i % 300).permutation(50)[:5] + 1) for i in range(600)]
    given_ = [dict(zip(map(int, at), split(s, 3, at), strict=True)) for s, at in zip(wanted, points, strict=True)]
    given_[300] = {}
    given_[301] = dict.fromkeys(given_[301], b"\xff" * 33)
    told = join_all(given_, 3)
    assert told[:300] + told[302:] == wanted[:300] + wanted[302:]
    assert told[300:302] == [None, None]


def test_a_value_at_zero_that_is_no_secret_is_not_opened():
    above = (2**256).to_bytes(33, "big")
    assert join_all([{1: above}], 1) == [None]
    with pytest.raises(NotOpened):
        join({1: above, 2: above}, 2)


def test_only_the_one_encoding_of_an_element_is_a_share():
    for good in (bytes(33), (PRIME - 1).to_bytes(33, "big")):
        assert is_share(good)
        checked(1, good)
    for bad in (b"", bytes(32), bytes(34), PRIME.to_bytes(33, "big"), b"\x02" + bytes(32), b"\xff" * 33):
        assert not is_share(bad)
        with pytest.raises(CodecError):
            checked(1, bad)
        with pytest.raises(CodecError):
            join({1: bad, 2: bytes(33)}, 1)
    for point in (0, -1, 2**32):
        with pytest.raises(CodecError):
            checked(point, bytes(33))
        assert join_all([{point: bytes(33)}], 1) == [None]


@pytest.mark.parametrize(
    ("secret", "threshold", "at"),
    [
        (bytes(31), 1, [1]),
        (bytes(33), 1, [1]),
        (bytes(32), 0, [1]),
        (bytes(32), 2, [1]),
        (bytes(32), 1, []),
        (bytes(32), 1, [0, 1]),
        (bytes(32), 1, [1, 1]),
        (bytes(32), 1, [2**32]),
        (bytes(32), 1, [-1]),
    ],
)
def test_a_dealing_that_would_not_hide_or_not_tell_is_an_error(secret, threshold, at):
    with pytest.raises(InputError):
        split(secret, threshold, at)
    assert split_all([], 1, [1]) == []


def test_every_share_has_one_length():
    assert {len(share) for share in split(bytes(32), 51, range(1, 101))} == {SHARE}
    with pytest.raises(InputError):
        join_all([], 0)
