"""How much of the server one stranger may use: bytes, seconds and open connections, before anything is understood.

Uvicorn speaks HTTP with httptools, which bounds none of this itself (its options for h11 do not apply, and
`limit_concurrency` acts only once headers are whole). So its protocol is extended here, below the application. Limits
by address on what is asked, such as enrolments, and on the length of a body belong to the routes.

There is always room for one more connection, at the cost of one that keeps the server waiting: of the address that has
the most of these, the one that has waited longest. An attacker who fills a server with connections, or with bytes, has
to do it again in the time of an honest request, or from as many addresses as there is room for.
"""

import asyncio
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from heapq import heapify, heapreplace
from ipaddress import ip_address, ip_network
from math import inf
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import uvloop
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvloop.loop import SSLProtocol  # type: ignore[attr-defined]

from hazemap.errors import InputError
from hazemap.federated.service.prometheus_text import ServerMetrics
from hazemap.federated.service.rate_limit import place_of

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState


FREED: Final = 8
"""Of the room for bodies this part is freed at a time, so that who is to end is looked for seldom."""


class OpenConnection(Protocol):
    """What has to be known of a connection."""

    held: int
    """bytes of bodies that are in memory"""

    @property
    def peer(self) -> str:
        """The address at the other end of the line."""

    @property
    def place(self) -> str:
        """What counts as the address that asks: behind a trusted proxy, the one that it names."""

    @property
    def known(self) -> bool:
        """Whether who asks has shown a token that is good."""

    def end(self, limit: str) -> None:
        """Close it, because this limit was reached."""


class OpenConnections:
    """All of them. `connections` may be open, `per_address` from one that is no proxy, and hold `room` bytes."""

    def __init__(
        self, connections: float, per_address: float, room: float, counts: ServerMetrics, proxies: Sequence[str] = ()
    ) -> None:
        self._most, self._per_address, self._room, self._counts = connections, per_address, room, counts
        self._proxies = [ip_network(proxy, strict=False) for proxy in proxies]
        self._from: Counter[str] = Counter()
        self._idle: dict[OpenConnection, None] = {}
        self._waiting: dict[str, dict[OpenConnection, None]] = {}
        self.held = 0
        """Bytes of bodies that are in memory, of all connections."""

    def admit(self, one: OpenConnection) -> str | None:
        """Count it; the name of the limit that is reached where none of the others can end for it."""
        self._from[one.peer] += 1
        self._counts.connections += 1
        if self._from[one.peer] > self._per_address and not self._is_proxy(one):
            idle = next((each for each in self._idle if each.peer == one.peer), None)
            if not self._end(idle or _slowest(self._waiting.get(one.peer, {})), "connections_per_address"):
                return "connections_per_address"
        if self._counts.connections > self._most:
            most = max(self._waiting.values(), key=len, default={})
            if not self._end(next(iter(self._idle), None) or _slowest(most), "connections"):
                return "connections"
        return None

    def wait(self, one: OpenConnection) -> None:
        """The other side has to go on: with a head, with a body, or with reading an answer."""
        self._idle.pop(one, None)
        self._waiting.setdefault(one.peer, {}).setdefault(one)

    def rest(self, one: OpenConnection) -> None:
        """It waits for another request, which need not come."""
        self.work(one)
        self._idle[one] = None

    def work(self, one: OpenConnection) -> None:
        """The server has to go on: it does not end for others."""
        self._idle.pop(one, None)
        if (own := self._waiting.get(one.peer)) is not None:
            own.pop(one, None)
            if not own:
                del self._waiting[one.peer]

    def take(self, one: OpenConnection, size: int) -> None:
        """So many bytes of a body have come. Others end where there is no room for them, or this one."""
        one.held += size
        self.held += size
        if self.held > self._room:
            self._free()
            if self.held > self._room:
                one.end("room")

    def give_back(self, one: OpenConnection, size: int) -> None:
        """So many bytes are in memory no more."""
        one.held -= size
        self.held -= size

    def gone(self, one: OpenConnection) -> None:
        """It is closed."""
        self.work(one)
        self.give_back(one, one.held)
        self._counts.connections -= 1
        self._from[one.peer] -= 1
        if self._from[one.peer] <= 0:
            del self._from[one.peer]

    def _is_proxy(self, one: OpenConnection) -> bool:
        """Whether there are many addresses behind it."""
        try:
            address = ip_address(one.peer)
        except ValueError:
            return False
        return any(address in network for network in self._proxies)

    def _free(self) -> None:
        """End what keeps the server waiting while it holds most, until a part of the room is free. O(n log n)."""
        for known in (False, True):
            by_place: defaultdict[str, list[OpenConnection]] = defaultdict(list)
            for own in self._waiting.values():
                for each in own:
                    if each.held and each.known is known:
                        by_place[each.place].append(each)
            most = [(-sum(each.held for each in held), place, 0) for place, held in by_place.items()]
            heapify(most)
            while most and self.held > self._room * (FREED - 1) / FREED:
                total, place, at = most[0]
                if at == len(by_place[place]):
                    break
                victim = by_place[place][at]
                heapreplace(most, (total + victim.held, place, at + 1))
                self._end(victim, "room")

    def _end(self, one: OpenConnection | None, limit: str) -> bool:
        """End it, if there is one."""
        if one is None:
            return False
        self.work(one)
        self.give_back(one, one.held)
        one.end(limit)
        return True


