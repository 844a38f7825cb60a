"""A secret in shares: any t reveal it, and t − 1 reveal nothing (Shamir 1979); and who lied, where shares do not fit.

The secret, 32 bytes, is the value at 0 of a polynomial of degree t − 1 whose other coefficients are uniform; a
share is its value at a peer's point, 33 bytes. Points are distinct and not 0, where the secret itself is: a peer's
point is its position + 1. Shares carry no proof: who joins them compares the secret with what was committed to, and
has the liars named if it differs. Shares that do not fit one polynomial are decoded as a Reed–Solomon word (Gao 2003):
of m shares with threshold t, up to ⌊(m − t)/2⌋ may be wrong and the polynomial is still the only one that fits the
others. That runs on attack only, in Python's integers: O(m²), some 20 ms at m = 100.

The field is the integers modulo p = 2²⁵⁷ − 93, a prime above every 32-byte secret. An element travels as 33 bytes,
big-endian, less than p. In loops it is 11 limbs of 24 bits (three bytes each), so that a limb times a point below 2³²
and a column of products both fit 64 bits, and carries may wait: 2²⁵⁷ ≡ 93 and 2²⁶⁴ ≡ 93 · 2⁷ fold what runs over.
"Loose" limbs are an element plus a small multiple of p, each below 2²⁵.

No step here branches on an element, yet machine code made by a compiler, and the Python around it, promise no
constant time. That is accepted: a client deals a secret once, in one session, where nobody can time it again and
again; a server joins only secrets that it is entitled to learn.
"""

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError, NotOpened
from hazemap.vdaf.compiled_loops import compiled

PRIME = (1 << 257) - 93
BYTES = 33
PRIME_BYTES = PRIME.to_bytes(BYTES, "big")  # big-endian bytes of one length compare as their numbers do
POINTS = 1 << 32  # points are below this

Limbs = NDArray[np.uint64]  # (..., 11), least first

_LIMBS = 11
_LOW = np.uint64((1 << 24) - 1)
_TOP = np.uint64((1 << 17) - 1)  # what the eleventh limb holds of 257 bits
_HALF = np.uint64(0xFFFFFFFF)
_24 = np.uint64(24)
_17 = np.uint64(17)
_93 = np.uint64(93)
_FOLD = np.uint64(93 << 7)


@compiled
def limbs_of(elements: NDArray[np.uint8]) -> Limbs:
    """(n, 33) big-endian bytes as (n, 11) limbs."""
    limbs = np.empty((len(elements), _LIMBS), dtype=np.uint64)
    for n in range(len(elements)):
        for i in range(_LIMBS):
            high, middle, low = elements[n, 30 - 3 * i], elements[n, 31 - 3 * i], elements[n, 32 - 3 * i]
            limbs[n, i] = (np.uint64(high) << np.uint64(16)) | (np.uint64(middle) << np.uint64(8)) | np.uint64(low)
    return limbs


@compiled
def _settled(limbs: Limbs) -> None:
    """Loose limbs, in place, as the element itself, below p."""
    for _ in range(2):  # the second round folds at most once more, into a number too small to carry
        carry = np.uint64(0)
        for i in range(_LIMBS):
            value = limbs[i] + carry
            limbs[i] = value & _LOW
            carry = value >> _24
        limbs[0] += _93 * (limbs[10] >> _17) + _FOLD * carry
        limbs[10] &= _TOP
    carry = _93
    for i in range(_LIMBS):  # x ≥ p if and only if x + 93 ≥ 2²⁵⁷, and then x − p is its low 257 bits
        carry = (limbs[i] + carry) >> _24 if i < 10 else (limbs[i] + carry) >> _17
    carry *= _93
    for i in range(_LIMBS):
        value = limbs[i] + carry
        limbs[i] = value & (_LOW if i < 10 else _TOP)
        carry = value >> _24


@compiled
def elements_of(limbs: Limbs) -> NDArray[np.uint8]:
    """(n, 11) loose limbs as (n, 33) big-endian bytes below p; the limbs are settled on the way."""
    elements = np.empty((len(limbs), BYTES), dtype=np.uint8)
    for n in range(len(limbs)):
        _settled(limbs[n])
        for i in range(_LIMBS):
            value = limbs[n, i]
            elements[n, 30 - 3 * i] = np.uint8(value >> np.uint64(16))
            elements[n, 31 - 3 * i] = np.uint8((value >> np.uint64(8)) & np.uint64(255))
            elements[n, 32 - 3 * i] = np.uint8(value & np.uint64(255))
    return elements


