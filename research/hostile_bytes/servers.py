"""What a stranger might send to our servers: valid heads, messages and files, spoilt, and what each reader says.

Beside the messages of DAP (`dap_messages`) these are what all servers read: a request's head, as the guard takes it,
the address that a proxy names, and the JSON and TOML of enrolments, orders and tasks.
"""

import asyncio
import json
from contextlib import suppress
from fractions import Fraction
from ipaddress import ip_address
from types import SimpleNamespace
from typing import Any, Final, cast
from weakref import finalize

import uvicorn

from hazemap.codec import MESSAGE, parsed
from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.aggregator.task_file import TaskFile, new_task_files
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.privacy_parameters import PrivacyParameters
from hazemap.federated.protocols.dap.report_credentials import HeldCredential, issued, report_key
from hazemap.federated.protocols.dap.report_sizes import ReportSizes
from hazemap.federated.protocols.dap.task import BatchMode, DapTask
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.federated.protocols.shuffle.shuffle_parameters import BatchTerms
from hazemap.federated.server.device_endpoints import said
from hazemap.federated.server.http_routes import _CHALLENGE, _ENROLMENT, _fields, _object
from hazemap.federated.server.roles import TokenRequest
from hazemap.federated.service.http_limits import BODY, HttpLimits, LimitedHttp, limited
from hazemap.federated.service.prometheus_text import ServerMetrics
from hazemap.federated.service.rate_limit import place_of
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.signing_identities import Identity
from hazemap.studio.request_guard import FIELDS
from research.hostile_bytes.spoilt import Check, must, structure

HEADS: Final = [
    b"GET /v1/status HTTP/1.1\r\nHost: maps.example\r\n\r\n",
    b"POST /v1/enrol HTTP/1.1\r\nHost: maps.example\r\nContent-Length: 5\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n12345",
    b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /v1/recipes?after=1 HTTP/1.1\r\nHost: b\r\n\r\n",
]
ODD: Final = [
    b"POST /tasks/x/reports HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nExpect: 100-continue\r\n\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/2.0\r\n\r\n",
]
ADDRESSES: Final = [b"192.0.2.7:65000", b"[2001:db8::1]:443", b"::ffff:192.0.2.1", b"fe80::1%eth0"]


