"""How much of the server one stranger may use: bytes, seconds and open connections, before anything is understood.

Uvicorn speaks HTTP with httptools, which bounds none of this itself (its options for h11 do not apply, and
`limit_concurrency` acts only once headers are whole). So its protocol is extended here, below the application. What is
limited per address by what is asked, such as enrolments, is limited in `server.http_routes`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from ipaddress import ip_address, ip_network
from math import inf
from typing import TYPE_CHECKING, Any, Protocol

import uvloop
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from hazemap.errors import InputError
from hazemap.service.rate_limit import place_of

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

BODY = 64 << 20
"""Bytes of the longest body that anybody may send: a campaign may hold a prior map."""
PIECE = 4_096
"""Bytes that the parser is given at a time while headers come: as far as a limit may be overrun."""
PIPELINED = 4
"""Requests that may wait behind one that is being answered."""
SHAKE = 10.0
"""Seconds for the handshake of TLS."""


class HttpCounts(Protocol):
    """What is counted of connections."""

    connections: int
    received: int
    rejected: Counter[str]


@dataclass(frozen=True)
class HttpLimits:
    """What one connection, and one address, may use.

    Bytes: `url`, and the whole `head` with it; `headers` is their number. Seconds: `head_seconds` for a head,
    `body_seconds` for a body and besides as long as it takes at `body_rate` bytes a second, `answer_seconds` for a
    pause of whoever reads an answer, `idle_seconds` between two requests. Open connections: `connections` in all and
    `per_address`. A minute and address: `enrolments`, and `guesses` of tokens or codes that were wrong.

    >>> HttpLimits().head
    16384
    """

    url: int = 2_048
    head: int = 16_384
    headers: int = 64
    head_seconds: float = 10
    body_seconds: float = 30
    body_rate: float = 4_096
    answer_seconds: float = 60
    idle_seconds: float = 120
    connections: float = 8_192
    per_address: float = 256
    enrolments: float = 60
    guesses: float = 30

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise InputError(f"the limit {each.name} is a number above 0; found {getattr(self, each.name)!r:.40}")

    @classmethod
    def here(cls, **limits: float) -> "HttpLimits":
        """For a server that this machine alone reaches: no limits per address, because all have the same one."""
        alone: dict[str, Any] = {"per_address": inf, "enrolments": inf, "guesses": inf}
        return cls(**{**alone, **limits})


class OpenConnections:
    """Which connections are open, from where, and which of them are idle, the longest idle first."""

    def __init__(self, limits: HttpLimits, metrics: HttpCounts, proxies: Sequence[str]) -> None:
        self.limits, self.metrics = limits, metrics
        self._proxies = [ip_network(proxy, strict=False) for proxy in proxies]
        self._from: Counter[str] = Counter()
        self._idle: dict[LimitedHttp, None] = {}

    def admit(self, one: "LimitedHttp") -> str | None:
        """Count it; the name of the limit that is reached. Idle ones are closed first to make room."""
        limits = self.limits
        self._from[one.place] += 1
        self.metrics.connections += 1
        many = self._from[one.place] > limits.per_address and not self._proxy(one)
        if many and not self._make_room(one.place):
            return "connections_per_address"
        if self.metrics.connections > limits.connections and not self._make_room(None):
            return "connections"
        return None

    def _proxy(self, one: "LimitedHttp") -> bool:
        """Whether it comes from a proxy, before which there are many addresses."""
        try:
            address = ip_address(one.client[0] if one.client else "")
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    def _make_room(self, place: str | None) -> bool:
        idle = next((each for each in self._idle if place in (None, each.place)), None)
        if idle is None:
            return False
        del self._idle[idle]
        idle.transport.abort()
        return True

    def gone(self, one: "LimitedHttp") -> None:
        """It is closed."""
        self.busy(one)
        self.metrics.connections -= 1
        self._from[one.place] -= 1
        if self._from[one.place] <= 0:
            del self._from[one.place]

    def idle(self, one: "LimitedHttp") -> None:
        """It waits for another request."""
        self._idle[one] = None

    def busy(self, one: "LimitedHttp") -> None:
        """It does not, any more."""
        self._idle.pop(one, None)


quiet = logging.getLogger("hazemap.server.http")
"""Strangers cannot fill the log with what is no HTTP: it is counted."""
quiet.setLevel(logging.ERROR)


class LimitedHttp(HttpToolsProtocol):
    """One connection within the limits. Only bodies whose length is said are read."""

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        every: OpenConnections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.place, self.logger = "?", quiet
        self._every, self._limits, self._metrics = every, every.limits, every.metrics
        self._clock: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None
        self._in_head, self._head, self._length = True, 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is counted, and its first request must come soon."""
        super().connection_made(transport)
        self.place = place_of(self.client[0] if self.client else None)
        reached = self._every.admit(self)
        if reached:
            self._turn_away(503, reached, "the server has too many connections: try again later")
        else:
            self._within(self._limits.head_seconds, "head_seconds")

    def connection_lost(self, exc: Exception | None) -> None:
        """It is counted no more."""
        self._stop_clock()
        if self._reader is not None:
            self._reader.cancel()
        self._every.gone(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """In pieces, while a head is coming: the parser keeps what is not whole, without a bound of its own."""
        self._metrics.received += len(data)
        self._every.busy(self)
        if not self._in_head and len(data) <= PIECE:
            super().data_received(data)
            return
        for start in range(0, len(data), PIECE):
            if self.parser is None or self.transport.is_closing():
                return
            piece = data[start : start + PIECE]
            if self._in_head:
                self._head += len(piece)
            super().data_received(piece)
            if self._in_head and self._head > self._limits.head + PIECE:
                self._turn_away(431, "head", f"the head of a request has at most {self._limits.head:,} bytes")
                return

    def on_message_begin(self) -> None:
        """A request begins: its head has so many seconds."""
        super().on_message_begin()
        self._in_head, self._head, self._length = True, 0, 0
        self._within(self._limits.head_seconds, "head_seconds")

    def on_url(self, url: bytes) -> None:
        """Some of the address."""
        super().on_url(url)
        if len(self.url) > self._limits.url:
            self._turn_away(414, "url", f"an address has at most {self._limits.url:,} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        super().on_header(name, value)
        self._length += len(name) + len(value) + 4
        if len(self.headers) > self._limits.headers or self._length > self._limits.head:
            self._turn_away(
                431, "headers", f"a request has at most {self._limits.headers} headers of {self._limits.head:,} bytes"
            )

    def on_headers_complete(self) -> None:
        """The head is whole: what it announces must be within bounds, and has so long to come."""
        if self.transport.is_closing():
            return
        self._in_head = False
        if len(self.pipeline) >= PIPELINED:
            self._too_slow("pipelined")
            return
        if any(name == b"transfer-encoding" for name, _ in self.headers):
            self._turn_away(411, "length", "say the length of the body: send Content-Length")
            return
        length = next((int(value) for name, value in self.headers if name == b"content-length" and value.isdigit()), 0)
        if length > BODY:
            self._turn_away(413, "body", f"a body has at most {BODY:,} bytes")
            return
        self._within(self._limits.body_seconds + length / self._limits.body_rate, "body_seconds")
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        if not self.transport.is_closing():
            self._metrics.rejected["malformed"] += 1
            super().send_400_response(msg)

    def on_message_complete(self) -> None:
        """The request is whole."""
        if self.transport.is_closing():
            return
        self._stop_clock()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Answered: it may be closed if others need the room."""
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            self._every.idle(self)

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        super().pause_writing()
        self._reader = self.loop.call_later(self._limits.answer_seconds, self._too_slow, "answer_seconds")

    def resume_writing(self) -> None:
        """It has read."""
        if self._reader is not None:
            self._reader.cancel()
        super().resume_writing()

    def _within(self, seconds: float, limit: str) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(seconds, self._too_slow, limit)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self, limit: str) -> None:
        self._metrics.rejected[limit] += 1
        self.transport.abort()

    def _turn_away(self, status: int, limit: str, words: str) -> None:
        """A short answer if none has begun, and the end."""
        if self.transport.is_closing():
            return
        self._stop_clock()
        self._metrics.rejected[limit] += 1
        if self.cycle is None or self.cycle.response_complete:
            content = f'{{"error": "{words}"}}'.encode()
            head = f"content-type: application/json\r\ncontent-length: {len(content)}\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head.encode() + content)
        self.transport.close()


class HandshakeLoop(uvloop.Loop):
    """The event loop, which waits ten seconds for a handshake of TLS, not a minute."""

    async def create_server(self, *arguments: Any, **options: Any) -> Any:
        """A server as ever."""
        if options.get("ssl") is not None:
            options.setdefault("ssl_handshake_timeout", SHAKE)
        return await super().create_server(*arguments, **options)


def limited(limits: HttpLimits, metrics: HttpCounts, proxies: Sequence[str] = ()) -> type[HttpToolsProtocol]:
    """The class of a server's connections; those of a proxy all have one address, so none is limited by it."""
    every = OpenConnections(limits, metrics, proxies)

    class Limited(LimitedHttp):
        """A connection of this server."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options, every=every)

    return Limited