@compiled
def _scaled(rows: NDArray[np.uint32], factors: NDArray[np.uint32], plus: Limbs, carries: NDArray[np.uint64]) -> None:
    """Every column of `rows` (11 × m, loose) times its factor, plus one element: the step of Horner's rule."""
    carries[:] = 0
    for i in range(_LIMBS):
        added = plus[i]
        for m in range(len(factors)):
            value = np.uint64(rows[i, m]) * np.uint64(factors[m]) + carries[m] + added
            rows[i, m] = np.uint32(value & _LOW)
            carries[m] = value >> _24
    for m in range(len(factors)):
        top = np.uint64(rows[10, m])
        over = (top >> _17) | (carries[m] << np.uint64(7))
        rows[10, m] = np.uint32(top & _TOP)
        low = np.uint64(rows[0, m]) + _93 * over
        rows[0, m] = np.uint32(low & _LOW)
        rows[1, m] += np.uint32(low >> _24)


@compiled
def evaluated(coefficients: Limbs, points: NDArray[np.uint32]) -> Limbs:
    """Polynomials (s, t, 11), constants first, at m points: (s, m, 11) loose limbs, by Horner's rule."""
    values = np.empty((len(coefficients), len(points), _LIMBS), dtype=np.uint64)
    rows = np.empty((_LIMBS, len(points)), dtype=np.uint32)
    carries = np.empty(len(points), dtype=np.uint64)
    for s in range(len(coefficients)):
        rows[:] = 0
        for t in range(coefficients.shape[1] - 1, -1, -1):
            _scaled(rows, points, coefficients[s, t], carries)
        for m in range(len(points)):
            for i in range(_LIMBS):
                values[s, m, i] = rows[i, m]
    return values


@compiled
def _reduced(columns: NDArray[np.uint64], result: Limbs) -> None:
    """22 columns of products, each below 2⁵⁹, as loose limbs."""
    carry = np.uint64(0)
    for i in range(2 * _LIMBS):
        value = columns[i] + carry
        columns[i] = value & _LOW
        carry = value >> _24
    # what is left of the carry is worth 2^(24·22) ≡ (93 · 2⁷)²
    carry *= _FOLD * _FOLD
    for i in range(_LIMBS):
        value = columns[i] + _FOLD * columns[_LIMBS + i] + carry
        result[i] = value & _LOW
        carry = value >> _24
    low = result[0] + _FOLD * carry + _93 * (result[10] >> _17)
    result[10] &= _TOP
    result[0] = low & _LOW
    result[1] += low >> _24


@compiled
def _multiplied(left: Limbs, right: Limbs, columns: NDArray[np.uint64], result: Limbs) -> None:
    """The product of two elements in loose limbs; `result` may be either of them."""
    columns[:] = 0
    for i in range(_LIMBS):
        for j in range(_LIMBS):
            columns[i + j] += (left[i] & _HALF) * (right[j] & _HALF)
    _reduced(columns, result)


@compiled
def inverted(elements: Limbs) -> None:
    """Non-zero elements (n, 11), in place, as their inverses: one power x^(p−2) and 3n products (Montgomery 1987)."""
    columns = np.empty(2 * _LIMBS, dtype=np.uint64)
    before = np.empty_like(elements)  # the products of all elements before each
    running = np.zeros(_LIMBS, dtype=np.uint64)
    running[0] = 1
    for n in range(len(elements)):
        before[n] = running
        _multiplied(running, elements[n], columns, running)
    base, inverse = running.copy(), running.copy()
    for bit in range(255, -1, -1):  # p − 2 = 2²⁵⁷ − 95: 250 ones, then 0100001 in binary
        _multiplied(inverse, inverse, columns, inverse)
        if bit > 6 or bit in (5, 0):
            _multiplied(inverse, base, columns, inverse)
    for n in range(len(elements) - 1, -1, -1):
        _multiplied(inverse, before[n], columns, before[n])
        _multiplied(inverse, elements[n], columns, inverse)
        elements[n] = before[n]


