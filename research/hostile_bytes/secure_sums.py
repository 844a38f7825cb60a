"""Messages of secure sums that a hostile server or client might send, and what a device has kept of a session.

Twelve messages, the parameters of a session, the state of a client, letters, proofs, shares and vectors are read alone.
Clients and a server that take a spoilt message, and clients that go on from a spoilt state, cost milliseconds an input:
these readers are named `… in a session`.
"""

from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.federated.protocols.secure_aggregation.people import FixedCoins, Session, dice, session

from hazemap.errors import NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.authenticated_encryption import associated, seal, unseal
from hazemap.federated.protocols.secure_aggregation.client import ClientState, SecureSumClient
from hazemap.federated.protocols.secure_aggregation.client_bitmap import Bitmap
from hazemap.federated.protocols.secure_aggregation.messages import LETTER, SecureSumMessage, Stage, decode
from hazemap.federated.protocols.secure_aggregation.modular_packing import pack, unpack
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.protocols.secure_aggregation.shamir_sharing import is_share, join, split
from hazemap.vdaf.tls_encoding import TlsReader, TlsWriter
from research.hostile_bytes.spoilt import Check, Reader, canonical, in_words, must, structure

GONE = 2
"""The client that does not answer after SHARES."""
SHOWN = 2
"""Clients whose messages are spoilt."""
SHARES = dict(zip([1, 2], split(b"s" * 32, 2, [1, 2], dice("shares")), strict=True))


@dataclass(frozen=True)
class OfThisTask:
    """What a device insists on before it counts: numbers as many and as long as those that follow from its task."""

    terms: SessionParameters

    def check(self, terms: SessionParameters) -> None:
        """`Refused` for other numbers."""
        if (terms.size, terms.bits) != (self.terms.size, self.terms.bits):
            raise Refused("the session has other numbers than its task")


@dataclass(frozen=True)
class Turn:
    """A client's turn in a session: what it had kept, what it is sent and answers, and the server before that."""

    here: Session
    position: int
    state: bytes | None
    message: bytes
    reply: bytes
    server: Server

    def client(self, state: bytes | None) -> SecureSumClient:
        """The client with this state."""
        here, position = self.here, self.position
        coins = FixedCoins(f"client {position}", b"noise %d" % position)
        own = here.identities[position], OfThisTask(here.terms), lambda _: here.vectors[position], None, coins
        return SecureSumClient(*own) if state is None else SecureSumClient.resume(state, *own)


def turns(mode: Mode) -> list[Turn]:
    """A session to its end, with one client gone after SHARES."""
    here = session(7, mode, degree=6, threshold=4, survivors=5, size=9, bits=13, name=f"fuzz {mode}")
    found = []
    while here.server.stage < Stage.OPENED:
        for position in range(here.terms.clients):
            message = here.server.message_for(position)
            if message is None or (position == GONE and here.server.stage >= Stage.MASKED):
                continue
            state, before = here.saved.get(position), deepcopy(here.server)
            reply = here.clients[position].receive(message)
            found.append(Turn(here, position, state, message, reply, before))
            here.server.receive(position, reply)
        here.server.advance()
    return found


def corpus() -> dict[str, Reader]:
    """By the name of a reader, bytes that it takes, and the reader."""
    every = [turn for mode in Mode for turn in turns(mode)]
    sent, within = defaultdict[str, list[bytes]](list), dict[str, Reader]()
    for turn in (each for each in every if each.position < SHOWN):
        for data, check in ((turn.message, answered), (turn.reply, heard)):
            name, mode = type(decode(data)).__name__, turn.here.terms.mode.name.lower().replace("_", "-")
            sent[name].append(data)
            within[f"{name} in a {mode} session"] = Reader([data], check(turn))
    states = [turn.state for turn in every if turn.state is not None]
    terms = {turn.here.terms.session: turn.here.terms.to_bytes() for turn in every}
    return {
        **{name: Reader(valid, canonical(decode, SecureSumMessage.encode)) for name, valid in sent.items()},
        "SessionParameters": Reader(list(terms.values()), structure(SessionParameters)),
        "ClientState": Reader(states, state_read),
        **_parts(every[0].here),
        "ClientState in a session": Reader(states, in_words(goes_on(every))),
        **within,
    }


