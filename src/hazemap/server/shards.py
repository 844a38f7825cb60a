"""One secure sum among many devices, from the first invitation to the opened sums.

The wire's server decides everything; this file gives it a disk and a clock. What happens to a shard is a row of
events: a message of a device, or the end of a stage. An event is numbered, stored, and only then acted upon and
acknowledged, in the order of the numbers; so the same events make the same server after a crash, whenever it was.

A stage that was going on when the server stopped has its whole time again.

The event loop owns a `Shard`. Its wire server is touched by a thread of the pool, one event at a time under a lock,
and by the event loop, under the lock, for the message that a device is to answer; while a stage ends, which may take a
second, devices are told to come back, so that the loop never waits for it.
"""

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from hazemap.errors import CodecError, NotOpened, Refused, StoreError
from hazemap.server.campaigns import Deadlines
from hazemap.server.enrolment import named
from hazemap.server.outcomes import Outcome, Summary
from hazemap.server.plans import Plan
from hazemap.server.seats import Late, Work
from hazemap.server.store import Store, Write
from hazemap.wire.messages import MESSAGES
from hazemap.wire.stages import Stage

log = logging.getLogger("hazemap.server")

END_OF_STAGE = -1
_EVENT = "INSERT INTO events (session, seq, position, message) VALUES (?, ?, ?, ?)"


_REPLIES = {message.stage: message.kind for message in MESSAGES}
"""The type of the message that answers each stage: of the two of a stage it comes second."""


class Event(NamedTuple):
    """A message of a position; or, of position -2 - p, why the device at p leaves; or (-1) the end of a stage."""

    position: int
    message: bytes

    @classmethod
    def leaving(cls, position: int, reason: str) -> "Event":
        """The device at this position will not answer."""
        return cls(-2 - position, reason.encode())

    @property
    def who(self) -> int:
        """Whose event it is; -1 for the end of a stage."""
        return self.position if self.position >= END_OF_STAGE else -2 - self.position


Acknowledged = asyncio.Future[None]


