"""A whole secure sum in memory: read this first. Who says what in each stage is in `messages`, why in `client`."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import Refused
from hazemap.federated.protocols.secure_aggregation.client import Contribution, SecureSumClient
from hazemap.federated.protocols.secure_aggregation.key_agreement import DeviceCoins
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.minimum_parameters import Judge, MinimumParameters
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.protocols.secure_aggregation.unmasking import Opened
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import Identity


def secure_sum(
    terms: SessionParameters,
    identities: Sequence[Identity],
    contributions: Sequence[NDArray[np.int64]],
    seed: bytes | None = None,
    drops: Mapping[int, Stage] | None = None,
    floors: Judge | None = None,
    stream: Stream | None = None,
) -> Opened:
    """The sum of the contributions, and noise, of everybody who stays long enough; NotOpened if too few do.

    `contributions[i]` is the vector of client i, int64[size]; `drops[i]` the stage that it does not answer any more.
    The coins of all clients come from `stream`, a fresh one unless given.

    >>> from fractions import Fraction
    >>> from hazemap.privacy.distributed_noise import DistributedNoise
    >>> from hazemap.federated.protocols.secure_aggregation import merkle_roster as roster
    >>> from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
    >>> people = [Identity.create() for _ in range(6)]
    >>> root = roster.root([person.public for person in people])
    >>> terms = SessionParameters(Mode.MALICIOUS, bytes(32), bytes(32), clients=6, degree=5, threshold=4, survivors=5,
    ...               size=3, bits=16, noise=DistributedNoise(Fraction(1, 50), 4), roster=root, graph=bytes(32))
    >>> ones = [np.ones(3, dtype=np.int64)] * 6
    >>> anything = MinimumParameters(clients=5, survivors=5, corrupt=Fraction(0))
    >>> opened = secure_sum(terms, people, ones, drops={2: Stage.MASKED}, floors=anything)
    >>> opened.sums.tolist(), opened.people
    ([5, 5, 5], 5)
    """
    stream = stream or Stream.from_os()
    server = Server(terms, [identity.public for identity in identities], seed)
    clients = [
        SecureSumClient(
            identity,
            floors or MinimumParameters(),
            _contribution(contributions, position),
            coins=DeviceCoins(stream.bytes(32)),
        )
        for position, identity in enumerate(identities)
    ]
    while server.result is None:
        for position, client in enumerate(clients):
            message = server.message_for(position)
            if message is None or server.stage >= (drops or {}).get(position, Stage.OPENED):
                continue
            try:
                server.receive(position, client.receive(message))
            except Refused:  # one of the two is not content; the others go on
                server.leave(position)
        server.advance()
    return server.result


def _contribution(contributions: Sequence[NDArray[np.int64]], position: int) -> Contribution:
    return lambda _terms: contributions[position]
