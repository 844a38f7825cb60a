"""Connections to the servers that carry reports, shared by all devices of a process, and the keys that they publish."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from hazemap.errors import CodecError, Refused, Unreachable
from hazemap.federated.device.http_client import HttpTransport
from hazemap.federated.protocols.dap.problem_types import read_problem
from hazemap.federated.protocols.dap.resource_paths import HPKE_CONFIG, id_text, message_name
from hazemap.federated.protocols.dap.upload_messages import HPKE_CONFIG_LIST
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfig, HpkeConfigList
from hazemap.federated.protocols.dap.versions import DAP_09, DAP_18, DapVersion

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
