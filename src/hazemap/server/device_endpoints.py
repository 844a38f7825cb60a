"""What devices ask for and send, over HTTP: `/v1/tasks` and what is below it.

Thousands of devices ask every few seconds, so this is written to the ASGI interface itself, and a poll touches nothing
but memory.
"""

import json
import logging
import re
import zlib
from base64 import b64encode
from functools import lru_cache

from hazemap.codec import Limits, parsed
from hazemap.errors import CodecError, Refused, StoreError
from hazemap.server.coordinator import Coordinator
from hazemap.server.device_enrolment import Device
from hazemap.server.http_parsing import JSON, Receive, Scope, Send, TooLong, bearer, body, complain, header, reply
from hazemap.server.polling_interval import jittered
from hazemap.server.shard_seat import Late, SeatTask, ShardSeat

log = logging.getLogger("hazemap.server")

PLACE = re.compile(r"/v1/tasks/([0-9a-f]{64})(/refusal)?")
REASON = 4_096
"""Bytes of a refusal."""
REFUSAL = Limits(length=REASON, items=16, work=0, depth=1)


class DeviceEndpoints:
    """The ASGI application of devices that are enrolled."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        device = self._coordinator.enrolled.holder(bearer(scope))
        if device is None:
            await complain(send, 401, "no device has this ticket: enrol", [(b"www-authenticate", b"Bearer")])
            return
        device.heard()
        method, path = scope["method"], scope["path"]
        if path == "/v1/tasks":
            if method == "GET":
                await self._work(device, scope, send)
            else:
                await complain(send, 405, "ask for work with GET", [(b"allow", b"GET")])
            return
        found = PLACE.fullmatch(path)
        if not found or method != "POST":
            await complain(send, 404, "there is no such place: a session is 64 hexadecimal digits, answered with POST")
            return
        seat = device.seats.get(bytes.fromhex(found[1]))
        if seat is None:
            await complain(send, 409, "this session is over, or has no seat for this device: ask for work again")
            return
        try:
            await self._take(seat, bool(found[2]), receive, send)
        except TooLong as error:
            await complain(send, 413, str(error))
        except Late as error:
            await complain(send, 409, str(error))
        except (Refused, CodecError) as error:
            await complain(send, 422, str(error))
        except StoreError as error:
            await complain(send, 503, str(error), [(b"retry-after", b"30")])

    async def _work(self, device: Device, scope: Scope, send: Send) -> None:
        found = self._coordinator.seating.work(device)
        if found is None:
            wait = f"{jittered(self._wait(device)):.3f}"
            await reply(send, 204, headers=[(b"retry-after", wait.encode())])
            return
        seat, work = found
        content, headers = written(work, "gzip" in header(scope, b"accept-encoding"))
        seat.shard.sum.down[seat.position] += len(content)
        await reply(send, 200, content, headers)

    def _wait(self, device: Device) -> float:
        coordinator = self._coordinator
        if device.seats:
            return coordinator.pace.busy_wait(coordinator.seating.people)
        return coordinator.pace.idle_wait(len(coordinator.enrolled), coordinator.asking > 0)

    async def _take(self, seat: ShardSeat, refusal: bool, receive: Receive, send: Send) -> None:
        content = await body(receive, REASON if refusal else seat.shard.sum.longest)
        if content is None:
            return
        if refusal:
            await seat.shard.decline(seat.position, said(content))
        else:
            await seat.shard.answer(seat.position, content)
        await reply(send, 204)


def written(work: SeatTask, squeezed: bool) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Work as JSON, and the headers that go with it; a task is squeezed where the device understands that."""
    rest = (
        f'"session": "{work.session.hex()}", "stage": {work.stage}, "message": "{b64encode(work.message).decode()}", '
        f'"until": "{work.until:%Y-%m-%dT%H:%M:%S.%fZ}"}}'
    ).encode()
    if work.task is None:
        return b'{"task": null, ' + rest, [JSON]
    start, compressed, state = beginning(work.task)
    if not squeezed:
        return start + rest, [JSON]
    own = state.copy()
    return b"".join((compressed, own.compress(rest), own.flush())), [JSON, (b"content-encoding", b"gzip")]


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
