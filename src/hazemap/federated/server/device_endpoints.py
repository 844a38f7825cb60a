"""What devices ask for and send, over HTTP: `/v1/tasks` and what is below it.

Thousands of devices ask every few seconds, so this is written to the ASGI interface itself, and a poll touches nothing
but memory.
"""

import asyncio
import json
import logging
import re
import zlib
from base64 import b64encode
from collections.abc import Iterable
from functools import lru_cache
from math import ceil
from typing import Final

from starlette.requests import ClientDisconnect

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, InputError, Refused, StoreError
from hazemap.federated.server.announced_rounds import jittered
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Device, Seat, SeatTask
from hazemap.federated.server.role_guard import READ
from hazemap.federated.server.shard import LateAnswer
from hazemap.federated.service.http_limits import HttpLimits
from hazemap.federated.service.rate_limit import RateLimit
from hazemap.federated.service.route_guard import (
    AGAIN,
    Codes,
    Receive,
    Scope,
    Send,
    TooLong,
    bearer,
    body,
    code_of,
    header,
    headers_of,
    recognise,
)

Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")


log = logging.getLogger("hazemap.federated.server")

PLACE = re.compile(r"/v1/tasks/([0-9a-f]{64})(/refusal|/credentials)?")
REASON = 4_096
"""Bytes of a refusal."""
HEAD = re.compile(b"head=([0-9a-f]{48})")
"""How a device writes the head of its account (`federated.device.account.account_head`); anything else is no head."""
KEYS = 1 << 16
"""Bytes of a device's keys for the tasks of a round: 2,048 of them."""
BYTES: Header = (b"content-type", b"application/octet-stream")
REFUSAL = Limits(length=REASON, items=16, work=0, depth=1)


async def reply(send: Send, status: int, content: bytes = b"", headers: Iterable[Header] = ()) -> None:
    """One reply, with its length."""
    every = [*headers, (b"content-length", str(len(content)).encode())] if status != 204 else list(headers)
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": content})


async def complain(send: Send, status: int, error: str, headers: Iterable[Header] = ()) -> None:
    """An error, as JSON."""
    await reply(send, status, json.dumps({"error": error}).encode(), (JSON, *headers))


_CODES: Final[Codes] = ((LateAnswer, 409), (Refused, 422))