def _slowest(waiting: Iterable[OpenConnection]) -> OpenConnection | None:
    """The one that has waited longest; who has shown a token goes last."""
    first = None
    for each in waiting:
        if not each.known:
            return each
        first = first or each
    return first


BODY = 64 << 20
"""Bytes of the longest body that anybody may send: a campaign may hold a prior map."""
PIECE = 4_096
"""Bytes that the parser is given at a time while headers come: as far as a limit may be overrun."""
PIPELINED = 4
"""Requests that may wait behind one that is being answered."""
SHAKE = 10.0
"""Seconds for the handshake of TLS."""
UNREAD = 2.0
"""Seconds for which what comes of a body after its answer is let go by, so that the answer is read before the end."""


@dataclass(frozen=True)
class HttpLimits:
    """What one connection, and one address, may use.

    Bytes: `url`, and the whole `head` with it; `headers` is their number; `room` for all bodies that have come and are
    not answered yet. Seconds: `head_seconds` for a head, `body_seconds` in each of which the rest of a body comes, or
    as much as at `body_rate` bytes a second, `answer_seconds` for a pause of whoever reads an answer, `idle_seconds`
    between two requests. Open connections: `connections` in all and `per_address`. A minute and address: `enrolments`,
    `uploads` of reports that are not known yet, `reads` of what is published (and, for each device, of its work), and
    `guesses` of tokens or codes that were wrong.

    >>> HttpLimits().head
    16384
    """

    url: int = 2_048
    head: int = 16_384
    headers: int = 64
    head_seconds: float = 10
    body_seconds: float = 10
    body_rate: float = 4_096
    answer_seconds: float = 60
    idle_seconds: float = 120
    connections: float = 8_192
    per_address: float = 256
    room: float = 256 << 20
    enrolments: float = 60
    uploads: float = 600
    reads: float = 1_200
    guesses: float = 30

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise InputError(f"the limit {each.name} is a number above 0; found {getattr(self, each.name)!r:.40}")

    @classmethod
    def here(cls, **limits: float) -> "HttpLimits":
        """For a server that this machine alone reaches: no limits per address, because all have the same one."""
        alone: dict[str, Any] = dict.fromkeys(("per_address", "enrolments", "uploads", "reads", "guesses"), inf)
        return cls(**{**alone, **limits})


quiet = logging.getLogger("hazemap.federated.server.http")
"""Strangers cannot fill the log with what is no HTTP: it is counted."""
quiet.setLevel(logging.ERROR)


