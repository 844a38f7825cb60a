"""The devices of a store at work, one or thousands, in one process: one event loop, one store, shared connections."""

import asyncio
import logging
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from hazemap.errors import FileError, InputError, Unreachable
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.account_clock import AccountClock
from hazemap.federated.device.agent import HOLD, Agent
from hazemap.federated.device.enrolment import Enrolment, enrolled
from hazemap.federated.device.http_client import (
    Backoff,
    FleetClient,
    HttpClient,
    HttpTransport,
    check_server_address,
    jitter,
)
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog, SeenRecipeLog
from hazemap.federated.device.reports.dap_report_upload import ReportConnections
from hazemap.federated.device.server_task import ServerTask
from hazemap.federated.device.store import event_store
from hazemap.federated.device.store import row_store as rows
from hazemap.federated.device.store.encrypted_store import CommitQueue, EncryptedStore
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.trust.report_carriers import ANNOUNCED
from hazemap.privacy.random_stream import Stream

STAGES = (Stage.KEYS, Stage.SHARES, Stage.MASKED, Stage.ASSENT, Stage.UNMASK)
REMEMBERED = 8
"""Sessions of one device at a time, at most."""


class SimulatedDropout:
    """Falls silent in each session with probability `share`, from a stage on that is drawn uniformly.

    A report that goes to other servers has no stages: it is sent, or not.

    >>> work = ServerTask(bytes(32), 1, None, b"", 0.0)
    >>> SimulatedDropout(Fraction(0), Stream.from_os())(work)
    True
    """

    def __init__(self, share: Fraction, stream: Stream) -> None:
        self._share, self._stream = share, stream
        self._from: OrderedDict[bytes, Stage | None] = OrderedDict()

    def __call__(self, work: ServerTask) -> bool:
        """Whether the device answers."""
        if work.session not in self._from:
            self._from[work.session] = self._drawn()
            if len(self._from) > REMEMBERED:
                self._from.popitem(last=False)
        silent = self._from[work.session]
        return silent is None or ANNOUNCED < work.stage < silent

    def _drawn(self) -> Stage | None:
        if self._stream.below(self._share.denominator) >= self._share.numerator:
            return None
        return STAGES[self._stream.below(len(STAGES))]


logger = logging.getLogger("hazemap.federated.device")

HOUR = 3_600.0
AGAIN = 60.0
"""Seconds until deletion is tried again where it failed."""
AT_ONCE = 64
"""Enrolments on their way at one time."""
TRIES = 6
LONGEST = 60.0
"""Tries of an enrolment, and seconds between two of them, whatever the server asks for."""
LOOK = 0.25


