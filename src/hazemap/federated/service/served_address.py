"""Where a server listens, its TLS, and the origins whose pages may speak to it.

The code of a device in a tab is a page that another party serves: a server that ships its clients' code could ship
another to one of them. Browsers let its script read a server's answers only if the server says so (the Fetch standard,
CORS). It says so for origins that the operator declared, for what devices ask, and for nothing else: no page may give
orders, whatever token it has.
"""

import logging
import re
import resource
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hazemap.errors import FileError, InputError
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import origin
from hazemap.federated.service.http_limits import HttpLimits, limited
from hazemap.federated.service.prometheus_text import ServerMetrics
from hazemap.federated.service.route_guard import Application, Receive, Scope, Send, header
from hazemap.federated.service.store import Store

log = logging.getLogger("hazemap.federated.server")

SPARE = 256
"""Open files that are kept for the database and everything else that is not a connection."""


@dataclass(frozen=True)
class ServedAddress:
    """An address, with TLS or without. Without a certificate only this machine may reach it, unless a proxy speaks TLS.

    What a proxy says of addresses counts if it is one of `trusted_proxies`. `chosen` are limits by their names.

    >>> ServedAddress("::1", 8473).url
    'http://[::1]:8473'
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    trusted_proxies: tuple[str, ...] = ()
    chosen: Mapping[str, float] = field(default_factory=dict)

    def check(self, what: str) -> None:
        """`InputError` if `what` would travel unprotected, `FileError` where a file of TLS is missing."""
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both --certificate and --key")
        if self.certificate is None and not self.behind_proxy and not loopback(self.host):
            raise InputError(
                f"on {self.host} {what} would travel unprotected: give --certificate and --key, or say "
                "--behind-proxy if a proxy on a trusted network speaks TLS, or serve 127.0.0.1 alone"
            )
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise FileError(f"there is no file {file}: TLS needs a certificate and its key, in PEM")
        if self.trusted_proxies and not self.behind_proxy:
            raise InputError("--trusted-proxy names what stands before a server that is --behind-proxy: say both")
        for proxy in self.trusted_proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError:
                raise InputError(
                    f"--trusted-proxy is an address or a network such as 10.0.0.0/8; found {proxy!r:.60}"
                ) from None

    @property
    def alone(self) -> bool:
        """Whether only this machine can reach it."""
        return loopback(self.host) and not self.behind_proxy

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def limits(self, **usual: float) -> HttpLimits:
        """Those that were chosen or are usual; else none per address where all have the same one.

        That is this machine's, or that of a proxy which is not trusted to name others.

        >>> ServedAddress("0.0.0.0", 8473, behind_proxy=True).limits().guesses, ServedAddress("::", 1).limits().guesses
        (inf, 30)
        """
        one = self.alone or (self.behind_proxy and not self.trusted_proxies)
        given: dict[str, Any] = {**usual, **self.chosen}
        return (HttpLimits.here if one else HttpLimits)(**given)

    def serve(
        self,
        application: Any,
        limits: HttpLimits | None = None,
        metrics: ServerMetrics | None = None,
        store: Store | None = None,
    ) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C), or until the store has ended: then its error."""
        import uvicorn

        if self.behind_proxy and not self.trusted_proxies:
            log.warning(
                "nothing is limited by address: name the proxy with --trusted-proxy, if it names whom it speaks for"
            )
        limits = limits or self.limits()
        limits = replace(limits, connections=max(1, min(limits.connections, _open_files() - SPARE)))
        config = uvicorn.Config(
            application,
            host=self.host,
            port=self.port,
            loop="hazemap.federated.service.http_limits:HandshakeLoop",
            http=limited(limits, metrics or ServerMetrics(), self.trusted_proxies),
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            timeout_keep_alive=int(limits.idle_seconds),
            timeout_graceful_shutdown=5,
            backlog=4096,
            server_header=False,
            proxy_headers=bool(self.trusted_proxies),
            forwarded_allow_ips=_spellings(self.trusted_proxies),
            ssl_certfile=self.certificate,
            ssl_keyfile=self.key,
        )
        for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends well at both, and then raises them once more
            signal.signal(number, lambda *_: None)
        server = uvicorn.Server(config)
        if store is not None:
            store.ended = partial(setattr, server, "should_exit", True)
        if store is None or not store.broken:
            server.run()
        if store is not None and store.broken:
            raise store.broken


def loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _spellings(proxies: Sequence[str]) -> list[str]:
    """These networks by their first addresses, and as a server that listens to IPv6 sees those of IPv4.

    >>> _spellings(["10.9.8.7/8"])
    ['10.0.0.0/8', '::ffff:a00:0/104']
    """
    found = []
    for network in (ip_network(proxy, strict=False) for proxy in proxies):
        found.append(str(network))
        if network.version == 4:
            mapped = int(network.network_address) + (0xFFFF << 32)
            found.append(str(ip_network((mapped, 96 + network.prefixlen))))
    return found


def _open_files() -> int:
    """How many files may be open, such as connections; systems allow a thousand unless they are asked."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if most == resource.RLIM_INFINITY else min(most, 65_536)
    if wanted > least:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


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
