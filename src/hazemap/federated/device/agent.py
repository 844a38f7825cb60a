"""A device at work: it asks its server for work, answers it, and waits, until it is cancelled."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hazemap.errors import CodecError, FileError, HazemapError, InputError, Refused, Unreachable
from hazemap.federated.device.account.device_account import DeviceAccount
from hazemap.federated.device.enrolment import Enrolment, enrolled, saved
from hazemap.federated.device.http_client import Backoff, HttpReply, HttpTransport, jitter
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.recipes.public_recipe_log import PublicRecipeLog
from hazemap.federated.device.reports.dap_report_upload import ReportConnections
from hazemap.federated.device.reports.report_sender import ReportSender
from hazemap.federated.device.server_task import ServerTask
from hazemap.federated.device.store.encrypted_store import CommitQueue, EncryptedStore, StoreWrite
from hazemap.federated.device.task_handler import SENT, TaskHandler, TaskResponse
from hazemap.federated.protocols.secure_aggregation.messages import Stage
from hazemap.federated.trust.report_carriers import ANNOUNCED

logger = logging.getLogger("hazemap.federated.device")

ASK = 30.0
"""Seconds between two questions where the server does not say."""
LEAST = 0.25
"""Seconds between two questions at the least, however often a server wants to be asked."""
AGAIN = 0.5
"""Seconds after an answer."""
SILENT = 5.0
"""Seconds after work that is not answered."""
LONGEST = 3_600.0
"""Seconds: however long a server says to wait."""
SWEEP = 3_600.0
"""Seconds between two looks for sessions that no server came back to."""
HOLD = 4.0
"""Seconds: an answer to a recipe is sent so long after the question, or a multiple of it. A query has two of them."""


def seconds_until_multiple(hold: float, passed: float) -> float:
    """Seconds until the next multiple of `hold`, so that the time of an answer says nothing about events.

    >>> seconds_until_multiple(4.0, 0.5), seconds_until_multiple(4.0, 4.5), seconds_until_multiple(0.0, 0.5)
    (3.5, 3.5, 0.0)
    """
    return -passed % hold if hold else 0.0


AFTER_REFUSALS = Backoff(first=AGAIN, most=60.0)
"""How long to wait after some refusals in a row: each is a line in the person's log, which a server could fill."""


AFTER_REPEATS = Backoff(first=AGAIN, most=300.0)
"""How long to wait after messages in a row that were answered before: sending again costs a battery."""


def _always_there(_: ServerTask) -> bool:
    return True


