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

from hazemap.errors import Refused
from hazemap.federated.device.account.activity_log import LogEntry, RecipeLogEntry
from hazemap.federated.device.account.device_account import DeviceAccount, MapRound, check_answer_time
from hazemap.federated.device.recipes.recipe_answer import AdmittedRecipe, Audience, RecipeAnswers
from hazemap.federated.device.server_task import TASKS, ServerTask, parse_task
from hazemap.federated.device.store.answer_records import GRACE, SessionRecord
from hazemap.federated.device.store.encrypted_store import StoreWrite
from hazemap.federated.protocols.chained_log import LogHead
from hazemap.federated.protocols.secure_aggregation.client import SecureSumClient
from hazemap.federated.protocols.secure_aggregation.messages import Invitation, Stage
from hazemap.federated.protocols.secure_aggregation.session_parameters import SessionParameters
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.randomised_reports import randomised
from hazemap.privacy.distributed_noise import NoAddedNoise
from hazemap.privacy.signing_identities import Identity

logger = logging.getLogger("hazemap.federated.device")

SENT = {
    Stage.KEYS: "sent its keys",
    Stage.PICKS: "sent whom it drew",
    Stage.SHARES: "sent shares of its keys",
    Stage.MASKED: "sent its masked vector",
    Stage.ASSENT: "signed who is in the sum",
    Stage.UNMASK: "answered to the end",
}


@dataclass(frozen=True)
class TaskResponse:
    """What to do about a message: commit the writes, then send the reply, or the refusal.

    A reply that is `held` goes out at a time that does not tell how long a query ran.
    """

    writes: tuple[StoreWrite, ...] = ()
    reply: bytes | None = field(default=None, repr=False)
    refusal: str | None = None
    last: bool = False
    held: bool = False


@dataclass
class _AnswerNotes:
    """What is noted while a client makes its answer."""

    line: LogEntry | RecipeLogEntry
    writes: list[StoreWrite] = field(default_factory=list)
    report: tuple[AdmittedRecipe, NDArray[np.int64]] | None = None