class Shard:
    """A shard while it runs; `run` is its whole life. Making one costs O(people) hashes."""

    def __init__(self, plan: Plan, deadlines: Deadlines, store: Store, pool: Executor) -> None:
        self.plan = plan
        self.until = datetime.now(UTC)
        self.refusals: dict[int, str] = {}
        self.up = np.zeros(plan.terms.clients, dtype=np.int64)
        self.down = np.zeros(plan.terms.clients, dtype=np.int64)
        self._deadlines, self._store, self._pool = deadlines, store, pool
        self._server = plan.server()
        self._lock = threading.Lock()
        self._events: deque[tuple[Event, Acknowledged]] = deque()
        self._number = 0
        self._busy, self._closing = False, True
        self._replies: dict[int, tuple[bytes, Acknowledged]] = {}
        self._before: dict[int, bytes] = {}
        self._unmasking = False
        self._reason = ""
        self._timer: asyncio.TimerHandle | None = None
        self._quiet: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Future[Outcome]

    @property
    def name(self) -> str:
        """What the log calls it."""
        plan = self.plan
        return f"{plan.campaign}, round {plan.round}, shard {plan.number}, attempt {plan.attempt}"

    @property
    def stage(self) -> Stage:
        """What devices are asked now."""
        return self._server.stage

    @property
    def waiting(self) -> int:
        """Devices whose answer may still come in this stage."""
        return 0 if self._closing else self._server.waiting

    @property
    def dropped(self) -> dict[str, int]:
        """How many were lost in each stage."""
        return dict(Counter(stage.name.lower() for stage in tuple(self._server.dropped.values())))

    @property
    def longest(self) -> int:
        """Bytes of the longest reply that anybody may send: a vector, or something for each peer."""
        terms = self.plan.terms
        return 4_096 + max(terms.size * terms.bits // 8, 512 * 4 * terms.degree)

    async def run(self, events: Iterable[Event] = ()) -> Outcome:
        """Replay what is stored of it, then serve devices until it is over. What became of it is stored on return."""
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        await self._loop.run_in_executor(self._pool, self._replay, tuple(events))
        self._turned()
        try:
            return await self._over
        finally:
            self._closing = True
            self._stop_clocks()

    def work(self, position: int) -> Work | None:
        """What the device at this position is to answer now, if anything. O(its message)."""
        message = self._asked(position)
        if message is None:
            return None
        task = self.plan.task if self.stage is Stage.KEYS else None
        return Work(self.plan.terms.session, self.stage.value, task, message, self.until)

    async def answer(self, position: int, message: bytes) -> None:
        """A device's reply: stored, and taken by the protocol, when this returns. The same reply again is no fault.

        `Late` where it is not asked for; `Refused` or `CodecError` where it breaks the protocol.
        """
        digest = sha256(message).digest()
        stored = self._replies.get(position)
        if stored and stored[0] == digest:
            return await asyncio.shield(stored[1])
        if self._before.get(position) == digest:
            return None
        early = len(message) < 2 or message[1] < _REPLIES[self.stage]
        if stored or early or self._asked(position) is None:
            raise Late("this was not asked for, or it came too late: ask for work again")
        return await self._happens(Event(position, message), digest)

    async def decline(self, position: int, reason: str) -> None:
        """A device will not answer: it counts as dropped, and nobody waits for it."""
        if self._asked(position) is None:
            raise Late("nothing is asked that could be declined")
        await self._happens(Event.leaving(position, reason), b"")

    def _asked(self, position: int) -> bytes | None:
        if self._closing or position in self._replies:
            return None
        with self._lock:
            return self._server.message_for(position)

    async def _happens(self, event: Event, digest: bytes) -> None:
        acknowledged = self._loop.create_future()
        self._replies[event.who] = digest, acknowledged
        self._submit(event, acknowledged)
        await asyncio.shield(acknowledged)

    def _end_if_all_came(self) -> None:
        if self._busy or self._closing:
            return
        if self.waiting <= 0:
            self._end()
        elif self._deadlines.quiet and len(self._replies) >= self.plan.terms.survivors:
            if self._quiet:
                self._quiet.cancel()
            self._quiet = self._loop.call_later(self._deadlines.quiet, self._end)

    def _stop_clocks(self) -> None:
        for timer in (self._timer, self._quiet):
            if timer:
                timer.cancel()

    def _end(self) -> None:
        """The stage is over: all came, or it is time."""
        if self._closing:
            return
        self._closing = True
        self._stop_clocks()
        self._submit(Event(END_OF_STAGE, b""), self._loop.create_future())

    def _submit(self, event: Event, acknowledged: Acknowledged) -> None:
        row = (self.plan.terms.session, self._number, event.position, event.message)
        self._number += 1
        self._store.submit([Write(_EVENT, row)], partial(self._stored, event, acknowledged), self._loop)

    def _stored(self, event: Event, acknowledged: Acknowledged, error: StoreError | None) -> None:
        if error:
            _fail(acknowledged, error)
            _fail(self._over, error)
            return
        if self._over.done():  # the campaign was stopped
            _fail(acknowledged, Late("this session is over"))
            return
        self._events.append((event, acknowledged))
        self._start()

    def _start(self) -> None:
        if self._events and not self._busy:
            self._busy = True
            self._pool.submit(self._take)

    def _take(self) -> None:
        """In a thread of the pool: act upon what is stored, in order."""
        taken = []
        while self._events:
            event, acknowledged = self._events.popleft()
            taken.append((event, acknowledged, self._act(event)))
        self._loop.call_soon_threadsafe(self._taken, taken)

    def _act(self, event: Event) -> Exception | None:
        try:
            if event.position == END_OF_STAGE:
                self._server.advance()
                self._unmasking |= self._server.stage is Stage.UNMASK
                return None
            self.up[event.who] += len(event.message)
            with self._lock:
                if event.position == event.who:
                    self._server.receive(event.who, event.message)
                else:
                    self._server.leave(event.who)
                    self.refusals[event.who] = event.message.decode()
        except NotOpened as error:
            self._reason = str(error)
            return error
        except (Refused, CodecError) as error:
            return error
        except Exception as error:  # a bug: a thousand devices must not wait for it; this shard is lost, others are not
            log.exception("%s: a bug in hazemap", self.name)
            self._reason = "a bug in hazemap; see the server's log"
            return error
        return None

    def _taken(self, taken: list[tuple[Event, Acknowledged, Exception | None]]) -> None:
        self._busy = False
        ended = False
        for event, acknowledged, error in taken:
            if error is None:
                if not acknowledged.done():
                    acknowledged.set_result(None)
            else:
                _fail(acknowledged, error)
            ended |= event.position == END_OF_STAGE
        if ended:
            self._forget()
            try:
                self._turned()
            except Exception as error:  # a bug: the campaign must end, not wait for ever
                _fail(self._over, error)
                raise
        self._start()
        self._end_if_all_came()

    def _replay(self, events: tuple[Event, ...]) -> None:
        """Before anybody is served: the same events make the same server."""
        for event in events:
            error = self._act(event)
            if event.position == END_OF_STAGE:
                self._forget()
                continue
            reply = self._loop.create_future()
            if error:
                _fail(reply, error)
            else:
                reply.set_result(None)
            self._replies[event.who] = sha256(event.message).digest(), reply
        self._number = len(events)

    def _forget(self) -> None:
        self._before |= {position: digest for position, (digest, _) in self._replies.items()}
        self._replies.clear()

    def _turned(self) -> None:
        """A stage begins, or the last one has ended."""
        if self._over.done():
            return
        if self._reason or self.stage in (Stage.OPENED, Stage.FAILED):
            outcome = self._outcome()
            self._store.submit(self.plan.end(outcome), partial(self._finished, outcome), self._loop)
            return
        seconds = getattr(self._deadlines, self.stage.name.lower())
        self.until = datetime.now(UTC) + timedelta(seconds=seconds)
        self._closing = False
        self._timer = self._loop.call_later(seconds, self._end)
        self._end_if_all_came()

    def _outcome(self) -> Outcome:
        server, roster = self._server, self.plan.roster
        opened = server.result
        summary = Summary(
            clients=self.plan.terms.clients,
            reason="" if opened else self._reason or "too few answered",
            safe=not opened and not self._unmasking,
            dropped=self.dropped,
            refusals=dict(Counter(self.refusals.values())),
            culprits={named(roster[position]): why for position, why in server.culprits.items()},
            out=tuple(sorted({*server.culprits, *self.refusals})),
            silent=tuple(sorted({*server.dropped} - {*server.culprits, *self.refusals})),
            up=int(self.up.sum()),
            down=int(self.down.sum()),
            most_up=int(self.up.max()),
            most_down=int(self.down.max()),
        )
        return Outcome(summary, opened.people, opened.sums) if opened else Outcome(summary)

    def _finished(self, outcome: Outcome, error: StoreError | None) -> None:
        if error:
            _fail(self._over, error)
        elif not self._over.done():
            self._over.set_result(outcome)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    """Hand an error to whoever waits, if anybody does."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # it is no bug that nobody waits any more
