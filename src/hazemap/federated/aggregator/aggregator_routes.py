"""An aggregator as an ASGI application: the resources of DAP-18, uploads of DAP-09, `POST hazemap/tasks`, metrics.

Coordinators give an aggregator tasks by the last route: a task file is its body. No label of a metric names a person or
an address. A task is named by the first letters of its id, as in the log.
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hazemap.errors import CodecError, InputError
from hazemap.federated.aggregator.hpke_key_ring import HpkeKeyStore
from hazemap.federated.aggregator.task_file import TaskFile, TaskShelf
from hazemap.federated.aggregator.task_services import HelperService, LeaderService
from hazemap.federated.protocols.dap.aggregation_messages import (
    AggregationJobContinueReq,
    AggregationJobInitReq,
    AggregationJobResp,
)
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.basic_types import JOB_ID, TASK_ID
from hazemap.federated.protocols.dap.collection_messages import (
    AggregateShare,
    AggregateShareReq,
    CollectionJobReq,
    CollectionJobResp,
)
from hazemap.federated.protocols.dap.problem_types import DapProblem, ProblemDocument, ProblemType
from hazemap.federated.protocols.dap.resource_paths import (
    PROBLEM,
    PROVISIONING,
    DapMessage,
    id_text,
    message_name,
    read_id,
)
from hazemap.federated.protocols.dap.upload_messages import HPKE_CONFIG_LIST, Report09, UploadErrors, UploadRequest
from hazemap.federated.protocols.dap.vdaf_configuration import HpkeConfigList
from hazemap.federated.service.access_tokens import kept
from hazemap.federated.service.http_limits import BODY, HttpLimits
from hazemap.federated.service.prometheus_text import DurationHistogram, ServerMetrics, histograms, labels, series
from hazemap.federated.service.rate_limit import RateLimit
from hazemap.federated.service.route_guard import (
    Application,
    Guard,
    Row,
    TooOften,
    Unauthorized,
    announced_size,
    authorize,
    body_of,
    headers_of,
    place_from,
)
from hazemap.federated.service.served_address import PageAccess
from hazemap.federated.service.store import Contradiction, Store, Write

_STORED: Final = (
    ("reports_waiting", "gauge", "Reports that were taken and are not in a sum yet.", "reports WHERE body IS NOT NULL"),
    ("jobs_open", "gauge", "Aggregation jobs that are under way.", "jobs WHERE request IS NOT NULL"),
    ("batches_total", "counter", "Batches that were closed, once a level.", "collected"),
)


@dataclass(eq=False)
class AggregatorMetrics(ServerMetrics):
    """What an aggregator counts of itself since it was started.

    >>> metrics = AggregatorMetrics()
    >>> metrics.requests["reports", "", 200] += 1
    """

    def text(self, store: Store, ages: Mapping[bytes, DurationHistogram], tasks: Iterable[AggregatorTask]) -> str:
        """Everything in the text format 0.0.4; `ages` are of the reports of each task. O(tasks), and an index."""
        known = [({"task": _name(task)}, times) for task, times in ages.items()]
        old = histograms("report_age_seconds", "Our clock less a report's time, rounded down as tasks say.", known)
        return self.written([*_stored(store), *_admitted(tasks), *old], store.commit_seconds)


def _admitted(tasks: Iterable[AggregatorTask]) -> list[str]:
    """Who may report to each task that is served: whoever shows an issuer's credential, or anybody."""
    rows = []
    for each in tasks:
        admission, name = each.task.admission, _name(each.task.id)
        issuer = "none" if admission is None else admission.issuer.hex()[:16]
        most = (each.open_reports or 0) if admission is None else admission.reports
        rows.append((labels(task=name, issuer=issuer), most))
    about = "Reports that are taken at most; without an issuer, from whoever sends them."
    return series("reports_admitted", "gauge", about, rows)


