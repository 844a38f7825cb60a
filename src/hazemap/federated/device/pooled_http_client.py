"""HTTP/1.1 for thousands of devices in one process: what `HttpClient` does, at a tenth of its price.

One request at a time on a connection, connections kept and shared, no proxy, no redirect, no cookie. A poll costs
about 0.1 ms of CPU.
"""

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hazemap.errors import InputError, Unreachable
from hazemap.federated.device.http_client import LARGEST, PATIENCE, TOO_LARGE, HttpReply, answered, checked, trusting

MOST_HEADERS = 1 << 16
"""Bytes of an answer that are no content: so many, and as many again as its content has."""


class _Lost(Exception):
    """The connection ended before an answer was whole; `begun` if some of it had come."""

    def __init__(self, begun: bool) -> None:
        super().__init__("the connection ended")
        self.begun = begun


class _Connection(asyncio.Protocol):
    """One connection, and the parser of the answer that is coming."""

    def __init__(self) -> None:
        self.open = False
        self.used = False
        self._transport: Any = None
        self._coming: asyncio.Future[HttpReply] | None = None
        self._parser: Any = None
        self._headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._size = self._received = 0
        self._begun = False

    async def send(self, request: bytes) -> HttpReply:
        """One request and its answer."""
        import httptools

        self.used = True
        self._parser, self._begun = httptools.HttpResponseParser(self), False
        self._headers, self._parts, self._size, self._received = {}, [], 0, 0
        self._coming = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._coming

    def close(self) -> None:
        """End it."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open."""
        self._transport, self.open = transport, True

    def data_received(self, data: bytes) -> None:
        """Some of an answer; bytes that nobody asked for end the connection."""
        import httptools

        if self._coming is None or self._coming.done():
            self.close()
            return
        self._begun = True
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail(Unreachable("the server's answer is not HTTP"))
        if self._received > 2 * self._size + MOST_HEADERS:
            self._fail(Unreachable(f"the server's answer has headers of more than {MOST_HEADERS:,} bytes"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - however it was lost
        """Closed by the other side, or by us."""
        self.open = False
        if self._coming is not None and not self._coming.done():
            self._coming.set_exception(_Lost(self._begun))

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser has read a header."""
        self._headers[name.lower()] = value

    def on_body(self, data: bytes) -> None:
        """The parser has read some of the content."""
        self._parts.append(data)
        self._size += len(data)
        if self._size > LARGEST:
            self._fail(Unreachable(TOO_LARGE))

    def on_message_complete(self) -> None:
        """The parser has read it all."""
        if self._coming is None or self._coming.done():
            self.open = False  # an answer that nobody asked for
            return
        status = self._parser.get_status_code()
        if status < 200:  # informational: the answer is still to come
            self._headers, self._parts = {}, []
            return
        self.open = self.open and self._parser.should_keep_alive()
        try:
            self._coming.set_result(answered(status, self._header, b"".join(self._parts)))
        except Unreachable as error:
            self._coming.set_exception(error)

    def _header(self, name: str) -> str:
        return self._headers.get(name.encode("ascii"), b"").decode("latin-1")

    def _fail(self, error: Unreachable) -> None:
        if self._coming is not None and not self._coming.done():
            self._coming.set_exception(error)
        self.close()


@dataclass(eq=False)
class FleetClient:
    """Requests to one server over a few connections that are kept open. Use it as a context."""

    host: str
    port: int
    base: str
    context: ssl.SSLContext | None
    turns: asyncio.Semaphore
    _free: deque[_Connection] = field(default_factory=deque)

    @classmethod
    def to(cls, server: str, certificate: Path | None = None, connections: int = 32) -> "FleetClient":
        """A transport to a server; `certificate` is a PEM file of authorities to trust beside the system's."""
        try:
            import httptools  # noqa: F401 - here, so that it is missed before anything is asked
        except ImportError:
            raise InputError("many devices need httptools: install hazemap with the extra 'server'") from None

        parts = urlsplit(checked(server))
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        context = trusting(certificate) if secure else None
        return cls(parts.hostname or "", port, parts.path, context, asyncio.Semaphore(connections))

    async def send(self, method: str, path: str, ticket: str = "", content: bytes = b"", kind: str = "") -> HttpReply:
        """One request; `Unreachable` where there is no answer, or one that means: not now."""
        head = [f"{method} {self.base}{path} HTTP/1.1", f"Host: {self._name}", "Accept-Encoding: gzip"]
        if ticket:
            head.append(f"Authorization: Bearer {ticket}")
        if content or method != "GET":
            head.append(f"Content-Length: {len(content)}")
        if kind:
            head.append(f"Content-Type: {kind}")
        request = "\r\n".join([*head, "\r\n"]).encode("latin-1") + content
        try:
            async with self.turns, asyncio.timeout(PATIENCE):
                return await self._sent(request)
        except (OSError, TimeoutError, _Lost) as error:
            raise Unreachable(f"the server cannot be reached ({type(error).__name__.strip('_')})") from error

    async def _sent(self, request: bytes) -> HttpReply:
        """Over a connection that is open, else over a new one. A server may close an idle one at any time: the
        request then goes out once more, for what a device says twice counts once.
        """
        while True:
            connection = await self._connection()
            fresh = not connection.used
            try:
                answer = await connection.send(request)
            except _Lost as lost:
                if fresh or lost.begun:
                    raise
                continue
            except BaseException:
                connection.close()  # an answer may still come: nobody else may take it for theirs
                raise
            if connection.open:
                self._free.append(connection)
            else:
                connection.close()
            return answer

    async def _connection(self) -> _Connection:
        while self._free:
            connection = self._free.pop()
            if connection.open:
                return connection
        name = self.host if self.context else None
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            _Connection, self.host, self.port, ssl=self.context, server_hostname=name
        )
        return connection

    @property
    def _name(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def __aenter__(self) -> "FleetClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._free:
            self._free.pop().close()
