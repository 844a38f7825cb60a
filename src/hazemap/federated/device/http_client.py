"""How a device reaches its server: HTTPS, or plain HTTP to this same machine; one shared client for many devices.

A server that does not answer, or asks to be left alone, is left alone for longer each time (`Backoff`). The words that
it writes may be shown in a terminal and stay in a log on the person's disk, so they pass through `one_line`.
"""

import asyncio
import ipaddress
import logging
import os
import ssl
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from hazemap.errors import FileError, InputError, Unreachable

if TYPE_CHECKING:
    import httpx


LARGEST = 64 << 20
"""Bytes of a server's answer, at most."""
TOO_LARGE = f"the server's answer is larger than {LARGEST:,} bytes"
PATIENCE = 30.0
"""Seconds for an answer to begin, or to go on."""
LONGEST = 300.0
"""Seconds for a whole answer, however slowly it comes."""


class HttpReply(NamedTuple):
    """A server's answer: its status, the seconds it asks to be left alone, and its content.

    `kind` is the content's media type, `fresh` for how many seconds the answer may be used again.
    """

    status: int
    wait: float | None
    content: bytes
    kind: str = ""
    fresh: float | None = None


class HttpTransport(Protocol):
    """Who carries requests."""

    async def send(self, method: str, path: str, ticket: str = "", content: bytes = b"", kind: str = "") -> HttpReply:
        """One request, `kind` its content type; `Unreachable` where there is no answer."""
        ...


def check_server_address(server: str) -> str:
    """The address of a server without a slash at its end; `InputError` unless it is HTTPS, or this machine.

    >>> check_server_address("http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    """
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"a server is an address such as https://maps.example; found {server!r}")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise InputError(
            f"{server} is not HTTPS, so anybody between could see and change what is sent: use https:// "
            "(--trust-certificate names a certificate of your own)"
        )
    return server.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(eq=False)
class HttpClient:
    """Requests to one server over connections that are kept open. Use it as a context.

    `connections` are open at once; devices beyond them wait for their turn.
    """

    client: "httpx.AsyncClient"
    turns: asyncio.Semaphore
    """The client's own queue is searched by each request: it is kept short."""

    @classmethod
    def to(cls, server: str, certificate: Path | None = None, connections: int = 32) -> "HttpClient":
        """A transport to a server; `certificate` is a PEM file of authorities to trust beside the system's."""
        try:
            import httpx
        except ImportError:
            raise InputError("a device needs httpx: install hazemap with the extra 'server'") from None

        address = check_server_address(server)
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log every poll
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=60)
        client = httpx.AsyncClient(
            base_url=address,
            limits=limits,
            timeout=httpx.Timeout(PATIENCE, pool=None),
            verify=tls_context(certificate),
            trust_env=not is_loopback(urlsplit(address).hostname or ""),
            follow_redirects=False,
            headers={"Accept-Encoding": "gzip"},
        )
        return cls(client, asyncio.Semaphore(connections))

    async def send(self, method: str, path: str, ticket: str = "", content: bytes = b"", kind: str = "") -> HttpReply:
        """One request; `Unreachable` where there is no answer, or one that means: not now."""
        import httpx

        headers = {"Authorization": f"Bearer {ticket}"} if ticket else {}
        if kind:
            headers["Content-Type"] = kind
        try:
            async with (
                self.turns,
                asyncio.timeout(LONGEST),
                self.client.stream(method, path, headers=headers, content=content or None) as response,
            ):
                parts, size = [], 0
                async for part in response.aiter_raw():
                    parts.append(part)
                    size += len(part)
                    if size > LARGEST:
                        raise Unreachable(TOO_LARGE)
        except (httpx.HTTPError, TimeoutError) as error:
            raise Unreachable(f"the server cannot be reached ({type(error).__name__})") from error
        return http_reply(response.status_code, lambda name: response.headers.get(name, ""), b"".join(parts))

    async def __aenter__(self) -> "HttpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()


def http_reply(status: int, header: Callable[[str], str], content: bytes) -> HttpReply:
    """An answer from what HTTP says of it; `Unreachable` where it means: not now. `header` gives "" for none."""
    seconds = _seconds(header("retry-after"))
    if status == 429 or status >= 500:
        raise Unreachable(f"the server is busy or broken (HTTP {status})", seconds)
    plain = _decompressed(content) if header("content-encoding") == "gzip" else content
    return HttpReply(status, seconds, plain, header("content-type"), _fresh(header("cache-control")))


def tls_context(certificate: Path | None) -> ssl.SSLContext:
    """The authorities that TLS trusts: the system's, and perhaps one more."""
    context = ssl.create_default_context()
    if certificate is not None:
        try:
            context.load_verify_locations(certificate)
        except (OSError, ssl.SSLError):
            raise FileError(f"{certificate} is not a certificate in PEM: pass the authority's own file") from None
    return context


def _decompressed(content: bytes) -> bytes:
    """The content of a gzip file, never more than the largest answer."""
    reader = zlib.decompressobj(wbits=31)
    try:
        found = reader.decompress(content, LARGEST)
    except zlib.error:
        raise Unreachable("the server's answer is damaged") from None
    if reader.unconsumed_tail:
        raise Unreachable(TOO_LARGE)
    return found


def _seconds(text: str) -> float | None:
    """Retry-After as a number of seconds; a date, or anything else, is ignored."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def _fresh(text: str) -> float | None:
    """Cache-Control (RFC 9111) as seconds: its max-age; 0 where nothing may be kept; None if it is silent."""
    found: float | None = None
    for directive in text.lower().split(","):
        name, _, value = directive.strip().partition("=")
        if name in {"no-store", "no-cache"}:
            return 0.0
        if name == "max-age" and found is None:
            found = _seconds(value.strip('"'))
    return found


@dataclass(frozen=True)
class Backoff:
    """How long to leave a server alone after some failures in a row: doubling, up to `most`, with jitter.

    >>> 0.5 <= Backoff().wait(1) <= 1.5, 150 <= Backoff().wait(1_000) <= 450
    (True, True)
    """

    first: float = 1.0
    most: float = 300.0

    def wait(self, failures: int) -> float:
        """Seconds: half to one and a half of first · 2^(failures − 1)."""
        return jitter(min(self.most, self.first * 2.0 ** min(failures - 1, 32)))


def jitter(seconds: float) -> float:
    """Half to one and a half as long, so that devices that failed together do not come back together."""
    return seconds * (0.5 + int.from_bytes(os.urandom(2), "big") / 65_536)


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
            self._coming.set_result(http_reply(status, self._header, b"".join(self._parts)))
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

        parts = urlsplit(check_server_address(server))
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        context = tls_context(certificate) if secure else None
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


LONGEST_LINE = 2_000


def one_line(words: str, most: int = LONGEST_LINE) -> str:
    r"""The words without line ends and without letters that cannot be printed, shortened. O(most).

    >>> one_line("a map\n2026-03-01  nothing \x1b[1Acharged"), one_line("x" * 5_000_000, 8)
    ('a map 2026-03-01 nothing [1Acharged', 'xxxxxxxx…')
    """
    start = words[: most + 1]
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in start).split())
    return f"{plain[:most]}…" if len(words) > most else plain
