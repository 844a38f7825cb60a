"""Small sessions for tests: people whose vectors and noise are known, so that the exact sum is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256

import numpy as np

from hazemap.errors import CodecError, Refused
from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity

RING = b"a seed of thirty-two bytes, yes.."[:32]
STAGES = [Stage.KEYS, Stage.PICKS, Stage.SHARES, Stage.MASKED, Stage.ASSENT, Stage.UNMASK]


class Anything:
    """Floors of somebody who does not care: tests choose parameters that no floor would pass."""

    def check(self, terms: SessionParameters) -> None:
        pass


def dice(name: str) -> Callable[[int], bytes]:
    """Random bytes that are the same every time."""
    counter = 0

    def random(length: int) -> bytes:
        nonlocal counter
        counter += 1
        out = b"".join(sha256(f"{name} {counter} {i}".encode()).digest() for i in range(-(-length // 32)))
        return out[:length]

    return random


class FixedCoins:
    """Coins that are the same every time, whatever is said; the noise of a client is that of `Session.exact`."""

    def __init__(self, name: str, noise: bytes) -> None:
        self.name, self.noise = name, noise

    def __call__(self, _session: bytes, purpose: bytes, *_bound: bytes) -> Stream:
        return Stream.fixed(self.noise if purpose == b"noise" else f"{self.name} {purpose}".encode())


@dataclass
class Session:
    """Everybody who is invited, and the server."""

    terms: SessionParameters
    identities: list[Identity]
    seed: bytes | None
    vectors: np.ndarray
    clients: list[SecureSumClient] = field(default_factory=list)
    saved: dict[int, bytes] = field(default_factory=dict)
    cheats: dict[tuple[int, Stage], Callable[[bytes], bytes]] = field(default_factory=dict)
    """what a client makes of its honest answer to a stage"""
    server: Server = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.clients = [self.client(position) for position in range(self.terms.clients)]
        self.server = self.fresh()

    def fresh(self) -> Server:
        return Server(self.terms, self.roster, self.seed)

    @property
    def roster(self) -> list[bytes]:
        return [identity.public for identity in self.identities]

    def client(self, position: int, **others) -> SecureSumClient:
        arguments = {
            "identity": self.identities[position],
            "floors": Anything(),
            "contribution": lambda _terms: self.vectors[position],
            "save": lambda state: self.saved.__setitem__(position, state),
            "coins": FixedCoins(f"client {position}", b"noise %d" % position),
        } | others
        return SecureSumClient(**arguments)

    def exact(self, positions: Sequence[int]) -> np.ndarray:
        """The contributions and the noise of these people, modulo 2^b, as it is opened."""
        terms, total = self.terms, np.zeros(self.terms.size, dtype=np.int64)
        for position in positions:
            total += self.vectors[position] + terms.noise.share(Stream.fixed(b"noise %d" % position), terms.size)
        half = 1 << (terms.bits - 1)
        return (total + half) % (1 << terms.bits) - half

    def deliver(self, position: int) -> None:
        """One client's turn, as honest as it is."""
        message = self.server.message_for(position)
        if message is None:
            return
        cheat = self.cheats.get((position, self.server.stage), bytes)
        try:
            self.server.receive(position, cheat(self.clients[position].receive(message)))
        except (Refused, CodecError):
            self.server.leave(position)

    def stage(self, without: Sequence[int] = ()) -> None:
        """Everybody's turn but theirs, and the end of the stage."""
        for position in range(self.terms.clients):
            if position not in without:
                self.deliver(position)
        self.server.advance()

    def until(self, stage: Stage, without: Sequence[int] = ()) -> None:
        """All stages before this one."""
        while self.server.stage < stage:
            self.stage(without)

    def play(self, drops: Mapping[int, Stage] | None = None) -> None:
        """The whole session; `drops` names the stage that a client does not answer any more. May raise NotOpened."""
        while self.server.stage < Stage.OPENED:
            stage = self.server.stage
            self.stage([position for position, last in (drops or {}).items() if stage >= last])


def session(
    clients: int = 6,
    mode: Mode = Mode.SEMI_HONEST,
    degree: int | None = None,
    threshold: int | None = None,
    survivors: int | None = None,
    size: int = 5,
    bits: int = 16,
    scale: Fraction = Fraction(3),
    name: str = "session",
    **others,
) -> Session:
    """A session among `clients`: by default everybody is everybody's neighbour, and a majority tells a secret."""
    degree = clients - 1 if degree is None else degree
    threshold = degree // 2 + 1 if threshold is None else threshold
    survivors = threshold + 1 if survivors is None else survivors
    identities = [Identity.create(dice(f"{name} identity {position}")) for position in range(clients)]
    terms = SessionParameters(
        mode,
        task=sha256(b"task").digest(),
        nonce=sha256(name.encode()).digest(),
        clients=clients,
        degree=degree,
        threshold=threshold,
        survivors=survivors,
        size=size,
        bits=bits,
        noise=DistributedNoise(scale, max(1, survivors - 1)),
        roster=roster.root([identity.public for identity in identities]),
        graph=commitment(RING) if mode is Mode.SEMI_HONEST else bytes(32),
    )
    terms = replace(terms, **others)
    vectors = np.random.default_rng(len(name)).integers(-3, 4, (clients, size))
    return Session(terms, identities, RING if mode is Mode.SEMI_HONEST else None, vectors)
