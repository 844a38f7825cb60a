"""Who lied: shares that do not fit one polynomial, decoded as a Reed–Solomon word (Gao 2003).

Of m shares with threshold t, up to ⌊(m − t)/2⌋ may be wrong and the polynomial is still the only one that fits the
others. Runs on attack only, in Python's integers: O(m²), some 20 ms at m = 100.
"""

from collections.abc import Mapping

from hazemap.errors import InputError, NotOpened
from hazemap.federated.protocols.secure_aggregation.prime_field import POINTS, PRIME
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import SECRET, is_share

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