@dataclass
class TaskHandler:
    """One device's side of secure sums.

    `now` is what the device's clock says (UTC): by it messages are in time, and events old.

    Costs per message: the protocol's own, and some 0.1 ms for the store.
    """

    account: DeviceAccount

    def answer(self, work: ServerTask, now: datetime, seen: LogHead | None = None) -> TaskResponse:
        """The next step of a session; a refusal is a step too, and the end of the session.

        `seen` is what the device had seen of the public log before it was read; by default what it has seen by now.
        """
        seen = seen or self.account.seen()
        step = self._answered(work, now, seen)
        if self.recipe_task(work) is None:
            return step
        return replace(step, writes=(*step.writes, *self.account.public_log.kept(seen)))

    def recipe_task(self, work: ServerTask) -> Task | None:
        """The task of a session that would begin, if it asks a recipe: the public log is read before it is answered."""
        return self.account.recipe_task(work.session, lambda: parse_task(work.task or ""))

    def _answered(self, work: ServerTask, now: datetime, seen: LogHead) -> TaskResponse:
        record = self.account.sessions.find(work.session)
        try:
            check_answer_time(work.until, now)
            return self._first(work, now, seen) if record is None else self._next(work, record, now)
        except Exception as error:
            number = None if record is None else record.number
            read = lambda: TASKS.find(work.task or "")  # noqa: E731
            refusal = self.account.refused(work.session, error, now, read, number)
            return TaskResponse(refusal.writes, refusal=refusal.told)

    def ended(self, session: bytes, outcome: str) -> tuple[StoreWrite, ...]:
        """The statements that close a session with what became of it; none where it is closed."""
        record = self.account.sessions.find(session)
        return () if record is None else (self.account.sessions.closed(session), self._became(record, outcome))

    def noted(self, session: bytes, outcome: str) -> tuple[StoreWrite, ...]:
        """The statements that note what became of an answer, in a session that may go on."""
        record = self.account.sessions.find(session)
        return () if record is None else (self._became(record, outcome),)

    def forsaken(self, now: datetime) -> tuple[StoreWrite, ...]:
        """The statements that close the sessions to which no server came back."""
        return tuple(
            write
            for record, closed in self.account.sessions.forsaken(now)
            for write in (closed, self._became(record, f"{self.account.log.line(record.number).outcome}; left there"))
        )

    def _became(self, record: SessionRecord, outcome: str) -> StoreWrite:
        log = self.account.log
        return log.changed(record.number, log.line(record.number).ended(outcome))

    def _first(self, work: ServerTask, now: datetime, seen: LogHead) -> TaskResponse:
        account = self.account
        if account.sessions.over(work.session):
            return TaskResponse(refusal="this device has left the session and does not come back")
        if work.task is None:
            raise Refused("a session begins with a task")
        if reason := account.sessions.full():
            raise Refused(reason)
        task, terms = parse_task(work.task), Invitation.decode(work.message).terms
        if terms.session != work.session:
            raise Refused("the session is not the one that its terms name")
        reason = TASKS.find(work.task).refusal(account.policy, terms.to_bytes()) or account.terms.refusal(task)
        if reason := reason or account.public_log.refusal(task, seen):
            raise Refused(reason)
        if task.recipe is None:
            account.check(MapRound(task, terms.session), now)
            line: LogEntry | RecipeLogEntry = LogEntry(now, task.campaign, task.purpose, task.round, "")
        else:
            weighed = self._recipes().weighed(task, Audience.of_session(terms))
            account.check(weighed.asked, now)
            line = weighed.entry(now)
        text, said = work.task, _AnswerNotes(line)
        saved: list[bytes] = []
        client = SecureSumClient(
            self._identity(),
            account.policy.floors(task),
            lambda terms: self._contribution(text, terms, said, now),
            saved.append,
            account.coins,
        )
        reply = client.receive(work.message)
        number = account.log.next_number()
        record = SessionRecord(number, 1, work.task, work.ends(now.timestamp()) + GRACE, saved[-1])
        line = said.line.sending(len(reply)).ended(SENT[Stage.KEYS])
        logger.info("device %d answers round %d of %s", account.device, task.round, task.campaign)
        written = account.sessions.written(work.session, record)
        writes = (*account.terms.agreed(task), written, account.log.added(number, line))
        return TaskResponse(writes, reply, held=task.recipe is not None)

    def _next(self, work: ServerTask, record: SessionRecord, now: datetime) -> TaskResponse:
        account = self.account
        said, saved = _AnswerNotes(account.log.line(record.number)), list[bytes]()
        client = SecureSumClient.resume(
            record.state,
            self._identity(),
            account.policy.floors(parse_task(record.task)),
            lambda _: _never(),
            saved.append,
            account.coins,
            lambda terms, sums: self._pay(record.task, terms, sums, said, now),
        )
        reply = client.receive(work.message)
        stage = client.stage or Stage.KEYS
        last = stage is Stage.UNMASK
        if not saved:  # the same message again
            return TaskResponse((), reply, last=last)
        record = record.next(saved[-1], work.ends(now.timestamp()) + GRACE)
        if said.report is not None and isinstance(said.line, RecipeLogEntry):
            weighed, bits = said.report
            said.line = weighed.answered(said.line, bits, reply)
        line = said.line.sending(len(reply)).ended(SENT[stage])
        written = account.sessions.written(work.session, record)
        writes = (*said.writes, written, account.log.changed(record.number, line))
        return TaskResponse(writes, reply, last=last)

    def _contribution(
        self, text: str, terms: SessionParameters, said: _AnswerNotes, now: datetime
    ) -> NDArray[np.int64]:
        """The device's own sums: the client keeps them until they are charged and masked.

        The first message depends on them as a pseudorandom function does: it says nothing about them.
        """
        task, account = parse_task(text), self.account
        if isinstance(said.line, RecipeLogEntry):
            recipes = self._recipes()
            weighed, law = recipes.weighed(task, Audience.of_session(terms)), task.randomiser
            if law is None:
                raise Refused("a recipe is answered by reports that are randomised")
            return recipes.bits(weighed, law, now, terms.session).astype(np.int64)
        sums, trouble = contribution(task.question.encoder, account.rows(task.campaign))
        if isinstance(terms.noise, NoAddedNoise):
            noise = f"randomised here by {task.randomiser}, in a sum with {terms.noise.parties:,} people or more"
        else:
            noise = f"noise of scale {float(terms.noise.scale):.4g}, made by {terms.noise.parties:,} people or more"
        touched = f"your rows touch {int(np.count_nonzero(sums)):,} of the {terms.size:,} numbers"
        said.line = replace(
            said.line, question=f"{TASKS.find(text).words}; {account.counted(touched, trouble)}; {noise}"
        )
        if task.randomiser is None:
            return sums
        return randomised(task.randomiser, sums, account.coins(terms.session, b"report", sums.tobytes()))

    def _pay(
        self, text: str, terms: SessionParameters, sums: NDArray[np.int64], said: _AnswerNotes, now: datetime
    ) -> None:
        """Charged here, in the transaction that keeps the masked vector. Nothing refused depends on what was read."""
        task, line = parse_task(text), said.line
        if isinstance(line, RecipeLogEntry):
            weighed = self._recipes().weighed(task, Audience.of_session(terms))
            said.writes += self.account.paid(weighed.asked, now, lambda: None).writes
            said.report = weighed, sums
            return
        paid = self.account.paid(MapRound(task, terms.session), now, lambda: None)
        said.writes += paid.writes
        said.line = line.charged(paid.epsilon)

    def _recipes(self) -> RecipeAnswers:
        return RecipeAnswers(self.account.store, self.account.device, self.account.policy, self.account.coins)

    def _identity(self) -> Identity:
        return Identity.from_bytes(self.account.enrolment.identity)


def _never() -> NDArray[np.int64]:
    raise AssertionError("a client that goes on has its contribution")
