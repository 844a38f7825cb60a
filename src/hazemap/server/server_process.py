"""The server as a process: its folder, its tokens, its address."""

import logging
import resource
import signal
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from hazemap.errors import FileError, InputError
from hazemap.privacy.ledger import Ledger
from hazemap.server.access_tokens import token_file
from hazemap.server.coordinator import Coordinator
from hazemap.server.http_routes import Application
from hazemap.server.polling_interval import Pace
from hazemap.server.store import CampaignStore

log = logging.getLogger("hazemap.server")

OPERATOR, ENROLMENT = "operator.token", "enrolment.token"
KEPT_ALIVE = 120
"""Seconds for which an idle connection is kept: a device that asks every minute need not shake hands again."""


@dataclass(frozen=True)
class ServerProcess:
    """How a server is reached, and where it keeps what it must not forget.

    Without a certificate only this machine may reach it, unless a proxy before it speaks TLS. `open` lets any device
    enrol; else it must know the token in the folder. `InputError` for settings that would send tickets unencrypted.

    >>> ServerProcess(Path("data"), "127.0.0.1", 8470).url
    'http://127.0.0.1:8470'
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8470
    database: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    open: bool = False
    ledger: Ledger | None = None
    pace: Pace | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise InputError("TLS needs both --certificate and --key")
        if self.certificate is None and not self.behind_proxy and not _loopback(self.host):
            raise InputError(
                f"on {self.host} tickets would travel unprotected: give --certificate and --key, or say --behind-proxy "
                "if a proxy on a trusted network speaks TLS, or serve 127.0.0.1 alone"
            )
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise FileError(f"there is no file {file}: TLS needs a certificate and its key, in PEM")

    @property
    def url(self) -> str:
        """Where devices find it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C)."""
        import uvicorn

        _allow_many_connections()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        operator = token_file(self.folder / OPERATOR)
        token = None if self.open else token_file(self.folder / ENROLMENT)
        store = CampaignStore(self.database or self.folder / "server.sqlite")
        try:
            ledger = self.ledger or Ledger.default()
            application = Application(Coordinator(store, self.folder, ledger, token, self.pace), operator)
            config = uvicorn.Config(
                application,
                host=self.host,
                port=self.port,
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="on",
                access_log=False,
                log_config=None,
                timeout_keep_alive=KEPT_ALIVE,
                timeout_graceful_shutdown=5,
                backlog=4096,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                ssl_certfile=self.certificate,
                ssl_keyfile=self.key,
            )
            for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn ends well at both, and then raises them once more
                signal.signal(number, lambda *_: None)
            log.info("serving %s from %s", self.url, self.folder)
            uvicorn.Server(config).run()
        finally:
            store.close()


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _allow_many_connections() -> None:
    """A connection is an open file; systems allow a thousand unless they are asked."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if most == resource.RLIM_INFINITY else min(most, 65_536)
    if wanted > least:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
