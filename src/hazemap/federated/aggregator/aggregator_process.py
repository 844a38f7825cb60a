"""An aggregator as a process: its folder, its keys, its tasks, its address."""

import asyncio
import logging
import os
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Final
from urllib.parse import urlsplit

from hazemap.errors import CodecError, InputError, StoreError
from hazemap.federated.aggregator.aggregator_routes import (
    AggregatorMetrics,
    AggregatorRoutes,
    ServedTask,
    provisioning_route,
)
from hazemap.federated.aggregator.hpke_key_ring import HpkeKeyStore, OpenedShares
from hazemap.federated.aggregator.leader_driver import LeaderDriver, check_endpoint, helper_line
from hazemap.federated.aggregator.schema import SCHEMA
from hazemap.federated.aggregator.task_file import ROLES, TOKEN_FILE, TaskFile, TaskShelf, over, retention
from hazemap.federated.aggregator.task_records import aggregator_task, ending_write, forgetting_writes, register_tasks
from hazemap.federated.aggregator.task_services import HelperService, LeaderService, expiry_writes
from hazemap.federated.protocols.dap.basic_types import DapRole
from hazemap.federated.protocols.dap.resource_paths import id_text
from hazemap.federated.service.housekeeping import alongside, ended, housekeeping, is_steady, settled
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.route_guard import Application
from hazemap.federated.service.served_address import ServedAddress, checked_origins
from hazemap.federated.service.state_folder import StateFolder
from hazemap.federated.service.store import Store

log = logging.getLogger("hazemap.federated.aggregator")

KEY_FILE: Final = "secret.key"
USUAL: Final = ServedAddress("127.0.0.1", 8471)