@dataclass(eq=False)
class Agent:
    """One device.

    `turns` limits how many devices hold messages in memory at a time. `there` says whether it answers a message:
    tests let devices fall silent. `hold` is how long answers to recipes wait, lest it tell how long a query ran; 0 for
    people who are made up. `public_log` is what any device of the process has read of its server's. `heard` is the time
    (monotonic) at which the server last had work for it, and the counters are for `device_process.ReplyCounts`.
    """

    store: EncryptedStore
    device: int
    enrolment: Enrolment
    policy: Policy
    http_transport: HttpTransport
    commits: CommitQueue
    turns: asyncio.Semaphore
    there: Callable[[ServerTask], bool] = _always_there
    backoff: Backoff = field(default_factory=Backoff)
    hold: float = HOLD
    public_log: PublicRecipeLog = field(default_factory=PublicRecipeLog)
    connections: ReportConnections = field(default_factory=ReportConnections)
    heard: float = 0.0
    failures: int = 0
    refused: int = 0
    repeated: int = 0
    failed: int = 0
    answers: int = 0
    finished: int = 0
    refusals: int = 0
    sent: int = 0
    _swept: float = 0.0

    def __post_init__(self) -> None:
        account = DeviceAccount(self.store, self.device, self.enrolment, self.policy, self.public_log)
        self._sender = ReportSender(account, self.connections, self.commits, ask=self._credentials)
        self._handler = TaskHandler(account)

    async def run(self) -> None:
        """Ask and answer until the task is cancelled."""
        while True:
            await asyncio.sleep(await self.step())

    async def step(self) -> float:
        """One question and what follows from it; the seconds to wait before the next."""
        try:
            async with self.turns:
                wait = await self._step()
        except Unreachable as error:
            logger.log(logging.DEBUG if self.failures else logging.WARNING, "device %d: %s", self.device, error)
            return max(self._after_failure(), min(error.wait or 0.0, LONGEST))
        except (CodecError, FileError) as error:
            logger.warning("device %d: %s", self.device, error)
            return self._after_failure()
        except HazemapError:
            raise  # the device's own trouble, such as a full disk
        except Exception:  # a device goes on, whatever its server sends
            logger.exception("device %d failed", self.device)
            return self._after_failure()
        self.failures = 0
        return min(wait, LONGEST)

    def _after_failure(self) -> float:
        self.failures += 1
        self.failed += 1
        return self.backoff.wait(self.failures)

    async def _step(self) -> float:
        if time.monotonic() - self._swept > SWEEP or not self._swept:
            self._swept = time.monotonic()
            await self.commits.write((*self._handler.forsaken(_now()), *self._sender.forsaken(_now())))
        answer = await self.http_transport.send("GET", "/v1/tasks", self.enrolment.ticket or "")
        if answer.status == 204:
            return jitter(ASK) if answer.wait is None else max(answer.wait, LEAST)
        if answer.status == 401:
            await self._enrol_again()
            return jitter(AGAIN)
        if answer.status != 200:
            raise Unreachable(f"the server gave no work, but HTTP {answer.status}", answer.wait)
        work = ServerTask.from_json(answer.content)
        self.heard = time.monotonic()
        if not self.there(work):
            return jitter(SILENT)
        await self.commits.write(self._handler.account.put_back(work.head, _now()))
        if work.stage == ANNOUNCED:
            return await self._carried(work)
        asked, seen = self._handler.recipe_task(work), self._handler.account.seen()
        if asked is not None:
            await self.public_log.read(self.http_transport, asked, seen)
        begun = time.monotonic()
        step = self._handler.answer(work, _now(), seen)
        await self.commits.write(step.writes)
        if step.held:
            await self._held(begun)
        taken = await self._send(work, step)
        return self._rest(step.refusal is None and taken, new=bool(step.writes))

    def _rest(self, taken: bool, new: bool) -> float:
        """The seconds to wait after an answer: more after some in a row that were refused, or given before."""
        self.refused = 0 if taken else self.refused + 1
        self.repeated = 0 if new else self.repeated + 1
        if self.refused:
            return AFTER_REFUSALS.wait(self.refused)
        return AFTER_REPEATS.wait(self.repeated) if self.repeated else jitter(AGAIN)

    async def _carried(self, work: ServerTask) -> float:
        """A report that goes to other servers: made, charged and sent there; the server hears only that it was."""
        asked, seen = self._sender.recipe_task(work), self._sender.account.seen()
        if asked is not None:
            await self.public_log.read(self.http_transport, asked, seen)
        new = self._sender.account.reports.find(work.session) is None
        told = await self._sender.answered(work, _now(), seen, self._held)
        path, ticket = f"/v1/tasks/{work.session.hex()}", self.enrolment.ticket or ""
        if told is None:
            await self.http_transport.send("POST", path + self._head(), ticket)
            self.answers, self.finished = self.answers + 1, self.finished + 1
            return self._rest(taken=True, new=new)
        content = json.dumps({"reason": told}).encode()
        await self.http_transport.send("POST", f"{path}/refusal", ticket, content, "application/json")
        self.refusals += 1
        return self._rest(taken=False, new=new)

    async def _credentials(self, session: bytes, keys: bytes) -> bytes:
        """What the server gives for a report to others, bound to these keys."""
        path, ticket = f"/v1/tasks/{session.hex()}/credentials", self.enrolment.ticket or ""
        answer = await self.http_transport.send("POST", path, ticket, keys, "application/octet-stream")
        if answer.status == 200:
            return answer.content
        why = f"the server gave no credential for this report, but HTTP {answer.status}"
        raise Unreachable(why, answer.wait) if answer.status in (401, 409) else Refused(why)

    async def _held(self, begun: float) -> None:
        """Wait until the time at which an answer may go out, and let others work meanwhile."""
        self.turns.release()
        try:
            await asyncio.sleep(seconds_until_multiple(self.hold, time.monotonic() - begun))
        finally:
            await self.turns.acquire()

    async def _send(self, work: ServerTask, step: TaskResponse) -> bool:
        """What is on the disk goes out; what becomes of it is noted. False where the server ends the session."""
        path = f"/v1/tasks/{work.session.hex()}"
        ticket = self.enrolment.ticket or ""
        if step.refusal is not None:
            content = json.dumps({"reason": step.refusal}).encode()
            await self.http_transport.send("POST", f"{path}/refusal", ticket, content, "application/json")
            self.refusals += 1
        if step.reply is not None:
            place = path + (self._head() if work.stage == Stage.MASKED else "")
            answer = await self.http_transport.send("POST", place, ticket, step.reply, "application/octet-stream")
            self.answers += 1
            self.sent += len(step.reply)
            self.finished += step.last and answer.status < 300
            await self.commits.write(self._outcome(work, step, answer))
            return answer.status < 300 or answer.status == 409
        return True

    def _head(self) -> str:
        """With what was paid for goes how far the account has come, by its disk (`account_head`)."""
        head = self._handler.account.head()
        return f"?head={head.hex()}" if head else ""

    def _outcome(self, work: ServerTask, step: TaskResponse, answer: HttpReply) -> tuple[StoreWrite, ...]:
        """What became of an answer. After 410, 413 and 422 the session is over; else its message may come again."""
        if 200 <= answer.status < 300:
            return self._handler.ended(work.session, SENT[Stage.UNMASK]) if step.last else ()
        if answer.status == 410:
            return self._handler.ended(work.session, "the server has stopped this study")
        if answer.status == 409:
            return self._handler.noted(work.session, "the server took no more answers to this stage")
        outcome = f"the server did not accept an answer (HTTP {answer.status})"
        became = self._handler.ended if answer.status in (413, 422) else self._handler.noted
        return became(work.session, outcome)

    async def _enrol_again(self) -> None:
        """The server does not know the ticket any more: the same identity gets a new one."""
        if self.enrolment.server is None or self.enrolment.token is None:
            raise Unreachable("the server does not know this device: enrol it with `hazemap device enrol`")
        try:
            enrolment = await enrolled(self.enrolment, self.http_transport, self.enrolment.server, self.enrolment.token)
        except (Refused, InputError) as error:
            raise Unreachable(f"the server does not enrol this device again: {error}") from error
        await self.commits.write((saved(self.store, self.device, enrolment),))
        self.enrolment = enrolment


def _now() -> datetime:
    return datetime.now(UTC)