def _stored(store: Store) -> list[str]:
    """What the store has of each task."""
    names = {number: _name(bytes(task)) for number, task in store.read("SELECT task, id FROM tasks")}
    lines: list[str] = []
    for name, kind, about, what in _STORED:
        found = store.read(f"SELECT task, count(*) FROM {what} GROUP BY task ORDER BY task")  # noqa: S608 - ours
        lines += series(name, kind, about, [(labels(task=names[task]), number) for task, number in found])
    counted = store.read("SELECT task, sum(count) FROM shards GROUP BY task ORDER BY task")
    rows = [(labels(task=names[task]), int(number)) for task, number in counted]
    lines += series("reports_counted_total", "counter", "Reports that are in a sum, once a level.", rows)
    refused = store.read("SELECT task, reason, number FROM rejections ORDER BY task, reason")
    rows = [(labels(task=names[task], reason=reason), number) for task, reason, number in refused]
    return lines + series("reports_rejected_total", "counter", "Reports that were not taken.", rows)


def _name(task: bytes) -> str:
    return id_text(task)[:8]


log = logging.getLogger("hazemap.federated.aggregator")

CACHED: Final = 86_400
"""Seconds for which clients may keep the HPKE configurations: far less than a key is good for when it has expired."""
FOR_DEVICES: Final = r"/(?:hpke_config|tasks/[A-Za-z0-9_-]+/reports)"
"""What a device in a browser's tab asks. Neither needs a token: a page gains nothing that a program has not."""
AGAIN: Final = 1
"""Seconds after which a collector asks again."""


class ServedTask:
    """A task that is served: its service, and the hash of the token that the other party shows."""

    def __init__(self, service: LeaderService | HelperService, accepted: bytes) -> None:
        self.service, self.accepted = service, accepted