@dataclass(frozen=True)
class AggregatorProcess:
    """How an aggregator is reached, which tasks it serves and where it keeps what it must not forget.

    >>> AggregatorProcess("helper", StateFolder(Path("data")), ()).address.url
    'http://127.0.0.1:8471'
    """

    role: str
    state: StateFolder
    tasks: tuple[TaskFile, ...]
    address: ServedAddress = USUAL
    trust_certificate: Path | None = None
    take_tasks_at: str | None = None
    """its own address, ending in a slash, where others may give it tasks by the token in its folder"""
    page_origins: tuple[str, ...] = ()
    """where pages are served that make a browser's tab a device"""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InputError(f"the role is leader or helper; found {self.role!r:.20}")
        self.address.check("reports")
        if self.take_tasks_at is not None and not self.take_tasks_at.endswith("/"):
            raise InputError(f"the address at which tasks are taken ends in a slash; found {self.take_tasks_at!r:.80}")
        bases = {urlsplit(url).path.rstrip("/") for url in self._endpoints}
        if len(bases) > 1:
            raise InputError("the tasks name this aggregator by several paths: start one aggregator for each")
        checked_origins(self.page_origins, (self.address.url, *self._endpoints))
        if self.role == "leader":
            for file in self.tasks:
                check_endpoint(file.task.helper)

    @property
    def base(self) -> str:
        """The path under which its resources are."""
        return urlsplit(self._endpoints[0]).path if self._endpoints else ""

    @property
    def _endpoints(self) -> list[str]:
        own = [] if self.take_tasks_at is None else [self.take_tasks_at]
        return own + [self._endpoint(file) for file in self.tasks]

    def _endpoint(self, file: TaskFile) -> str:
        return file.task.leader if self.role == "leader" else file.task.helper

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C)."""
        secret, operator = urlsafe_b64decode(self.state.secret(KEY_FILE) + "="), self.state.operator
        limits, metrics = self.address.limits(), AggregatorMetrics()
        with self.state.opened("aggregator.sqlite", lambda place: Store(place, SCHEMA)) as store:
            running = _Running(self, store, HpkeKeyStore(store, secret[:32]))
            log.info(
                "the %s of %d tasks serves %s from %s", self.role, running.tasks, self.address.url, self.state.path
            )
            self.address.serve(running.application(metrics, operator, limits), limits, metrics, store)


class _Running:
    """What a running aggregator is made of."""

    def __init__(self, process: AggregatorProcess, store: Store, keys: HpkeKeyStore) -> None:
        self._process, self._store, self._keys = process, store, keys
        self._opened = OpenedShares()
        self._services: dict[bytes, LeaderService | HelperService] = {}
        self._served: dict[bytes, ServedTask] = {}
        self._numbers: dict[bytes, int] = {}
        self._files: list[TaskFile] = []
        self._drive: Callable[[TaskFile], None] | None = None
        self._shelf: TaskShelf | None = None
        self._work: dict[bytes, asyncio.Task[None]] = {}
        for file in process.tasks:
            self._begin(file)
        now, steady = int(time()), False
        with suppress(StoreError):  # a server whose disk is full still serves what it has
            steady = is_steady(store, now)
        if process.take_tasks_at is not None:
            self._shelf = TaskShelf(process.state.path / "tasks", process.role, process.take_tasks_at)
            for file in self._shelf.files():
                self._begin_again(file, steady)
        self._rotate(now, steady)

    @property
    def tasks(self) -> int:
        """How many are served."""
        return len(self._services)

    def application(self, metrics: AggregatorMetrics, operator: bytes, limits: HttpLimits) -> Application:
        process = self._process
        more = []
        if self._shelf is not None:
            more.append(provisioning_route(process.state.secret(TOKEN_FILE), self._shelf, self._begin))
        routes = AggregatorRoutes(
            self._store, self._keys, self._served, metrics=metrics, operator=operator, limits=limits
        )
        return routes.application(process.base, self._alive, more, checked_origins(process.page_origins))

    def _begin(self, file: TaskFile) -> None:
        """Serve a task from now on, in a thread that may take its time; nothing where it is served."""
        if file.task.id in self._services:
            return
        if self._process.role == "leader":
            check_endpoint(file.task.helper)
        self._numbers |= register_tasks(self._store, (file,), ROLES[self._process.role])
        task, number = aggregator_task(file), self._numbers[file.task.id]
        kind = LeaderService if task.role is DapRole.LEADER else HelperService
        service = self._services[file.task.id] = kind(self._store, number, task, os.urandom, self._opened)
        self._served[file.task.id] = ServedTask(service, file.accepted_token or b"")
        self._files.append(file)
        if self._drive is not None:
            self._drive(file)

    def _begin_again(self, file: TaskFile, steady: bool) -> None:
        """Serve a task that somebody gave, or forget it; one that cannot be served keeps no other from being."""
        try:
            if steady and over(file, int(time())):
                self._forget(file)
            else:
                self._begin(file)
        except StoreError as error:
            log.warning("the task %s is over, and not forgotten yet: %s", id_text(file.task.id), error)
        except (InputError, CodecError) as error:
            log.error("the task %s in the folder is not served: %s", id_text(file.task.id), error)

    async def _end_tasks(self, now: int) -> None:
        """Serve no longer what is over, and forget it at the next look: no request is then under way that writes."""
        for file in [] if self._shelf is None else await asyncio.to_thread(self._shelf.files):
            if not over(file, now):
                continue
            if file.task.id not in self._served:
                await asyncio.to_thread(self._forget, file)
                continue
            for known in (self._served, self._services, self._numbers):
                known.pop(file.task.id, None)
            self._files.remove(file)
            if (work := self._work.pop(file.task.id, None)) is not None:
                work.cancel()

    def _forget(self, file: TaskFile) -> None:
        """Delete all of a task that is over, and then its file: a process that dies meanwhile begins again."""
        assert self._shelf is not None  # noqa: S101 - whose task it is
        rows = self._store.read("SELECT task FROM tasks WHERE id = ?", file.task.id)
        for (number,) in rows:
            self._store.write_now(ending_write(number))
            for write in forgetting_writes(number):
                self._store.write_now(write)
        self._shelf.remove(file)
        days, name = retention(file) // 86_400, id_text(file.task.id)
        log.info("task %s has been over for %d days: its reports, shares and results are forgotten", name, days)

    async def _alive(self) -> AsyncIterator[None]:
        line, house = helper_line(self._process.trust_certificate), housekeeping(lambda: self._look(int(time())), log)
        async with line as http, alongside(house, settled()):
            loop = asyncio.get_running_loop()

            def drive(file: TaskFile) -> None:
                service = self._services[file.task.id]
                if isinstance(service, LeaderService):
                    driver = LeaderDriver(service, self._keys, http, file.peer_token or "")
                    self._work[file.task.id] = loop.create_task(driver.run())

            for file in self._files:
                drive(file)
            self._drive = lambda file: _ignored(loop.call_soon_threadsafe(drive, file))
            yield
            self._drive = None
            await ended(*self._work.values())

    async def _look(self, now: int) -> None:
        """Rotate keys, and forget what has expired or is over, for which the clock is not to have jumped."""
        steady = await asyncio.to_thread(is_steady, self._store, now)
        await asyncio.to_thread(self._rotate, now, steady)
        if steady:
            await self._end_tasks(now)
            for task_id, service in list(self._services.items()):
                await self._store.write(*expiry_writes(self._numbers[task_id], service.task, now))

    def _rotate(self, now: int, steady: bool) -> None:
        writes = self._keys.made(now, os.urandom(64)) + (self._keys.forgotten(now) if steady else [])
        if writes:
            self._store.write_now(*writes)
            self._keys.reload()


def _ignored(_: object) -> None:
    """Nobody waits for it."""
