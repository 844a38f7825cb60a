"""The server as a process: its folder, its tokens, its address."""

import logging
import resource
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path

from hazemap.errors import InputError
from hazemap.privacy.ledger import Ledger
from hazemap.protocols.secure_aggregation.enrolment_proof import origin
from hazemap.server.attestation import attestation
from hazemap.server.campaign_store import CampaignStore
from hazemap.server.coordinator import Coordinator
from hazemap.server.device_enrolment import Admission
from hazemap.server.enrolment_challenges import Challenges, server_identity
from hazemap.server.http_routes import Application
from hazemap.server.metrics import Metrics
from hazemap.server.page_origins import PageOrigins
from hazemap.server.peer_servers import NO_PEERS, PeerServers
from hazemap.server.polling_interval import Pace
from hazemap.server.studies import RecipeJudge
from hazemap.service.access_tokens import token_file
from hazemap.service.databases import database
from hazemap.service.http_limits import HttpLimits
from hazemap.service.served_address import ServedAddress, loopback
from hazemap.service.settled_memory import set_aside
from hazemap.service.standby import Replaceable, when_free

log = logging.getLogger("hazemap.server")

OPERATOR, ENROLMENT, IDENTITY = "operator.token", "enrolment.token", "identity.key"
WAYS = ("token", "codes", "attestation", "open")
"""What lets a new device in, besides a code of one use."""
FIRST_NEEDED = (
    *("encodings.idna", "uvicorn.lifespan.on"),
    *("hazemap.spatial.pixel_kernels", "hazemap.releases.geoparquet", "pyarrow.parquet", "shapely"),
)
"""Modules that are otherwise loaded when the server listens, or when a campaign goes on and when it ends."""
SPARE = 256
"""Open files that are kept for the database and everything else that is not a connection."""


@dataclass(frozen=True)
class ServerProcess:
    """How a server is reached, and where it keeps what it must not forget.

    Without a certificate only this machine may reach it, unless a proxy before it speaks TLS. `urls` are its names, as
    devices see them: they sign the one that they enrol at. `page_origins` are those of pages that are devices in
    browsers. `enrolment` is one of `WAYS`: besides codes of one use, the token in the folder, nothing more, the
    function `attestation` (`module:function`), or anybody. What a proxy says of addresses counts if it is one of
    `trusted_proxies`. One on `standby` waits until the server that owns the database has ended, and ends itself when it
    can no longer write. `InputError` for settings that would send tickets unencrypted.

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
    urls: tuple[str, ...] = ()
    enrolment: str = "token"
    attestation: str | None = None
    ticket_days: float = 90
    trusted_proxies: tuple[str, ...] = ()
    limits: HttpLimits | None = None
    ledger: Ledger | None = None
    pace: Pace | None = None
    judge: RecipeJudge | None = None
    peers: PeerServers = NO_PEERS
    page_origins: tuple[str, ...] = ()
    standby: bool = False

    def __post_init__(self) -> None:
        self._address.check("tickets")
        if not self.urls and not self.alone:
            raise InputError(
                "devices sign the name of the server that they enrol at: give --url with the address that they use, "
                "such as https://maps.example"
            )
        for url in self.urls:
            origin(url)
        PageOrigins.of(self.page_origins, (self.url, *self.urls))
        if self.enrolment not in WAYS or (self.enrolment == "attestation") != (self.attestation is not None):
            raise InputError(
                f"--enrolment is one of {', '.join(WAYS)}, and --attestation names the function of 'attestation'; "
                f"found {self.enrolment!r:.20} with {'a' if self.attestation else 'no'} function"
            )
        if self.trusted_proxies and not self.behind_proxy:
            raise InputError("--trusted-proxy names what stands before a server that is --behind-proxy: say both")
        for proxy in self.trusted_proxies:
            _network(proxy)

    @property
    def url(self) -> str:
        """Where devices find it."""
        return self._address.url

    @property
    def _address(self) -> ServedAddress:
        return ServedAddress(self.host, self.port, self.certificate, self.key, self.behind_proxy)

    @property
    def alone(self) -> bool:
        """Whether only this machine can reach it."""
        return loopback(self.host) and not self.behind_proxy

    def admission(self) -> Admission:
        """Who may enrol."""
        token = token_file(self.folder / ENROLMENT) if self.enrolment == "token" else None
        if token and not self.alone:
            log.warning(
                "%s lets whoever knows it enrol as many devices as they like: `--enrolment codes` lets each person "
                "enrol one (see `hazemap server codes`)",
                self.folder / ENROLMENT,
            )
        check = attestation(self.attestation) if self.attestation else None
        return Admission(token, check, self.enrolment == "open", self.ticket_days)

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C).

        `InUse` where another server owns the database, unless this one stands by; `StoreError` from one on standby that
        can write no more: what is started again, or stands by, goes on.
        """
        limits = self._limits(_allow_many_connections())
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        operator = token_file(self.folder / OPERATOR)
        identity = server_identity(token_file(self.folder / IDENTITY))
        admission = self.admission()
        challenges = Challenges(identity, tuple(origin(url) for url in self.urls))
        store, metrics = self._store(), Metrics()
        try:
            ledger = self.ledger or Ledger.default()
            coordinator = Coordinator(
                store=store,
                folder=self.folder,
                ledger=ledger,
                admission=admission,
                pace=self.pace,
                challenges=challenges,
                metrics=metrics,
                judge=self.judge,
                peers=self.peers,
            )
            application = Application(coordinator, operator, limits, PageOrigins.of(self.page_origins))
            log.info("serving %s from %s, as %s", self.url, self.folder, identity.public.hex()[:16])
            with Replaceable(store) if self.standby else nullcontext():
                self._address.serve(application, limits, metrics, store, self.trusted_proxies)
        finally:
            store.close()

    def _store(self) -> CampaignStore:
        place = self.database or self.folder / "server.sqlite"
        if not self.standby:
            return CampaignStore(place)
        return when_free(lambda patience: CampaignStore(database(place, patience)), _ready)

    def _limits(self, files: int) -> HttpLimits:
        """The limits that were given, within what the system lets this process open."""
        limits = self.limits or (HttpLimits.here() if self.alone else HttpLimits())
        return replace(limits, connections=max(1, min(limits.connections, files - SPARE)))


def _ready() -> None:
    """Load what the first requests and campaigns need, so that Python has nothing to load, nor garbage to look for."""
    for module in FIRST_NEEDED:
        import_module(module)
    set_aside()


def _network(proxy: str) -> None:
    try:
        ip_network(proxy, strict=False)
    except ValueError:
        raise InputError(
            f"--trusted-proxy is an address or a network such as 10.0.0.0/8; found {proxy!r:.60}"
        ) from None


def _allow_many_connections() -> int:
    """A connection is an open file; systems allow a thousand unless they are asked. How many may be open."""
    least, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if most == resource.RLIM_INFINITY else min(most, 65_536)
    if wanted > least:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
