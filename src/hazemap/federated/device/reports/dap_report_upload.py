"""Uploads of reports to a leader of DAP: connections and keys shared by all devices of a process, and one report each.

A report is made once and kept until the leader has answered: what is sent again is the same report, which counts once.
Only where the leader did not know the key (`outdated_config`), and so cannot have taken the report, is a new one made.
"""

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, TypeVar

from hazemap.errors import CodecError, Refused, Unreachable
from hazemap.federated.device.http_client import Backoff, HttpReply, HttpTransport
from hazemap.federated.protocols.dap.basic_types import DAP_09, DAP_18, DapVersion, ReportError
from hazemap.federated.protocols.dap.client import NOTHING_MORE, DapClient, ReportExtensions
from hazemap.federated.protocols.dap.problem_types import ProblemType, read_problem
from hazemap.federated.protocols.dap.resource_paths import HPKE_CONFIG, id_text, message_name, reports
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.upload_messages import (
    HPKE_CONFIG_LIST,
    DapReport,
    Report09,
    UploadErrors,
    UploadRequest,
)
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList
from hazemap.vdaf.vdaf import Vdaf

SILENT: Final = 3_600.0
"""Seconds that keys are kept where the aggregator does not say."""
LONGEST: Final = 7 * 86_400.0
"""Seconds that keys are kept at the most, whatever it says: then one that was changed in haste is seen."""


@dataclass(eq=False)
class HpkeCache:
    """The key that reports of one aggregator are sealed for. Devices of one process share it.

    However many devices ask at once, the aggregator is asked once, and all hear the same answer or failure.
    """

    transport: HttpTransport
    version: DapVersion
    task_id: bytes
    clock: Callable[[], float] = time.monotonic
    _config: HpkeConfig | None = None
    _until: float = -math.inf
    _asking: "asyncio.Task[HpkeConfig] | None" = None

    async def config(self) -> HpkeConfig:
        """The preferred key; `Unreachable` where there is no answer, `Refused` where it is no list of usable keys."""
        if self._config is not None and self.clock() < self._until:
            return self._config
        if self._asking is None:
            self._asking = asyncio.create_task(self._asked())
            self._asking.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # if nobody waits any more
        return await asyncio.shield(self._asking)

    def forget(self, config_id: int) -> None:
        """The aggregator does not know this key: ask again before the next report, unless another has asked since."""
        if self._config is not None and self._config.id == config_id:
            self._config = None

    async def _asked(self) -> HpkeConfig:
        try:
            config, fresh = await self._fetched()
        finally:
            self._asking = None
        self._config, self._until = config, self.clock() + min(fresh, LONGEST)
        return config

    async def _fetched(self) -> tuple[HpkeConfig, float]:
        old = self.version == DAP_09
        query = f"?task_id={id_text(self.task_id)}" if old else ""
        reply = await self.transport.send("GET", f"/{HPKE_CONFIG}{query}")
        if reply.status != 200:
            problem = read_problem(reply.status, reply.kind, reply.content)
            raise Refused(f"an aggregator does not say its keys: {problem.in_words()}")
        try:
            name = reply.kind.strip().lower() if old else message_name(reply.kind)
            if name != (HPKE_CONFIG_LIST if old else HpkeConfigList.NAME):
                raise CodecError(f"it says it is {name[:80]!r}")
            config = HpkeConfigList.from_bytes(reply.content).preferred()
        except CodecError as error:
            raise Refused(f"what an aggregator offers is no list of HPKE configurations: {error}") from error
        return config, SILENT if reply.fresh is None else reply.fresh


MOST = 64
"""Servers that a process has connections to: a policy names a few."""


async def _nowhere(url: str) -> HttpTransport:
    raise Unreachable(f"this device has no connection to {url}")


class ReportConnections:
    """Opens a connection to a server where it is first needed, and keeps it.

    >>> ReportConnections().known
    ()
    """

    def __init__(self, opened: Callable[[str], Awaitable[HttpTransport]] = _nowhere) -> None:
        self._opened, self._opening = opened, asyncio.Lock()
        self._connections: dict[str, HttpTransport] = {}
        self._keys: dict[str, HpkeCache] = {}

    @property
    def known(self) -> tuple[str, ...]:
        """Servers that it is connected to."""
        return tuple(self._connections)

    async def client(self, url: str) -> HttpTransport:
        """The client of a server."""
        async with self._opening:
            if url not in self._connections:
                if len(self._connections) >= MOST:
                    raise Refused(f"this device has connections to {MOST} servers already")
                self._connections[url] = await self._opened(url)
            return self._connections[url]

    async def cache(self, url: str) -> HpkeCache:
        """Where the keys of an aggregator are kept."""
        client = await self.client(url)
        return self._keys.setdefault(url, HpkeCache(client, DAP_18, bytes(32)))

    async def key(self, url: str, pinned: str) -> HpkeConfig:
        """The key that reports for an aggregator are sealed for; `Refused` where a policy pins another (SHA-256)."""
        config = await (await self.cache(url)).config()
        if pinned and sha256(config.public_key).hexdigest() != pinned:
            raise Refused(f"{url} shows another key than this device's policy pins")
        return config