@compiled
def weights_at_zero(points: NDArray[np.uint32]) -> Limbs:
    """What each of t values counts in the value at 0, for sets of points (s, t), ascending: (s, t, 11) loose limbs.

    Lagrange: w_i = Π_{j ≠ i} x_j/(x_j − x_i) = (−1)^i · Π_j x_j / (x_i · Π_{j ≠ i} |x_j − x_i|).
    """
    sets, t = points.shape
    weights = np.empty((sets * t, _LIMBS), dtype=np.uint64)
    zero, columns = np.zeros(_LIMBS, dtype=np.uint64), np.empty(2 * _LIMBS, dtype=np.uint64)
    rows, carries = np.empty((_LIMBS, t), dtype=np.uint32), np.empty(t, dtype=np.uint64)
    factors, product = np.empty(t, dtype=np.uint32), np.empty((_LIMBS, 1), dtype=np.uint32)
    for s in range(sets):
        rows[:] = 0
        rows[0] = 1
        for j in range(t):
            for i in range(t):
                far, near = max(points[s, i], points[s, j]), min(points[s, i], points[s, j])
                factors[i] = far - near if i != j else points[s, i]
            _scaled(rows, factors, zero, carries)
        for i in range(t):
            for limb in range(_LIMBS):
                weights[s * t + i, limb] = rows[limb, i]
    inverted(weights)
    whole = np.empty(_LIMBS, dtype=np.uint64)
    for s in range(sets):
        product[:] = 0
        product[0] = 1
        for j in range(t):
            _scaled(product, points[s, j : j + 1], zero, carries[:1])
        whole[:] = product[:, 0]
        for i in range(t):
            weight = weights[s * t + i]
            _multiplied(weight, whole, columns, weight)
            if i % 2:
                _negated(weight)
    return weights.reshape(sets, t, _LIMBS)


@compiled
def _negated(limbs: Limbs) -> None:
    """An element, in place, as its negative p − x (settled, in 0 … p)."""
    _settled(limbs)
    borrow = np.uint64(0)
    for i in range(_LIMBS):
        digit = (_LOW - np.uint64(92) if i == 0 else _LOW) if i < 10 else _TOP
        value = digit + (np.uint64(1) << _24) - limbs[i] - borrow
        limbs[i] = value & _LOW
        borrow = np.uint64(1) - (value >> _24)


@compiled
def weighed(weights: Limbs, which: NDArray[np.int64], values: Limbs) -> Limbs:
    """Σ_i weights[which[s], i] · values[s, i] for s sums of t values (s, t, 11): (s, 11) loose limbs."""
    sums = np.empty((len(values), _LIMBS), dtype=np.uint64)
    columns = np.empty(2 * _LIMBS, dtype=np.uint64)
    for s in range(len(values)):
        columns[:] = 0
        sums[s] = 0
        for n in range(values.shape[1]):
            left, right = weights[which[s], n], values[s, n]
            for i in range(_LIMBS):
                for j in range(_LIMBS):
                    columns[i + j] += (left[i] & _HALF) * (right[j] & _HALF)
            if n % 64 == 63:
                _reduced(columns, sums[s])
                columns[:] = 0
                columns[:_LIMBS] = sums[s]
        _reduced(columns, sums[s])
    return sums


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


Polynomial = list[int]  # coefficients, constant first, the last not 0; [] is 0


def join_with_errors(shares: Mapping[int, bytes], threshold: int) -> tuple[bytes, tuple[int, ...]]:
    """The secret, and the points whose shares are wrong, ascending.

    A share that is not 33 canonical bytes counts as wrong and is left out first: it takes up no room for others.
    NotOpened if fewer than `threshold` are left, or if no polynomial of degree t − 1 fits all but ⌊(m − t)/2⌋ of
    the m shares left: then there are more liars, or the dealer's own shares never fitted.

    >>> from hazemap.federated.protocols.secure_aggregation.shamir_sharing import split
    >>> shares = dict(zip([1, 2, 3, 4], split(b"s" * 32, 2, [1, 2, 3, 4])))
    >>> join_with_errors(shares | {3: bytes(33)}, 2) == (b"s" * 32, (3,))
    True
    """
    if threshold < 1:
        raise InputError(f"a threshold is 1 share or more, not {threshold}")
    values = {
        point: int.from_bytes(share, "big")
        for point, share in sorted(shares.items())
        if 0 < point < POINTS and is_share(share)
    }
    if len(values) < threshold:
        raise NotOpened(f"a secret takes {threshold} shares, but only {len(values)} can be read")
    polynomial = decoded(values, threshold)
    if polynomial is None:
        raise NotOpened(
            f"no secret fits all but {(len(values) - threshold) // 2} of {len(values)} shares with threshold "
            f"{threshold}: more of them are wrong, or their dealer lied"
        )
    secret = polynomial[0] if polynomial else 0
    if secret >> 8 * SECRET:
        raise NotOpened("these shares make no 32-byte secret: their dealer lied")
    wrong = [point for point in shares if point not in values or value(polynomial, point) != values[point]]
    return secret.to_bytes(SECRET, "big"), tuple(sorted(wrong))


