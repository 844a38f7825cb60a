"""One device at its store: what it may be asked, what it can pay, and what its person's log says of both.

Whoever answers for a device goes through its account: secure sums (`task_handler`), reports that other servers carry
(`report_sender`), and studies among people of this machine (`federated.study.population_study`). So the order of an
answer, which is part of the privacy argument, is written once:

1. who asks again for what was answered gets the bytes that were kept, free (`answer_records`, `answer_records`);
2. the number of the charge is taken, and the account says whether the answer may be asked and can be paid (`paid`);
3. the answer is made; it must not fail, whatever rows and events are, for silence would tell;
4. charge, answer and the line of the log are on the disk in one transaction, which the caller commits;
5. the answer is sent.

A server names the budget, the purpose, the mode and the cohort in every task. If a device believed each task, a
campaign could say 0.2, be paid 0.2, and then say 0.5. So the device keeps what it agreed to first, sealed, in the
transaction of its first answer (`CampaignTerms`). Of a study it also keeps the analysis, and that it asks recipes.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Generic, NamedTuple, TypeVar

from hazemap.codec import dumps
from hazemap.engines.memory import MemoryTable
from hazemap.errors import FileError, HazemapError, Refused, Unreachable
from hazemap.federated.device.account.account_clock import AccountClock
from hazemap.federated.device.account.account_head import ForgottenCharges, HeadSeal, longest_period
from hazemap.federated.device.account.activity_log import ActivityLog, LogEntry, refusal_entry
from hazemap.federated.device.account.charges import ChargeSums, ReportRequest
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.enrolment import Enrolment
from hazemap.federated.device.http_client import one_line
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog, SeenRecipeLog
from hazemap.federated.device.server_task import ParsedTask
from hazemap.federated.device.store.answer_records import ReportRecords, SessionRecords
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.device.store.row_store import RowStore
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.protocols.secure_aggregation.key_agreement import DeviceCoins
from hazemap.federated.recipes.policy import ShippedPolicy
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.report_carriers import ReportCarrier
from hazemap.privacy.budget import PureDP

WHAT = {
    "purpose": "its purpose",
    "budget": "its budget",
    "cohort": "its cohort, or the mode of its protocol",
    "carrier": "who carries its reports",
}
STUDY = {"analysis": "what it asks about"}


@dataclass(frozen=True)
class CampaignTerms:
    """The terms of every campaign and study that one device has agreed to; one small read a session."""

    store: EncryptedStore
    device: int

    def refusal(self, task: Task, carrier: ReportCarrier | None = None) -> str | None:
        """Why this task is not of the campaign that was agreed to; None where it is, and for a new campaign."""
        first = self._first(task.campaign)
        if first is None:
            return None
        now, kind = _terms(task, carrier), "campaign" if task.recipe is None else "study"
        changed = [words for name, words in (WHAT | STUDY).items() if first.get(name) != now.get(name)]
        return (
            f"the {kind} {task.campaign!r} has changed {' and '.join(changed)} since this device first agreed to it"
            if changed
            else None
        )

    def agreed(self, task: Task, carrier: ReportCarrier | None = None) -> tuple[StoreWrite, ...]:
        """The statement that keeps what a new campaign says; none for a campaign that is known.

        It fails where another process has agreed to the same campaign meanwhile.
        """
        if self._first(task.campaign) is not None:
            return ()
        tag = self._tag(task.campaign)
        sealed = self.store.seal("campaigns", self.device, tag, json.dumps(_terms(task, carrier)).encode())
        return (StoreWrite("INSERT INTO campaigns VALUES (?, ?, ?)", (self.device, tag, sealed)),)

    def _first(self, campaign: str) -> dict[str, str] | None:
        tag = self._tag(campaign)
        found = self.store.read("SELECT sealed FROM campaigns WHERE device = ? AND tag = ?", self.device, tag)
        if not found:
            return None
        terms: dict[str, str] = json.loads(self.store.unseal("campaigns", self.device, tag, found[0][0]))
        return terms

    def _tag(self, campaign: str) -> bytes:
        return self.store.tag(self.device, b"campaign" + campaign.encode())


def _terms(task: Task, carrier: ReportCarrier | None) -> dict[str, str]:
    budget = str(task.budget.epsilon) if isinstance(task.budget, PureDP) else dumps(task.budget)
    about = {} if task.recipe is None else {"analysis": task.recipe.analysis}
    carried = {} if carrier is None else {"carrier": dumps(carrier)}
    return {"purpose": task.purpose, "budget": budget, "cohort": dumps(task.cohort)} | about | carried


logger = logging.getLogger("hazemap.federated.device")

CLOCKS = 120
"""Seconds by which the clocks of a device and its server may differ."""

CANNOT = "this device cannot deal with the message"

NOTHING_LEFT = "this device has nothing left to spend on this round"
"""What a server is told where the reason would say what others were told."""

PUT_BACK = "everything that may be spent in a period counts as spent, until it has passed"
"""What follows for a device whose store was put back from a copy."""

T = TypeVar("T")


class PrivateRefusal(Refused):
    """A reason that names what other campaigns were told: for the person's own log, not for a server."""


