"""The invited in 32 bytes: a Merkle tree over their identities, so that a client need not trust a server about a peer.

The tree of RFC 6962, section 2.1: a leaf is SHA-256(0x00 ‖ identity), a node SHA-256(0x01 ‖ left ‖ right), and
the left part of n > 1 leaves holds the largest power of two below n. The root alone does not say how many leaves
there are; the terms of a session hold both, and a proof is checked against both. Laws: `belongs` accepts
`proof(identities, i)` for identity i at position i; it accepts nothing else as far as SHA-256 has no collisions.
"""

from collections.abc import Sequence
from hashlib import sha256

from hazemap.errors import InputError

LENGTH = 32
"""Bytes of an identity, and of a hash."""


def root(identities: Sequence[bytes]) -> bytes:
    """The hash that stands for these identities in this order.

    >>> root([bytes(32)]).hex()[:16]
    '7f9c9e31ac8256ca'
    """
    return _levels(identities)[-1][0]


def proof(identities: Sequence[bytes], position: int) -> tuple[bytes, ...]:
    """The hashes that join the leaf at `position` to the root, from the leaf up: at most ⌈log₂ n⌉ of them.

    It hashes the whole tree; for many proofs take `proofs`.
    """
    if not 0 <= position < len(identities):
        raise InputError(f"there is no position {position} in a roster of {len(identities)}")
    return _path(_levels(identities), position)


def proofs(identities: Sequence[bytes]) -> list[tuple[bytes, ...]]:
    """The proof of every position, from one tree: 25 ms for 10,000, whose proofs share their hashes."""
    levels = _levels(identities)
    return [_path(levels, position) for position in range(len(identities))]


def belongs(tree: bytes, clients: int, position: int, identity: bytes, path: Sequence[bytes]) -> bool:
    """Whether `path` proves that `identity` is at `position` of the `clients` under the root `tree`.

    RFC 9162, section 2.1.3.2. O(log clients) hashes; whatever is malformed proves nothing.

    >>> people = [bytes([i]) * 32 for i in range(5)]
    >>> path = proof(people, 4)
    >>> belongs(root(people), 5, 4, people[4], path), belongs(root(people), 5, 3, people[4], path)
    (True, False)
    """
    if not 0 <= position < clients or len(identity) != LENGTH or any(len(sibling) != LENGTH for sibling in path):
        return False
    found, last, used = sha256(b"\x00" + identity).digest(), clients - 1, 0
    while last:
        if position & 1 or position < last:  # else it is the last and alone: it rises unchanged
            if used == len(path):
                return False
            sibling = path[used]
            used += 1
            found = sha256(b"\x01" + (sibling + found if position & 1 else found + sibling)).digest()
        position, last = position >> 1, last >> 1
    return used == len(path) and found == tree


def _levels(identities: Sequence[bytes]) -> list[list[bytes]]:
    """The hashes of each level, leaves first, root last. Pairing from the left gives RFC 6962's cut."""
    if not identities:
        raise InputError("a roster has at least one identity")
    if any(len(identity) != LENGTH for identity in identities):
        raise InputError(f"every identity of a roster has {LENGTH} bytes; found one of another length")
    levels = [[sha256(b"\x00" + identity).digest() for identity in identities]]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = zip(below[::2], below[1::2], strict=False)  # the last one of an odd number is left over and rises
        above = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
        levels.append(above + below[len(above) * 2 :])
    return levels


def _path(levels: list[list[bytes]], position: int) -> tuple[bytes, ...]:
    found = []
    for level in levels[:-1]:
        sibling = position ^ 1
        if sibling < len(level):
            found.append(level[sibling])
        position //= 2
    return tuple(found)
