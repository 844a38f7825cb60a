"""An aggregator as a process: its folder, its keys, its tasks, its address."""

import asyncio
import logging
import os
import signal
from base64 import urlsafe_b64decode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from time import time
from typing import Any, Final
from urllib.parse import urlsplit

from hazemap.aggregator.aggregator_routes import AggregatorRoutes, ServedTask
from hazemap.aggregator.helper_service import HelperService
from hazemap.aggregator.hpke_key_ring import HpkeKeyStore
from hazemap.aggregator.leader_driver import LeaderDriver, check_endpoint, helper_line
from hazemap.aggregator.leader_service import LeaderService
from hazemap.aggregator.report_expiry import expiry_writes
from hazemap.aggregator.schema import SCHEMA
from hazemap.aggregator.served_tasks import aggregator_task, register_tasks
from hazemap.aggregator.task_file import ROLES, TaskFile
from hazemap.errors import InputError
from hazemap.protocols.dap.basic_types import Role
from hazemap.service.access_tokens import token_file
from hazemap.service.http_limits import HttpLimits, limited
from hazemap.service.store import Store

log = logging.getLogger("hazemap.aggregator")

KEY_FILE: Final = "secret.key"
HOUSEKEEPING: Final = 600.0
"""Seconds between two looks at keys and expired reports."""


@dataclass
class ConnectionCounts:
    """What is counted of an aggregator's connections."""

    connections: int = 0
    received: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class AggregatorProcess:
    """How an aggregator is reached, which tasks it serves and where it keeps what it must not forget.

    Without a certificate only this machine may reach it, unless a proxy before it speaks TLS.

    >>> AggregatorProcess("helper", Path("data"), (), port=8472).url
    'http://127.0.0.1:8472'
    """

    role: str
    folder: Path
    tasks: tuple[TaskFile, ...]
    host: str = "127.0.0.1"
    port: int = 8471
    database: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    trust_certificate: Path | None = None
    limits: HttpLimits | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InputError(f"the role is leader or helper; found {self.role!r:.20}")
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both --certificate and --key")
        if self.certificate is None and not self.behind_proxy and not _loopback(self.host):
            raise InputError(
                f"on {self.host} reports would travel unprotected: give --certificate and --key, or say "
                "--behind-proxy if a proxy on a trusted network speaks TLS, or serve 127.0.0.1 alone"
            )
        bases = {urlsplit(self._endpoint(file)).path.rstrip("/") for file in self.tasks}
        if len(bases) > 1:
            raise InputError("the tasks name this aggregator by several paths: start one aggregator for each")
        if self.role == "leader":
            for file in self.tasks:
                check_endpoint(file.task.helper)

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def base(self) -> str:
        """The path under which its resources are."""
        return urlsplit(self._endpoint(self.tasks[0])).path if self.tasks else ""

    def _endpoint(self, file: TaskFile) -> str:
        return file.task.leader if self.role == "leader" else file.task.helper

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C)."""
        import uvicorn

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        secret = urlsafe_b64decode(token_file(self.folder / KEY_FILE) + "=")
        store = Store(self.database or self.folder / "aggregator.sqlite", SCHEMA)
        try:
            running = _Running(self, store, HpkeKeyStore(store, secret[:32]))
            limits = self.limits or (HttpLimits.here() if _loopback(self.host) else HttpLimits())
            config = uvicorn.Config(
                running.application(),
                host=self.host,
                port=self.port,
                loop="hazemap.service.http_limits:HandshakeLoop",
                http=limited(limits, ConnectionCounts()),
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                timeout_keep_alive=int(limits.idle_seconds),
                timeout_graceful_shutdown=5,
                backlog=4096,
                server_header=False,
                proxy_headers=False,
                ssl_certfile=self.certificate,
                ssl_keyfile=self.key,
            )
            for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends well at both, and then raises them once more
                signal.signal(number, lambda *_: None)
            log.info("the %s of %d tasks serves %s from %s", self.role, len(self.tasks), self.url, self.folder)
            uvicorn.Server(config).run()
        finally:
            store.close()


class _Running:
    """What a running aggregator is made of."""

    def __init__(self, process: AggregatorProcess, store: Store, keys: HpkeKeyStore) -> None:
        self._process, self._store, self._keys = process, store, keys
        numbers = register_tasks(store, process.tasks, ROLES[process.role])
        self._services: dict[bytes, LeaderService | HelperService] = {}
        for file in process.tasks:
            task, number = aggregator_task(file), numbers[file.task.id]
            kind = LeaderService if task.role is Role.LEADER else HelperService
            self._services[file.task.id] = kind(store, number, task, os.urandom)
        self._numbers = numbers
        self._rotate()

    def application(self) -> Any:
        served = {
            file.task.id: ServedTask(self._services[file.task.id], file.accepted_token or b"")
            for file in self._process.tasks
        }
        return AggregatorRoutes(self._store, self._keys, served).application(self._process.base, self._alive)

    async def _alive(self) -> AsyncIterator[None]:
        work = [asyncio.create_task(self._housekeeping())]
        async with helper_line(self._process.trust_certificate) as http:
            for file in self._process.tasks:
                service = self._services[file.task.id]
                if isinstance(service, LeaderService):
                    driver = LeaderDriver(service, self._keys, http, file.peer_token or "")
                    work.append(asyncio.create_task(driver.run()))
            yield
            for each in work:
                each.cancel()
            for each in work:
                with suppress(asyncio.CancelledError):
                    await each

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(HOUSEKEEPING)
            await asyncio.to_thread(self._rotate)
            for task_id, service in self._services.items():
                await self._store.write(*expiry_writes(self._numbers[task_id], service.task, int(time())))

    def _rotate(self) -> None:
        writes = self._keys.rotated(int(time()), os.urandom(64))
        if writes:
            self._store.write_now(*writes)
            self._keys.reload()


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
