"""Whether the neighbours that a server presents are who a client's graph, roster and signatures say they are."""

from hazemap.errors import Refused
from hazemap.protocols.secure_aggregation import merkle_roster as roster
from hazemap.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.protocols.secure_aggregation.domain_separation import keys_statement
from hazemap.protocols.secure_aggregation.messages import Neighbours
from hazemap.protocols.secure_aggregation.neighbour_graph import commitment, ring_neighbours_of
from hazemap.protocols.secure_aggregation.peer_public_keys import Peer
from hazemap.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.protocols.secure_aggregation.signing_identities import verified


def check_listed(some: Bitmap, terms: SessionParameters, position: int, what: str) -> None:
    """Refused unless these are clients of the session, this one among them, and as many as must survive.

    Fewer can never be opened; and neighbours drawn from few would mostly be the corrupt.
    """
    if some.size != terms.clients:
        raise Refused(f"of {some.size} clients some are said to {what}, in a session of {terms.clients}")
    if position not in some:
        raise Refused(f"this client is not among those that are said to {what}")
    if len(some) < terms.survivors:
        raise Refused(f"{len(some)} clients are said to {what}, fewer than the {terms.survivors} that must survive")


def check_neighbours(
    terms: SessionParameters, position: int, picks: tuple[int, ...], message: Neighbours
) -> tuple[int, ...]:
    """Who is to hold this client's shares; Refused unless the neighbours are exactly its own.

    Semi-honest: the ring of those who sent keys, in the order that the server was committed to. Malicious: those it
    drew, and whoever drew it. The latter are some `degree`; more than 3 · degree + 32 of a fair draw are rarer than
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
                f"{len(known) - len(holders)} clients are said to have drawn this one: no fair draw does that"
            )
    if len(holders) < terms.threshold:
        raise Refused(f"{len(holders)} neighbours cannot hold shares of which {terms.threshold} tell a secret")
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
