"""An operator's client of a server: orders out, status and releases in.

Answers are read as far as they can be long and no further, and asked for without compression: a few compressed bytes
could become very many.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hazemap.errors import BudgetError, FileError, HazemapError, InputError, Refused
from hazemap.files.text_files import read_text

if TYPE_CHECKING:
    import httpx


WORDS: Final = 1 << 16
"""Bytes of the longest answer that only says something: a problem, a state, a key."""
PLAIN: Final = {"Accept-Encoding": "identity"}


def asked(
    http: "httpx.Client", method: str, url: str, most: int = WORDS, headers: Mapping[str, str] = PLAIN, **options: Any
) -> "httpx.Response":
    """The answer to a request. `Refused` for a body of more than `most` bytes, of which no more than that is kept."""
    with http.stream(method, url, headers={**headers, **PLAIN}, **options) as coming:
        body = _Body(coming, most)
        for part in coming.iter_bytes():
            body.take(part)
    return body.whole()


async def asked_async(
    http: "httpx.AsyncClient",
    method: str,
    url: str,
    most: int = WORDS,
    headers: Mapping[str, str] = PLAIN,
    **options: Any,
) -> "httpx.Response":
    """`asked`, of a client that waits for nobody."""
    async with http.stream(method, url, headers={**headers, **PLAIN}, **options) as coming:
        body = _Body(coming, most)
        async for part in coming.aiter_bytes():
            body.take(part)
    return body.whole()


class _Body:
    """What has come of an answer."""

    def __init__(self, coming: "httpx.Response", most: int) -> None:
        if coming.headers.get("content-encoding", "identity") != "identity":
            raise Refused("it sends its answer compressed, which nobody asked it for")
        self._coming, self._most, self._size = coming, most, 0
        self._parts: list[bytes] = []

    def take(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._most:
            raise Refused(f"it sends more than the {self._most:,} bytes that its answer can have")
        self._parts.append(part)

    def whole(self) -> "httpx.Response":
        import httpx

        kept = [(name, value) for name, value in self._coming.headers.multi_items() if name in _KEPT]
        return httpx.Response(self._coming.status_code, headers=kept, content=b"".join(self._parts))


_KEPT = ("content-type", "location", "retry-after", "cache-control")


PATIENCE: Final = 60.0
"""Seconds that a server is given for one answer."""
MOST: Final = 1 << 30
"""Bytes of the longest answer: releases and maps may be large."""


class Operator:
    """Speaks to one server with the operator's token. Errors are those of the command line."""

    def __init__(self, http: "httpx.Client") -> None:
        self.http = http

    def get(self, path: str, most: int = MOST, **query: str) -> Any:
        """JSON, of at most so many bytes."""
        return self._asked("GET", path, most, params=query).json()

    def content(self, path: str, most: int = MOST) -> bytes:
        """Bytes, at most so many."""
        return self._asked("GET", path, most).content

    def post(self, path: str, content: bytes = b"") -> None:
        """An order."""
        self._asked("POST", path, MOST, content=content)

    def sent(self, path: str, content: bytes, most: int = MOST) -> bytes:
        """An order with an answer of at most so many bytes."""
        return self._asked("POST", path, most, content=content).content

    def order(self, path: str, data: dict[str, Any]) -> Any:
        """An order with an answer, in JSON."""
        return self._asked("POST", path, MOST, json=data).json()

    def _asked(self, method: str, path: str, most: int, **options: Any) -> "httpx.Response":
        import httpx

        try:
            reply = asked(self.http, method, path, most, **options)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HazemapError(
                f"the server {self.http.base_url} did not answer ({type(error).__name__}): see that it runs, and that "
                "--server names it"
            ) from error
        except Refused as error:
            raise HazemapError(f"the server {self.http.base_url} is not read: {error}") from error
        if reply.is_success:
            return reply
        try:
            message = str(reply.json()["error"])
        except (ValueError, KeyError, TypeError):
            message = f"the server answered {reply.status_code}: is {self.http.base_url} a hazemap server?"
        if reply.status_code == 402:
            raise BudgetError(message)
        if reply.status_code < 500:
            raise InputError(message)
        raise HazemapError(message)


@contextmanager
def operator(server: str, token_file: Path, trust_certificate: Path | None = None) -> Iterator[Operator]:
    """A line to a server, closed in the end. `FileError` for a file that holds no token or no certificates."""
    import ssl

    import httpx

    kept = "`hazemap server --data DIR` keeps it in DIR/operator.token"
    token = read_text(token_file, "the operator's token in", advice=kept).strip()
    if not (token.isascii() and token.isprintable()):
        raise FileError(f"{token_file} holds no token: that is one line of plain letters")
    verify: ssl.SSLContext | bool = False
    try:
        if urlsplit(server).scheme != "http" or trust_certificate is not None:  # plain HTTP has no certificates
            verify = ssl.create_default_context(cafile=trust_certificate)
    except OSError as error:
        raise FileError(f"{trust_certificate} holds no certificates in PEM") from error
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server, headers=headers, verify=verify, timeout=PATIENCE) as http:
        yield Operator(http)
