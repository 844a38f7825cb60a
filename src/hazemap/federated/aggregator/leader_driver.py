"""Drives a leader: sends to the helper what is to be sent, patiently, and gives back what comes."""

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hazemap.errors import CodecError, FileError, HazemapError, InputError, Refused
from hazemap.federated.aggregator.hpke_key_ring import HpkeKeyStore
from hazemap.federated.aggregator.task_services import HelperRequest, LeaderService, RequestKind
from hazemap.federated.protocols.dap.aggregation_messages import AggregationJobContinueReq, AggregationJobInitReq
from hazemap.federated.protocols.dap.basic_types import JOB_ID
from hazemap.federated.protocols.dap.collection_messages import AggregateShareReq
from hazemap.federated.protocols.dap.leader_jobs import AbandonedJob
from hazemap.federated.protocols.dap.problem_types import ProblemType, read_problem
from hazemap.federated.protocols.dap.resource_paths import DapMessage, aggregate_shares, aggregation_jobs, read_id
from hazemap.federated.service.operator_line import WORDS, asked_async

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("hazemap.federated.aggregator")

IDLE: Final = 0.25
"""Seconds until a task for which there is nothing to do is looked at again; longer each time, up to `LONGEST_IDLE`."""
LONGEST_IDLE: Final = 8.0
"""Seconds, at most, between two looks at a task that nobody has sent anything for."""
LONGEST: Final = 300
"""Seconds, at most, until a request that failed is sent again."""
PATIENCE: Final = 600.0
"""Seconds that the helper has for an answer: as long as the lease."""
TOLD: Final = 10.0
"""Seconds that the helper has to hear that a job was given up, which nothing waits for."""
WORKERS: Final = 2
"""Workers on a task: while one verifies, the helper works for the other."""
ONCE: Final = 2
"""Requests that a worker sends at a time."""
_MESSAGES: Final[dict[RequestKind, type[DapMessage]]] = {
    RequestKind.INIT_JOB: AggregationJobInitReq,
    RequestKind.CONTINUE_JOB: AggregationJobContinueReq,
    RequestKind.AGGREGATE_SHARE: AggregateShareReq,
}
_LATER = (401, 403, 404, 408, 425, 429)
"""Answers that an operator can mend, or time."""


