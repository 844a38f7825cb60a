"""HTTP by hand, where it must be fast: a request's headers and body, and a reply."""

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from hazemap.errors import HazemapError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")


class TooLong(HazemapError):
    """A request's body is longer than anything that is asked for here."""


def header(scope: Scope, name: bytes) -> str:
    """The first header of this (lower-case) name, or nothing."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return ""


def bearer(scope: Scope) -> str:
    """The ticket or token that a request shows (RFC 6750), or nothing."""
    kind, _, secret = header(scope, b"authorization").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else ""


async def body(receive: Receive, limit: int) -> bytes | None:
    """The request's body; `None` if the other side has gone, `TooLong` beyond the limit."""
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise TooLong(f"a body of more than {limit:,} bytes was sent")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


async def reply(send: Send, status: int, content: bytes = b"", headers: Iterable[Header] = ()) -> None:
    """One reply, with its length."""
    every = [*headers, (b"content-length", str(len(content)).encode())] if status != 204 else list(headers)
    await send({"type": "http.response.start", "status": status, "headers": every})
    await send({"type": "http.response.body", "body": content})


async def complain(send: Send, status: int, error: str, headers: Iterable[Header] = ()) -> None:
    """An error, as JSON."""
    await reply(send, status, json.dumps({"error": error}).encode(), (JSON, *headers))