def decoded(values: Mapping[int, int], threshold: int, prime: int = PRIME) -> Polynomial | None:
    """The polynomial of degree below `threshold` that fits all but ⌊(m − t)/2⌋ of m values, or None.

    Gao's algorithm: g₀ = Π (x − x_i) and g₁ through all values; Euclid's algorithm on both, stopped at the first
    remainder g = u g₀ + v g₁ of degree below (m + t)/2; the polynomial is g/v if that division leaves nothing.
    """
    points = list(values)
    whole: Polynomial = [1]
    for point in points:
        whole = _product(whole, [-point % prime, 1], prime)
    last, now = whole, interpolated(values, prime)
    before: Polynomial = []
    factor: Polynomial = [1]
    while 2 * (len(now) - 1) >= len(points) + threshold and now:
        quotient, rest = _divided(last, now, prime)
        last, now = now, rest
        before, factor = factor, _difference(before, _product(quotient, factor, prime), prime)
    found, rest = _divided(now, factor, prime)
    if rest or len(found) > threshold:
        return None
    wrong = sum(value(found, point, prime) != values[point] for point in points)
    return found if wrong <= (len(points) - threshold) // 2 else None


def interpolated(values: Mapping[int, int], prime: int = PRIME) -> Polynomial:
    """The polynomial of least degree through all values, by Newton's divided differences."""
    points, slopes = list(values), list(values.values())
    for order in range(1, len(points)):
        for i in range(len(points) - 1, order - 1, -1):
            slopes[i] = (slopes[i] - slopes[i - 1]) * pow(points[i] - points[i - order], -1, prime) % prime
    polynomial: Polynomial = []
    for point, slope in zip(reversed(points), reversed(slopes), strict=True):
        polynomial = _difference(_product(polynomial, [-point % prime, 1], prime), [-slope % prime], prime)
    return polynomial


def value(polynomial: Polynomial, point: int, prime: int = PRIME) -> int:
    """A polynomial's value at a point, by Horner's rule."""
    total = 0
    for coefficient in reversed(polynomial):
        total = (total * point + coefficient) % prime
    return total


def _trimmed(polynomial: Polynomial) -> Polynomial:
    while polynomial and not polynomial[-1]:
        polynomial.pop()
    return polynomial


def _difference(left: Polynomial, right: Polynomial, prime: int) -> Polynomial:
    longest = max(len(left), len(right))
    left, right = left + [0] * (longest - len(left)), right + [0] * (longest - len(right))
    return _trimmed([(a - b) % prime for a, b in zip(left, right, strict=True)])


def _product(left: Polynomial, right: Polynomial, prime: int) -> Polynomial:
    if not left or not right:
        return []
    product = [0] * (len(left) + len(right) - 1)
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            product[i + j] += a * b
    return _trimmed([coefficient % prime for coefficient in product])


def _divided(top: Polynomial, bottom: Polynomial, prime: int) -> tuple[Polynomial, Polynomial]:
    """Quotient and remainder; `bottom` is not 0."""
    rest, quotient = list(top), [0] * max(0, len(top) - len(bottom) + 1)
    inverse = pow(bottom[-1], -1, prime)
    for shift in range(len(quotient) - 1, -1, -1):
        quotient[shift] = times = rest[shift + len(bottom) - 1] * inverse % prime
        for i, coefficient in enumerate(bottom):
            rest[shift + i] = (rest[shift + i] - times * coefficient) % prime
    return _trimmed(quotient), _trimmed(rest)
