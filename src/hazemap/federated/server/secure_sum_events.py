"""A secure sum as what happened in it: the same events make the same sum, now and after a crash.

The protocol's server decides everything. One thread at a time uses it, under a lock, for one event or for one device's
message. Only the end of a stage, which may take a second, needs no lock: no device is served then.
"""

import logging
import threading
from collections import Counter
from typing import NamedTuple

import numpy as np

from hazemap.errors import CodecError, NotOpened, Refused
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.server.device_enrolment import named
from hazemap.federated.server.secure_sum_plan import SecureSumPlan, ShardOutcome, Summary

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
