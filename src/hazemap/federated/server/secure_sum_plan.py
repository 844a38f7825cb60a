"""A secure sum as the store keeps it: the plan that its server is made of, and what became of it."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.federated.protocols.secure_aggregation.merkle_roster import root
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.service.store import Write
from hazemap.federated.trust.device_tasks import Task, parameters_for
from hazemap.privacy.signing_identities import KEY

COLUMNS = "campaign, round, number, attempt, terms, seed, roster"
_BEGIN = f"INSERT INTO shards (session, state, {COLUMNS}) VALUES (?, 'open', ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_END = "UPDATE shards SET state = ?, sums = ?, people = ?, summary = ? WHERE session = ?"
_FORGET = "DELETE FROM events WHERE session = ?"


@dataclass(frozen=True)
class Summary:
    """What an operator may know of a shard: numbers and reasons, and nobody's answer.

    * `reason`: why it was not opened; empty where it was.
    * `safe`: nobody was asked for what opens it. `sent`: vectors were asked for, so that their people have paid.
    * `dropped`: how many did not answer, by stage. `refusals`: how many devices declined, by reason.
    * `culprits`: devices that broke the protocol, and how. `out`: positions of those, and of who declined; `silent`:
      of who did not answer some stage.
    * `up`, `down`: bytes that devices sent and were sent (bodies of requests and replies), in all, and `most_up` and
      `most_down`, of the device with the most.

    >>> Summary.parse(Summary(clients=3, reason="too few", safe=True).text()).safe
    True
    """

    clients: int
    reason: str = ""
    safe: bool = False
    sent: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)
    culprits: Mapping[str, str] = field(default_factory=dict)
    out: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()
    up: int = 0
    down: int = 0
    most_up: int = 0
    most_down: int = 0

    def text(self) -> str:
        """JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> "Summary":
        """What `text` wrote."""
        data: dict[str, Any] = json.loads(text)
        return cls(**{**data, "out": tuple(data["out"]), "silent": tuple(data["silent"])})


@dataclass(frozen=True, eq=False)
class ShardOutcome:
    """An opened sum over `people` survivors, or none."""

    summary: Summary
    people: int = 0
    sums: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class SecureSumPlan:
    """Shard `number` of a round, at its `attempt`, among the identities of a roster.

    `task` is the codec's JSON, as devices are shown it; `seed` makes the graph in semi-honest mode and is empty in the
    other.
    """

    campaign: str
    round: int
    number: int
    attempt: int
    terms: SessionParameters
    seed: bytes
    roster: tuple[bytes, ...]
    task: str

    @classmethod
    def formed(cls, task: Task, text: str, number: int, attempt: int, roster: Sequence[bytes]) -> "SecureSumPlan":
        """A new session among these, with a nonce and a graph of its own: O(people) hashes."""
        seed = os.urandom(32) if task.cohort.mode is Mode.SEMI_HONEST else b""
        graph = commitment(seed) if seed else bytes(32)
        terms = parameters_for(task, root(roster), len(roster), graph, os.urandom(32))
        return cls(task.campaign, task.round, number, attempt, terms, seed, tuple(roster), text)

    @classmethod
    def read(cls, row: Sequence[Any], task: str) -> "SecureSumPlan":
        """From the store's `COLUMNS`."""
        campaign, round_, number, attempt, terms, seed, roster = row
        known = SessionParameters.from_bytes(bytes(terms))
        return cls(campaign, round_, number, attempt, known, bytes(seed), identities(bytes(roster)), task)

    def server(self) -> Server:
        """The protocol's server, before any message."""
        return Server(self.terms, self.roster, self.seed or None)

    def begin(self) -> Write:
        """Store it."""
        row = (self.campaign, self.round, self.number, self.attempt, self.terms.to_bytes(), self.seed)
        return Write(_BEGIN, (self.terms.session, *row, b"".join(self.roster)))

    def end(self, outcome: ShardOutcome, keep: bool = False) -> tuple[Write, ...]:
        """Store what became of it, and forget every message; with `keep` only where it was opened."""
        sums = None if outcome.sums is None else outcome.sums.astype("<i8").tobytes()
        state = "lost" if sums is None else "opened"
        row = (state, sums, outcome.people, outcome.summary.text(), self.terms.session)
        ended = Write(_END, row)
        return (ended,) if keep and sums is None else (ended, self.forgotten)

    @property
    def forgotten(self) -> Write:
        """Forget every message."""
        return Write(_FORGET, (self.terms.session,))


def identities(roster: bytes) -> tuple[bytes, ...]:
    """The identities of a roster, as the store keeps it.

    >>> identities(bytes(64)) == (bytes(32), bytes(32))
    True
    """
    return tuple(roster[at : at + KEY] for at in range(0, len(roster), KEY))
