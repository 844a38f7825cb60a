"""The server as a process: its folder, its tokens, its address."""

import logging
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import origin
from hazemap.federated.server.announced_rounds import Pace
from hazemap.federated.server.campaign_house import NO_PEERS, PeerServers
from hazemap.federated.server.campaign_store import CampaignStore
from hazemap.federated.server.coordinator import Coordinator
from hazemap.federated.server.device_enrolment import Admission, Challenges, attestation, server_identity
from hazemap.federated.server.http_routes import Application
from hazemap.federated.server.metrics import Metrics
from hazemap.federated.server.studies import RecipeJudge
from hazemap.federated.service.housekeeping import set_aside
from hazemap.federated.service.served_address import ServedAddress, checked_origins
from hazemap.federated.service.state_folder import OPERATOR, StateFolder
from hazemap.privacy.ledger import Ledger

log = logging.getLogger("hazemap.federated.server")

ENROLMENT, IDENTITY = "enrolment.token", "identity.key"
USUAL: Final = ServedAddress("127.0.0.1", 8470)
WAYS = ("token", "codes", "attestation", "open")
"""What lets a new device in, besides a code of one use."""
FIRST_NEEDED = (
    *("encodings.idna", "uvicorn.lifespan.on"),
    *("hazemap.spatial.pixel_kernels", "hazemap.releases.geoparquet", "pyarrow.parquet", "shapely"),
)
"""Modules that are otherwise loaded when the server listens, or when a campaign goes on and when it ends."""


@dataclass(frozen=True)
class ServerProcess:
    """How a server is reached, and where it keeps what it must not forget.

    `urls` are its names, as devices see them: they sign the one that they enrol at. `page_origins` are those of pages
    that are devices in browsers. `enrolment` is one of `WAYS`: besides codes of one use, the token in the folder,
    nothing more, the function `attestation` (`module:function`), or anybody. `InputError` for settings that would send
    tickets unencrypted.

    >>> from pathlib import Path
    >>> ServerProcess(StateFolder(Path("data"))).address.url
    'http://127.0.0.1:8470'
    """

    state: StateFolder
    address: ServedAddress = USUAL
    urls: tuple[str, ...] = ()
    enrolment: str = "token"
    attestation: str | None = None
    ticket_days: float = 90
    ledger: Ledger | None = None
    pace: Pace | None = None
    judge: RecipeJudge | None = None
    peers: PeerServers = NO_PEERS
    page_origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.address.check("tickets")
        if not self.urls and not self.address.alone:
            raise InputError(
                "devices sign the name of the server that they enrol at: give --url with the address that they use, "
                "such as https://maps.example"
            )
        for url in self.urls:
            origin(url)
        checked_origins(self.page_origins, (self.address.url, *self.urls))
        if self.enrolment not in WAYS or (self.enrolment == "attestation") != (self.attestation is not None):
            raise InputError(
                f"--enrolment is one of {', '.join(WAYS)}, and --attestation names the function of 'attestation'; "
                f"found {self.enrolment!r:.20} with {'a' if self.attestation else 'no'} function"
            )

    def admission(self) -> Admission:
        """Who may enrol."""
        token = self.state.secret(ENROLMENT) if self.enrolment == "token" else None
        if token and not self.address.alone:
            log.warning(
                "%s lets whoever knows it enrol as many devices as they like: `--enrolment codes` lets each person "
                "enrol one (see `hazemap server codes`)",
                self.state.path / ENROLMENT,
            )
        check = attestation(self.attestation) if self.attestation else None
        return Admission(token, check, self.enrolment == "open", self.ticket_days)

    def run(self) -> None:
        """Serve until the process is told to end (SIGTERM, Ctrl-C).

        `DatabaseInUse` where another server owns the database, unless this one stands by; `StoreError` from one on
        standby that can write no more: what is started again, or stands by, goes on.
        """
        limits, metrics = self.address.limits(), Metrics()
        operator, identity = self.state.secret(OPERATOR), server_identity(self.state.secret(IDENTITY))
        admission = self.admission()
        challenges = Challenges(identity, tuple(origin(url) for url in self.urls))
        with self.state.opened("server.sqlite", CampaignStore, _ready) as store:
            coordinator = Coordinator(
                store=store,
                folder=self.state.path,
                ledger=self.ledger or Ledger.default(),
                admission=admission,
                pace=self.pace,
                challenges=challenges,
                metrics=metrics,
                judge=self.judge,
                peers=self.peers,
            )
            application = Application(coordinator, operator, limits, checked_origins(self.page_origins))
            log.info("serving %s from %s, as %s", self.address.url, self.state.path, identity.public.hex()[:16])
            self.address.serve(application, limits, metrics, store)


def _ready() -> None:
    """Load what the first requests and campaigns need, so that Python has nothing to load, nor garbage to look for."""
    for module in FIRST_NEEDED:
        import_module(module)
    set_aside()
