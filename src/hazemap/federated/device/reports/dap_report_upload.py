"""A device uploads its reports to a leader of DAP, once each, however often it has to say so.

A report is made once and kept until the leader has answered: what is sent again is the same report, which counts once.
Only where the leader did not know the key (`outdated_config`), and so cannot have taken the report, is a new one made.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from hazemap.errors import CodecError, Refused, Unreachable
from hazemap.federated.device.http_client import Backoff, HttpReply
from hazemap.federated.device.reports.report_connections import HpkeCache
from hazemap.federated.protocols.dap.basic_types import ReportError
from hazemap.federated.protocols.dap.client import NOTHING_MORE, Client, ReportExtensions
from hazemap.federated.protocols.dap.problem_types import ProblemType, read_problem
from hazemap.federated.protocols.dap.resource_paths import message_name, reports
from hazemap.federated.protocols.dap.task import Task
from hazemap.federated.protocols.dap.upload_messages import Report, Report09, UploadErrors, UploadRequest
from hazemap.vdaf.vdaf import Vdaf

ATTEMPTS: Final = 8
"""How often a report is sent before the device gives up for now: with the usual backoff, within four minutes."""
LONGEST_WAIT: Final = 3_600.0
"""Seconds: however long a leader asks to be left alone."""


T = TypeVar("T")


class OutdatedKeys(Refused):
    """The leader does not know the key that a report was sealed for: make a new report with fresh keys."""


@dataclass(eq=False)
class ReportUpload:
    """Uploads to the leader of one task; `leader` and `helper` are where their keys come from. Each report is charged.

    `uploaded` is all that a device needs. One that must survive a crash keeps what `made` gives, with its charge, and
    passes it to `sent`, as often as it likes.
    """

    task: Task
    vdaf: Vdaf
    leader: HpkeCache
    helper: HpkeCache
    charge: Callable[[], Awaitable[None]]
    """Pays for one report before it is made, or raises: a leader that says it does not know a key may keep both."""
    random: Callable[[int], bytes] = os.urandom
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    backoff: Backoff = field(default_factory=Backoff)
    attempts: int = ATTEMPTS

    async def uploaded(self, measurement: Any, extensions: ReportExtensions = NOTHING_MORE) -> None:
        """Make a report and send it until the leader has it; a second one, if the leader's keys have changed.

        `Refused` if the leader does not take it, `Unreachable` if it could not be asked for long.
        """
        try:
            await self.sent(await self.made(measurement, extensions))
        except OutdatedKeys:
            await self.sent(await self.made(measurement, extensions))

    async def made(self, measurement: Any, extensions: ReportExtensions = NOTHING_MORE) -> Report | Report09:
        """A report of now, charged, and sealed for the aggregators' keys of now. It is not sent yet."""
        leader, helper = [await self._patiently(cache.config) for cache in (self.leader, self.helper)]
        client = Client(self.task, self.vdaf, leader, helper)
        await self.charge()
        return client.report(measurement, int(self.clock()), self.random(client.randomness_bytes), extensions)

    async def sent(self, report: Report | Report09) -> None:
        """Send a report until the leader says that it has it, or that it does not want it."""

        async def once() -> None:
            reply = await self._post(report)
            if isinstance(report, Report09):
                self._accepted(reply)
            elif self._accepted(reply) and reply.content:
                self._read_errors(reply, report)

        try:
            await self._patiently(once)
        except OutdatedKeys:
            self.leader.forget(report.leader_share.config_id)
            self.helper.forget(report.helper_share.config_id)
            raise

    async def _post(self, report: Report | Report09) -> HttpReply:
        path = f"/{reports(self.task.id)}"
        if isinstance(report, Report09):
            return await self.leader.transport.send("PUT", path, "", report.to_bytes(), Report09.media_type())
        body = UploadRequest((report,)).to_bytes()
        return await self.leader.transport.send("POST", path, "", body, UploadRequest.media_type())

    def _accepted(self, reply: HttpReply) -> bool:
        if 200 <= reply.status < 300:
            return True
        problem = read_problem(reply.status, reply.kind, reply.content)
        if problem.problem is ProblemType.OUTDATED_CONFIG:
            raise OutdatedKeys("the leader does not know the key that a report was sealed for")
        if problem.problem is ProblemType.REPORT_TOO_EARLY:
            raise Unreachable("the leader's clock is behind this device's", reply.wait)
        raise Refused(f"the leader does not take a report: {problem.in_words()}")

    def _read_errors(self, reply: HttpReply, report: Report) -> None:
        try:
            if message_name(reply.kind) != UploadErrors.NAME:
                raise CodecError("it is another message")
            statuses = UploadErrors.from_bytes(reply.content).statuses
            if len(statuses) > 1 or any(each.report_id != report.metadata.report_id for each in statuses):
                raise CodecError("it speaks of reports that were not sent")
        except CodecError as error:
            raise Unreachable(f"the leader's answer to an upload cannot be read: {error}") from error
        for each in statuses:
            if each.error is ReportError.OUTDATED_CONFIG:
                raise OutdatedKeys("the leader does not know the key that a report was sealed for")
            if each.error is ReportError.REPORT_TOO_EARLY:
                raise Unreachable("the leader's clock is behind this device's", reply.wait)
            if each.error is not ReportError.REPORT_REPLAYED:  # it has the report: an earlier answer was lost
                raise Refused(f"the leader does not take a report: {each.error.name.lower()}")

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        for failures in range(1, self.attempts):
            try:
                return await work()
            except Unreachable as error:
                await self.sleep(min(max(self.backoff.wait(failures), error.wait or 0.0), LONGEST_WAIT))
        return await work()
