"""Who shares with whom: a sparse graph on the members of a session, so that nobody needs all the others.

The `check_…` functions are a client's: whether the neighbours that a server presents are who the client's graph, roster
and signatures say they are.

Semi-honest mode (Bell et al. 2020, algorithm 2): the members stand on a ring in the order of a permutation
drawn from a seed, and each is joined to degree/2 others on either side (a Harary graph, which is circulant).
The server commits to the seed before anybody answers, and opens it when the members are known. Malicious mode
(Bell et al. 2020, algorithm 3): a client draws whom it sends shares to, and nobody else has a say.

The word of a client is the 64 bits at byte 8·position of the AES-256-CTR stream (counter from 0) under
SHA-256("hazemap 1 graph" ‖ seed), little-endian; members are ordered by word, and by position where words tie.
So the order of two members does not depend on who else is there. Ties apart, which any two of n members have
with probability below n²/2⁶⁵, the order is uniform as far as AES-256 is a pseudorandom permutation.
"""

from collections.abc import Callable
from hashlib import sha256

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.messages import Neighbours, Peer, keys_statement
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.signing_identities import verified


def commitment(seed: bytes) -> bytes:
    """SHA-256("hazemap 1 graph commitment" ‖ seed): hides a random seed of 32 bytes, and binds to it.

    >>> commitment(bytes(32)).hex()[:16]
    '778be6211d71400f'
    """
    return sha256(b"hazemap 1 graph commitment" + _checked(seed)).digest()


def ring_neighbours(seed: bytes, members: Ints, degree: int) -> Ints:
    """The neighbours of every member, a row for each: members × degree positions, ascending in a row.

    `members` are positions in the roster, ascending. All others are neighbours if there are no more than
    `degree` of them; else the degree must be even. Symmetric: who is in my row has me in its own.
    O(members · degree): 25 ms and 8 MB for 10,000 members of degree 100.

    >>> ring_neighbours(bytes(32), np.arange(5), 2).tolist()
    [[3, 4], [2, 4], [1, 3], [0, 2], [0, 1]]
    """
    return _rows(seed, members, degree, np.arange(len(members)))


def ring_neighbours_of(seed: bytes, members: Ints, degree: int, own: int) -> Ints:
    """One row of `ring_neighbours`, as a client computes it for itself. O(members · log members).

    >>> ring_neighbours_of(bytes(32), np.arange(5), 2, own=1).tolist()
    [2, 4]
    """
    return np.asarray(_rows(seed, members, degree, _index(members, own))[0], dtype=np.int64)


def drawn_neighbours(random: Callable[[int], bytes], members: Ints, own: int, degree: int) -> Ints:
    """`degree` other members, uniformly, ascending; all of them if there are no more. `random(32)` is a fresh seed.

    >>> drawn_neighbours(bytes, np.arange(5), own=1, degree=2).tolist()
    [2, 4]
    """
    here = _index(members, own)[0]
    others = np.delete(members, here)
    if len(others) <= degree:
        return others
    order = _order(random(32), others)
    return np.sort(others[order[:degree]])


def _rows(seed: bytes, members: Ints, degree: int, wanted: Ints) -> Ints:
    """The neighbours of the members of index `wanted`, one row each."""
    count = len(members)
    _ascending(members)
    if degree >= count - 1:
        others = np.broadcast_to(members, (len(wanted), count))
        left = others[np.arange(count) != wanted[:, np.newaxis]]
        return np.asarray(left.reshape(len(wanted), max(count - 1, 0)), dtype=np.int64)
    if degree < 2 or degree % 2:
        raise InputError(f"a ring of {count} members has an even degree of 2 or more, not {degree}")
    order = _order(seed, members)
    places = np.empty(count, dtype=np.int64)
    places[order] = np.arange(count)
    half = degree // 2
    steps = np.concatenate([np.arange(-half, 0), np.arange(1, half + 1)])
    ring = members[order]
    rows = ring[(places[wanted, np.newaxis] + steps) % count]
    rows.sort(axis=1)
    return np.asarray(rows, dtype=np.int64)


