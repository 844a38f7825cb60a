"""A campaign from its charge to its release, resumed where the server stopped; and the trust model that answers it."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hazemap.cellmap import CellMap
from hazemap.errors import HazemapError, InputError, LedgerError, StoreError
from hazemap.execution.release_assembly import released
from hazemap.federated.server.campaign_house import CampaignHouse
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import stored_exchanges
from hazemap.federated.server.networked_one_report import NetworkedOneReport, check_walk
from hazemap.federated.server.networked_secure_aggregation import DeviceTrustModel
from hazemap.federated.server.networked_shuffled import NetworkedShuffled
from hazemap.federated.server.networked_two_servers import NetworkedTwoServers, check_first_round
from hazemap.federated.server.privacy_statement import statement
from hazemap.federated.service.store import Write, instant
from hazemap.federated.trust.report_carriers import LOCAL, SECURE_SUM, ByOneReport, ByShuffler, ByTwoServers
from hazemap.privacy.budget import Budget
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import LedgerCharge
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement
from hazemap.queries.algorithm_session import Exchange, Session

NetworkedTrust = DeviceTrustModel | NetworkedTwoServers | NetworkedOneReport | NetworkedShuffled
"""A trust model of one campaign. An answer and its question are in the table `exchanges` when `answer` returns."""

WIRED: Mapping[str, Callable[[Campaign, CampaignHouse], NetworkedTrust]] = {
    SECURE_SUM: DeviceTrustModel,
    LOCAL: DeviceTrustModel,
    ByTwoServers.trust: NetworkedTwoServers,
    ByOneReport.trust: NetworkedOneReport,
    ByShuffler.trust: NetworkedShuffled,
}
"""A trust model's maker, by the trust's name."""


def networked(campaign: Campaign, house: CampaignHouse) -> NetworkedTrust:
    """The trust model of a campaign that was accepted."""
    return WIRED[campaign.trust](campaign, house)


def check_wired(campaign: Campaign, house: CampaignHouse) -> None:
    """`InputError` for a campaign that this coordinator cannot carry: before anything is paid."""
    if campaign.trust not in WIRED:
        raise InputError(
            f"this coordinator cannot carry a campaign by {campaign.trust!r} yet: take one of {', '.join(WIRED)}"
        )
    if campaign.carrier is not None:
        house.peers.check(campaign.carrier)
    if isinstance(campaign.carrier, ByTwoServers):
        check_first_round(campaign)
    if isinstance(campaign.carrier, ByOneReport):
        check_walk(campaign, campaign.carrier)


@dataclass(frozen=True)
class CampaignCharge:
    """A data set's page in the ledger, opened for one campaign whose name in the ledger nobody else's charge has.

    A page that was never charged gets `cap` with the charge.

    The charge is in the ledger before anything of the campaign is in the server's store. A server that is killed
    between the two finds the charge of its campaign when it is started again, and does not pay a second time.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hazemap.privacy.budget import PureDP
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.sqlite")
    ...     for _ in range(2):
    ...         CampaignCharge(ledger, "city", "campaign commuters 5f3a").charge(PureDP(1))
    ...     len(ledger.history("city"))
    1
    """

    ledger: Ledger
    dataset: str
    what: str
    cap: FirstCap | None = None

    def charge(self, price: Budget) -> None:
        """Pay, unless this campaign has; `CapExceeded` or `LedgerError`, and then it must not begin."""
        paid = self.record
        if paid is None:
            self.ledger.charge(self.dataset, price, self.what, DEVICE, cap=self.cap)
        elif paid.charge.price != price:
            raise LedgerError(f"the ledger says that {self.what!r} paid {paid.charge.price}, but it costs {price}")

    @property
    def record(self) -> LedgerCharge | None:
        """This campaign's charge, if it was made."""
        try:
            history = self.ledger.history(self.dataset)
        except InputError:  # a data set that the ledger does not know has paid nothing
            return None
        return next((record for record in history if record.charge.what == self.what), None)

    def released(self, statement: Statement, file: str) -> None:
        """Note what it was spent on, if that is not yet noted."""
        paid = self.record
        if paid is None:
            raise LedgerError(f"{self.what!r} ended without having paid, so its result must not be published")
        if not paid.released:
            self.ledger.released(paid.charge.id, statement, file)


log = logging.getLogger("hazemap.federated.server")

_END = "UPDATE campaigns SET state = ?, reason = ?, ended = ? WHERE name = ? AND state = 'running'"
_LOST = "UPDATE shards SET state = 'lost', sums = NULL WHERE campaign = ? AND state = 'open'"
_FORGET = "DELETE FROM events WHERE session IN (SELECT session FROM shards WHERE campaign = ?)"
_SECRETS = "UPDATE announcements SET secret = NULL WHERE campaign = ? AND secret IS NOT NULL"


@dataclass
class Worker:
    """Runs one campaign: it passes the algorithm's queries on to the devices, and their sums back.

    The charge is in the ledger before the first query is made; answers are stored before the algorithm sees them. So
    whenever the server is killed, the same algorithm and the same answers lead to the same next query.
    """

    devices: NetworkedTrust
    account: CampaignCharge
    file: Path
    session: Session[CellMap] | None = field(default=None, init=False)

    async def run(self) -> None:
        """To the end; the store says what became of it. A store or a ledger that cannot be used leaves it running."""
        name = self.devices.campaign.name
        try:
            await self._rounds()
            state, reason = "done", ""
        except (StoreError, LedgerError) as error:
            log.error("%s waits for the server to be started again: %s", name, error)
            raise
        except HazemapError as error:
            state, reason = "failed", str(error)
        except Exception as error:
            log.exception("%s: a bug in hazemap", name)
            state, reason = "failed", f"a bug in hazemap ({type(error).__name__}); the server's log says where"
        await self.end(state, reason)

    async def end(self, state: str, reason: str) -> None:
        """Note what became of it, and forget what was not opened."""
        name = self.devices.campaign.name
        await self.devices.store.write(
            Write(_END, (state, reason, instant(), name)),
            Write(_FORGET, (name,)),
            Write(_LOST, (name,)),
            *([Write(_SECRETS, (name,))] if state != "failed" else []),
        )
        log.info("%s: %s %s", name, state, reason)

    async def _rounds(self) -> None:
        devices, campaign = self.devices, self.devices.campaign
        stored = await asyncio.to_thread(self._transcript)
        devices.rounds = len(stored)
        session = await asyncio.to_thread(
            Session,
            campaign.algorithm,
            devices.prices(campaign.budget),
            campaign.budget,
            self.account,
            devices.answers,
            stored,
        )
        self.session = session
        while session.question:
            answer = await devices.answer(session.question, session.price)
            await asyncio.to_thread(session.receive, answer)
        await asyncio.to_thread(self._release)

    def _transcript(self) -> list[Exchange]:
        return stored_exchanges(self.devices.store, self.devices.campaign.name)

    def _release(self) -> None:
        """The file, whole; then a note in the ledger. Both may be there already, from before a crash."""
        session, campaign = self.session, self.devices.campaign
        if session is None or session.result is None:
            raise LedgerError("a campaign ended without a result, so nothing can be released")
        paid = self.account.record
        if paid and paid.released and self.file.exists():
            return
        said = statement(campaign)
        released(session.result.value, said, campaign.algorithm, session.transcript).save(self.file)
        self.account.released(said, str(self.file.absolute()))
