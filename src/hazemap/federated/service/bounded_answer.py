"""A server's answer, read as far as it can be long and no further: whoever answers may send without end.

Answers are asked for as they are, without compression: a few bytes of that could become very many.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from hazemap.errors import Refused

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
