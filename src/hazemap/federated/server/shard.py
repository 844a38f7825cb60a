"""Shards while they run: the events of a secure sum get an order, a disk, a clock, and an answer.

Devices have seats in shards, and are given work there. An event is numbered, stored, and only then acted upon and
acknowledged, in the order of the numbers; so the same events make the same sum after a crash, whenever it was. A stage
that was going on when the server stopped has its whole time again.

The event loop owns a `Shard`; threads of the pool act upon events, one thread at a time. While a stage ends, which may
take a second, devices come back later: so the loop never waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from hazemap.errors import ConversationError, Refused, StoreError
from hazemap.federated.protocols.secure_aggregation.messages import MESSAGES, Stage
from hazemap.federated.server.campaign_spec import Deadlines
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.device_enrolment import Device, EnrolledDevices, Seat, SeatTask
from hazemap.federated.server.secure_sum_plan import END_OF_STAGE, RecordedSum, SecureSumPlan, ShardOutcome, SumEvent
from hazemap.federated.service.store import Write

_EVENT = "INSERT INTO events (session, seq, position, message) VALUES (?, ?, ?, ?)"
_REPLIES = {message.stage: message.kind for message in MESSAGES}
"""The type of the message that answers each stage: of the two of a stage it comes second."""

Acknowledged = asyncio.Future[None]


class LateAnswer(ConversationError):
    """A reply that was not, or no longer, asked for. It does no harm, and its sender is not at fault."""


@dataclass(frozen=True, eq=False)
class ShardSeat:
    """A device's position in one shard."""

    shard: "Shard"
    position: int

    @property
    def longest(self) -> int:
        """Bytes of the longest answer that it may give."""
        return self.shard.sum.longest

    def work(self) -> SeatTask | None:
        """What it is asked now, if anything."""
        return self.shard.work(self.position)

    def load(self, size: int) -> None:
        """So many bytes went to it."""
        self.shard.sum.down[self.position] += size

    async def answer(self, message: bytes, *also: Write) -> None:
        """Its answer to this stage, with what is written in the same transaction."""
        await self.shard.answer(self.position, message, *also)

    async def decline(self, reason: str) -> None:
        """It takes no part any more, for this reason."""
        await self.shard.decline(self.position, reason)


