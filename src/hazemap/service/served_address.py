"""Where a server listens, and that nobody between it and others reads along."""

import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from hazemap.errors import FileError, InputError
from hazemap.service.http_limits import HttpLimits, limited
from hazemap.service.open_connections import HttpCounts
from hazemap.service.store import Store


@dataclass
class ConnectionCounts:
    """What is counted of a server's connections."""

    connections: int = 0
    received: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class ServedAddress:
    """An address, with TLS or without. Without a certificate only this machine may reach it, unless a proxy speaks TLS.

    >>> ServedAddress("::1", 8473).url
    'http://[::1]:8473'
    """

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False

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

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def limits(self, given: HttpLimits | None = None) -> HttpLimits:
        """Those that were given; else none per address where all have the same one, this machine's or a proxy's.

        >>> ServedAddress("0.0.0.0", 8473, behind_proxy=True).limits().guesses, ServedAddress("::", 1).limits().guesses
        (inf, 30)
        """
        return given or (HttpLimits.here() if loopback(self.host) or self.behind_proxy else HttpLimits())

    def serve(
        self,
        application: Any,
        limits: HttpLimits | None = None,
        counts: HttpCounts | None = None,
        store: Store | None = None,
        proxies: Sequence[str] = (),
    ) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C), or until the store has ended: then its error.

        What is said of addresses by one of the `proxies` counts.
        """
        import uvicorn

        limits = self.limits(limits)
        config = uvicorn.Config(
            application,
            host=self.host,
            port=self.port,
            loop="hazemap.service.http_limits:HandshakeLoop",
            http=limited(limits, counts or ConnectionCounts(), proxies),
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            timeout_keep_alive=int(limits.idle_seconds),
            timeout_graceful_shutdown=5,
            backlog=4096,
            server_header=False,
            proxy_headers=bool(proxies),
            forwarded_allow_ips=list(proxies),
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
