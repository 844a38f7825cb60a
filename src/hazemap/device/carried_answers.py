"""From the announcement of a round to a report that other servers have: judge, charge, make, keep, send, note.

The order is that of all answers of a device. The charge, the report's bytes and the line of the log are on the disk in
one transaction before anything is sent, so after a crash the same bytes go out for the charge that stands. Who asks
again for the same batch gets the same bytes, for nothing; another batch is another report, and another charge. Who
asks for the same batch in other words, such as by other servers, gets nothing.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

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
from hazemap.device.query_description import described
from hazemap.device.recipe_account import RecipeAccount
from hazemap.device.report_lines import ReportLines
from hazemap.device.report_records import ReportRecords
from hazemap.device.row_store import Rows
from hazemap.device.server_task import ServerTask
from hazemap.device.session_records import Sessions
from hazemap.device.shipped_policies import ShippedPolicies
from hazemap.device.shuffled_line import ShuffledLine
from hazemap.device.task_handler import CANNOT, CLOCKS, NOTHING_LEFT
from hazemap.errors import FileError, HazemapError, Refused, Unreachable
from hazemap.privacy.random_stream import Stream
from hazemap.trust.carried_tasks import CARRIED, CarriedTask
from hazemap.trust.device_tasks import Task
from hazemap.trust.report_carriers import ByShuffler

logger = logging.getLogger("hazemap.device")

NUMBER, WORDS = 8, 32
"""Bytes before a kept report: the number of its line in the log, and the digest of what it answers."""
CHANGED = "this device has answered this round in other words, and its report is for those alone"
LEFT = "this device has left this round and does not come back"
DAMAGED = "nothing that can be understood"


@lru_cache(maxsize=4, typed=True)
def carried_task(text: str) -> CarriedTask:
    """The announcement in a JSON text; the many devices of a process are sent the same one."""
    found: CarriedTask = loads(text, CARRIED, CarriedTask, MESSAGE)
    return found


class _Spent(Refused):
    """A reason that names what other campaigns were told: for the person's own log, not for a server."""


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
    made: Callable[[CarriedTask, Policy, ReportLines], CarrierLine] = field(default=carrier_line)

    def __post_init__(self) -> None:
        self._records, self._sessions, self._log, self._account, self._terms = (
            ReportRecords(self.store, self.device),
            Sessions(self.store, self.device),
            ActivityLog(self.store, self.device),
            PrivacyAccount(self.store, self.device),
            CampaignTerms(self.store, self.device),
        )

    async def answered(self, work: ServerTask, now: datetime) -> str | None:
        """None where the report is where it belongs; else why there is none, in words that may be told.

        `Unreachable` where that cannot be said yet: the announcement comes again.
        """
        key = sha256(b"carried" + work.session).digest()
        if self._sessions.over(work.session):
            return LEFT
        try:
            carried, kept = self._read(work, now), self._records.find(key)
            if kept is not None and kept[NUMBER : NUMBER + WORDS] != bytes.fromhex(digest(carried)):
                raise Refused(CHANGED)
            if kept is None and (reason := carried_refusal(self.policy, carried)):
                raise Refused(reason)
            line = self._line(carried, work)
            if kept is None:
                kept = await self._paid(work, carried, line, key, now)
            await line.sent(kept[NUMBER + WORDS :])
        except (FileError, Unreachable):
            raise  # the store's trouble, or the network's
        except _Spent as error:
            return await self._refused(work, str(error), now, NOTHING_LEFT)
        except HazemapError as error:
            return await self._refused(work, str(error), now, str(error))
        except Exception as error:  # no message may stop a device
            logger.exception("device %d: an announcement that it cannot deal with", self.device)
            return await self._refused(work, f"{CANNOT}: {type(error).__name__}", now, CANNOT)
        await self._noted(kept, "the servers have the report")
        return None

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
        self, work: ServerTask, carried: CarriedTask, line: CarrierLine, key: bytes, now: datetime
    ) -> bytes:
        """The kept bytes of a new report. Whatever can be refused is refused before rows are read."""
        task = carried.task
        reason = line.refusal() or self._terms.refusal(task, carried.carrier)
        if reason:
            raise Refused(reason)
        await line.ready()
        paid_as, number = self._account.next_number(), self._log.next_number()
        paid_at = AccountClock(self.store).reading(now)
        self._can_pay(carried, paid_at.now)
        charge, price = (
            self._account.charge(task, work.session, paid_at.now, paid_as, _seen(task)),
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
        entry = entry.sending(len(parcel)).charged(price, f"{entry.question}; {said}").ended("made, and kept")
        kept = number.to_bytes(NUMBER, "big") + bytes.fromhex(digest(carried)) + parcel
        logger.info("device %d reports to round %d of %s", self.device, task.round, task.campaign)
        await self.commits.write(
            (
                *self._terms.agreed(task, carried.carrier),
                charge,
                *paid_at.writes,
                self._records.kept(key, kept),
                self._log.added(number, entry),
            )
        )
        return kept

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

    async def _refused(self, work: ServerTask, reason: str, now: datetime, told: str) -> str:
        reason, told = one_line(reason), one_line(told)
        logger.warning("device %d refuses to report: %s", self.device, told)
        closed, outcome = self._sessions.closed(work.session), f"refused: {reason}"
        kept = self._records.find(sha256(b"carried" + work.session).digest())
        writes: tuple[Write, ...] = (closed,)
        if kept is None:
            writes += (self._log.added(self._log.next_number(), _unanswered(work, outcome, now)),)
        await self.commits.write(writes)
        if kept is not None:
            await self._noted(kept, outcome)
        return told


def _seen(task: Task) -> bool:
    """Whether the analyser of a shuffle sees every report."""
    return task.randomiser is not None


def _unanswered(work: ServerTask, outcome: str, now: datetime) -> LogEntry:
    """The line about what was refused at once; the message may be why it is."""
    try:
        task = carried_task(work.task or "").task
        asked = str(described(task))
    except Exception:
        return LogEntry(now, "unknown", "unknown", 0, DAMAGED, outcome=outcome)
    return LogEntry(now, one_line(task.campaign), one_line(task.purpose), task.round, asked, outcome=outcome)