class Line(asyncio.Transport):
    """A connection whose other end is these bytes."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "sockname": ("127.0.0.1", 8470)})
        self.said, self.open = bytearray(), True

    def write(self, data: Any) -> None:
        """Keep what is answered."""
        self.said += data

    def close(self) -> None:
        """It ends."""
        self.open = False

    abort = close

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return not self.open

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    resume_reading = pause_reading

    def get_write_buffer_size(self) -> int:
        """All is read at once."""
        return 0


class Heads:
    """The guard's reader of requests. What it lets through must be within its limits."""

    def __init__(self) -> None:
        self.loop, self.limits, self.counts = asyncio.new_event_loop(), HttpLimits(), ServerMetrics()
        finalize(self, self.loop.close)
        self.kind = limited(self.limits, self.counts)
        self.config = uvicorn.Config(
            self.application, log_config=None, lifespan="off", proxy_headers=False, interface="asgi3"
        )
        self.config.load()
        self.state = SimpleNamespace(total_requests=0, connections=set(), tasks=set(), default_headers=[])

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        """Look at what came through, and answer."""
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        must(len(hosts) == 1 or (not hosts and scope["http_version"] == "1.0"))
        must(len(scope["headers"]) <= self.limits.headers and size <= self.limits.head)
        must(len(scope["raw_path"]) <= self.limits.url)
        length, found = 0, [int(value) for name, value in scope["headers"] if name == b"content-length"]
        while True:
            message = await receive()
            length += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        must(length <= min([BODY, *found]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def __call__(self, data: bytes) -> None:
        """One connection."""
        self.loop.run_until_complete(self.spoken(data))

    async def spoken(self, data: bytes) -> None:
        """Send the bytes, and let what is asked be answered."""
        failures: list[Any] = []
        self.loop.set_exception_handler(lambda _, context: failures.append(context))
        line = Line()
        http = cast("LimitedHttp", self.kind(config=self.config, server_state=self.state, app_state={}))  # type: ignore[arg-type]
        http.connection_made(line)
        http.data_received(data)
        for _ in range(6):
            await asyncio.sleep(0)
        http.connection_lost(None)
        if http.timeout_keep_alive_task is not None:
            http.timeout_keep_alive_task.cancel()
        await asyncio.gather(*self.state.tasks, return_exceptions=True)
        must(not failures and (self.kind.every.held, self.counts.connections) == (0, 0))
        must(b" 500 " not in line.said)
        if not line.said.startswith(b"HTTP/1.1 204"):
            raise Refused("turned away")


def suppressed(check: Check, data: bytes) -> None:
    """What may be refused, or not."""
    with suppress(Refused):
        check(data)


def address(data: bytes) -> None:
    """What a proxy names as an address counts as one place, which is short."""
    place = place_of(data.decode("latin-1"))
    must(len(place) <= 64)
    with suppress(ValueError):
        must(str(ip_address(place)) == place == place_of(place))


def task_file(data: bytes) -> None:
    """A task that a coordinator gives, which is written as it was read."""
    try:
        found = TaskFile.from_toml(data.decode())
        must(TaskFile.from_toml(found.to_toml()) == found)
    except (InputError, UnicodeDecodeError) as error:
        raise Refused(str(error)) from None


def token(data: bytes) -> None:
    """A token that is asked for."""
    try:
        asked = TokenRequest.read(_object(data))
    except InputError as error:
        raise Refused(str(error)) from None
    must(1 <= asked.days <= 3_650 and len(asked.name) <= 64)


def refusal(data: bytes) -> None:
    """Why a device declines: one line."""
    words = said(data)
    must(0 < len(words) <= 200 and words.isprintable())


def plain(limits: Any) -> Check:
    """JSON as others read it."""

    def check(data: bytes) -> None:
        must(json.dumps(parsed(data, limits)) == json.dumps(json.loads(data)))

    return check


def corpus() -> dict[str, tuple[list[bytes], Check]]:
    """By the name of a reader, bytes that it takes, and the reader."""
    issuer, secret, task_id = Identity.from_bytes(bytes(32)), bytes(range(32)), bytes(32)
    key = report_key(secret, task_id)
    given = issued(issuer, secret, task_id, b"ann", key.public)
    held = HeldCredential.received(given, key, issuer.public, task_id)

    def received(data: bytes) -> None:
        must(HeldCredential.received(data, key, issuer.public, task_id) == held and data == given)

    sizes = ReportSizes(0, 48, 32, 0), ReportSizes(32, 4_096, 32, 260)

    def length(data: bytes) -> None:
        size = int.from_bytes(data[:4], "big")
        for each in sizes:
            reports = range(size // each.longest, size // each.least + 1) if size < 1 << 24 else [1]
            fits = any(count and count * each.least <= size <= count * each.longest for count in reports)
            try:
                each.check_upload(size)
                must(fits or size >= 1 << 24)
            except CodecError:
                must(not fits)

    challenge = {"version": 2, "identity": "0" * 64, "origin": "https://maps.example"}
    proof = {"token": "t", "challenge": "0" * 112, "signature": "0" * 128}
    asked = {"name": "anna", "role": "analyst", "days": 90, "epsilon": "2", "campaigns": 1}
    form = {"source": "visits.csv", "epsilon": "0.6", "box": [13.2, 52.4], "cells": {"quadtree": 6}, "none": None}
    texts = {
        "challenge": (challenge, lambda data: _fields(data, _CHALLENGE)),
        "enrolment": (challenge | proof, lambda data: _fields(data, _ENROLMENT)),
        "token that is asked for": (asked, token),
        "refusal of a device": ({"reason": "the budget is spent"}, refusal),
        "form of the studio": (form, plain(FIELDS)),
        "JSON": (form | {"deep": [[[{"a": [1.5, -0.0, 1e-320]}]]]}, plain(MESSAGE)),
    }
    return {
        "credential, received": ([given], received),
        "length of an upload": ([size.to_bytes(4, "big") for size in (300, 900, 4_900, 1 << 20)], length),
        "request": (HEADS, heads := Heads()),
        "request of another kind": (ODD, lambda data: suppressed(heads, data)),
        "address from a proxy": (ADDRESSES, address),
        "task file": (task_files(), task_file),
        "BatchTerms": ([terms().to_bytes()], structure(BatchTerms)),
        **{name: ([json.dumps(data).encode()], cast("Check", check)) for name, (data, check) in texts.items()},
    }


def task_files() -> list[bytes]:
    """Files of a task for its parties."""
    task = DapTask.created(
        bytes(32),
        b"fuzz",
        "https://one.example/",
        "https://two.example:8443/dap",
        3_600,
        100,
        BatchMode.TIME_INTERVAL,
        Poplar1Configuration(46),
        interval=TimeInterval(1, 100),
        privacy=PrivacyParameters.of(DiscreteLaplace(Fraction(41, 2)), 4, Fraction(1, 5)),
    )
    found = new_task_files(task, lambda size: bytes(range(size)), report_expiry=7_200_000, open_reports=9)
    return [each.to_toml().encode() for each in found.values()]


def terms() -> BatchTerms:
    """Of a batch at a shuffler."""
    return BatchTerms(1, bytes(16), bytes(32), bytes(32), bytes(32), 4, 86, 19, 30, 1_800_000_000)
