"""The server's heart, without HTTP: enrolled devices, running campaigns, and their store."""

import asyncio
import logging
import os
import sys
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from hazemap.cellmap import CellMap
from hazemap.codec import dumps
from hazemap.errors import BudgetError, InputError, Refused
from hazemap.federated.protocols.secure_aggregation.graph_degree import degree_and_threshold
from hazemap.federated.server import campaign_status as status
from hazemap.federated.server.announced_rounds import AnnouncedRounds, Pace
from hazemap.federated.server.campaign_house import NO_PEERS, CampaignHouse, PeerServers
from hazemap.federated.server.campaign_spec import Campaign, Deadlines, campaign_from
from hazemap.federated.server.campaign_status import so_far
from hazemap.federated.server.campaign_store import CampaignStore, stored_exchanges
from hazemap.federated.server.campaign_worker import CampaignCharge, Worker, check_wired, networked
from hazemap.federated.server.collected_map import release_in_part
from hazemap.federated.server.device_enrolment import Admission, Challenges, Device, EnrolledDevices
from hazemap.federated.server.metrics import Metrics
from hazemap.federated.server.roles import AuditLog, Principal
from hazemap.federated.server.secure_sum_plan import SecureSumPlan, ShardOutcome, SumEvent
from hazemap.federated.server.shard import RunningShards
from hazemap.federated.server.studies import RecipeJudge, Studies
from hazemap.federated.service.store import Write, instant
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.signing_identities import Identity
from hazemap.releases import Release

log = logging.getLogger("hazemap.federated.server")

SWITCH = 0.001
"""Seconds after which a thread that computes lets another one go on: devices do not wait for an unmasking."""

RELEASED = ("done", "partial")
"""States in which a campaign has a file."""

_RUNNING = "SELECT name, id, text FROM campaigns WHERE state = 'running' ORDER BY created, name"
_ONE = "SELECT text, state, reason, created, ended FROM campaigns WHERE name = ? AND state <> 'study'"
_TAKEN = "SELECT state FROM campaigns WHERE name = ?"
_ALL = "SELECT name, state, reason, created, ended FROM campaigns WHERE state <> 'study' ORDER BY created, name"
_ID = "SELECT id FROM campaigns WHERE name = ?"
_AGAIN = "UPDATE campaigns SET state = 'running', reason = '', ended = NULL WHERE name = ? AND state = 'failed'"
_SET_ASIDE = (
    "UPDATE shards SET state = 'left' WHERE campaign = ? AND state = 'lost' AND round > "
    "(SELECT coalesce(max(round), 0) FROM exchanges WHERE exchanges.campaign = shards.campaign)"
)
_PARTIAL = "UPDATE campaigns SET state = 'partial', reason = ? WHERE name = ? AND state IN ('failed', 'stopped')"
_OWN = "INSERT INTO campaign_owners (campaign, owner, epsilon) VALUES (?, ?, ?)"
_OWNED = (
    "SELECT campaign_owners.epsilon, campaigns.state FROM campaign_owners JOIN campaigns "
    "ON campaigns.name = campaign_owners.campaign WHERE campaign_owners.owner = ?"
)
_NEW = "INSERT INTO campaigns (name, id, text, state, reason, created) VALUES (?, ?, ?, 'running', '', ?)"


class Unknown(InputError):
    """A campaign that the server does not know."""


class Taken(InputError):
    """A campaign that cannot be begun or stopped in this state."""


class OverLimit(BudgetError):
    """A campaign that costs more than an analyst may spend."""


class CountedShards(RunningShards):
    """The running shards, which are counted when they end."""

    def __init__(self, store: CampaignStore, enrolled: EnrolledDevices, pool: Executor, metrics: Metrics) -> None:
        super().__init__(store, enrolled, pool)
        self._metrics = metrics

    async def run(
        self, plan: SecureSumPlan, deadlines: Deadlines, events: Iterable[SumEvent] = (), keep: bool = False
    ) -> ShardOutcome:
        """Run a shard to its end."""
        outcome = await super().run(plan, deadlines, events, keep)
        summary = outcome.summary
        self._metrics.summed(outcome.sums is not None, summary.reason, summary.refusals)
        return outcome


