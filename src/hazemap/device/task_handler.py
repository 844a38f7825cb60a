"""From a server's message to a device's reply, without a network: judge, charge, answer, note.

The store is the whole state: every message is handled as it would be after a crash. What a step changes comes as
statements for one transaction, and the caller commits it before anything is sent. So

* a crash before the transaction: nothing was sent, nothing was charged, the message comes again and is answered anew;
* a crash after it: the message comes again and the same bytes are the answer, for the charge that stands.
"""

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from hazemap.device.account_clock import AccountClock
from hazemap.device.activity_log import ActivityLog, LogEntry
from hazemap.device.campaign_terms import CampaignTerms
from hazemap.device.consent_policy import Policy
from hazemap.device.encrypted_store import EncryptedStore, Write
from hazemap.device.enrolment import Enrolment
from hazemap.device.printable_text import one_line
from hazemap.device.privacy_account import PrivacyAccount
from hazemap.device.public_recipe_log import PublicRecipeLog
from hazemap.device.recipe_account import RecipeAccount
from hazemap.device.recipe_answer import AnsweredRecipe, Audience, RecipeAnswers, WeighedRecipe
from hazemap.device.recipe_log_entry import RecipeLogEntry
from hazemap.device.recipe_log_heads import RecipeLogHeads
from hazemap.device.row_store import Rows
from hazemap.device.seen_recipe_log import SeenRecipeLog
from hazemap.device.server_task import TASKS, ServerTask, task_of
from hazemap.device.session_records import Record, Sessions
from hazemap.device.shipped_policies import ShippedPolicies
from hazemap.device.unanswered_line import unanswered
from hazemap.errors import FileError, HazemapError, Refused
from hazemap.privacy.distributed_noise import NoAddedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.protocols.chained_log import LogHead
from hazemap.protocols.secure_aggregation.client import Client
from hazemap.protocols.secure_aggregation.messages import Invitation, Stage
from hazemap.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.protocols.secure_aggregation.signing_identities import Identity
from hazemap.trust.checked_contribution import contribution
from hazemap.trust.device_tasks import Task
from hazemap.trust.randomised_reports import randomised

logger = logging.getLogger("hazemap.device")

CLOCKS = 120
"""Seconds by which the clocks of a device and its server may differ."""

GRACE = 86_400
"""Seconds after its end for which a session is kept open, in case its server was started again."""

CANNOT = "this device cannot deal with the message"

NOTHING_LEFT = "this device has nothing left to spend on this round"

SENT = {
    Stage.KEYS: "sent its keys",
    Stage.PICKS: "sent whom it drew",
    Stage.SHARES: "sent shares of its keys",
    Stage.MASKED: "sent its masked vector",
    Stage.ASSENT: "signed who is in the sum",
    Stage.UNMASK: "answered to the end",
}


@dataclass(frozen=True)
class Step:
    """What to do about a message: commit the writes, then send the reply, or the refusal.

    A reply that is `held` goes out at a time that does not tell how long a query ran.
    """

    writes: tuple[Write, ...] = ()
    reply: bytes | None = field(default=None, repr=False)
    refusal: str | None = None
    last: bool = False
    held: bool = False


class _Spent(Refused):
    """A reason that names what other campaigns were told: for the person's own log, not for a server."""


@dataclass
class _Said:
    """What a contribution noted while the client asked for it."""

    line: LogEntry | RecipeLogEntry
    writes: list[Write] = field(default_factory=list)
    answered: AnsweredRecipe | None = None