class DeviceEndpoints:
    """The ASGI application of devices that are enrolled."""

    def __init__(self, coordinator: Coordinator, limits: HttpLimits) -> None:
        self._coordinator, self._reads = coordinator, RateLimit(limits.reads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        device = self._coordinator.enrolled.holder(bearer(scope))
        if device is None:
            await complain(send, 401, "no device has this ticket: enrol", [(b"www-authenticate", b"Bearer")])
            return
        device.heard()
        recognise(scope)
        method, path = scope["method"], scope["path"]
        if path == "/v1/tasks":
            if method == "GET":
                await self._work(device, scope, send)
            else:
                await complain(send, 405, "ask for work with GET", [(b"allow", b"GET")])
            return
        found = PLACE.fullmatch(path)
        if not found or method != "POST":
            await complain(send, 404, "no such address: POST to /v1/tasks/ and the 64 hexadecimal digits of a session")
            return
        session = bytes.fromhex(found[1])
        seat, announced = device.seats.get(session), self._coordinator.announcing.asks(device, session)
        if seat is None and not announced:
            await self._seatless(session, send)
            return
        refusal = found[2] == "/refusal"
        try:
            if found[2] == "/credentials":
                await self._credit(device, session, scope, receive, send)
            elif seat is None:
                await self._hear(device, session, refusal, scope, receive, send)
            else:
                await self._take(device, seat, refusal, scope, receive, send)
        except ClientDisconnect:
            return
        except (TooLong, LateAnswer, Refused, InputError, CodecError, StoreError) as error:
            code = code_of(error, _CODES)
            headers = [(name.lower().encode(), value.encode()) for name, value in headers_of(error, code).items()]
            await complain(send, code, str(error), headers)

    async def _seatless(self, session: bytes, send: Send) -> None:
        """Why a session has no seat for a device: it may be told for good that a study was stopped."""
        try:
            stopped = await asyncio.to_thread(self._coordinator.studies.stopped, session)
        except StoreError as error:
            await complain(send, 503, str(error), [(b"retry-after", b"%d" % AGAIN)])
            return
        if stopped is not None:
            await complain(send, 410, stopped)
            return
        await complain(send, 409, "this session is over, or has no seat for this device: ask for work again")

    async def _work(self, device: Device, scope: Scope, send: Send) -> None:
        """What a device is asked, again as often as it asks: an invitation may have megabytes, so that is limited."""
        self._coordinator.metrics.polls += 1
        if (often := self._reads.wait(device.name)) is not None:
            self._coordinator.metrics.rejected["reads"] += 1
            why = "this device was given so much work in this minute that it has to wait"
            await complain(send, 429, why, [(b"retry-after", b"%d" % ceil(often))])
            return
        found = self._coordinator.seating.work(device)
        work = self._coordinator.announcing.work(device) if found is None else found[1]
        if work is None:
            wait = f"{jittered(self._wait(device)):.3f}"
            await reply(send, 204, headers=[(b"retry-after", wait.encode())])
            return
        content, headers = written(work, "gzip" in header(scope, b"accept-encoding"), device.head)
        if len(content) >= READ:
            self._reads.owe(device.name, len(content) // READ)
        if found is not None:
            found[0].load(len(content))
        await reply(send, 200, content, headers)

    def _wait(self, device: Device) -> float:
        coordinator = self._coordinator
        if device.seats:
            return coordinator.pace.busy_wait(coordinator.seating.people)
        return coordinator.pace.idle_wait(len(coordinator.enrolled), coordinator.asking > 0)

    async def _hear(
        self, device: Device, batch: bytes, refusal: bool, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """A device says that its report has arrived at other servers (it sends no body), or that it declines."""
        content = await body(scope, receive, REASON if refusal else 0)
        head = deposited(scope)
        declined = said(content) if refusal else None
        await self._coordinator.announcing.answered(device, batch, declined, *device.deposit(head))
        device.head = head or device.head
        await reply(send, 204)

    async def _credit(self, device: Device, batch: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """A device asks for its credentials, with a key of its own for each of the round's tasks."""
        keys = await body(scope, receive, KEYS)
        await reply(send, 200, await self._coordinator.announcing.credentials(device, batch, keys), [BYTES])

    async def _take(
        self, device: Device, seat: Seat, refusal: bool, scope: Scope, receive: Receive, send: Send
    ) -> None:
        content = await body(scope, receive, REASON if refusal else seat.longest)
        if refusal:
            await seat.decline(said(content))
        else:
            head = deposited(scope)
            await seat.answer(content, *device.deposit(head))
            device.head = head or device.head
        await reply(send, 204)


def deposited(scope: Scope) -> bytes:
    """The head of its account that a device deposits with a message; nothing where there is none."""
    found = HEAD.fullmatch(scope["query_string"])
    return bytes.fromhex(found[1].decode()) if found else b""


def written(work: SeatTask, compressed: bool, head: bytes = b"") -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Work as JSON, and its headers; an invitation is compressed if the device accepts gzip.

    `head` is the last head of its account that the device has deposited.
    """
    rest = (
        f'"head": {json.dumps(head.hex() or None)}, '
        f'"session": "{work.session.hex()}", "stage": {work.stage}, "message": "{b64encode(work.message).decode()}", '
        f'"until": "{work.until:%Y-%m-%dT%H:%M:%S.%fZ}"}}'
    ).encode()
    if work.task is None:
        return b'{"task": null, ' + rest, [JSON]
    start, prefix, state = beginning(work.task)
    if not compressed:
        return start + rest, [JSON]
    own = state.copy()
    return b"".join((prefix, own.compress(rest), own.flush())), [JSON, (b"content-encoding", b"gzip")]


@lru_cache(maxsize=64)
def beginning(task: str) -> tuple[bytes, bytes, "zlib._Compress"]:
    """What all invitations to a task begin with, plain and as gzip, and the state that gzip goes on from.

    A task is as long as the list of its cells: it is compressed once, however many devices are sent it.
    """
    start, state = f'{{"task": {json.dumps(task)}, '.encode(), zlib.compressobj(wbits=31)
    return start, state.compress(start) + state.flush(zlib.Z_FULL_FLUSH), state


def said(content: bytes) -> str:
    """Why a device declines: one line, for the operator; `CodecError` for anything else."""
    try:
        reason = parsed(content, REFUSAL)["reason"]
    except (CodecError, KeyError, TypeError) as error:
        raise CodecError('a refusal is JSON: {"reason": "…"}') from error
    if not isinstance(reason, str):
        raise CodecError("the reason of a refusal is text")
    plain = "".join(letter if letter.isprintable() else " " for letter in reason)
    return " ".join(plain.split())[:200] or "no reason given"
