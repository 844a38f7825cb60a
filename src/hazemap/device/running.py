"""The devices of a store at work, one or thousands, in one process: one event loop, one store, shared connections."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from hazemap.device import enrolment, rows
from hazemap.device.absence import Absence
from hazemap.device.agent import Agent, Backoff, jittered
from hazemap.device.commits import Commits
from hazemap.device.courier import Courier, HttpCourier, checked
from hazemap.device.enrolling import enrolled
from hazemap.device.enrolment import Enrolment
from hazemap.device.lean import LeanCourier
from hazemap.device.policy import Policy
from hazemap.device.store import Store
from hazemap.errors import InputError, Unreachable
from hazemap.privacy.stream import Stream

logger = logging.getLogger("hazemap.device")

HOUR = 3_600.0
AT_ONCE = 64
"""Enrolments on their way at one time."""
TRIES = 6
LOOK = 0.25


@dataclass(frozen=True)
class Tally:
    """What devices did: sessions answered to the end, refusals, bytes of answers, and failures to reach a server."""

    devices: int
    finished: int
    answers: int
    refusals: int
    sent: int
    failures: int

    @classmethod
    def of(cls, agents: Iterable[Agent]) -> "Tally":
        """The sums over devices."""
        each = list(agents)
        names = ("finished", "answers", "refusals", "sent", "failed")
        return cls(len(each), *(sum(getattr(agent, name) for agent in each) for name in names))

    def __str__(self) -> str:
        return (
            f"{self.devices:,} devices: {self.answers:,} answers ({self.sent / 1e6:,.1f} MB) sent, {self.finished:,}"
            f" sessions answered to the end, {self.refusals:,} refused, {self.failures:,} failures"
        )


@dataclass(frozen=True)
class Running:
    """Everything of a store at work. `drop` is the part that falls silent in each session (for tests); with
    `until_idle` it ends when no server has had work for so many seconds. `tell` is called now and then. `lean` is for
    thousands of devices: without proxies, but cheap.
    """

    store: Store
    policy: Policy
    certificate: Path | None = None
    connections: int = 32
    drop: Fraction = Fraction(0)
    until_idle: float | None = None
    tell: Callable[[Tally], None] = field(default=lambda _: None)
    every: float = 10.0
    lean: bool = False

    async def enrol(self, server: str, token: str, courier: Courier | None = None) -> int:
        """Enrol every device of the store that is not yet known to this server; how many were."""
        server = checked(server)
        async with AsyncExitStack() as stack:
            carrier: Courier
            carrier = await stack.enter_async_context(self._courier(server)) if courier is None else courier
            new = [(d, e) for d, e in self._enrolments() if e.server != server or e.ticket is None]
            commits, turns = Commits(self.store), asyncio.Semaphore(AT_ONCE)

            async def one(device: int, known: Enrolment) -> None:
                async with turns:
                    made = await _patiently(known, carrier, server, token)
                    await commits.write((enrolment.saved(self.store, device, made),))

            await asyncio.gather(*(one(device, known) for device, known in new))
        return len(new)

    async def run(self, courier: Courier | None = None) -> Tally:
        """Let every device ask and answer until nothing has been asked for long enough, or for good."""
        async with AsyncExitStack() as stack:
            agents = await self._agents(stack, courier)
            tasks = [asyncio.create_task(self._started(agent, len(agents))) for agent in agents]
            try:
                await self._watch(agents, tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return Tally.of(agents)

    async def _agents(self, stack: AsyncExitStack, courier: Courier | None) -> list[Agent]:
        couriers: dict[str, Courier] = {}
        commits, stream, agents = Commits(self.store), Stream.from_os(), []
        turns = asyncio.Semaphore(self.connections)
        for device, known in self._enrolments():
            if known.server is None:
                raise InputError("a device of this store is not enrolled: use `hazemap device enrol` first")
            if known.server not in couriers and courier is not None:
                couriers[known.server] = courier
            elif known.server not in couriers:
                couriers[known.server] = await stack.enter_async_context(self._courier(known.server))
            agents.append(
                Agent(
                    store=self.store,
                    device=device,
                    enrolment=known,
                    policy=self.policy,
                    courier=couriers[known.server],
                    commits=commits,
                    stream=stream,
                    turns=turns,
                    there=Absence(self.drop, stream),
                )
            )
        if not agents:
            raise InputError("this store has no device: use `hazemap device enrol` first")
        return agents

    async def _started(self, agent: Agent, crowd: int) -> None:
        """Not all at once: a thousand devices a second."""
        await asyncio.sleep(jittered(crowd / 1_000) if crowd > 1 else 0)
        await agent.run()

    async def _watch(self, agents: list[Agent], tasks: list["asyncio.Task[None]"]) -> None:
        """Look after everybody: old rows, a device that fails for good, the end."""
        begun = told = time.monotonic()
        expired = float("-inf")
        while True:
            now = time.monotonic()
            if now - expired > HOUR:
                rows.expire(self.store, time.time())
                self.store.emptied()
                expired = now
            if now - told > self.every:
                self.tell(Tally.of(agents))
                told = now
            idle = now - max(begun, *(agent.heard for agent in agents))
            if self.until_idle is not None and idle > self.until_idle:
                return
            await asyncio.sleep(LOOK)
            for task in tasks:
                if task.done():
                    task.result()  # a device never ends by itself, except by a bug

    def _enrolments(self) -> list[tuple[int, Enrolment]]:
        return [(device, enrolment.read(self.store, device)) for device in enrolment.devices(self.store)]

    def _courier(self, server: str) -> HttpCourier | LeanCourier:
        return (LeanCourier if self.lean else HttpCourier).to(server, self.certificate, self.connections)


async def _patiently(known: Enrolment, courier: Courier, server: str, token: str) -> Enrolment:
    """Enrol, trying again where the server is busy or not there yet."""
    for failures in range(1, TRIES):
        try:
            return await enrolled(known, courier, server, token)
        except Unreachable as error:
            await asyncio.sleep(max(Backoff(first=0.25).wait(failures), error.wait or 0.0))
    return await enrolled(known, courier, server, token)
