"""Gives both aggregators the tasks of a round, each its own file: before any device is shown it."""

import asyncio
import logging
from collections.abc import Sequence
from hashlib import shake_256
from typing import TYPE_CHECKING, Final

from hazemap.errors import InputError, Refused, Unreachable
from hazemap.federated.aggregator.task_file import TaskFile, new_task_files
from hazemap.federated.protocols.dap.report_credentials import issued, keys_statement
from hazemap.federated.protocols.dap.resource_paths import PROVISIONING
from hazemap.federated.protocols.dap.task import Task as DapTask
from hazemap.federated.server.announced_rounds import Issue
from hazemap.federated.server.device_enrolment import Device
from hazemap.federated.service.bounded_answer import asked_async
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity, verified

if TYPE_CHECKING:
    import httpx

    from hazemap.federated.server.peer_servers import PeerServers

log = logging.getLogger("hazemap.federated.server")

SECRET: Final = 32
"""Bytes from which all keys and tokens of a round follow."""
TRIES: Final = 8


def issuing(identity: Identity, secret: bytes, batch: bytes, tasks: Sequence[DapTask]) -> Issue:
    """Gives a device its credential for each of a round's tasks, in their order: from the round's secret, so the same.

    The body of a device's request is a key for each task, one after another, and its identity's signature of them: a
    ticket that was stolen is not enough.
    """

    def issue(device: Device, asked: bytes) -> bytes:
        keys, signature = asked[: KEY * len(tasks)], asked[KEY * len(tasks) :]
        if len(signature) != SIGNATURE:
            raise InputError(
                f"this round has {len(tasks):,} tasks: ask with a key of {KEY} bytes for each of them, and a signature"
            )
        if not verified(device.identity, signature, keys_statement(identity.public, batch, keys)):
            raise Refused("these keys are not signed by the device that has this ticket")
        each = (keys[KEY * at : KEY * (at + 1)] for at in range(len(tasks)))
        return b"".join(
            issued(identity, secret, task.id, device.identity, key) for task, key in zip(tasks, each, strict=True)
        )

    return issue


def files_of(task: DapTask, secret: bytes, report_expiry: int | None = None) -> dict[str, TaskFile]:
    """The files of a task's parties, the same however often they are made from a round's secret.

    After a crash the same keys follow from what was stored, so that a task is never given out in two versions.
    """
    drawn = 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return shake_256(b"hazemap round" + secret + task.id + drawn.to_bytes(4, "big")).digest(size)

    return new_task_files(task, draw, report_expiry)


async def provision(http: "httpx.AsyncClient", peers: "PeerServers", files: Sequence[dict[str, TaskFile]]) -> None:
    """Give each aggregator its files; the helper first, so that it knows a task before the leader asks about it.

    `Unreachable` where one cannot be asked for long, `Refused` where it does not want a task.
    """
    for each in files:
        for party in ("helper", "leader"):
            file = each[party]
            url = file.task.helper if party == "helper" else file.task.leader
            await _given(http, url, peers.token(url), file.to_toml())


async def _given(http: "httpx.AsyncClient", url: str, token: str, text: str) -> None:
    import httpx

    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/toml"}
    for attempt in range(1, TRIES + 1):
        try:
            reply = await asked_async(http, "POST", url + PROVISIONING, headers=headers, content=text.encode())
            if reply.is_success:
                return
            if reply.status_code < 500 and reply.status_code not in (408, 429):
                raise Refused(f"{url} does not take the task of this round: HTTP {reply.status_code} {reply.text:.300}")
            why = f"HTTP {reply.status_code}"
        except httpx.HTTPError as error:
            why = type(error).__name__
        log.warning("%s does not take a task now (%s), attempt %d", url, why, attempt)
        if attempt < TRIES:
            await asyncio.sleep(min(30, 2**attempt / 4))
    raise Unreachable(
        f"{url} could not be given the task of this round ({why}): see that it runs with --take-tasks-at, then resume "
        "the campaign"
    )