@dataclass(frozen=True)
class MapRound:
    """A round of a campaign in one session or batch. `seen`: an analyser sees every report, so there is no ρ."""

    task: Task
    session: bytes
    seen: bool = False


@dataclass(frozen=True)
class RecipeReport:
    """A report to a recipe, under what the accepted policy and the owner's rules both allow."""

    request: ReportRequest
    policy: ShippedPolicy


@dataclass(frozen=True)
class PaidAnswer(Generic[T]):
    """An answer that was made, the ε that it adds to what was spent, and the statements that charge it."""

    made: T = field(repr=False)
    epsilon: Fraction
    writes: tuple[StoreWrite, ...]


class SessionRefusal(NamedTuple):
    """What a server is told, and the statements that leave a session and note why."""

    told: str
    writes: tuple[StoreWrite, ...]


class DeviceAccount:
    """The stores of one device, and the questions that every answer asks of them.

    `public_log` is what was read of its server's log of recipes. Budgets come back by `clock`, which nobody sets.
    """

    def __init__(
        self,
        store: EncryptedStore,
        device: int,
        enrolment: Enrolment,
        policy: Policy,
        public_log: PublicRecipeLog | None = None,
        clock: AccountClock | None = None,
    ) -> None:
        self.store, self.device, self.enrolment, self.policy = store, device, enrolment, policy
        self.sessions, self.log, self.reports, self.terms = (
            SessionRecords(store, device),
            ActivityLog(store, device),
            ReportRecords(store, device),
            CampaignTerms(store, device),
        )
        self.public_log = SeenRecipeLog(store, device, enrolment.server or "", public_log or PublicRecipeLog())
        self.coins = DeviceCoins(enrolment.sampling)
        self._clock = clock or AccountClock(store)
        self._campaigns, self._recipes = PrivacyAccount(store, device), RecipeAccount(store, device)
        self._forgotten = ForgottenCharges(store, device)
        pinned = enrolment.pinned
        self._seal = None if pinned is None else HeadSeal(enrolment.sampling, bytes.fromhex(pinned))

    def head(self) -> bytes:
        """What goes with a message that was paid for, once its charge is on the disk; nothing without a server."""
        return b"" if self._seal is None else self._seal.sealed(self._forgotten.last_number())

    def put_back(self, head: bytes, now: datetime) -> tuple[StoreWrite, ...]:
        """The statements that count the period as spent, where the server keeps a head that the disk has not reached.

        None for any other head, and for what is no head of this device's.
        """
        number = None if self._seal is None else self._seal.opened(head)
        last = self._forgotten.last_number()
        if number is None or number <= last:
            return ()
        logger.warning("device %d: its store was put back from a copy", self.device)
        paid_at = self._clock.reading(now)
        question = f"whether its account had come as far as its server remembers: charge {number:,}, not {last:,}"
        line = LogEntry(now, "this device", "to notice a store that is put back from a copy", 0, question)
        line = line.ended(f"charges that the copy has forgotten: {number - last:,}; {PUT_BACK}")
        charge = self._forgotten.charge(number, paid_at.now)
        return charge, *paid_at.writes, self.log.added(self.log.next_number(), line)

    def seen(self) -> LogHead:
        """The last entry of its server's public log that the device has seen, by its disk."""
        return self.public_log.seen()

    def recipe_task(self, session: bytes, read: Callable[[], Task]) -> Task | None:
        """The recipe's task that a new answer would be made for: the public log is read before that."""
        known = self.sessions.find(session) is not None or self.sessions.over(session)
        if known or self.reports.find(session) is not None:
            return None
        try:
            task = read()
        except Exception:  # whoever answers says what is wrong with it
            return None
        return task if task.recipe is not None else None

    def rows(self, campaign: str) -> Callable[[], MemoryTable]:
        """Reads the rows as a campaign sees them."""
        own = RowStore(self.store, self.device)
        return lambda: own.table(self.enrolment.sampling, campaign)

    def check(self, asked: MapRound | RecipeReport, now: datetime) -> None:
        """`Refused` where an answer may not be asked, or cannot be paid; nothing here has read a row or an event."""
        self._check(asked, self._clock.reading(now).now)

    def paid(self, asked: MapRound | RecipeReport, now: datetime, make: Callable[[], T]) -> PaidAnswer[T]:
        """Judge, make and charge, in this order; `Refused` before anything is made. `make` must not fail.

        The number of the charge is taken before the account is read, so the transaction fails if another process has
        charged the device since.
        """
        number, paid_at = self.store.next_number("charges", self.device), self._clock.reading(now)
        self._check(asked, paid_at.now)
        if isinstance(asked, MapRound):
            epsilon = self._campaigns.price(asked.task)
            charge = self._campaigns.charge(asked.task, asked.session, paid_at.now, number, asked.seen)
        else:
            epsilon = asked.request.price.epsilon
            charge = self._recipes.charge(asked.request, paid_at.now, number)
        return PaidAnswer(make(), epsilon, (charge, *paid_at.writes, *ChargeSums(self.store, self.device).writes()))

    def counted(self, words: str, trouble: str | None) -> str:
        """What the log says of rows that were counted, or could not be."""
        if trouble is None:
            return words
        logger.warning("device %d answers as if it had no rows: counting them failed (%s)", self.device, trouble)
        return f"your rows could not be counted ({trouble}), so the answer is that of somebody without rows"

    def refused(
        self,
        session: bytes,
        error: Exception,
        now: datetime,
        read: Callable[[], ParsedTask],
        number: int | None = None,
    ) -> SessionRefusal:
        """How an answer that failed is refused, and its session left for good; raises what is no server's fault.

        `number` is its line in the log; without one, `read` gives what was asked, for a new line.
        """
        match error:
            case FileError() | Unreachable():
                raise error  # the store's trouble, or the network's
            case PrivateRefusal():
                reason, told = str(error), NOTHING_LEFT
            case HazemapError():
                reason = told = str(error)
            case _:  # nothing that fails so has seen a row, and no message may stop a device
                logger.error("device %d: a message that it cannot deal with", self.device, exc_info=error)
                reason, told = f"{CANNOT}: {type(error).__name__}", CANNOT
        reason, told = one_line(reason), one_line(told)
        logger.warning("device %d refuses to answer: %s", self.device, told)
        return SessionRefusal(told, self.left(session, f"refused: {reason}", now, read, number))

    def left(
        self, session: bytes, outcome: str, now: datetime, read: Callable[[], ParsedTask], number: int | None
    ) -> tuple[StoreWrite, ...]:
        """The statements that leave a session for good, known or not, and say in the log what became of it."""
        if number is not None:
            return self.sessions.closed(session), self.log.changed(number, self.log.line(number).ended(outcome))
        line = refusal_entry(read, outcome, now)
        return self.sessions.closed(session), self.log.added(self.log.next_number(), line)

    def _check(self, asked: MapRound | RecipeReport, paid_at: datetime) -> None:
        if self._forgotten.any() and self._forgotten.within(self._period(asked), paid_at):
            raise PrivateRefusal(f"this device's store was put back from a copy, so {PUT_BACK}")
        if self._campaigns.answered(self.policy.days, paid_at) >= self.policy.rounds:
            raise PrivateRefusal(
                f"this device has answered {self.policy.rounds:,} rounds and reports in {self.policy.days} days, and"
                " answers no more in that time"
            )
        if isinstance(asked, RecipeReport):
            if reason := self.policy.too_cheap(PureDP(asked.request.price.epsilon)):
                raise Refused(reason)
            refused = self._recipes.refusal(asked.request, asked.policy, paid_at)
        else:
            if reason := self._campaigns.refusal(asked.task, self.policy, paid_at):
                raise PrivateRefusal(reason)
            if (shipped := ShippedPolicies(self.store).current()) is None:
                return
            refused = self._recipes.campaign_refusal(asked.task, shipped.policy, paid_at, asked.seen)
        if refused is not None:
            raise (PrivateRefusal if refused.private else Refused)(refused.reason)

    def _period(self, asked: MapRound | RecipeReport) -> int:
        """Days until no budget remembers what was charged today."""
        shipped = ShippedPolicies(self.store).current()
        policies = [asked.policy] if isinstance(asked, RecipeReport) else []
        policies += [] if shipped is None else [shipped.policy]
        return longest_period(policies, self.policy.days)


def check_answer_time(until: float, now: datetime) -> None:
    """`Refused` where the time for an answer is over; a time that is no number is over, too."""
    if not now.timestamp() - until <= CLOCKS:
        raise Refused(
            "the time for this answer is over: if it should not be, the device's clock or the server's is wrong"
        )
