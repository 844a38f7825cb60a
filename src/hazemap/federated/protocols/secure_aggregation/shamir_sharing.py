"""A secret in shares: any t reveal it, and t − 1 reveal nothing (Shamir 1979); over the field of `prime_field`.

The secret, 32 bytes, is the value at 0 of a polynomial of degree t − 1 whose other coefficients are uniform; a
share is its value at a peer's point, 33 bytes. Points are distinct and not 0, where the secret itself is: a peer's
point is its position + 1. Shares carry no proof: who joins them compares the secret with what was committed to,
and lets `reed_solomon` name the liars if it differs. For timing see `prime_field`.
"""

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError, NotOpened
from hazemap.federated.protocols.secure_aggregation.prime_field import (
    BYTES,
    POINTS,
    PRIME_BYTES,
    elements_of,
    evaluated,
    limbs_of,
    weighed,
    weights_at_zero,
)

SECRET = 32
SHARE = BYTES

_AT_ONCE = 256  # sets of points whose weights are in memory together: a megabyte at t = 51


def split(
    secret: bytes, threshold: int, points: Sequence[int], random: Callable[[int], bytes] = os.urandom
) -> list[bytes]:
    """One share for each point; any `threshold` of them join to the secret.

    >>> shares = split(b"s" * 32, 2, [1, 2, 3])
    >>> join({1: shares[0], 3: shares[2]}, 2) == b"s" * 32
    True
    """
    return split_all([secret], threshold, points, random)[0]


def split_all(
    secrets: Sequence[bytes], threshold: int, points: Sequence[int], random: Callable[[int], bytes] = os.urandom
) -> list[list[bytes]]:
    """The shares of several secrets at the same points, a list for each secret, under independent polynomials.

    100 shares with t = 51 cost about 60 µs a secret.
    """
    if any(len(secret) != SECRET for secret in secrets):
        raise InputError(f"a secret to be shared is {SECRET} bytes")
    if not 1 <= threshold <= len(points):
        raise InputError(f"any 1 … {len(points)} of {len(points)} shares may be enough, not {threshold}")
    if len(set(points)) != len(points) or not all(0 < point < POINTS for point in points):
        raise InputError("points must be distinct whole numbers from 1 to 2^32 - 1")
    if not secrets:
        return []
    uniform = iter(_uniform(len(secrets) * (threshold - 1), random))
    rows = [b"".join([b"\0", secret, *(next(uniform) for _ in range(threshold - 1))]) for secret in secrets]
    coefficients = limbs_of(_array(b"".join(rows))).reshape(len(secrets), threshold, -1)
    values = evaluated(coefficients, np.array(points, dtype=np.uint32))
    shares = elements_of(values.reshape(-1, values.shape[2])).tobytes()
    each = SHARE * len(points)
    return [[shares[i : i + SHARE] for i in range(start, start + each, SHARE)] for start in range(0, len(shares), each)]


def join(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The secret that the shares at these points reveal; of more than `threshold` those at the least points are used.

    NotOpened for fewer shares than `threshold`, or if they make no 32-byte secret (then one of them is wrong);
    CodecError for a share that `split` does not write. A wrong share that is not noticed gives a wrong secret.
    """
    for point, share in shares.items():
        checked(point, share)
    if len(shares) < threshold:
        raise NotOpened(f"a secret takes {threshold} shares, but there are {len(shares)}")
    secret = join_all([shares], threshold)[0]
    if secret is None:
        raise NotOpened("these shares make no 32-byte secret: one of them is wrong, or their dealer lied")
    return secret


def join_all(dealings: Sequence[Mapping[int, bytes]], threshold: int) -> list[bytes | None]:
    """The secrets of many dealings with one threshold, and None where `join` would raise.

    Weights are computed once for each set of points: about 45 µs each at t = 51, and then 10 µs a secret.
    """
    if threshold < 1:
        raise InputError(f"a threshold is 1 share or more, not {threshold}")
    secrets: list[bytes | None] = []
    for start in range(0, len(dealings), _AT_ONCE):
        secrets += _joined(dealings[start : start + _AT_ONCE], threshold)
    return secrets


def checked(point: int, share: bytes) -> None:
    """CodecError unless `share` may be a share at `point`: 33 bytes that are an element of the field."""
    if not 0 < point < POINTS:
        raise CodecError(f"a share is at a point from 1 to 2^32 - 1, not {point}")
    if not is_share(share):
        raise CodecError(f"a share is {SHARE} bytes, big-endian and below the field's prime")


def is_share(share: bytes) -> bool:
    """Whether these bytes are the one encoding of an element of the field."""
    return len(share) == SHARE and share < PRIME_BYTES


def _joined(dealings: Sequence[Mapping[int, bytes]], threshold: int) -> list[bytes | None]:
    sets: dict[tuple[int, ...], int] = {}
    places, which, shares = [], [], []
    for place, dealing in enumerate(dealings):
        points = tuple(sorted(dealing)[:threshold])
        chosen = [dealing[point] for point in points]
        if len(points) < threshold or not (points[0] > 0 and points[-1] < POINTS and all(map(is_share, chosen))):
            continue
        places.append(place)
        which.append(sets.setdefault(points, len(sets)))
        shares += chosen
    secrets: list[bytes | None] = [None] * len(dealings)
    if places:
        values = limbs_of(_array(b"".join(shares))).reshape(len(places), threshold, -1)
        weights = weights_at_zero(np.array(list(sets), dtype=np.uint32))
        told = elements_of(weighed(weights, np.array(which), values)).tobytes()
        for place, start in zip(places, range(0, len(told), BYTES), strict=True):
            if not told[start]:
                secrets[place] = told[start + 1 : start + BYTES]
    return secrets


def _array(elements: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(elements, dtype=np.uint8).reshape(-1, BYTES)


def _uniform(n: int, random: Callable[[int], bytes]) -> list[bytes]:
    """Uniform elements of the field: 257 random bits each, those not below p drawn again (93 in 2²⁵⁷ are)."""
    elements: list[bytes] = []
    while len(elements) < n:
        drawn = np.frombuffer(random(BYTES * (n - len(elements))), dtype=np.uint8).reshape(-1, BYTES).copy()
        drawn[:, 0] &= 1
        words = drawn.tobytes()
        elements += filter(is_share, (words[i : i + BYTES] for i in range(0, len(words), BYTES)))
    return elements
