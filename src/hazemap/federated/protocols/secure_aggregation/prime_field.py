"""The field that secrets are shared in: integers modulo p = 2²⁵⁷ − 93, a prime above every 32-byte secret.

An element travels as 33 bytes, big-endian, less than p. In loops it is 11 limbs of 24 bits (three bytes each), so
that a limb times a point below 2³² and a column of products both fit 64 bits, and carries may wait: 2²⁵⁷ ≡ 93
and 2²⁶⁴ ≡ 93 · 2⁷ fold what runs over. "Loose" limbs are an element plus a small multiple of p, each below 2²⁵.

No step here branches on an element, yet machine code made by a compiler, and the Python around it, promise no
constant time. That is accepted: a client deals a secret once, in one session, where nobody can time it again and
again; a server joins only secrets that it is entitled to learn.
"""

import numpy as np
from numpy.typing import NDArray

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
