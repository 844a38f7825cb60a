"""Which pages of other origins a browser may let speak to a server: those of devices that run in a tab.

The code of such a device is a page that somebody else serves: a server that ships its clients' code could ship another
to one of them. Browsers let its script read a server's answers only if the server says so (the Fetch standard, CORS).
It says so for origins that the operator declared, for what devices ask, and for nothing else: no page may give orders,
whatever token it has.
"""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import origin
from hazemap.federated.service.route_guard import Application, Receive, Scope, Send, header
from hazemap.federated.service.served_address import loopback

VARY = (b"vary", b"origin")


def checked_origins(urls: Sequence[str], own: Sequence[str] = ()) -> frozenset[str]:
    """These origins; `InputError` for an address that is none, could be read on its way, or is the server's `own`.

    >>> checked_origins(["https://tab.example"], own=["https://maps.example/"])
    frozenset({'https://tab.example'})
    """
    taken = {origin(each) for each in own}
    for url in urls:
        if origin(url) != url:
            raise InputError(f"a page's origin is written as {origin(url)}; found {url!r:.80}")
        if url.startswith("http:") and not loopback(urlsplit(url).hostname or ""):
            raise InputError(f"{url} could be read and changed on its way: a page's origin is https, or this machine")
        if url in taken:
            raise InputError(
                f"{url} is this server itself: whoever serves a device's code must be another, or it could give "
                "one visitor another code"
            )
    return frozenset(urls)


class PageAccess:
    """An application of which pages of these origins may read what is at these paths, and send these headers there."""

    def __init__(
        self,
        application: Application,
        paths: re.Pattern[str],
        origins: frozenset[str],
        headers: bytes = b"content-type",
    ) -> None:
        self._application, self._paths, self._origins, self._headers = application, paths, origins, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the application's own beginning and end."""
        if not self._origins or scope["type"] != "http" or not self._paths.fullmatch(scope["path"]):
            await self._application(scope, receive, send)
            return
        asking, more = header(scope, b"origin"), [VARY]
        if asking in self._origins:
            more += [
                (b"access-control-allow-origin", asking.encode()),
                (b"access-control-expose-headers", b"retry-after"),
            ]
            if scope["method"] == "OPTIONS":
                allowed = [
                    (b"access-control-allow-methods", b"GET, POST"),
                    (b"access-control-allow-headers", self._headers),
                    (b"access-control-max-age", b"7200"),
                ]
                await send({"type": "http.response.start", "status": 204, "headers": more + allowed})
                await send({"type": "http.response.body", "body": b""})
                return

        async def welcoming(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._application(scope, receive, welcoming)
