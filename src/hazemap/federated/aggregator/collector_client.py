"""A collector's line to the leader: ask for a batch, wait, open the result."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hazemap.errors import CodecError, InputError, NotOpened, Refused, Unreachable
from hazemap.federated.aggregator.leader_driver import check_endpoint
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.basic_types import JOB_ID, TimeInterval
from hazemap.federated.protocols.dap.collection_messages import CollectionJobReq, CollectionJobResp
from hazemap.federated.protocols.dap.collector import AggregateResult, Collector
from hazemap.federated.protocols.dap.problem_types import ProblemType, read_problem
from hazemap.federated.protocols.dap.report_sizes import longest_result
from hazemap.federated.protocols.dap.resource_paths import collection_jobs, read_id
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.service.operator_line import asked
from hazemap.vdaf.hpke import HpkeKeyPair, Kem

if TYPE_CHECKING:
    import httpx

LONGEST: Final = 30.0
"""Seconds, at most, between two looks at a collection job."""


class CollectorClient:
    """Collects batches of one task. `http` is a client without a base URL."""

    def __init__(
        self,
        file: TaskFile,
        http: "httpx.Client",
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if file.collector is None or file.collector_key is None or file.peer_token is None:
            raise InputError(f"this is the file of a {file.party}: a collector takes its own")
        check_endpoint(file.task.leader)
        pair = HpkeKeyPair(Kem(file.collector.kem), file.collector_key)
        self.collector = Collector(file.task, vdaf_of(file.task), file.collector, pair)
        leader = file.task.leader
        self._base = leader if leader.endswith("/") else f"{leader}/"
        self._http, self._clock, self._sleep = http, clock, sleep
        self._headers = {"Authorization": f"Bearer {file.peer_token}"}

    def collect(
        self, interval: TimeInterval | None = None, agg_param: bytes = b"", wait: float = 600
    ) -> AggregateResult:
        """The sums of a batch, once both aggregators have released them; the same request gives the same result.

        `NotOpened` if the batch is not ready within `wait` seconds or has too few reports, `Refused` if it may not be
        collected, `Unreachable` if the leader does not answer at first, or at last.
        """
        request = self.collector.request(interval, agg_param)
        until, pause = self._clock() + wait, 0.2
        body = request.to_bytes()
        headers = {**self._headers, "Content-Type": CollectionJobReq.media_type()}
        most = longest_result(self.collector.task, self.collector.vdaf, agg_param)
        reply = self._asked("POST", collection_jobs(self.collector.task.id), most, content=body, headers=headers)
        try:
            place = reply.headers.get("location", "").partition("?")[0]
            job_id = read_id(place.rpartition("/")[2], JOB_ID)
        except CodecError as error:
            raise Unreachable("the leader does not say where the collection job is") from error
        silent: Unreachable | None = None
        while silent or not reply.content:
            if self._clock() + pause > until:
                raise silent or NotOpened(
                    f"the batch is not ready after {wait:,.0f} s: it has fewer reports than "
                    f"{self.collector.task.min_batch_size} so far, or is still worked on; ask again later"
                )
            self._sleep(pause)
            pause = min(2 * pause, LONGEST)
            try:
                place = collection_jobs(self.collector.task.id, job_id)
                reply = self._asked("GET", place, most, headers=self._headers)
                silent = None
            except Unreachable as error:  # a leader that is started again goes on where it was
                silent = error
        try:
            return self.collector.result(request, CollectionJobResp.from_bytes(reply.content))
        except CodecError as error:
            raise Refused(f"the leader's answer is no result: {error}") from error

    def _asked(self, method: str, path: str, most: int, **options: Any) -> "httpx.Response":
        import httpx

        try:
            reply = asked(self._http, method, self._base + path, most, **options)
        except httpx.HTTPError as error:
            raise Unreachable(f"the leader {self._base} does not answer ({type(error).__name__})") from error
        except Refused as error:
            raise Refused(f"the answer of the leader {self._base} is not read: {error}") from error
        if reply.is_success:
            return reply
        problem = read_problem(reply.status_code, reply.headers.get("content-type", ""), reply.content)
        if problem.problem is ProblemType.INVALID_BATCH_SIZE:
            raise NotOpened(f"the batch has too few reports: {problem.detail}")
        if reply.status_code >= 500:
            raise Unreachable(f"the leader cannot answer now: {problem.in_words()}")
        raise Refused(f"the leader refuses: {problem.in_words()}")