@dataclass
class _Running:
    worker: Worker
    task: "asyncio.Task[None]"


class Coordinator:
    """Everything the server does, for one folder: campaigns go on where they were when it is started again."""

    def __init__(
        self,
        store: CampaignStore,
        folder: Path,
        ledger: Ledger,
        admission: Admission,
        pace: Pace | None = None,
        challenges: Challenges | None = None,
        metrics: Metrics | None = None,
        judge: RecipeJudge | None = None,
        peers: PeerServers = NO_PEERS,
    ) -> None:
        self.store, self.folder, self.ledger = store, folder, ledger
        self.pace = pace or Pace()
        self.enrolled = EnrolledDevices(store, admission)
        self.challenges = challenges or Challenges(Identity.create())
        self.audit, self.metrics = AuditLog(store), metrics or Metrics()
        self.pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="shards")
        self.seating = CountedShards(store, self.enrolled, self.pool, self.metrics)
        self.announcing = AnnouncedRounds(store)
        self.house = CampaignHouse(
            store=store,
            enrolled=self.enrolled,
            seating=self.seating,
            pool=self.pool,
            pace=self.pace,
            announcing=self.announcing,
            peers=peers,
            identity=self.challenges.server,
        )
        self._ordering = asyncio.Lock()  # of campaigns and studies together: an analyst has one limit for both
        self.studies = Studies(self.house, ledger, self.metrics, judge, self._ordering)
        self._campaigns: dict[str, _Running] = {}
        self._beginning: set[str] = set()

    @property
    def asking(self) -> int:
        """How many campaigns are running."""
        return len(self._campaigns)

    async def start(self) -> None:
        """Go on with every campaign that was running."""
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH))
        for name, identifier, text in self.store.read(_RUNNING):
            log.info("%s goes on", name)
            self._run(campaign_from(text), identifier)
        await self.studies.start()

    async def stop(self) -> None:
        """Leave everything as it is stored; nothing is ended."""
        await self.studies.stop()
        running = list(self._campaigns.values())
        for each in running:
            each.task.cancel()
        await asyncio.gather(*(each.task for each in running), return_exceptions=True)
        self.pool.shutdown()

    async def enrol(self, fields: dict[str, str]) -> tuple[Device, str, str]:
        """Enrol the device of such a message: the device, its ticket, and whether it is `new` or `renewed`.

        `Stale` or `OtherServer` where it does not answer a challenge of this server's, `Refused` without a proof.
        """
        identity, nonce, signature = (bytes.fromhex(fields[name]) for name in ("identity", "challenge", "signature"))
        if not self.challenges.take(fields["origin"], identity, nonce, fields["token"], signature):
            raise Refused("the signature does not prove that the device holds the key of its identity")
        outcome = "renewed" if self.enrolled.known(identity) else "new"
        return *await self.enrolled.enrol(identity, fields["token"], nonce), outcome

    async def begin(self, campaign: Campaign, who: Principal) -> None:
        """Begin a campaign: on the disk when this returns. Raises what is wrong with it, and then nothing is paid."""
        async with self._ordering:
            await asyncio.to_thread(self._within, who, campaign)
            await self._begin(campaign, who)

    async def _begin(self, campaign: Campaign, who: Principal) -> None:
        await asyncio.to_thread(self._check, campaign)
        identifier = os.urandom(8).hex()
        if campaign.name in self._beginning:
            raise Taken(f"a campaign {campaign.name!r} is being begun by somebody else")
        self._beginning.add(campaign.name)
        owner = Write(_OWN, (campaign.name, who.name, str(campaign.budget.epsilon)))
        await self.store.write(Write(_NEW, (campaign.name, identifier, dumps(campaign), instant())), owner)
        log.info("%s begins: %s of %r", campaign.name, campaign.budget, campaign.dataset)
        self._run(campaign, identifier)

    def _within(self, who: Principal, campaign: Campaign) -> None:
        """Raise where an analyst would leave their limits."""
        if who.epsilon is None or who.campaigns is None:
            return
        rows = self.store.read(_OWNED, who.name)
        left = who.epsilon - sum((Fraction(epsilon) for epsilon, _ in rows), Fraction(0))
        if campaign.budget.epsilon > left:
            raise OverLimit(
                f"this campaign costs ε = {campaign.budget.epsilon}, but the campaigns of {who.name} may cost {left} "
                "more: ask the operator for a token with a higher limit"
            )
        if sum(state == "running" for _, state in rows) >= who.campaigns:
            raise Taken(f"{who.name} may run {who.campaigns} campaigns at a time: wait until one has ended")

    def _check(self, campaign: Campaign) -> None:
        """Raise what stands against a campaign, before anything is paid."""
        if self.store.read(_TAKEN, campaign.name):
            raise Taken(f"there is a campaign or a study {campaign.name!r} already: each has a name of its own")
        cohort = campaign.cohort
        sizes = set[int]() if campaign.carrier else {min(cohort.shards), max(cohort.shards)}
        for size in sizes:
            degree_and_threshold(size, cohort.corrupt, cohort.dropout, cohort.mode)
        check_wired(campaign, self.house)
        usual = FirstCap.usual(campaign.budget)
        foreseen = self.ledger.check(campaign.dataset, campaign.budget, DEVICE, cap=usual)
        if foreseen.cap:
            log.warning("%s: %s", campaign.name, foreseen.cap.words(campaign.dataset, options=False))

    async def resume(self, name: str) -> None:
        """Go on with a campaign that failed: its answers are kept, and the round that was not opened is asked again.

        The charge is the one that was made. What was asked before and not opened is set aside: devices that sent a
        vector pay again, and never more than the campaign said.
        """
        campaign, state, *_ = await asyncio.to_thread(self._row, name)
        if state != "failed" or name in self._campaigns:
            raise Taken(f"the campaign {name!r} is {state}: only one that failed can be resumed")
        [(identifier,)] = await asyncio.to_thread(self.store.read, _ID, name)
        paid = await asyncio.to_thread(lambda: self._account(campaign, identifier).record)
        if paid is not None and paid.released:  # the server was killed while it released a part
            raise Taken(f"a part of the campaign {name!r} is released already: finish that with release-partial")
        await self.store.write(Write(_AGAIN, (name,)), Write(_SET_ASIDE, (name,)))
        log.info("%s is resumed", name)
        if name not in self._campaigns:
            self._run(campaign, identifier)

    async def release_in_part(self, name: str) -> None:
        """Publish what was answered of a campaign that failed or was stopped; it is over then."""
        campaign, state, reason, *_ = await asyncio.to_thread(self._row, name)
        if state not in ("failed", "stopped"):
            raise Taken(f"the campaign {name!r} is {state}: only one that failed or was stopped is released in part")
        [(identifier,)] = await asyncio.to_thread(self.store.read, _ID, name)
        account = self._account(campaign, identifier)
        exchanges = await asyncio.to_thread(stored_exchanges, self.store, name)
        rounds = await asyncio.to_thread(release_in_part, campaign, account, exchanges, reason, self.file(name))
        why = f"released in part, after {rounds} answered rounds; {reason}"
        await self.store.write(Write(_PARTIAL, (why, name)))
        log.info("%s: %s", name, why)

    async def end(self, name: str) -> None:
        """Stop a campaign for good: what it has paid stays paid, and nothing is released."""
        running = self._campaigns.get(name)
        if running is None:
            await asyncio.to_thread(self._row, name)
            raise Taken(f"the campaign {name!r} is not running, so it cannot be stopped")
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)
        await running.worker.end("stopped", "stopped by the operator")

    def _run(self, campaign: Campaign, identifier: str) -> None:
        worker = Worker(networked(campaign, self.house), self._account(campaign, identifier), self.file(campaign.name))
        task = asyncio.get_running_loop().create_task(worker.run(), name=campaign.name)
        self._campaigns[campaign.name] = _Running(worker, task)
        task.add_done_callback(lambda done: self._ended(campaign.name, done))

    def _account(self, campaign: Campaign, identifier: str) -> CampaignCharge:
        usual = FirstCap.usual(campaign.budget)
        return CampaignCharge(self.ledger, campaign.dataset, f"campaign {campaign.name} {identifier}", usual)

    def _ended(self, name: str, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception():
            return  # the store or the ledger cannot be used: the campaign is stuck, and its status says so
        del self._campaigns[name]

    def file(self, name: str) -> Path:
        """Where the release of a campaign is, or will be."""
        folder = self.folder / "releases"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / f"{name}.parquet"

    def all(self) -> list[dict[str, Any]]:
        """Every campaign, the oldest first."""
        names = ("name", "state", "reason", "created", "ended")
        return [dict(zip(names, row, strict=True)) for row in self.store.read(_ALL)]

    def status(self, name: str) -> dict[str, Any]:
        """All about one campaign."""
        campaign, state, reason, created, ended = self._row(name)
        running = self._campaigns.get(name)
        told = status.rounds(self.store, campaign)
        stuck = running and running.task.done() and running.task.exception()
        question = running.worker.session.question if running and running.worker.session else None
        return {
            **status.facts(campaign),
            "state": state,
            "reason": str(stuck) if stuck else reason,
            "created": created,
            "ended": ended,
            "spent": status.spent(told),
            "asking": question.encoder.size if question is not None and hasattr(question, "encoder") else None,
            "rounds": told,
            "running": status.running(s for s in list(self.seating.running.values()) if s.plan.campaign == name),
            "missing": running.worker.devices.missing if running else 0,
            "devices": self.devices(),
        }

    def devices(self) -> dict[str, int]:
        """How many are enrolled, and how many were heard of lately."""
        recent = self.enrolled.recent(self.pace.recent(len(self.enrolled)))
        return {"enrolled": len(self.enrolled), "recent": len(recent)}

    def gauges(self) -> dict[str, tuple[str, float]]:
        """What is measured at this moment, for `Metrics.text`."""
        devices = self.devices()
        return {
            "devices_enrolled": ("Devices that are enrolled and not revoked.", devices["enrolled"]),
            "devices_recent": ("Devices that were heard of lately.", devices["recent"]),
            "campaigns_running": ("Campaigns that are running.", self.asking),
            "study_rounds_running": ("Rounds of studies that are running.", self.studies.asking),
            "sums_running": ("Secure sums that are running.", len(self.seating.running)),
            "audit_entries": ("Entries of the audit log.", self.audit.entries),
            "recipe_log_entries": ("Entries of the public log of recipes.", self.studies.log.entries),
        }

    def map(self, name: str) -> CellMap:
        """The map so far, or the one that was released. `InputError` where there is none."""
        _, state, *_ = self._row(name)
        running = self._campaigns.get(name)
        if running and running.worker.session:
            return so_far(running.worker.session.transcript)
        if state not in RELEASED:
            raise InputError(f"the campaign {name!r} is {state}: it has no map")
        return Release.open(self.file(name)).map

    def release(self, name: str) -> Path:
        """The file of a campaign that is done, or was released in part."""
        _, state, reason, *_ = self._row(name)
        if state not in RELEASED:
            raise Taken(f"the campaign {name!r} is {state}{f' ({reason})' if reason else ''}: it has no release")
        return self.file(name)

    def _row(self, name: str) -> tuple[Campaign, str, str, str, str | None]:
        rows = self.store.read(_ONE, name) if name.isprintable() else []  # PostgreSQL takes no NUL in a text
        if not rows:
            raise Unknown(f"the server knows no campaign {name!r}")
        [(text, state, reason, created, ended)] = rows
        return campaign_from(text), state, reason, created, ended
