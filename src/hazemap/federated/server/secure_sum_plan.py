"""A secure sum as the store keeps it: its plan, the events that happened in it, and what became of it.

The same events make the same sum, now and after a crash. The protocol's server decides everything. One thread at a time
uses it, under a lock, for one event or for one device's message. Only the end of a stage, which may take a second,
needs no lock: no device is served then.
"""

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation.merkle_roster import root
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.protocols.secure_aggregation.neighbour_graph import commitment
from hazemap.federated.protocols.secure_aggregation.server import Server
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode, SessionParameters
from hazemap.federated.server.device_enrolment import named
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


log = logging.getLogger("hazemap.federated.server")

END_OF_STAGE = -1


class SumEvent(NamedTuple):
    """A message of a position; or, of position -2 - p, why the device at p leaves; or (-1) the end of a stage.

    >>> SumEvent.leaving(7, "its budget is spent").who
    7
    """

    position: int
    message: bytes

    @classmethod
    def leaving(cls, position: int, reason: str) -> "SumEvent":
        """The device at this position will not answer."""
        return cls(-2 - position, reason.encode())

    @property
    def who(self) -> int:
        """Whose event it is; -1 for the end of a stage."""
        return self.position if self.position >= END_OF_STAGE else -2 - self.position


class RecordedSum:
    """A protocol server, and what an operator may know of it. Making one costs O(people) hashes."""

    def __init__(self, plan: SecureSumPlan) -> None:
        self.plan = plan
        self.refusals: dict[int, str] = {}
        self.up = np.zeros(plan.terms.clients, dtype=np.int64)
        self.down = np.zeros(plan.terms.clients, dtype=np.int64)
        self.reason = ""
        self._sending = self._unmasking = False
        self._server = plan.server()
        self._lock = threading.Lock()

    @property
    def stage(self) -> Stage:
        """What devices are asked now."""
        return self._server.stage

    @property
    def over(self) -> bool:
        """Whether there is a sum, or will never be one."""
        return bool(self.reason) or self.stage in (Stage.OPENED, Stage.FAILED)

    @property
    def waiting(self) -> int:
        """Devices that were asked in this stage and have not answered."""
        return self._server.waiting

    @property
    def dropped(self) -> dict[str, int]:
        """How many were lost in each stage."""
        return dict(Counter(stage.name.lower() for stage in tuple(self._server.dropped.values())))

    @property
    def longest(self) -> int:
        """Bytes of the longest reply that anybody may send: a vector, or something for each peer."""
        terms = self.plan.terms
        return 4_096 + max(terms.size * terms.bits // 8, 2_048 * terms.degree)

    def message_for(self, position: int) -> bytes | None:
        """The message for this device to answer now, if any."""
        with self._lock:
            return self._server.message_for(position)

    def happens(self, event: SumEvent) -> Exception | None:
        """Act upon an event. The protocol's objection is returned, for the sender, if there is one."""
        try:
            if event.position == END_OF_STAGE:
                self._server.advance()
                self._sending |= self.stage is Stage.MASKED
                self._unmasking |= self.stage is Stage.UNMASK
                return None
            self.up[event.who] += len(event.message)
            with self._lock:
                if event.position == event.who:
                    self._server.receive(event.who, event.message)
                else:
                    self._server.leave(event.who)
                    self.refusals[event.who] = event.message.decode()
        except NotOpened as error:
            self.reason = str(error)
            return error
        except (Refused, CodecError) as error:
            return error
        except Exception as error:  # a bug: a thousand devices must not wait for it; this sum is lost, others are not
            plan = self.plan
            log.exception("%s, round %d, shard %d: a bug in hazemap", plan.campaign, plan.round, plan.number)
            self.reason = "a bug in hazemap; see the server's log"
            return error
        return None

    def outcome(self) -> ShardOutcome:
        """What became of it."""
        server, roster = self._server, self.plan.roster
        opened = server.result
        summary = Summary(
            clients=self.plan.terms.clients,
            reason="" if opened else self.reason,
            safe=not opened and not self._unmasking,
            sent=self._sending,
            dropped=self.dropped,
            refusals=dict(Counter(self.refusals.values())),
            culprits={named(roster[position]): why for position, why in server.culprits.items()},
            out=tuple(sorted({*server.culprits, *self.refusals})),
            silent=tuple(sorted({*server.dropped} - {*server.culprits, *self.refusals, *server.lonely})),
            up=int(self.up.sum()),
            down=int(self.down.sum()),
            most_up=int(self.up.max()),
            most_down=int(self.down.max()),
        )
        return ShardOutcome(summary, opened.people, opened.sums) if opened else ShardOutcome(summary)