class Answering:
    """One device at its store. `public_log` is what was read of its server's.

    `now` is what the device's clock says (UTC): by it messages are in time, and events old. Budgets come back by
    `clock`, which nobody sets.

    Costs per message: the protocol's own, and some 0.1 ms for the store.
    """

    def __init__(
        self,
        store: EncryptedStore,
        device: int,
        enrolment: Enrolment,
        policy: Policy,
        stream: Stream,
        public_log: PublicRecipeLog | None = None,
        clock: AccountClock | None = None,
    ) -> None:
        self.store, self.device, self.policy, self.stream = store, device, policy, stream
        self.public_log = public_log or PublicRecipeLog()
        self._public = SeenRecipeLog(RecipeLogHeads(store, device), enrolment.server or "", self.public_log)
        self._clock = clock or AccountClock(store)
        self._identity, self._sampling = Identity.from_bytes(enrolment.identity), enrolment.sampling
        self._sessions, self._log, self._account, self._terms = (
            Sessions(store, device),
            ActivityLog(store, device),
            PrivacyAccount(store, device),
            CampaignTerms(store, device),
        )

    def answer(self, work: ServerTask, now: datetime, seen: LogHead | None = None) -> Step:
        """The next step of a session; a refusal is a step too, and the end of the session.

        `seen` is what the device had seen of the public log before it was read; by default what it has seen by now.
        """
        seen = seen or self.seen()
        step = self._answered(work, now, seen)
        if self.recipe_task(work) is None:
            return step
        return replace(step, writes=(*step.writes, *self._public.kept(seen)))

    def seen(self) -> LogHead:
        """The last entry of its server's public log that the device has seen, by its disk."""
        return self._public.seen()

    def _answered(self, work: ServerTask, now: datetime, seen: LogHead) -> Step:
        record = self._sessions.find(work.session)
        try:
            _in_time(work, now)
            return self._first(work, now, seen) if record is None else self._next(work, record, now)
        except FileError:
            raise  # the store's trouble is not the server's
        except _Spent as error:
            return self._refused(work, record, str(error), now, told=NOTHING_LEFT)
        except HazemapError as error:
            return self._refused(work, record, str(error), now)
        except Exception as error:  # nothing here has seen a row (`contribution`), and no message may stop a device
            logger.exception("device %d: a message that it cannot deal with", self.device)
            return self._refused(work, record, f"{CANNOT}: {type(error).__name__}", now, told=CANNOT)

    def recipe_task(self, work: ServerTask) -> Task | None:
        """The task of a session that would begin, if it asks a recipe: the public log is read before it is answered."""
        if work.task is None or self._sessions.find(work.session) is not None:
            return None
        try:
            task = task_of(work.task)
        except Exception:  # `answer` says what is wrong with it
            return None
        return task if task.recipe is not None else None

    def ended(self, session: bytes, outcome: str) -> tuple[Write, ...]:
        """The statements that close a session with what became of it; none where it is closed."""
        record = self._sessions.find(session)
        return () if record is None else self._closed(session, record, outcome)

    def noted(self, session: bytes, outcome: str) -> tuple[Write, ...]:
        """The statements that note what became of an answer, in a session that may go on."""
        record = self._sessions.find(session)
        return () if record is None else (self._log.changed(record.number, self._line(record).ended(outcome)),)

    def forsaken(self, now: datetime) -> tuple[Write, ...]:
        """The statements that close the sessions to which no server came back."""
        return tuple(
            write
            for record, closed in self._sessions.forsaken(now)
            for write in (
                closed,
                self._log.changed(record.number, self._line(record).ended(f"{self._line(record).outcome}; left there")),
            )
        )

    def _first(self, work: ServerTask, now: datetime, seen: LogHead) -> Step:
        if self._sessions.over(work.session):
            return Step(refusal="this device has left the session and does not come back")
        if work.task is None:
            raise Refused("a session begins with a task")
        if reason := self._sessions.full():
            raise Refused(reason)
        task, terms = task_of(work.task), Invitation.decode(work.message).terms
        if terms.session != work.session:
            raise Refused("the session is not the one that its terms name")
        reason = TASKS.find(work.task).refusal(self.policy, terms.to_bytes()) or self._terms.refusal(task)
        if reason := reason or self._public.refusal(task, seen):
            raise Refused(reason)
        line: LogEntry | RecipeLogEntry
        if task.recipe is None:
            self._can_pay(task, self._clock.reading(now).now)
            line = LogEntry(now, task.campaign, task.purpose, task.round, TASKS.find(work.task).words)
        else:
            request = self._weighed(task, terms, self._clock.reading(now).now).request
            line = RecipeLogEntry.about(request, task.recipe.id, task.recipe.query.text, "admitted", now)
        text, said = work.task, _Said(line)
        saved: list[bytes] = []
        client = Client(
            self._identity,
            self.policy.floors(task),
            lambda terms: self._contribution(text, terms, said, now),
            saved.append,
            stream=self.stream,
        )
        reply = client.receive(work.message)
        number = self._log.next_number()
        record = Record(number, 1, work.task, work.ends(now.timestamp()) + GRACE, saved[-1])
        line = said.line.sending(len(reply)).ended(SENT[Stage.KEYS])
        logger.info("device %d answers round %d of %s", self.device, task.round, task.campaign)
        return Step(
            (*self._terms.agreed(task), self._sessions.written(work.session, record), self._log.added(number, line)),
            reply,
        )

    def _next(self, work: ServerTask, record: Record, now: datetime) -> Step:
        said, saved = _Said(self._line(record)), list[bytes]()
        client = Client.resume(
            record.state,
            self._identity,
            self.policy.floors(task_of(record.task)),
            lambda terms: self._contribution(record.task, terms, said, now),
            saved.append,
            stream=self.stream,
        )
        reply = client.receive(work.message)
        stage = client.stage or Stage.KEYS
        last = stage is Stage.UNMASK
        if not saved:  # the same message again
            return Step((), reply, last=last)
        record = record.next(saved[-1], work.ends(now.timestamp()) + GRACE)
        if said.answered is not None and isinstance(said.line, RecipeLogEntry):
            said.line = said.answered.noted(said.line, reply)
            said.writes += said.answered.paid(reply)
        line = said.line.sending(len(reply)).ended(SENT[stage])
        writes = (*said.writes, self._sessions.written(work.session, record), self._log.changed(record.number, line))
        return Step(writes, reply, last=last, held=said.answered is not None)

    def _contribution(self, text: str, terms: SessionParameters, said: _Said, now: datetime) -> NDArray[np.int64]:
        """The device's own sums: charged here, in the transaction that keeps the masked vector.

        Whatever can be refused is refused before rows are read. From then on there is an answer, whatever they are.
        """
        task, number = task_of(text), self._account.next_number()
        if isinstance(said.line, RecipeLogEntry):
            return self._report(task, terms, said, now, number)
        paid_at = self._clock.reading(now)
        self._can_pay(task, paid_at.now)
        price = self._account.price(task)
        said.writes += self._account.charge(task, terms.session, paid_at.now, number), *paid_at.writes
        own = Rows(self.store, self.device)
        sums, trouble = contribution(task.question.encoder, lambda: own.table(self._sampling, task.campaign))
        if isinstance(terms.noise, NoAddedNoise):
            noise = f"randomised here by {task.randomiser}, in a sum with {terms.noise.parties:,} people or more"
        else:
            noise = f"noise of scale {float(terms.noise.scale):.4g}, made by {terms.noise.parties:,} people or more"
        touched = f"your rows touch {int(np.count_nonzero(sums)):,} of the {terms.size:,} numbers"
        if trouble is not None:
            logger.warning("device %d answers as if it had no rows: counting them failed (%s)", self.device, trouble)
            touched = f"your rows could not be counted ({trouble}), so the answer is that of somebody without rows"
        said.line = said.line.charged(price, f"{TASKS.find(text).words}; {touched}; {noise}")
        return sums if task.randomiser is None else randomised(task.randomiser, sums, self.stream)

    def _report(
        self, task: Task, terms: SessionParameters, said: _Said, now: datetime, number: int
    ) -> NDArray[np.int64]:
        """The device's report to a recipe, charged as `number`. Nothing refused depends on an event."""
        paid_at = self._clock.reading(now)
        weighed = self._weighed(task, terms, paid_at.now)
        if task.randomiser is None:
            raise Refused("a recipe is answered by reports that are randomised")
        said.answered = self._recipes().answered(weighed, task.randomiser, now, paid_at.now, number)
        said.writes += paid_at.writes
        return said.answered.vector

    def _recipes(self) -> RecipeAnswers:
        return RecipeAnswers(self.store, self.device, self.policy, self.stream)

    def _weighed(self, task: Task, terms: SessionParameters, paid_at: datetime) -> WeighedRecipe:
        """The recipe that a task asks, if it may be asked and can be paid: checks 1 to 3."""
        recipes = self._recipes()
        weighed = recipes.weighed(task, Audience.of_session(terms))
        refused = recipes.refusal(weighed, paid_at)
        if refused is not None:
            raise (_Spent if refused.private else Refused)(refused.reason)
        return weighed

    def _can_pay(self, task: Task, paid_at: datetime) -> None:
        if reason := self._account.refusal(task, self.policy, paid_at):
            raise _Spent(reason)
        shipped = ShippedPolicies(self.store).current()
        if shipped is None:
            return
        if refused := RecipeAccount(self.store, self.device).campaign_refusal(task, shipped.policy, paid_at):
            raise (_Spent if refused.private else Refused)(refused.reason)

    def _refused(
        self, work: ServerTask, record: Record | None, reason: str, now: datetime, told: str | None = None
    ) -> Step:
        reason, told = one_line(reason), one_line(told or reason)
        logger.warning("device %d refuses a session: %s", self.device, told)
        outcome = f"refused: {reason}"
        if record is not None:
            return Step(self._closed(work.session, record, outcome), refusal=told)
        line = unanswered(lambda: TASKS.find(work.task or ""), outcome, now)
        writes = (self._sessions.closed(work.session), self._log.added(self._log.next_number(), line))
        return Step(writes, refusal=told)

    def _closed(self, session: bytes, record: Record, outcome: str) -> tuple[Write, ...]:
        line = self._line(record).ended(outcome)
        return (self._sessions.closed(session), self._log.changed(record.number, line))

    def _line(self, record: Record) -> LogEntry | RecipeLogEntry:
        return self._log.line(record.number)


def _in_time(work: ServerTask, now: datetime) -> None:
    late = now.timestamp() - work.until
    if not late <= CLOCKS:
        raise Refused(
            "the time for this answer is over: if it should not be, the device's clock or the server's is wrong"
        )