@dataclass(frozen=True)
class ReplyCounts:
    """What devices did: sessions answered to the end, refusals, bytes of answers, and failures to reach a server."""

    devices: int
    finished: int
    answers: int
    refusals: int
    sent: int
    failures: int

    @classmethod
    def of(cls, agents: Iterable[Agent]) -> "ReplyCounts":
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
class DeviceProcess:
    """Everything of a store at work. `drop` is the part that falls silent in each session (for tests); with
    `until_idle` it ends when no server has had work for these seconds. `tell` is called now and then. `lean` is for
    thousands of devices of people who are made up: without proxies, but cheap, and they answer recipes at once.
    """

    store: EncryptedStore
    policy: Policy
    certificate: Path | None = None
    connections: int = 32
    drop: Fraction = Fraction(0)
    until_idle: float | None = None
    tell: Callable[[ReplyCounts], None] = field(default=lambda _: None)
    every: float = 10.0
    lean: bool = False

    async def enrol(
        self,
        server: str,
        token: str | Sequence[str],
        http_transport: HttpTransport | None = None,
        moved: bool = False,
    ) -> int:
        """Enrol every device of the store that is not yet known to this server; how many were.

        `token` is for all of them, or the n-th of a list of codes is for the n-th device: so a list may be used again
        after a failure. With `moved` the server may show another identity than before, and all are enrolled.
        """
        server = check_server_address(server)
        every = enrolment.devices(self.store)
        codes = [token] * len(every) if isinstance(token, str) else list(token)
        if len(codes) < len(every):
            raise InputError(f"there are {len(every):,} devices, but only {len(codes):,} codes: each needs one")
        code_of = dict(zip(every, codes, strict=False))
        async with AsyncExitStack() as stack:
            carrier = await self._transport(stack, http_transport, server)
            new = [(d, e) for d, e in self._enrolments() if moved or e.server != server or e.ticket is None]
            commits, turns = CommitQueue(self.store), asyncio.Semaphore(AT_ONCE)

            async def one(device: int, known: Enrolment) -> None:
                async with turns:
                    made = await _patiently(known, carrier, server, code_of[device], moved)
                    other = SeenRecipeLog(self.store, device, server).forgotten() if moved else ()
                    await commits.write((enrolment.saved(self.store, device, made), *other))

            await asyncio.gather(*(one(device, known) for device, known in new))
        return len(new)

    async def run(self, http_transport: HttpTransport | None = None) -> ReplyCounts:
        """Let every device ask and answer until nothing has been asked for long enough, or for good."""
        self._on_disk()
        async with AsyncExitStack() as stack:
            agents = await self._agents(stack, http_transport)
            tasks = [asyncio.create_task(self._started(agent, len(agents))) for agent in agents]
            try:
                await self._watch(agents, tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return ReplyCounts.of(agents)

    async def _agents(self, stack: AsyncExitStack, http_transport: HttpTransport | None) -> list[Agent]:
        http_transports: dict[str, HttpTransport] = {}
        logs: defaultdict[str, PublicRecipeLog] = defaultdict(PublicRecipeLog)
        connections = ReportConnections(lambda url: self._transport(stack, None, url))
        commits, stream, agents = CommitQueue(self.store), Stream.from_os(), []
        turns = asyncio.Semaphore(self.connections)
        for device, known in self._enrolments():
            if known.server is None:
                raise InputError("a device of this store is not enrolled: use `hazemap device enrol` first")
            if known.server not in http_transports:
                http_transports[known.server] = await self._transport(stack, http_transport, known.server)
            agents.append(
                Agent(
                    store=self.store,
                    device=device,
                    enrolment=known,
                    policy=self.policy,
                    http_transport=http_transports[known.server],
                    commits=commits,
                    turns=turns,
                    there=SimulatedDropout(self.drop, stream),
                    hold=0.0 if self.lean else HOLD,
                    public_log=logs[known.server],
                    connections=connections,
                )
            )
        if not agents:
            raise InputError("this store has no device: use `hazemap device enrol` first")
        return agents

    async def _started(self, agent: Agent, crowd: int) -> None:
        """Not all at once: a thousand devices a second."""
        await asyncio.sleep(jitter(crowd / 1_000) if crowd > 1 else 0)
        await agent.run()

    async def _watch(self, agents: list[Agent], tasks: list["asyncio.Task[None]"]) -> None:
        """Look after everybody: old rows, a device that fails for good, the end."""
        begun = told = time.monotonic()
        expired = float("-inf")
        while True:
            now = time.monotonic()
            if now - expired > HOUR:
                expired = now if self._expired() and self._on_disk() else now - HOUR + AGAIN
            if now - told > self.every:
                self.tell(ReplyCounts.of(agents))
                told = now
            idle = now - max(begun, *(agent.heard for agent in agents))
            if self.until_idle is not None and idle > self.until_idle:
                return
            await asyncio.sleep(LOOK)
            for task in tasks:
                if task.done():
                    task.result()  # a device never ends by itself, except by a bug

    def _expired(self) -> bool:
        """Delete what is old; False where the store cannot be written now, as when its disk is full."""
        try:
            rows.expire(self.store, time.time())
            event_store.expire(self.store, time.time())
            self.store.emptied()
        except FileError as error:
            logger.warning("old rows and events could not be deleted, and are tried again in a minute: %s", error)
            return False
        return True

    def _on_disk(self) -> bool:
        """Note the time that has passed for accounts; False where the store cannot be written now."""
        try:
            AccountClock(self.store).keep(datetime.now(UTC))
        except FileError as error:
            logger.warning("the time could not be noted, and this is tried again in a minute: %s", error)
            return False
        return True

    def _enrolments(self) -> list[tuple[int, Enrolment]]:
        return [(device, enrolment.read(self.store, device)) for device in enrolment.devices(self.store)]

    async def _transport(self, stack: AsyncExitStack, given: HttpTransport | None, server: str) -> HttpTransport:
        if given is not None:
            return given
        client: HttpClient | FleetClient
        client = (FleetClient if self.lean else HttpClient).to(server, self.certificate, self.connections)
        return await stack.enter_async_context(client)


async def _patiently(
    known: Enrolment, http_transport: HttpTransport, server: str, token: str, moved: bool
) -> Enrolment:
    """Enrol, trying again where the server is busy or not there yet."""
    for failures in range(1, TRIES):
        try:
            return await enrolled(known, http_transport, server, token, moved)
        except Unreachable as error:
            await asyncio.sleep(max(Backoff(first=0.25).wait(failures), min(error.wait or 0.0, LONGEST)))
    return await enrolled(known, http_transport, server, token, moved)
