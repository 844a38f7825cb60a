"""An aggregator's public keys, fetched once and kept for as long as it allows."""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hazemap.errors import CodecError, Refused
from hazemap.federated.device.http_client import HttpTransport
from hazemap.federated.protocols.dap.hpke_configs import HpkeConfig, HpkeConfigList
from hazemap.federated.protocols.dap.media_types import message_name
from hazemap.federated.protocols.dap.problem_types import read_problem
from hazemap.federated.protocols.dap.resource_paths import HPKE_CONFIG, id_text
from hazemap.federated.protocols.dap.upload_messages_09 import HPKE_CONFIG_LIST
from hazemap.federated.protocols.dap.versions import DAP_09, DapVersion

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