class LimitedHttp(HttpToolsProtocol):
    """One connection within the limits. Only bodies whose length is said are read."""

    every: ClassVar[OpenConnections]

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: HttpLimits,
        counts: ServerMetrics,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.peer, self.held, self.logger = "?", 0, quiet
        self._every, self._limits, self._metrics = self.every, limits, counts
        self._clock: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None
        self._in_head, self._head, self._length = True, 0, 0
        self._left, self._bodies, self._unread = 0, deque[int](), 0

    door: "Door | None" = None
    """Where TLS was agreed on, if it was."""

    @property
    def place(self) -> str:
        """What counts as the address that asks."""
        asks: dict[str, Any] = self.scope  # type: ignore[assignment]
        if asks is None or asks["client"] is self.client:
            return self.peer
        if "hazemap.place" not in asks:
            asks["hazemap.place"] = place_of(asks["client"][0] if asks["client"] else None)
        return str(asks["hazemap.place"])

    @property
    def known(self) -> bool:
        """Whether a guard has found the token good that was shown."""
        return self.scope is not None and "hazemap.known" in self.scope

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """It is counted, and its first request must come soon."""
        super().connection_made(transport)
        self.peer = place_of(self.client[0] if self.client else None)
        if self.door is not None:
            self.door.leave()
        reached = self._every.admit(self)
        if reached:
            self._turn_away(503, reached, "the server has too many connections: try again later")
        else:
            self._every.wait(self)
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
        if self._rests and self._clock is None:  # empty lines begin no request: they have the time of a head
            self._every.wait(self)
            self._within(self._limits.head_seconds, "head_seconds")
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
        self._every.wait(self)
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
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (not hosts and self.parser.get_http_version() != "1.0"):
            self._turn_away(400, "host", "say once which server is meant: send Host")
            return
        length = next((int(value) for name, value in self.headers if name == b"content-length" and value.isdigit()), 0)
        if length > BODY:
            self._turn_away(413, "body", f"a body has at most {BODY:,} bytes")
            return
        self._left = length
        self._bodies.append(0)
        self._look_again()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of a body, which takes room until it is answered."""
        self._left -= len(body)
        if not self.transport.is_closing() and not self.cycle.response_complete:
            super().on_body(body)
            self._bodies[-1] += len(body)
            self._every.take(self, len(body))

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
        self._left = 0
        if self.cycle.response_complete:  # to the head alone
            self._every.rest(self)
        else:
            self._every.work(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Answered: it may be closed if others need the room. What comes of a body after that is not kept."""
        super().on_response_complete()
        if self._bodies:
            self._every.give_back(self, self._bodies.popleft())
        if self.pipeline or self.transport.is_closing():
            return
        if self._left:
            self._every.wait(self)
            self._within(UNREAD, "unread")
        elif not self._unread:
            self._every.rest(self)

    def pause_writing(self) -> None:
        """The other side reads slowly."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._every.wait(self)
        self._every.take(self, self._unread)
        self._reader = self.loop.call_later(self._limits.answer_seconds, self._too_slow, "answer_seconds")

    def resume_writing(self) -> None:
        """It has read."""
        if self._reader is not None:
            self._reader.cancel()
        self._every.give_back(self, min(self._unread, self.held))
        self._unread = 0
        if self._rests:
            self._every.rest(self)
        else:
            self._every.work(self)
        super().resume_writing()

    def rejected(self, limit: str) -> None:
        """Count it as turned away."""
        self._metrics.rejected[limit] += 1

    def end(self, limit: str) -> None:
        """Others need the room. Who is not waiting for an answer gets none, nor who could hold the line by it."""
        self._bodies.clear()
        rests, unread, self._unread = self._rests and self._clock is None and not self._unread, self._unread, 0
        if rests or unread or self.scheme == "https" or self.transport.is_closing():
            if not rests:
                self.rejected(limit)
            self.transport.abort()
            return
        self._turn_away(503, limit, "too much is sent here at once: try again in a moment")

    @property
    def _rests(self) -> bool:
        """Whether it is between two requests."""
        return self.cycle is not None and self.cycle.response_complete and not self.pipeline

    def _look_again(self) -> None:
        """A body goes on coming: look again when so much of it should be here."""
        self._within(self._limits.body_seconds, "body_seconds", self._left)

    def _within(self, seconds: float, limit: str, left: int = 0) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(seconds, self._too_slow, limit, left)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _too_slow(self, limit: str, left: int = 0) -> None:
        """Time is over; but not for a body of which enough has come since so much was left, or that nobody reads."""
        if left - self._left >= self._limits.body_rate * self._limits.body_seconds or (left and self.flow.read_paused):
            self._look_again()
            return
        self._metrics.rejected[limit] += 1
        self.transport.abort()

    def _turn_away(self, status: int, limit: str, words: str) -> None:
        """A short answer if none has begun, and the end."""
        if self.transport.is_closing():
            return
        self._stop_clock()
        self._metrics.rejected[limit] += 1
        answers = self.cycle is not None and not self.cycle.response_complete  # an earlier request, or this one's head
        if answers and not self._in_head and not self.pipeline and not self.cycle.response_started:
            self.cycle.disconnected, answers = True, False  # nobody waits for what a route would say
            self.cycle.message_event.set()
        if not answers:
            content = f'{{"error": "{words}"}}'.encode()
            head = f"content-type: application/json\r\ncontent-length: {len(content)}\r\nconnection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[status] + head.encode() + content)
        self.transport.close()


class Door(asyncio.Protocol):
    """A connection that agrees on TLS: it is counted, and ends for others, as all that keep the server waiting."""

    held, known = 0, False

    def __init__(self, inner: LimitedHttp, context: SSLContext) -> None:
        self.peer, self.transport, self._inner, self._context = "?", asyncio.Transport(), inner, context
        self._there = True
        inner.door = self

    @property
    def place(self) -> str:
        """The same: nobody has spoken for another yet."""
        return self.peer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The handshake begins, of which only so many seconds are waited for the end."""
        self.transport, self.peer = transport, place_of((transport.get_extra_info("peername") or "?")[0])
        if reached := self._inner.every.admit(self):
            self.end(reached)
            self.leave()
            return
        self._inner.every.wait(self)
        loop = asyncio.get_running_loop()
        over = loop.create_future()
        over.add_done_callback(self._over)
        patience = {"ssl_handshake_timeout": SHAKE, "ssl_shutdown_timeout": UNREAD}
        tls = SSLProtocol(loop, self._inner, self._context, over, server_side=True, **patience)
        transport.set_protocol(tls)
        tls.connection_made(transport)

    def _over(self, over: "asyncio.Future[None]") -> None:
        over.cancelled() or over.exception()  # nobody else asks why
        self.leave()

    def end(self, limit: str) -> None:
        """Others need the room."""
        self._inner.rejected(limit)
        self.transport.abort()

    def leave(self) -> None:
        """It is through, or closed."""
        if self._there:
            self._there = False
            self._inner.every.gone(self)


class HandshakeLoop(uvloop.Loop):
    """The event loop, which counts connections of TLS from their first byte on."""

    async def create_server(self, factory: Any, *arguments: Any, **options: Any) -> Any:  # type: ignore[override]
        """A server as ever."""
        context = options.pop("ssl", None)
        made = factory if context is None else lambda: Door(factory(), context)
        return await super().create_server(made, *arguments, **options)


def limited(limits: HttpLimits, counts: ServerMetrics, proxies: Sequence[str] = ()) -> type[LimitedHttp]:
    """The class of a server's connections; those of a proxy all have one address, so none is limited by it."""
    known = OpenConnections(limits.connections, limits.per_address, limits.room, counts, proxies)

    class Limited(LimitedHttp):
        """A connection of this server."""

        every = known

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options, limits=limits, counts=counts)

    return Limited