class LeaderDriver:
    """Works on one task until it is cancelled."""

    def __init__(
        self,
        service: LeaderService,
        keys: HpkeKeyStore,
        http: "httpx.AsyncClient",
        token: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._service, self._keys, self._http, self._clock = service, keys, http, clock
        self._headers = {"Authorization": f"Bearer {token}"}
        self._silent_since: float | None = None
        self._news = asyncio.Event()
        base = service.task.task.helper
        self._base = base if base.endswith("/") else f"{base}/"

    async def run(self) -> None:
        """For ever."""
        loop = asyncio.get_running_loop()
        self._service.listener = lambda: _told(loop, self._news)
        await asyncio.gather(*(self._work() for _ in range(WORKERS)))

    async def _work(self) -> None:
        idle = IDLE
        while True:
            try:
                self._news.clear()  # what is new from now on is either found by this turn, or ends the pause after it
                if sent := await self.turn():
                    idle = IDLE
                    if sent == ONCE:  # there may be more, for the other worker
                        self._news.set()
                elif await self._woken(idle):
                    idle = IDLE
                else:
                    idle = min(2 * idle, LONGEST_IDLE)
            except HazemapError as error:
                log.warning("a task waits: %s", error)
                await asyncio.sleep(LONGEST / 10)
            except Exception:
                log.exception("a bug in hazemap: this task waits")
                await asyncio.sleep(LONGEST)

    async def _woken(self, seconds: float) -> bool:
        """Wait so long, or until somebody has sent something for the task."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def turn(self) -> int:
        """Send what is to be sent, and take what comes; how many requests there were."""
        now = int(self._clock())
        requests = await asyncio.to_thread(self._service.requests, self._keys.ring(), now, ONCE)
        await asyncio.gather(*(self._sent(request) for request in requests))
        return len(requests)

    async def _sent(self, request: HelperRequest) -> None:
        import httpx

        task_id = self._service.task.task.id
        path = aggregation_jobs(task_id, request.peer if request.kind is RequestKind.CONTINUE_JOB else None)
        if request.kind is RequestKind.AGGREGATE_SHARE:
            path = aggregate_shares(task_id)
        headers = {**self._headers, "Content-Type": _MESSAGES[request.kind].media_type()}
        url, most = self._base + path, self._service.longest_answer(request)
        try:
            async with asyncio.timeout(PATIENCE):
                reply = await asked_async(self._http, "POST", url, most, headers, content=request.body)
        except (httpx.HTTPError, TimeoutError) as error:
            await self._later(request, f"the helper does not answer ({type(error).__name__})")
            return
        except Refused as error:
            await self._later(request, f"the helper's answer is not read: {error}")
            return
        if reply.is_error:
            await self._refused(request, reply)
            return
        self._silent_since = None
        if not reply.content:  # it is still at work: the same request, sent again, finds what it has made
            await self._later(request, "the helper is still at work", 1)
            return
        try:
            peer = self._peer(reply) if request.kind is RequestKind.INIT_JOB else b""
        except CodecError:
            await self._later(request, "the helper does not say where its job is")
            return
        keys = self._keys.ring()
        try:
            await asyncio.to_thread(self._service.answered, request, peer, reply.content, keys)
        except AbandonedJob as error:
            log.warning("an aggregation job was abandoned: %s", error)
            await self._release(peer or request.peer)
        except HazemapError as error:
            log.warning("the helper's answer is not taken yet: %s", error)

    async def _refused(self, request: HelperRequest, reply: "httpx.Response") -> None:
        problem = read_problem(reply.status_code, reply.headers.get("content-type", ""), reply.content)
        later = reply.status_code >= 500 or reply.status_code in _LATER
        unknown = problem.problem is None and request.kind is RequestKind.AGGREGATE_SHARE  # not the helper's own words
        if later or unknown or problem.problem is ProblemType.UNRECOGNIZED_TASK:  # it may not have been given it yet
            await self._later(request, f"the helper does not take it: {problem.in_words()}")
            return
        log.warning("the helper refuses: %s", problem.in_words())
        await asyncio.to_thread(self._service.refused, request, problem, self._keys.ring())
        if request.kind is RequestKind.CONTINUE_JOB:
            await self._release(request.peer)

    async def _release(self, peer: bytes) -> None:
        """Let the helper forget a job that was given up; one that does not hear keeps it until its reports expire."""
        import httpx

        url = self._base + aggregation_jobs(self._service.task.task.id, peer)
        with suppress(httpx.HTTPError, TimeoutError, Refused):
            async with asyncio.timeout(TOLD):
                await asked_async(self._http, "DELETE", url, WORDS, self._headers)

    async def _later(self, request: HelperRequest, why: str, wait: float | None = None) -> None:
        if wait is None:  # as long again as the helper is silent already, however many requests have met that
            now = self._clock()
            self._silent_since = now if self._silent_since is None else min(self._silent_since, now)
            wait = min(LONGEST, 2 + now - self._silent_since) * (0.5 + random.random() / 2)  # noqa: S311 - a pause
            log.warning("%s; again in %.0f s", why, wait)
        await asyncio.to_thread(self._service.failed, request, int(self._clock() + wait))

    @staticmethod
    def _peer(reply: "httpx.Response") -> bytes:
        place = reply.headers.get("location", "").partition("?")[0]
        return read_id(place.rpartition("/")[2], JOB_ID)


def _told(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> None:
    with suppress(RuntimeError):  # the loop has ended: nobody waits any more
        loop.call_soon_threadsafe(news.set)


def helper_line(trust_certificate: Path | None) -> "httpx.AsyncClient":
    """Connections to helpers, over HTTPS by the system's certificates or by one of your own."""
    import httpx

    try:
        verify = ssl.create_default_context(cafile=trust_certificate)
    except OSError as error:
        raise FileError(f"{trust_certificate} holds no certificates in PEM") from error
    return httpx.AsyncClient(verify=verify, timeout=PATIENCE, follow_redirects=False)


def check_endpoint(url: str) -> None:
    """`InputError` for plain HTTP to another machine."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        here = parts.hostname == "localhost" or ip_address(parts.hostname or "").is_loopback
    except ValueError:
        here = False
    if parts.scheme != "https" and not here:
        raise InputError(f"{url} is not HTTPS, so anybody between could see and change what is sent")
