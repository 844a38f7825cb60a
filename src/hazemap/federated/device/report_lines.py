"""Lines to the servers that carry reports: one for each address, shared by all devices of a process."""

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256

from hazemap.errors import Refused, Unreachable
from hazemap.federated.device.dap_hpke_cache import HpkeCache
from hazemap.federated.device.http_client import HttpTransport
from hazemap.federated.protocols.dap.hpke_configs import HpkeConfig
from hazemap.federated.protocols.dap.versions import DAP_18

MOST = 64
"""Servers that a process has lines to: a policy names a few."""


async def _nowhere(url: str) -> HttpTransport:
    raise Unreachable(f"this device has no line to {url}")


class ReportLines:
    """Opens a line to a server where it is first needed, and keeps it.

    >>> ReportLines().known
    ()
    """

    def __init__(self, opened: Callable[[str], Awaitable[HttpTransport]] = _nowhere) -> None:
        self._opened, self._opening = opened, asyncio.Lock()
        self._lines: dict[str, HttpTransport] = {}
        self._keys: dict[str, HpkeCache] = {}

    @property
    def known(self) -> tuple[str, ...]:
        """Servers to which there is a line."""
        return tuple(self._lines)

    async def line(self, url: str) -> HttpTransport:
        """The line to a server."""
        async with self._opening:
            if url not in self._lines:
                if len(self._lines) >= MOST:
                    raise Refused(f"this device has lines to {MOST} servers already")
                self._lines[url] = await self._opened(url)
            return self._lines[url]

    async def cache(self, url: str) -> HpkeCache:
        """Where the keys of an aggregator are kept."""
        line = await self.line(url)
        return self._keys.setdefault(url, HpkeCache(line, DAP_18, bytes(32)))

    async def key(self, url: str, pinned: str) -> HpkeConfig:
        """The key that reports for an aggregator are sealed for; `Refused` where a policy pins another (SHA-256)."""
        config = await (await self.cache(url)).config()
        if pinned and sha256(config.public_key).hexdigest() != pinned:
            raise Refused(f"{url} shows another key than this device's policy pins")
        return config
