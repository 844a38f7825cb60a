"""Rounds over two servers: a report for each question of a campaign, or for each recipe of a study.

A round's tasks follow from its announcement, their keys from a secret that is stored with it. Both aggregators get the
tasks, each its own file, before any device is shown the round. So a coordinator that is killed anywhere gives the
aggregators the same tasks again, shows the same announcement, and collects the same sums.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from hashlib import shake_256
from threading import Event
from time import time
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

import numpy as np

from hazemap.codec import loads
from hazemap.errors import InputError, Refused, TranscriptMismatch, Unanswerable, Unreachable
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile, new_task_files
from hazemap.federated.protocols.dap.collector import AggregateResult
from hazemap.federated.protocols.dap.report_credentials import issued, keys_statement
from hazemap.federated.protocols.dap.resource_paths import PROVISIONING
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.server.announced_rounds import Announcement, Issue, check_counted
from hazemap.federated.server.campaign_spec import ORDER, Campaign
from hazemap.federated.server.carried_rounds import CarriedCampaign, CarriedRounds
from hazemap.federated.server.device_enrolment import Device
from hazemap.federated.server.networked_secure_aggregation import collected
from hazemap.federated.service.operator_line import asked_async
from hazemap.federated.trust.device_tasks import Task
from hazemap.federated.trust.randomised_reports import debiased
from hazemap.federated.trust.report_batch import asked_of
from hazemap.federated.trust.report_carriers import CARRIED, ByTwoServers, CarriedTask
from hazemap.federated.trust.two_server_tasks import (
    PRECISION,
    asked,
    batch_interval,
    recipe_blank,
    round_noise,
    round_tasks,
)
from hazemap.federated.trust.two_servers import TwoServerPrices, vectors
from hazemap.privacy.budget import Budget
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity, verified
from hazemap.queries.noisy_queries import Answer, Question

if TYPE_CHECKING:
    import httpx

    from hazemap.federated.server.campaign_house import PeerServers

T = TypeVar("T")


async def stoppable(work: Callable[[Callable[[float], None]], T]) -> T:
    """What `work` gives, in a thread; its pauses, by the function that it is given, end when this is cancelled.

    Without that a server that is told to end would wait for its threads, and they for the servers of others.

    >>> asyncio.run(stoppable(lambda pause: pause(0.0) or "done"))
    'done'
    """
    ended = Event()

    def pause(seconds: float) -> None:
        if ended.wait(seconds):
            raise Unreachable("nobody waits for this any more")

    try:
        return await asyncio.to_thread(work, pause)
    finally:
        ended.set()


log = logging.getLogger("hazemap.federated.server")

SECRET: Final = 32
"""Bytes from which all keys and tokens of a round follow."""
TRIES: Final = 8


def issuing(identity: Identity, secret: bytes, batch: bytes, tasks: Sequence[DapTask]) -> Issue:
    """Gives a device its credential for each of a round's tasks, in their order: from the round's secret, so the same.

    The body of a device's request is a key for each task, one after another, and its identity's signature of them: a
    ticket that was stolen is not enough.
    """

    def issue(device: Device, asked: bytes) -> bytes:
        keys, signature = asked[: KEY * len(tasks)], asked[KEY * len(tasks) :]
        if len(signature) != SIGNATURE:
            raise InputError(
                f"this round has {len(tasks):,} tasks: ask with a key of {KEY} bytes for each of them, and a signature"
            )
        if not verified(device.identity, signature, keys_statement(identity.public, batch, keys)):
            raise Refused("these keys are not signed by the device that has this ticket")
        each = (keys[KEY * at : KEY * (at + 1)] for at in range(len(tasks)))
        return b"".join(
            issued(identity, secret, task.id, device.identity, key) for task, key in zip(tasks, each, strict=True)
        )

    return issue


def files_of(task: DapTask, secret: bytes, report_expiry: int | None = None) -> dict[str, TaskFile]:
    """The files of a task's parties, the same however often they are made from a round's secret.

    After a crash the same keys follow from what was stored, so that a task is never given out in two versions.
    """
    drawn = 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return shake_256(b"hazemap round" + secret + task.id + drawn.to_bytes(4, "big")).digest(size)

    return new_task_files(task, draw, report_expiry)


async def provision(http: "httpx.AsyncClient", peers: "PeerServers", files: Sequence[dict[str, TaskFile]]) -> None:
    """Give each aggregator its files; the helper first, so that it knows a task before the leader asks about it.

    `Unreachable` where one cannot be asked for long, `Refused` where it does not want a task.
    """
    for each in files:
        for party in ("helper", "leader"):
            file = each[party]
            url = file.task.helper if party == "helper" else file.task.leader
            await _given(http, url, peers.token(url), file.to_toml())


async def _given(http: "httpx.AsyncClient", url: str, token: str, text: str) -> None:
    import httpx

    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/toml"}
    for attempt in range(1, TRIES + 1):
        try:
            reply = await asked_async(http, "POST", url + PROVISIONING, headers=headers, content=text.encode())
            if reply.is_success:
                return
            if reply.status_code < 500 and reply.status_code not in (408, 429):
                raise Refused(f"{url} does not take the task of this round: HTTP {reply.status_code} {reply.text:.300}")
            why = f"HTTP {reply.status_code}"
        except httpx.HTTPError as error:
            why = type(error).__name__
        log.warning("%s does not take a task now (%s), attempt %d", url, why, attempt)
        if attempt < TRIES:
            await asyncio.sleep(min(30, 2**attempt / 4))
    raise Unreachable(
        f"{url} could not be given the task of this round ({why}): see that it runs with --take-tasks-at, then resume "
        "the campaign"
    )


def check_first_round(campaign: Campaign) -> None:
    """`InputError` for a campaign whose first question no report of a single 1 answers: before anything is paid."""
    try:
        first = next(iter(campaign.algorithm.rounds(TwoServerPrices(campaign.budget))))
        vectors(asked_of(first, "two servers").encoder)
    except Unanswerable as error:
        raise InputError(f"two servers do not answer this: {error}") from error


class NetworkedTwoServers(CarriedCampaign):
    """The trust model of a campaign: a task for each vector that is asked; sums carry the noise of both servers."""

    SECRET: ClassVar[int] = SECRET

    async def answer(self, question: Question, price: Budget) -> Answer:
        """The noisy sums; stored when this returns."""
        answer = await summed(self, self.task(question, price))
        self.rounds += 1
        return answer


class TwoServerRecipes(CarriedRounds):
    """The rounds of a study: a task for each recipe; sums carry the noise of people's reports and of the servers'."""

    SECRET: ClassVar[int] = SECRET

    async def asked(self, task: Task) -> Answer:
        """The unbiased numbers of people in each bin; stored when this returns."""
        return await summed(self, task)


def still_taken(announcement: Announcement) -> bool:
    """Whether the servers still take reports of a round that was announced."""
    carried: CarriedTask = loads(announcement.task, CARRIED, CarriedTask, ORDER)
    return int(time()) < batch_interval(carried).end * PRECISION


async def summed(rounds: CarriedRounds, task: Task) -> Answer:
    """Give out a round's tasks, wait for reports, collect; the answer is stored when this returns."""
    import httpx

    announcement, carried = await rounds.announced(task)
    peers, issuer = rounds.house.peers, rounds.house.identity
    tasks = await asyncio.to_thread(round_tasks, carried, issuer.public)
    files = [files_of(each, announcement.secret) for each in tasks]
    async with httpx.AsyncClient(verify=peers.trusting(), timeout=60) as http:
        await provision(http, peers, files)
    await rounds.reported(announcement, issue=issuing(issuer, announcement.secret, announcement.batch, tasks))
    collectors = [each["collector"] for each in files]

    def collect(pause: Callable[[float], None]) -> list[AggregateResult]:
        return _collected(rounds, carried, collectors, pause)

    results = await stoppable(collect)
    await asyncio.to_thread(check_counted, rounds.store, announcement, max(each.count for each in results))
    return await rounds.stored(carried.task, await asyncio.to_thread(_answered, carried, results))


