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
from functools import lru_cache
from hashlib import sha256
from time import monotonic

from hazemap.codec import MESSAGE, digest, loads
from hazemap.device.account_clock import AccountClock
from hazemap.device.activity_log import ActivityLog, LogEntry
from hazemap.device.campaign_terms import CampaignTerms
from hazemap.device.carried_policy import carried_refusal
from hazemap.device.carrier_lines import CarrierLine, carrier_line
from hazemap.device.consent_policy import Policy
from hazemap.device.encrypted_store import Commits, EncryptedStore, Write
from hazemap.device.enrolment import Enrolment
from hazemap.device.printable_text import one_line
from hazemap.device.privacy_account import PrivacyAccount
from hazemap.device.public_recipe_log import PublicRecipeLog
from hazemap.device.query_description import described
from hazemap.device.recipe_account import RecipeAccount
from hazemap.device.recipe_answer import Audience, RecipeAnswers
from hazemap.device.recipe_log_entry import RecipeLogEntry
from hazemap.device.recipe_log_heads import RecipeLogHeads
from hazemap.device.report_lines import ReportLines
from hazemap.device.report_records import ReportRecords
from hazemap.device.round_report_line import RoundReportLine
from hazemap.device.row_store import Rows
from hazemap.device.seen_recipe_log import SeenRecipeLog
from hazemap.device.server_task import ReadTask, ServerTask
from hazemap.device.session_records import Sessions
from hazemap.device.shipped_policies import ShippedPolicies
from hazemap.device.shuffled_line import ShuffledLine
from hazemap.device.task_handler import CANNOT, CLOCKS, NOTHING_LEFT
from hazemap.device.unanswered_line import unanswered
from hazemap.errors import FileError, HazemapError, Refused, Unreachable
from hazemap.privacy.random_stream import Stream
from hazemap.protocols.chained_log import LogHead
from hazemap.trust.carried_tasks import CARRIED, CarriedTask
from hazemap.trust.device_tasks import Task
from hazemap.trust.report_carriers import ByShuffler, ByTwoServers
from hazemap.trust.two_server_recipes import asked, recipe_batch, recipe_report
from hazemap.trust.two_server_tasks import PRECISION, batch_interval

logger = logging.getLogger("hazemap.device")

NUMBER, WORDS = 8, 32
"""Bytes before a kept report: the number of its line in the log, and the digest of what it answers."""
CHANGED = "this device has answered this round in other words, and its report is for those alone"
LEFT = "this device has left this round and does not come back"


@lru_cache(maxsize=4, typed=True)
def carried_task(text: str) -> CarriedTask:
    """The announcement in a JSON text; the many devices of a process are sent the same one."""
    found: CarriedTask = loads(text, CARRIED, CarriedTask, MESSAGE)
    return found


Held = Callable[[float], Awaitable[None]]
"""Waits until what was begun at this time (monotonic) may be sent."""


async def _at_once(_: float) -> None:
    """Where nobody looks at the time, as for people who are made up."""


class _Spent(Refused):
    """A reason that names what other campaigns were told: for the person's own log, not for a server."""


@dataclass(frozen=True)
class _Made:
    """A new report: its bytes, the statement that charges it, and its line of the log."""

    parcel: bytes = field(repr=False)
    charge: Write
    line: LogEntry | RecipeLogEntry