def _parts(here: Session) -> dict[str, Reader]:
    """What messages are made of."""
    path, key, address = roster.proof(here.roster, 3), bytes(32), associated(bytes(32), 1, 2, 3)

    def proven(data: bytes) -> None:
        cut = tuple(data[i : i + 32] for i in range(0, len(data), 32))
        must(not roster.belongs(here.terms.roster, 7, 3, here.roster[3], cut) or cut == path)

    def opened(data: bytes) -> None:
        must(unseal(key, address, data) == b"letter")

    found = {
        "Bitmap": Reader([b"\0\0\0\x0a\x80\x40"], whole(Bitmap.read)),
        "ascending numbers": Reader([TlsWriter().numbers((1, 5, 9)).done()], whole(TlsReader.numbers)),
        "numbered letters": Reader(
            [TlsWriter().numbered({1: b"a" * LETTER, 5: b"b" * LETTER}, LETTER).done()],
            whole(lambda reader: reader.numbered(LETTER)),
        ),
        "proof of the roster": Reader([b"".join(path)], proven),
        "letter": Reader([seal(key, address, b"letter")], opened),
        "share": Reader([SHARES[1]], joined),
    }
    for bits in (5, 13, 16, 31, 32):
        vector = pack(np.arange(9, dtype=np.uint16 if bits <= 16 else np.uint32), bits)
        found[f"vector of {bits} bits"] = Reader([vector], canonical(*_unpacked(bits)))
    return found


def _unpacked(bits: int) -> tuple[Callable[[bytes], Any], Callable[[Any], bytes]]:
    return lambda data: unpack(data, 9, bits), lambda vector: pack(vector, bits)


def whole(read: Callable[[TlsReader], object]) -> Check:
    """A part of a message, to its end."""

    def check(data: bytes) -> None:
        reader = TlsReader(data)
        read(reader)
        reader.end()

    return check


def joined(share: bytes) -> None:
    """A share that can be read may still be wrong: then it tells another secret, or nothing."""
    try:
        must(join({1: share, 2: SHARES[2]}, 2) != b"s" * 32 or share == SHARES[1])
    except NotOpened:
        must(is_share(share))
        raise Refused("these shares fit no secret") from None


def state_read(data: bytes) -> None:
    """The state of a client in all its parts."""
    state = ClientState.from_bytes(data)
    must(state.to_bytes() == data)
    state.known()
    if state.shares:
        state.dealt()
    for bits in filter(None, (state.roll, state.sharers, state.survivors)):
        state.bitmap(bits).positions()


def goes_on(every: list[Turn]) -> Check:
    """A client whose state comes back from a bad disk, and is sent what comes next: it says so, or lives on."""
    due = {
        (turn.here.terms.mode, turn.position, ClientState.from_bytes(turn.state).stage): turn
        for turn in every
        if turn.state
    }

    def check(data: bytes) -> None:
        state = ClientState.from_bytes(data)
        turn = due.get((state.terms.mode, state.position, state.stage))
        if turn is None:
            raise Refused("nobody goes on from here")
        decode(turn.client(data).receive(turn.message))

    return check


def answered(turn: Turn) -> Check:
    """A client that is sent this: it answers its stage, or nothing, and then nothing has changed."""

    def check(data: bytes) -> None:
        client = turn.client(turn.state)
        try:
            must(type(decode(client.receive(data))) is type(decode(turn.reply)))
        except Exception:
            must(client.reply == turn.client(turn.state).reply)
            raise

    return check


def heard(turn: Turn) -> Check:
    """A server that is sent this by a client: it takes it as the answer, or nothing, and then it waits on."""
    kept = [deepcopy(turn.server)]

    def check(data: bytes) -> None:
        if turn.position not in kept[0]._asked:
            kept[0] = deepcopy(turn.server)
        kept[0].receive(turn.position, data)

    return check
