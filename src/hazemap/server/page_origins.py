"""Which pages of other origins a browser may let speak to this server: those of devices that run in a tab.

The code of such a device is a page that somebody else serves: a server that ships its clients' code could ship another
to one of them. Browsers let its script read this server's answers only if the server says so (the Fetch standard,
CORS). It says so for origins that the operator declared, for what devices ask, and for nothing else: no page may give
orders, whatever token it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hazemap.server.device_endpoints import Header, Send, reply
from hazemap.service.page_origins import checked_origins
from hazemap.service.route_guard import Scope, header

DEVICE_PATHS = ("/v1/challenge", "/v1/enrol", "/v1/recipes", "/v1/tasks")
PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"7200"),
)
READABLE: Header = (b"access-control-expose-headers", b"retry-after")
VARY: Header = (b"vary", b"origin")


@dataclass(frozen=True)
class PageOrigins:
    """The declared origins, in their one spelling; without any no page of another origin is answered.

    >>> PageOrigins.of(["https://tab.example"], own=["https://maps.example"]).declared
    frozenset({'https://tab.example'})
    """

    declared: frozenset[str] = frozenset()

    @classmethod
    def of(cls, urls: Sequence[str], own: Sequence[str] = ()) -> "PageOrigins":
        """Of these addresses; `InputError` for one that is no origin, or the server's `own`."""
        return cls(checked_origins(urls, own))

    def covers(self, scope: Scope) -> bool:
        """Whether a request is one of those that pages may make."""
        path: str = scope["path"]
        return bool(self.declared) and (path in DEVICE_PATHS or path.startswith("/v1/tasks/"))

    def welcome(self, scope: Scope) -> tuple[Header, ...]:
        """The headers by which a browser lets the page of this request read the answer."""
        if not self.covers(scope):
            return ()
        asking = header(scope, b"origin")
        if asking not in self.declared:
            return (VARY,)
        return (b"access-control-allow-origin", asking.encode()), READABLE, VARY

    def sender(self, scope: Scope, send: Send) -> Send:
        """As `send`, with these headers."""
        more = self.welcome(scope)
        if not more:
            return send

        async def welcoming(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        return welcoming

    def asks(self, scope: Scope) -> bool:
        """Whether this is a browser's question if a page may, before the page's own request."""
        return scope["method"] == "OPTIONS" and self.covers(scope) and header(scope, b"origin") in self.declared

    async def preflight(self, send: Send) -> None:
        """The answer to it."""
        await reply(send, 204, headers=PREFLIGHT)