ATTEMPTS: Final = 8
"""How often a report is sent before the device gives up for now: with the usual backoff, within four minutes."""
LONGEST_WAIT: Final = 3_600.0
"""Seconds: however long a leader asks to be left alone."""


T = TypeVar("T")


class OutdatedKeys(Refused):
    """The leader does not know the key that a report was sealed for: make a new report with fresh keys."""


@dataclass(eq=False)
class ReportUpload:
    """Uploads to the leader of one task; `leader` and `helper` are where their keys come from. Each report is charged.

    `uploaded` is all that a device needs. One that must survive a crash keeps what `made` gives, with its charge, and
    passes it to `sent`, as often as it likes.
    """

    task: DapTask
    vdaf: Vdaf
    leader: HpkeCache
    helper: HpkeCache
    charge: Callable[[], Awaitable[None]]
    """Pays for one report before it is made, or raises: a leader that says it does not know a key may keep both."""
    random: Callable[[int], bytes] = os.urandom
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    backoff: Backoff = field(default_factory=Backoff)
    attempts: int = ATTEMPTS

    async def uploaded(self, measurement: Any, extensions: ReportExtensions = NOTHING_MORE) -> None:
        """Make a report and send it until the leader has it; a second one, if the leader's keys have changed.

        `Refused` if the leader does not take it, `Unreachable` if it could not be asked for long.
        """
        try:
            await self.sent(await self.made(measurement, extensions))
        except OutdatedKeys:
            await self.sent(await self.made(measurement, extensions))

    async def made(self, measurement: Any, extensions: ReportExtensions = NOTHING_MORE) -> DapReport | Report09:
        """A report of now, charged, and sealed for the aggregators' keys of now. It is not sent yet."""
        leader, helper = [await self._patiently(cache.config) for cache in (self.leader, self.helper)]
        client = DapClient(self.task, self.vdaf, leader, helper)
        await self.charge()
        return client.report(measurement, int(self.clock()), self.random(client.randomness_bytes), extensions)

    async def sent(self, report: DapReport | Report09) -> None:
        """Send a report until the leader says that it has it, or that it does not want it."""

        async def once() -> None:
            reply = await self._post(report)
            if isinstance(report, Report09):
                self._accepted(reply)
            elif self._accepted(reply) and reply.content:
                self._read_errors(reply, report)

        try:
            await self._patiently(once)
        except OutdatedKeys:
            self.leader.forget(report.leader_share.config_id)
            self.helper.forget(report.helper_share.config_id)
            raise

    async def _post(self, report: DapReport | Report09) -> HttpReply:
        path = f"/{reports(self.task.id)}"
        if isinstance(report, Report09):
            return await self.leader.transport.send("PUT", path, "", report.to_bytes(), Report09.media_type())
        body = UploadRequest((report,)).to_bytes()
        return await self.leader.transport.send("POST", path, "", body, UploadRequest.media_type())

    def _accepted(self, reply: HttpReply) -> bool:
        if 200 <= reply.status < 300:
            return True
        problem = read_problem(reply.status, reply.kind, reply.content)
        if problem.problem is ProblemType.OUTDATED_CONFIG:
            raise OutdatedKeys("the leader does not know the key that a report was sealed for")
        if problem.problem is ProblemType.REPORT_TOO_EARLY:
            raise Unreachable("the leader's clock is behind this device's", reply.wait)
        raise Refused(f"the leader does not take a report: {problem.in_words()}")

    def _read_errors(self, reply: HttpReply, report: DapReport) -> None:
        try:
            if message_name(reply.kind) != UploadErrors.NAME:
                raise CodecError("it is another message")
            statuses = UploadErrors.from_bytes(reply.content).statuses
            if len(statuses) > 1 or any(each.report_id != report.metadata.report_id for each in statuses):
                raise CodecError("it speaks of reports that were not sent")
        except CodecError as error:
            raise Unreachable(f"the leader's answer to an upload cannot be read: {error}") from error
        for each in statuses:
            if each.error is ReportError.OUTDATED_CONFIG:
                raise OutdatedKeys("the leader does not know the key that a report was sealed for")
            if each.error is ReportError.REPORT_TOO_EARLY:
                raise Unreachable("the leader's clock is behind this device's", reply.wait)
            if each.error is not ReportError.REPORT_REPLAYED:  # it has the report: an earlier answer was lost
                raise Refused(f"the leader does not take a report: {each.error.name.lower()}")

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        for failures in range(1, self.attempts):
            try:
                return await work()
            except Unreachable as error:
                await self.sleep(min(max(self.backoff.wait(failures), error.wait or 0.0), LONGEST_WAIT))
        return await work()
