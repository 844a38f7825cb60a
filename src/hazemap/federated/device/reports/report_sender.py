"""From the announcement of a round to a report that other servers have: judge, charge, make, keep, send, note.

The order is that of all answers of a device. The charge, the report's bytes and the line of the log are on the disk in
one transaction before anything is sent, so after a crash the same bytes go out for the charge that stands. Who asks
again for the same batch gets the same bytes, for nothing; another batch is another report, and another charge. Who
asks for the same batch in other words, such as by other servers, gets nothing.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from hashlib import sha256
from time import monotonic

from hazemap.codec import MESSAGE, digest, loads
from hazemap.errors import CodecError, Refused
from hazemap.federated.device.account.activity_log import LogEntry, RecipeLogEntry
from hazemap.federated.device.account.device_account import DeviceAccount, MapRound, check_answer_time
from hazemap.federated.device.policy.consent_policy import Policy, carried_refusal
from hazemap.federated.device.policy.query_description import describe_query
from hazemap.federated.device.recipes.recipe_answer import Audience, RecipeAnswers
from hazemap.federated.device.reports.dap_report_upload import ReportConnections
from hazemap.federated.device.reports.report_routes import (
    AskCredentials,
    ReportCredentials,
    ReportRoute,
    RoundReportRoute,
    ShufflerRoute,
    refuse_credentials,
    report_route,
)
from hazemap.federated.device.server_task import ParsedTask, ServerTask
from hazemap.federated.device.store.answer_records import GRACE, KeptReport
from hazemap.federated.device.store.encrypted_store import CommitQueue, StoreWrite
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import CARRIED, ByShuffler, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import PRECISION, asked, batch_interval, recipe_batch, recipe_report

logger = logging.getLogger("hazemap.federated.device")

CHANGED = "this device has answered this round in other words, and its report is for those alone"
LEFT = "this device has left this round and does not come back"


@lru_cache(maxsize=4, typed=True)
def read_announcement(text: str) -> CarriedTask:
    """The announcement in a JSON text; the many devices of a process are sent the same one."""
    found: CarriedTask = loads(text, CARRIED, CarriedTask, MESSAGE)
    if sha256(text.encode()).hexdigest() != digest(found):
        raise CodecError("an announcement is written in one way: keys sorted, in ASCII, without spaces")
    return found


Held = Callable[[float], Awaitable[None]]
"""Waits until what was begun at this time (monotonic) may be sent."""


async def _at_once(_: float) -> None:
    """Where nobody looks at the time, as for people who are made up."""


@dataclass(frozen=True)
class _NewReport:
    """A new report: its bytes, the statements that charge it, and its line of the log."""

    parcel: bytes = field(repr=False)
    writes: tuple[StoreWrite, ...]
    line: LogEntry | RecipeLogEntry


@dataclass
class ReportSender:
    """One device's side of reports, with the connections of its process to those who carry them."""

    account: DeviceAccount
    connections: ReportConnections
    commits: CommitQueue
    made: Callable[[CarriedTask, Policy, ReportConnections, ReportCredentials], ReportRoute] = field(
        default=report_route
    )
    ask: AskCredentials = refuse_credentials

    def recipe_task(self, work: ServerTask) -> Task | None:
        """The recipe's task that a report would be made for: the public log is read before that."""
        return self.account.recipe_task(work.session, lambda: read_announcement(work.task or "").task)

    async def answered(
        self, work: ServerTask, now: datetime, seen: LogHead | None = None, held: Held = _at_once
    ) -> str | None:
        """None where the report is where it belongs; else why there is none, in words that may be told.

        `Unreachable` where that cannot be said yet: the announcement comes again. `seen` is what the device had seen of
        the public log before it was read. A report of events is `held` until a time that does not tell how long their
        query ran.
        """
        seen, kept = seen or self.account.seen(), self.account.reports.find(work.session)
        if self.account.sessions.over(work.session):
            return LEFT
        try:
            carried = self._read(work, now)
            if kept is not None and kept.answers != bytes.fromhex(digest(carried)):
                raise Refused(CHANGED)
            if kept is None and (reason := self._refusal(carried, seen)):
                raise Refused(reason)
            if kept is not None and not kept.parcel:
                return None  # it has arrived
            route = self._route(carried, work)
            if kept is None:
                kept, begun = await self._paid(work, carried, route, now, seen)
                if carried.task.recipe is not None:
                    await held(begun)
            await route.sent(kept.parcel)
        except Exception as error:
            return await self._refused(work, error, now, seen, kept)
        await self.commits.write(self._ended(work.session, kept, _arrived(carried)))
        return None

    def forsaken(self, now: datetime) -> tuple[StoreWrite, ...]:
        """The statements that delete the reports that no server took in time."""
        left = self.account.reports.forsaken(now)
        return tuple(write for kept, gone in left for write in (gone, self._became(kept, "made; no server took it")))

    def _ended(self, batch: bytes, kept: KeptReport, outcome: str) -> tuple[StoreWrite, ...]:
        """The statements that delete the bytes of a report, and note what became of it."""
        return self.account.reports.emptied(batch, kept), self._became(kept, outcome)

    def _became(self, kept: KeptReport, outcome: str) -> StoreWrite:
        log = self.account.log
        return log.changed(kept.number, log.line(kept.number).ended(outcome))

    def _refusal(self, carried: CarriedTask, seen: LogHead) -> str | None:
        return carried_refusal(self.account.policy, carried) or self.account.public_log.refusal(carried.task, seen)

    def _read(self, work: ServerTask, now: datetime) -> CarriedTask:
        if work.task is None:
            raise Refused("an announcement is a task")
        check_answer_time(work.until, now)
        carried = read_announcement(work.task)
        if carried.batch != work.session.hex():
            raise Refused("the announcement is of another batch than it says")
        return carried

    def _route(self, carried: CarriedTask, work: ServerTask) -> ReportRoute:
        """The route to those who carry the round. A shuffler's people are each told something of their own."""
        if isinstance(carried.carrier, ByShuffler):
            pinned = bytes.fromhex(self.account.enrolment.pinned or "")
            return ShufflerRoute(carried, self.account.policy, self.connections, work.message, pinned)
        if work.message:
            raise Refused("an announcement is a task, and nothing else")
        own = self.account.enrolment
        credentials = ReportCredentials(work.session, own.identity, bytes.fromhex(own.pinned or ""), self.ask)
        return self.made(carried, self.account.policy, self.connections, credentials)

    async def _paid(
        self, work: ServerTask, carried: CarriedTask, route: ReportRoute, now: datetime, seen: LogHead
    ) -> tuple[KeptReport, float]:
        """A new report, kept, and when it was begun (monotonic).

        Whatever can be refused is refused before rows or events are read.
        """
        account, task = self.account, carried.task
        reason = route.refusal() or account.terms.refusal(task, carried.carrier) or account.reports.full()
        if reason:
            raise Refused(reason)
        await route.ready()
        number, begun = account.log.next_number(), monotonic()
        made = (self._map_report if task.recipe is None else self._recipe_report)(carried, route, now)
        until = int(work.ends(now.timestamp())) + GRACE
        kept = KeptReport(number, until, bytes.fromhex(digest(carried)), made.parcel)
        logger.info("device %d reports to round %d of %s", account.device, task.round, task.campaign)
        await self.commits.write(
            (
                *account.terms.agreed(task, carried.carrier),
                *made.writes,
                account.reports.kept(work.session, kept),
                account.log.added(number, made.line.sending(len(made.parcel)).ended("made, and kept")),
                *(account.public_log.kept(seen) if task.recipe is not None else ()),
            )
        )
        return kept, begun

    def _map_report(self, carried: CarriedTask, route: ReportRoute, now: datetime) -> _NewReport:
        """A report of the device's rows."""
        task, rows = carried.task, self.account.rows(carried.task.campaign)
        asked = MapRound(task, bytes.fromhex(carried.batch), seen=task.randomiser is not None)
        coins = partial(self.account.coins, bytes.fromhex(digest(carried)))
        paid = self.account.paid(asked, now, lambda: route.parcel(rows, int(now.timestamp()), coins))
        parcel, words, trouble = paid.made
        words = f"{describe_query(task)}; {self.account.counted(words, trouble)}"
        entry = LogEntry(now, task.campaign, task.purpose, task.round, words)
        return _NewReport(parcel, paid.writes, entry.charged(paid.epsilon))

    def _recipe_report(self, carried: CarriedTask, route: ReportRoute, now: datetime) -> _NewReport:
        """A report of the device's events: checks 1 to 3, and then the query."""
        if not isinstance(route, RoundReportRoute) or not isinstance(carried.carrier, ByTwoServers):
            raise Refused("reports to recipes are summed by secure sums or by two servers")
        account, batch = self.account, recipe_batch(carried.task, carried.carrier)
        (_, law), most = asked(carried.task), recipe_report(carried.task, carried.carrier).max_weight
        recipes, name = RecipeAnswers(account.store, account.device, account.policy, account.coins), digest(carried)
        audience = Audience(bytes.fromhex(name), batch.minimum, batch.honest)
        weighed = recipes.weighed(carried.task, audience)
        if int(now.timestamp()) // PRECISION not in batch_interval(carried):
            raise Refused("the servers take no reports of this round by now")
        paid = account.paid(weighed.asked, now, lambda: recipes.bits(weighed, law, now, audience.name, most))
        coins = partial(account.coins, audience.name, b"parcel", paid.made.tobytes())
        parcel = route.sealed([paid.made.astype(bool).tolist()], int(now.timestamp()), coins)
        return _NewReport(parcel, paid.writes, weighed.answered(weighed.entry(now), paid.made, parcel))

    async def _refused(
        self, work: ServerTask, error: Exception, now: datetime, seen: LogHead, kept: KeptReport | None
    ) -> str:
        number = None if kept is None else kept.number
        read = lambda: ParsedTask(read_announcement(work.task or "").task)  # noqa: E731
        refusal = self.account.refused(work.session, error, now, read, number)
        logged = self.account.public_log.kept(seen) if self.recipe_task(work) is not None else ()
        gone = () if kept is None else (self.account.reports.emptied(work.session, kept),)
        await self.commits.write((*refusal.writes, *logged, *gone))
        return refusal.told


def _arrived(carried: CarriedTask) -> str:
    """What the log says of a report that is where it belongs; a map's line says the rest itself."""
    carrier = carried.carrier
    if carried.task.recipe is None or not isinstance(carrier, ByTwoServers):
        return "the servers have the report"
    return (
        f"{carrier.leader} and {carrier.helper} have a half each, unreadable alone, and open sums of "
        f"{carrier.minimum:,} reports or more"
    )