class Shard:
    """A sum among devices; `run` is its whole life. With `keep` its messages are kept if it is not opened."""

    def __init__(
        self, plan: SecureSumPlan, deadlines: Deadlines, store: CampaignStore, pool: Executor, keep: bool = False
    ) -> None:
        self.plan, self.sum, self._keep = plan, RecordedSum(plan), keep
        self.until = datetime.now(UTC)
        self._deadlines, self._store, self._pool = deadlines, store, pool
        self._events: deque[tuple[SumEvent, Acknowledged]] = deque()
        self._number = 0
        self._busy, self._closing = False, True
        self._replies: dict[int, tuple[bytes, Acknowledged]] = {}
        self._before: dict[int, bytes] = {}
        self._clocks: dict[str, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Future[ShardOutcome]

    @property
    def waiting(self) -> int:
        """Devices whose answer may still come in this stage."""
        return 0 if self._closing else self.sum.waiting

    async def run(self, events: Iterable[SumEvent] = ()) -> ShardOutcome:
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

    def work(self, position: int) -> SeatTask | None:
        """The work of the device at this position now, if any. O(its message)."""
        message = self._asked(position)
        if message is None:
            return None
        stage = self.sum.stage
        task = self.plan.task if stage is Stage.KEYS else None
        return SeatTask(self.plan.terms.session, stage.value, task, message, self.until)

    async def answer(self, position: int, message: bytes, *also: Write) -> None:
        """A device's reply: stored, and taken by the protocol, when this returns. The same reply again is no fault.

        What is written `also` is in its transaction, or alone where the reply was here before.
        `LateAnswer` where it is not asked for; `Refused` or `CodecError` where it breaks the protocol, as by a second
        answer.
        """
        digest = sha256(message).digest()
        stored = self._replies.get(position)
        if stored and stored[0] == digest:
            await asyncio.shield(stored[1])
        elif self._before.get(position) != digest:
            early = len(message) < 2 or message[1] < _REPLIES[self.sum.stage]
            if early or (self._asked(position) is None and not stored):
                raise LateAnswer("this was not asked for, or it came too late: ask for work again")
            if stored:
                raise Refused("this stage was answered in other words: a device that was put back leaves the session")
            return await self._happens(SumEvent(position, message), digest, *also)
        if also:
            await self._store.write(*also)
        return None

    async def decline(self, position: int, reason: str) -> None:
        """A device will not answer: it counts as dropped, and nobody waits for it."""
        if self._asked(position) is None:
            raise LateAnswer("nothing is asked that could be declined")
        await self._happens(SumEvent.leaving(position, reason), b"")

    def _asked(self, position: int) -> bytes | None:
        if self._closing or position in self._replies:
            return None
        return self.sum.message_for(position)

    async def _happens(self, event: SumEvent, digest: bytes, *also: Write) -> None:
        acknowledged = self._loop.create_future()
        self._replies[event.who] = digest, acknowledged
        self._submit(event, acknowledged, *also)
        await asyncio.shield(acknowledged)

    def _end_if_all_came(self) -> None:
        if self._busy or self._closing:
            return
        if self.waiting <= 0:
            self._end()
        elif self._deadlines.quiet and len(self._replies) >= self.plan.terms.survivors:
            self._alarm("quiet", self._deadlines.quiet)

    def _alarm(self, name: str, seconds: float) -> None:
        """End the stage after these seconds; an earlier alarm of this name is cancelled."""
        if name in self._clocks:
            self._clocks[name].cancel()
        self._clocks[name] = self._loop.call_later(seconds, self._end)

    def _stop_clocks(self) -> None:
        while self._clocks:
            self._clocks.popitem()[1].cancel()

    def _end(self) -> None:
        """The stage is over: all came, or it is time."""
        if self._closing:
            return
        self._closing = True
        self._stop_clocks()
        self._submit(SumEvent(END_OF_STAGE, b""), self._loop.create_future())

    def _submit(self, event: SumEvent, acknowledged: Acknowledged, *also: Write) -> None:
        row = (self.plan.terms.session, self._number, event.position, event.message)
        self._number += 1
        self._store.submit([Write(_EVENT, row), *also], partial(self._stored, event, acknowledged), self._loop)

    def _stored(self, event: SumEvent, acknowledged: Acknowledged, error: StoreError | None) -> None:
        if error:
            _fail(acknowledged, error)
            _fail(self._over, error)
            return
        if self._over.done():  # the campaign was stopped
            _fail(acknowledged, LateAnswer("this session is over"))
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
            taken.append((event, acknowledged, self.sum.happens(event)))
        self._loop.call_soon_threadsafe(self._taken, taken)

    def _taken(self, taken: list[tuple[SumEvent, Acknowledged, Exception | None]]) -> None:
        self._busy = False
        ended = self.sum.over
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

    def _replay(self, events: tuple[SumEvent, ...]) -> None:
        """Before anybody is served: the same events make the same server."""
        for event in events:
            error = self.sum.happens(event)
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
        if self.sum.over:
            self._closing = True
            self._stop_clocks()
            outcome = self.sum.outcome()
            self._store.submit(self.plan.end(outcome, self._keep), partial(self._finished, outcome), self._loop)
            return
        seconds = getattr(self._deadlines, self.sum.stage.name.lower())
        self.until = datetime.now(UTC) + timedelta(seconds=seconds)
        self._closing = False
        self._alarm("deadline", seconds)
        self._end_if_all_came()

    def _finished(self, outcome: ShardOutcome, error: StoreError | None) -> None:
        if error:
            _fail(self._over, error)
        elif not self._over.done():
            self._over.set_result(outcome)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    """Hand an error to those who wait, if any."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # it is no bug that nobody waits any more


class RunningShards:
    """The running shards of all campaigns. A device has at most one seat in each; it may have several in all."""

    def __init__(self, store: CampaignStore, enrolled: EnrolledDevices, pool: Executor) -> None:
        self.running: dict[bytes, Shard] = {}
        self.people = 0
        self._store, self._enrolled, self._pool = store, enrolled, pool

    async def run(
        self, plan: SecureSumPlan, deadlines: Deadlines, events: Iterable[SumEvent] = (), keep: bool = False
    ) -> ShardOutcome:
        """Run a shard to its end, with those of its roster that are enrolled."""
        session = plan.terms.session
        loop = asyncio.get_running_loop()
        shard = await loop.run_in_executor(self._pool, Shard, plan, deadlines, self._store, self._pool, keep)
        seated = []
        for position, identity in enumerate(plan.roster):
            device = self._enrolled.device(identity)
            device.seats[session] = ShardSeat(shard, position)
            seated.append(device)
        self.running[session] = shard
        self.people += len(seated)
        try:
            return await shard.run(events)
        finally:
            self.people -= len(seated)
            del self.running[session]
            for device in seated:
                device.seats.pop(session, None)

    @staticmethod
    def work(device: Device) -> tuple[Seat, SeatTask] | None:
        """The first thing that a device is asked, if anything."""
        for seat in device.seats.values():
            work = seat.work()
            if work:
                return seat, work
        return None