def _collected(
    rounds: CarriedRounds, carried: CarriedTask, files: list[TaskFile], pause: Callable[[float], None]
) -> list[AggregateResult]:
    """The sums of each task. What was collected before gives the same again."""
    import httpx

    interval = batch_interval(carried)
    with httpx.Client(verify=rounds.house.peers.trusting(), timeout=60) as http:
        return [collected(CollectorClient(file, http, sleep=pause), interval, pause=pause) for file in files]


def _answered(carried: CarriedTask, results: list[AggregateResult]) -> Answer:
    people = min(each.count for each in results)
    if sum(len(each.sums) for each in results) != carried.task.question.size:
        raise TranscriptMismatch("the servers' sums are of another question than was asked")
    if carried.task.recipe is not None:
        return _of_reports(carried, [number for each in results for number in each.sums], people)
    sums = np.concatenate([np.array(each.sums, dtype=np.int64) for each in results])
    noise = round_noise(carried)
    return Answer(sums, np.array([noise.stddev]), noise.kurtosis, people)


def _of_reports(carried: CarriedTask, sums: list[int], people: int) -> Answer:
    """What sums of randomised bits say; `Refused` for what cannot be such sums."""
    task, carrier = carried.task, carried.carrier
    assert isinstance(carrier, ByTwoServers)  # noqa: S101 - of recipes there is no other
    blank = 2 * recipe_blank(task, carrier).reports
    if people < carrier.minimum or not all(0 <= number <= people + blank for number in sums):
        raise Refused(
            f"the servers' sums are not of {carried.carrier.minimum:,} reports or more whose numbers are 0 or 1: one "
            "of the servers does not follow the protocol"
        )
    _, law = asked(task)
    return debiased(law, np.array(sums, dtype=np.int64), people, Stream.from_os(), blank)