@dataclass
class CarriedAnswers:
    """One device at its store, with the lines of its process to those who carry reports."""

    store: EncryptedStore
    device: int
    enrolment: Enrolment
    policy: Policy
    stream: Stream
    lines: ReportLines
    commits: Commits
    public_log: PublicRecipeLog = field(default_factory=PublicRecipeLog)
    made: Callable[[CarriedTask, Policy, ReportLines], CarrierLine] = field(default=carrier_line)

    def __post_init__(self) -> None:
        self._records, self._sessions, self._log, self._account, self._terms = (
            ReportRecords(self.store, self.device),
            Sessions(self.store, self.device),
            ActivityLog(self.store, self.device),
            PrivacyAccount(self.store, self.device),
            CampaignTerms(self.store, self.device),
        )
        heads = RecipeLogHeads(self.store, self.device)
        self._public = SeenRecipeLog(heads, self.enrolment.server or "", self.public_log)

    def recipe_task(self, work: ServerTask) -> Task | None:
        """The recipe's task that a report would be made for: the public log is read before that."""
        try:
            task = carried_task(work.task or "").task
        except Exception:  # `answered` says what is wrong with it
            return None
        new = task.recipe is not None and self._records.find(_key(work)) is None
        return task if new and not self._sessions.over(work.session) else None

    def seen(self) -> LogHead:
        """The last entry of its server's public log that the device has seen, by its disk."""
        return self._public.seen()

    async def answered(
        self, work: ServerTask, now: datetime, seen: LogHead | None = None, held: Held = _at_once
    ) -> str | None:
        """None where the report is where it belongs; else why there is none, in words that may be told.

        `Unreachable` where that cannot be said yet: the announcement comes again. `seen` is what the device had seen of
        the public log before it was read. A report of events is `held` until a time that does not tell how long their
        query ran.
        """
        key, seen = _key(work), seen or self.seen()
        if self._sessions.over(work.session):
            return LEFT
        try:
            carried, kept = self._read(work, now), self._records.find(key)
            if kept is not None and kept[NUMBER : NUMBER + WORDS] != bytes.fromhex(digest(carried)):
                raise Refused(CHANGED)
            if kept is None and (reason := self._refusal(carried, seen)):
                raise Refused(reason)
            line = self._line(carried, work)
            if kept is None:
                kept, begun = await self._paid(work, carried, line, now, seen)
                if carried.task.recipe is not None:
                    await held(begun)
            await line.sent(kept[NUMBER + WORDS :])
        except (FileError, Unreachable):
            raise  # the store's trouble, or the network's
        except _Spent as error:
            return await self._refused(work, str(error), now, NOTHING_LEFT, seen)
        except HazemapError as error:
            return await self._refused(work, str(error), now, str(error), seen)
        except Exception as error:  # no message may stop a device
            logger.exception("device %d: an announcement that it cannot deal with", self.device)
            return await self._refused(work, f"{CANNOT}: {type(error).__name__}", now, CANNOT, seen)
        await self._noted(kept, _arrived(carried))
        return None

    def _refusal(self, carried: CarriedTask, seen: LogHead) -> str | None:
        return carried_refusal(self.policy, carried) or self._public.refusal(carried.task, seen)

    def _read(self, work: ServerTask, now: datetime) -> CarriedTask:
        if work.task is None:
            raise Refused("an announcement is a task")
        if not now.timestamp() - work.until <= CLOCKS:
            raise Refused("the time for this report is over: if not, the device's clock or the server's is wrong")
        carried = carried_task(work.task)
        if carried.batch != work.session.hex():
            raise Refused("the announcement is of another batch than it says")
        return carried

    def _line(self, carried: CarriedTask, work: ServerTask) -> CarrierLine:
        """The line to those who carry the round. A shuffler's people are each told something of their own."""
        if isinstance(carried.carrier, ByShuffler):
            pinned = bytes.fromhex(self.enrolment.pinned or "")
            return ShuffledLine(carried, self.policy, self.lines, work.message, pinned)
        if work.message:
            raise Refused("an announcement is a task, and nothing else")
        return self.made(carried, self.policy, self.lines)

    async def _paid(
        self, work: ServerTask, carried: CarriedTask, line: CarrierLine, now: datetime, seen: LogHead
    ) -> tuple[bytes, float]:
        """The kept bytes of a new report, and when it was begun (monotonic).

        Whatever can be refused is refused before rows or events are read.
        """
        task = carried.task
        reason = line.refusal() or self._terms.refusal(task, carried.carrier)
        if reason:
            raise Refused(reason)
        await line.ready()
        paid_as, number = self._account.next_number(), self._log.next_number()
        paid_at, begun = AccountClock(self.store).reading(now), monotonic()
        making = self._map_report if task.recipe is None else self._recipe_report
        made = making(carried, line, now, paid_at.now, paid_as)
        kept = number.to_bytes(NUMBER, "big") + bytes.fromhex(digest(carried)) + made.parcel
        logger.info("device %d reports to round %d of %s", self.device, task.round, task.campaign)
        await self.commits.write(
            (
                *self._terms.agreed(task, carried.carrier),
                made.charge,
                *paid_at.writes,
                self._records.kept(_key(work), kept),
                self._log.added(number, made.line.sending(len(made.parcel)).ended("made, and kept")),
                *(self._public.kept(seen) if task.recipe is not None else ()),
            )
        )
        return kept, begun

    def _map_report(
        self, carried: CarriedTask, line: CarrierLine, now: datetime, paid_at: datetime, paid_as: int
    ) -> _Made:
        """A report of the device's rows."""
        task = carried.task
        self._can_pay(carried, paid_at)
        charge, price = (
            self._account.charge(task, bytes.fromhex(carried.batch), paid_at, paid_as, _seen(task)),
            self._account.price(task),
        )
        own = Rows(self.store, self.device)
        parcel, said, trouble = line.parcel(
            lambda: own.table(self.enrolment.sampling, task.campaign), int(now.timestamp()), self.stream
        )
        if trouble is not None:
            logger.warning("device %d reports as if it had no rows: counting them failed (%s)", self.device, trouble)
            said = f"your rows could not be counted ({trouble}), so the report is that of somebody without rows"
        entry = LogEntry(now, task.campaign, task.purpose, task.round, str(described(task)))
        return _Made(parcel, charge, entry.charged(price, f"{entry.question}; {said}"))

    def _recipe_report(
        self, carried: CarriedTask, line: CarrierLine, now: datetime, paid_at: datetime, paid_as: int
    ) -> _Made:
        """A report of the device's events: checks 1 to 3, and then the query."""
        if not isinstance(line, RoundReportLine) or not isinstance(carried.carrier, ByTwoServers):
            raise Refused("reports to recipes are summed by secure sums or by two servers")
        task, batch = carried.task, recipe_batch(carried.task, carried.carrier)
        (recipe, law), most = asked(task), recipe_report(task, carried.carrier).max_weight
        recipes = RecipeAnswers(self.store, self.device, self.policy, self.stream)
        audience = Audience(bytes.fromhex(digest(carried)), batch.minimum, batch.honest)
        weighed = recipes.weighed(task, audience)
        if refused := recipes.refusal(weighed, paid_at):
            raise (_Spent if refused.private else Refused)(refused.reason)
        if int(now.timestamp()) // PRECISION not in batch_interval(carried):
            raise Refused("the servers take no reports of this round by now")
        answered = recipes.answered(weighed, law, now, paid_at, paid_as, most)
        parcel = line.sealed([answered.bits.astype(bool).tolist()], int(now.timestamp()), self.stream)
        entry = RecipeLogEntry.about(weighed.request, recipe.id, recipe.query.text, "admitted", now)
        return _Made(parcel, answered.charge, answered.noted(entry, parcel))

    def _can_pay(self, carried: CarriedTask, paid_at: datetime) -> None:
        if reason := self._account.refusal(carried.task, self.policy, paid_at):
            raise _Spent(reason)
        shipped = ShippedPolicies(self.store).current()
        if shipped is None:
            return
        if refused := RecipeAccount(self.store, self.device).campaign_refusal(
            carried.task, shipped.policy, paid_at, _seen(carried.task)
        ):
            raise (_Spent if refused.private else Refused)(refused.reason)

    async def _noted(self, kept: bytes, outcome: str) -> None:
        """Say in the log what became of a report, unless it says so already."""
        number = int.from_bytes(kept[:NUMBER], "big")
        line = self._log.line(number)
        if line.outcome != outcome:
            await self.commits.write((self._log.changed(number, line.ended(outcome)),))

    async def _refused(self, work: ServerTask, reason: str, now: datetime, told: str, seen: LogHead) -> str:
        reason, told = one_line(reason), one_line(told)
        logger.warning("device %d refuses to report: %s", self.device, told)
        closed, outcome = self._sessions.closed(work.session), f"refused: {reason}"
        kept = self._records.find(_key(work))
        writes: tuple[Write, ...] = (closed,)
        if self.recipe_task(work) is not None:
            writes += self._public.kept(seen)
        if kept is None:
            line = unanswered(lambda: ReadTask(carried_task(work.task or "").task), outcome, now)
            writes += (self._log.added(self._log.next_number(), line),)
        await self.commits.write(writes)
        if kept is not None:
            await self._noted(kept, outcome)
        return told


def _key(work: ServerTask) -> bytes:
    """What the report to a batch is kept under."""
    return sha256(b"carried" + work.session).digest()


def _arrived(carried: CarriedTask) -> str:
    """What the log says of a report that is where it belongs; a map's line says the rest itself."""
    carrier = carried.carrier
    if carried.task.recipe is None or not isinstance(carrier, ByTwoServers):
        return "the servers have the report"
    return (
        f"{carrier.leader} and {carrier.helper} have a half each, unreadable alone, and open sums of "
        f"{carrier.minimum:,} reports or more"
    )


def _seen(task: Task) -> bool:
    """Whether the analyser of a shuffle sees every report."""
    return task.randomiser is not None