def _order(seed: bytes, members: Ints) -> Ints:
    """The indices of the members, by word."""
    key = sha256(b"hazemap 1 graph" + _checked(seed)).digest()
    cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
    words = np.frombuffer(cipher.update(bytes(8 * (int(members[-1]) + 1))), dtype="<u8")
    return np.argsort(words[members], kind="stable")


def _index(members: Ints, own: int) -> Ints:
    """Where `own` is among the members, as an array of one."""
    found = np.flatnonzero(members == own)
    if not len(found):
        raise InputError(f"position {own} is not among the {len(members)} members of the graph")
    return found


def _ascending(members: Ints) -> None:
    if len(members) and (members[0] < 0 or (np.diff(members) <= 0).any()):
        raise InputError("the members of a graph are positions in ascending order, each once")


def _checked(seed: bytes) -> bytes:
    if len(seed) != 32:
        raise InputError(f"the seed of a graph has 32 bytes, not {len(seed)}")
    return seed


def check_listed(some: Bitmap, terms: SessionParameters, position: int, what: str) -> None:
    """Refused unless these are clients of the session, this one among them, and as many as must survive.

    Fewer can never be opened; and neighbours drawn from few would mostly be the corrupt.
    """
    if some.size != terms.clients:
        raise Refused(f"the list of clients that {what} is of {some.size} clients, but the session has {terms.clients}")
    if position not in some:
        raise Refused(f"this client is not on the list of clients that {what}")
    if len(some) < terms.survivors:
        raise Refused(f"only {len(some)} clients {what}, fewer than the {terms.survivors} that must survive")


def check_neighbours(
    terms: SessionParameters, position: int, picks: tuple[int, ...], message: Neighbours
) -> tuple[int, ...]:
    """The holders of this client's shares; Refused unless the neighbours are exactly its own.

    Semi-honest: the ring of those who sent keys, in the order that the server was committed to. Malicious: those it
    drew, and those that drew it. The latter are about `degree`; more than 3 · degree + 32 of a fair draw are rarer than
    2⁻⁶⁰ (Chernoff), and nobody has to work for more than that.
    """
    known = {peer.position for peer in message.peers}
    if position in known:
        raise Refused("this client was presented as its own neighbour")
    if any(peer not in message.roll for peer in known):
        raise Refused("a neighbour was presented that has sent no keys")
    if terms.mode is Mode.SEMI_HONEST:
        if commitment(message.seed) != terms.graph:
            raise Refused("the seed of the ring is not the one that was committed to")
        ring = ring_neighbours_of(message.seed, message.roll.positions(), terms.degree, position)
        holders: tuple[int, ...] = tuple(ring.tolist())
        if known != set(holders):
            raise Refused("the neighbours are not those on the ring")
    else:
        holders = picks
        if any(message.seed) or not known.issuperset(holders):
            raise Refused("the neighbours are not those that were drawn")
        if len(known) - len(holders) > 3 * terms.degree + 32:
            raise Refused(
                f"the server says that {len(known) - len(holders)} clients drew this one: no fair draw does that"
            )
    if len(holders) < terms.threshold:
        raise Refused(f"{len(holders)} neighbours are too few for shares of which {terms.threshold} reveal a secret")
    return holders


def check_peer(terms: SessionParameters, peer: Peer) -> None:
    """Refused unless the roster has this identity at this position, and it signed these keys for this session."""
    if not roster.belongs(terms.roster, terms.clients, peer.position, peer.identity, peer.proof):
        raise Refused(f"the identity of client {peer.position} is not the one in the roster")
    keys = peer.keys
    statement = keys_statement(terms.session, peer.position, keys.sealing, keys.masking, keys.commitment)
    if not verified(peer.identity, keys.signature, statement):
        raise Refused(f"the keys of client {peer.position} are not signed by it for this session")


def check_distinct(own: tuple[bytes, ...], peers: tuple[Peer, ...]) -> None:
    """Refused if two clients, or a client and this one, show the same identity or the same key."""
    keys = [*own]
    for peer in peers:
        keys += (peer.identity, peer.keys.sealing, peer.keys.masking)
    if len(set(keys)) != len(keys):
        raise Refused("two clients were presented with the same identity or key")