class AggregatorRoutes:
    """The routes of one aggregator. `operator` is the hash of the token of whoever may read its numbers."""

    def __init__(
        self,
        store: Store,
        keys: HpkeKeyStore,
        tasks: Mapping[bytes, ServedTask],
        clock: Callable[[], float] = time.time,
        metrics: AggregatorMetrics | None = None,
        operator: bytes = b"",
        limits: HttpLimits | None = None,
    ) -> None:
        self._store, self._keys, self._tasks, self._clock = store, keys, tasks, clock
        self._metrics, self._operator, limits = metrics or AggregatorMetrics(), operator, limits or HttpLimits.here()
        self._guard, self._uploads = DapGuard(log, limits, self._metrics), RateLimit(limits.uploads)

    def application(
        self,
        base: str,
        alive: Callable[[], AsyncIterator[None]] | None = None,
        more: Sequence[Row] = (),
        pages: frozenset[str] = frozenset(),
    ) -> Application:
        """The application, under the path that the aggregator's endpoint ends in; `alive` runs as long as it does.

        Pages of the origins `pages` may read what devices ask.
        """
        one = "/tasks/{task}/%s/{resource}"
        many = "/tasks/{task}/%s"
        rows = [
            *more,
            self._guard.numbers(self._operator, self._numbers),
            ("/hpke_config", self._hpke_config, "GET"),
            (many % "reports", self._upload, "POST"),
            (many % "reports", self._upload_09, "PUT"),
            (many % "aggregation_jobs", self._init_job, "POST"),
            (one % "aggregation_jobs", self._continue_job, "POST"),
            (one % "aggregation_jobs", self._poll_job, "GET"),
            (one % "aggregation_jobs", self._drop_job, "DELETE"),
            (many % "aggregate_shares", self._aggregate_share, "POST"),
            (many % "collection_jobs", self._collect, "POST"),
            (one % "collection_jobs", self._poll_collection, "GET"),
            (one % "collection_jobs", self._drop_collection, "DELETE"),
        ]
        lifespan = None if alive is None else asynccontextmanager(lambda _: alive())
        guarded = self._guard.before(Starlette(routes=self._guard.routes(rows, base), lifespan=lifespan))
        return PageAccess(guarded, re.compile(re.escape(base.rstrip("/")) + FOR_DEVICES), pages)

    def now(self) -> int:
        """Seconds after the epoch."""
        return int(self._clock())

    def _numbers(self) -> str:
        services = {task_id: served.service for task_id, served in self._tasks.items()}
        ages = {task_id: each.ages for task_id, each in services.items() if isinstance(each, LeaderService)}
        return self._metrics.text(self._store, ages, [each.task for each in services.values()])

    async def _hpke_config(self, request: Request) -> Response:
        if self._store.trouble is not None:  # no report could be taken either
            raise self._store.trouble
        announced = self._keys.announced(self.now())
        older = "task_id" in request.query_params
        kind = HPKE_CONFIG_LIST if older else HpkeConfigList.media_type()
        return Response(announced.to_bytes(), media_type=kind, headers={"Cache-Control": f"max-age={CACHED}"})

    async def _upload(self, request: Request) -> Response:
        leader = self._leader(request)
        self._count(request, 0)
        now = self.now()
        most = await asyncio.to_thread(leader.longest_upload, now)
        if (size := announced_size(request.scope)) is not None and size <= most:
            leader.sizes.check_upload(size)
        body = await _body(request, UploadRequest, most)
        self._count(request, max(1, len(body) // leader.sizes.least))
        answer = await self._stored(lambda: leader.upload(body, self._keys.ring(), now))
        leader.listener()
        return _answer(UploadErrors, answer) if answer else Response()

    async def _stored(self, upload: Callable[[], tuple[bytes, list[Write]]]) -> bytes:
        """The answer to an upload, whose reports are on the disk: looked at again where another one was faster."""
        answer, writes = await asyncio.to_thread(upload)
        try:
            await self._store.write(*writes)
        except Contradiction:
            answer, writes = await asyncio.to_thread(upload)
            await self._store.write(*writes)
        return answer

    async def _upload_09(self, request: Request) -> Response:
        leader = self._leader(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != Report09.media_type():
            raise leader.task.problem(ProblemType.INVALID_MESSAGE, f"a report is sent as {Report09.media_type()}")
        self._count(request, 1)
        body, now = await body_of(request, leader.sizes.longest), self.now()
        await self._stored(lambda: (b"", leader.upload_09(body, self._keys.ring(), now)))
        leader.listener()
        return Response(status_code=201)

    def _count(self, request: Request, reports: int) -> None:
        """Count reports that are uploaded; `TooOften` where an address has had its share, before a body is read too."""
        wait = self._uploads.taken(place_from(request.scope), reports)
        if wait is not None:
            raise TooOften("too many reports come from this address: try again later", wait)

    async def _init_job(self, request: Request) -> Response:
        helper = self._helper(request)
        body, now = await _body(request, AggregationJobInitReq), self.now()
        outcome = await asyncio.to_thread(helper.init_job, body, self._keys.ring(), now)
        return _created(request, AggregationJobResp, outcome.resource, outcome.message)

    async def _continue_job(self, request: Request) -> Response:
        helper, job_id = self._helper(request), _resource(request)
        body = await _body(request, AggregationJobContinueReq)
        outcome = await asyncio.to_thread(helper.continue_job, job_id, body, self._keys.ring())
        return _answer(AggregationJobResp, outcome.message)

    async def _poll_job(self, request: Request) -> Response:
        helper, step = self._helper(request), request.query_params.get("step", "")
        if not (step.isascii() and step.isdecimal()) or len(step) > 5:
            raise helper.task.problem(ProblemType.INVALID_MESSAGE, "say which step: ?step=0")
        outcome = await asyncio.to_thread(helper.job, _resource(request), int(step), self._keys.ring())
        return _answer(AggregationJobResp, outcome.message)

    async def _drop_job(self, request: Request) -> Response:
        helper = self._helper(request)
        await asyncio.to_thread(helper.drop_job, _resource(request), self._keys.ring())
        return Response()

    async def _aggregate_share(self, request: Request) -> Response:
        helper = self._helper(request)
        body = await _body(request, AggregateShareReq)
        outcome = await asyncio.to_thread(helper.aggregate_share, body, self._keys.ring())
        return _created(request, AggregateShare, outcome.resource, outcome.message)

    async def _collect(self, request: Request) -> Response:
        leader = self._leader(request, private=True)
        body = await _body(request, CollectionJobReq)
        outcome = await asyncio.to_thread(leader.collect, body)
        return _created(request, CollectionJobResp, outcome.resource, outcome.message)

    async def _poll_collection(self, request: Request) -> Response:
        leader = self._leader(request, private=True)
        outcome = await asyncio.to_thread(leader.poll_collection, _resource(request))
        if outcome.message:
            return _answer(CollectionJobResp, outcome.message)
        return Response(headers={"Retry-After": str(AGAIN)})

    async def _drop_collection(self, request: Request) -> Response:
        leader = self._leader(request, private=True)
        await asyncio.to_thread(leader.drop_collection, _resource(request))
        return Response()

    def _leader(self, request: Request, private: bool = False) -> LeaderService:
        served = self._served(request)
        if not isinstance(served.service, LeaderService):
            raise served.service.task.problem(ProblemType.UNRECOGNIZED_TASK, "this aggregator is the task's helper")
        if private:
            authorize(request.scope, served.accepted)
        return served.service

    def _helper(self, request: Request) -> HelperService:
        served = self._served(request)
        if not isinstance(served.service, HelperService):
            raise served.service.task.problem(ProblemType.UNRECOGNIZED_TASK, "this aggregator is the task's leader")
        authorize(request.scope, served.accepted)
        return served.service

    def _served(self, request: Request) -> ServedTask:
        try:
            task_id = read_id(request.path_params["task"], TASK_ID)
        except CodecError as error:
            raise DapProblem(ProblemType.INVALID_MESSAGE, str(error)) from None
        served = self._tasks.get(task_id)
        if served is None:
            raise DapProblem(ProblemType.UNRECOGNIZED_TASK, "this aggregator has no such task", task_id)
        return served


class DapGuard(Guard):
    """A guard that answers errors by problem documents."""

    wrong = (Unauthorized,)  # a report that is refused is no guess

    def answer(self, error: Exception, code: int) -> Response:
        """A problem of DAP, or one that only its status tells."""
        if isinstance(error, CodecError):
            error = DapProblem(ProblemType.INVALID_MESSAGE, str(error))
        if isinstance(error, DapProblem):
            return _problem(error.document())
        return _problem(ProblemDocument("about:blank", code, str(error)), headers_of(error, code))


def _problem(document: ProblemDocument, headers: Mapping[str, str] | None = None) -> Response:
    return Response(document.to_json(), document.status, headers, PROBLEM)


async def _body(request: Request, kind: type[DapMessage], most: int = BODY) -> bytes:
    """The body of a request that says it is such a message."""
    content_type = request.headers.get("content-type", "")
    if message_name(content_type) != kind.NAME:
        raise CodecError(f"this resource takes the message {kind.NAME!r}")
    return await body_of(request, most)


def _resource(request: Request) -> bytes:
    return read_id(request.path_params["resource"], JOB_ID)


def _answer(kind: type[DapMessage], body: bytes) -> Response:
    return Response(body, media_type=kind.media_type())


def _created(request: Request, kind: type[DapMessage], resource: bytes, body: bytes) -> Response:
    """A resource with its place; without a body it is not ready yet."""
    headers = {"Location": f"{request.url.path}/{id_text(resource)}"}
    if not body:
        headers["Retry-After"] = str(AGAIN)
        return Response(status_code=201, headers=headers)
    return Response(body, 201, media_type=kind.media_type(), headers=headers)


def provisioning_route(token: str, shelf: TaskShelf, begin: Callable[[TaskFile], None]) -> Row:
    """The route. A task that is there already is taken again, for nothing: a coordinator may repeat itself."""
    accepted = kept(token)

    async def take(request: Request) -> Response:
        authorize(request.scope, accepted)
        body = await body_of(request, BODY)
        try:
            new = await asyncio.to_thread(shelf.take, body, begin)
        except (InputError, CodecError) as error:
            return JSONResponse({"error": str(error)}, 422)
        return Response(status_code=201 if new else 200)

    return f"/{PROVISIONING}", take, "POST"
