"""The trust model of a campaign: people's own devices, reached over a network, behind secure sums.

For every query it forms shards of devices that were heard of lately, runs a secure sum in each, and adds up what was
opened. All that it decides is stored before anybody can see it, so that a server that is started again goes on where
it was: with the same people, in the same shards, with the same messages. Collections wait for a leader that is killed
and started again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from time import monotonic, sleep
from typing import Any, TypeVar

import numpy as np

from hazemap.codec import dumps
from hazemap.errors import InputError, NotOpened, TranscriptMismatch, Unreachable
from hazemap.federated.aggregator.collector_client import LONGEST, CollectorClient
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.collector import AggregateResult
from hazemap.federated.server.campaign_house import CampaignRounds, OrderedRounds, sample
from hazemap.federated.server.campaign_store import exchange_write
from hazemap.federated.server.device_enrolment import named
from hazemap.federated.server.failed_round import ended_by, failure, have_paid, reopened
from hazemap.federated.server.secure_sum_plan import COLUMNS, SecureSumPlan, ShardOutcome, SumEvent, Summary, identities
from hazemap.federated.service.store import Write
from hazemap.federated.trust.cohort_assumptions import Sampling, noisy_answer
from hazemap.federated.trust.device_tasks import Task, round_price
from hazemap.federated.trust.randomised_reports import ReportLaw, debiased, law_for_numbers
from hazemap.privacy.budget import Budget
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question

log = logging.getLogger("hazemap.federated.server")

T = TypeVar("T")

FEWEST_LEFT = Fraction(1, 2)
"""The least part of a shard that is asked again without those who were silent."""

_SHARDS = f"SELECT {COLUMNS}, state, sums, people, summary FROM shards WHERE campaign = ? AND round = ? " + (  # noqa: S608
    "AND state <> 'left' ORDER BY number, attempt"
)
_ASKED = "SELECT roster, attempt FROM shards WHERE campaign = ? AND round = ?"
_EVENTS = "SELECT position, message FROM events WHERE session = ? ORDER BY seq"
_SUMMARIES = "SELECT summary FROM shards WHERE campaign = ? AND summary IS NOT NULL"
_TASK = "SELECT task FROM rounds WHERE campaign = ? AND round = ?"
_BEGIN = "INSERT INTO rounds (campaign, round, task) VALUES (?, ?, ?)"
_OVER = "DELETE FROM rounds WHERE campaign = ? AND round = ?"
_DROP_SUMS = "UPDATE shards SET sums = NULL WHERE campaign = ? AND round = ?"

Attempt = tuple[SecureSumPlan, ShardOutcome | None]


@dataclass
class DeviceRounds(OrderedRounds):
    """Rounds among devices, for one campaign or study: a task in, the sum of what people said out."""

    once: bool = False
    """nobody is asked for a second report in a round: a study pays for one, and a campaign for all that it may take"""
    _choosing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """two shards of a round do not choose the same people to go on with"""

    async def asked(self, task: Task) -> Answer:
        """The sum of what the people of a round said, with their noise; stored when this returns.

        `NotOpened` where no shard could be opened, or where too few devices came within the order's `wait`.
        """
        shards = await self._stored(task.round) or await self._formed(task)
        ended = await together([self._opened(task, attempts) for attempts in shards])
        answer = _added(ended, task)
        await self.store.write(
            exchange_write(self.campaign.name, task.round, task.question, answer),
            Write(_DROP_SUMS, (self.campaign.name, task.round)),
            Write(_OVER, (self.campaign.name, task.round)),
        )
        return answer

    async def _stored(self, round_: int) -> list[list[Attempt]]:
        """The shards of a round that was begun before the server was started: their attempts, in order."""
        return await asyncio.to_thread(self._found, round_)

    def _found(self, round_: int) -> list[list[Attempt]]:
        text = "".join(task for (task,) in self.store.read(_TASK, self.campaign.name, round_))
        shards: dict[int, list[Attempt]] = {}
        for *row, state, sums, people, summary in self.store.read(_SHARDS, self.campaign.name, round_):
            plan, outcome = SecureSumPlan.read(row, text), None
            if state != "open":
                vector = None if sums is None else np.frombuffer(bytes(sums), dtype="<i8").astype(np.int64)
                outcome = ShardOutcome(Summary.parse(summary), people, vector)
            shards.setdefault(plan.number, []).append((plan, outcome))
        return list(shards.values())

    async def _formed(self, task: Task) -> list[list[Attempt]]:
        """New shards: on the disk before anybody is invited."""
        asked, attempt = await self._asked(task.round)
        people = await self._people(task.round, asked)
        sizes = replace(task.cohort, people=len(people)).shards
        loop, text = asyncio.get_running_loop(), await asyncio.to_thread(dumps, task)
        plans = await together(
            [
                loop.run_in_executor(self.house.pool, SecureSumPlan.formed, task, text, number, attempt, roster)
                for number, roster in enumerate(dealt(people, sizes), 1)
            ]
        )
        begin = Write(_OVER, (task.campaign, task.round)), Write(_BEGIN, (task.campaign, task.round, text))
        await self.store.write(*begin, *(plan.begin() for plan in plans))
        log.info("%s, round %d: %d people in %d shards", task.campaign, task.round, len(people), len(plans))
        return [[(plan, None)] for plan in plans]

    async def _asked(self, round_: int) -> tuple[set[bytes], int]:
        """Whom this round has asked so far, and the number of its next attempt: not 1 where a campaign is resumed."""
        rows = await self._read(_ASKED, self.campaign.name, round_)
        asked = {identity for roster, _ in rows for identity in identities(bytes(roster))}
        return asked, 1 + max((attempt for _, attempt in rows), default=0)

    async def _people(self, round_: int, asked: set[bytes]) -> list[bytes]:
        """The identities that this round asks, in random order: as few as can be of those whom it has asked before."""
        cohort, culprits, stream = self.campaign.cohort, await self._culprits(), Stream.from_os()
        paid = await asyncio.to_thread(have_paid, self.store, self.campaign.name, round_) if self.once else set[bytes]()
        if round_ > 1 and cohort.sampling is Sampling.ONE:
            first = [plan.roster for *_, (plan, _) in await self._stored(1)]
            same = [identity for roster in first for identity in roster if named(identity) not in culprits]
            left = [identity for identity in same if identity not in paid]
            return sample(left, len(left), stream)
        recent = await self._enough(round_, lambda each: each.name not in culprits and each.identity not in paid)
        there = [device.identity for device in recent]
        others = [identity for identity in there if identity not in asked]
        again = [identity for identity in there if identity in asked]
        fresh = sample(others, min(cohort.people, len(others)), stream)
        both = [*fresh, *sample(again, cohort.people - len(fresh), stream)]
        return sample(both, len(both), stream)

    async def _culprits(self) -> set[str]:
        """Names of devices that broke the protocol in this campaign: they are not invited again."""
        rows = await self._read(_SUMMARIES, self.campaign.name)
        return {name for (summary,) in rows for name in Summary.parse(summary).culprits}

    async def _opened(self, task: Task, attempts: list[Attempt]) -> tuple[SecureSumPlan, ShardOutcome]:
        """Run a shard; again, with those who can answer, while that is safe and worth it."""
        plan, outcome = attempts[-1]
        begun, waited = plan.attempt - attempts[0][0].attempt + 1, False
        while True:
            if outcome is None:
                rows = await self._read(_EVENTS, plan.terms.session)
                events = [SumEvent(position, bytes(message)) for position, message in rows]
                outcome = await self.house.seating.run(plan, self.campaign.deadlines, events, self.once)
                _report(plan, outcome)
            if outcome.sums is not None or begun >= self.campaign.attempts:
                return plan, outcome
            begun += 1
            waits, summary = self.once and not waited, outcome.summary
            if waits and summary.sent and await self._waits_again(plan, summary):
                outcome, waited = None, True
            elif (again := await self._again(task, plan, summary)) is not None:
                plan, outcome, waited = again, None, False
            elif waits and await self._waits_again(plan, summary):
                outcome, waited = None, True
            else:
                return plan, outcome

    async def _waits_again(self, plan: SecureSumPlan, summary: Summary) -> bool:
        """Go on with the stage that failed, if devices were silent in it: nobody pays for that (`failed_round`)."""
        event = await asyncio.to_thread(ended_by, self.store, plan.terms.session, summary)
        if event is not None:
            await self.store.write(*reopened(plan.terms.session, event))
        return event is not None

    async def _again(self, task: Task, plan: SecureSumPlan, summary: Summary) -> SecureSumPlan | None:
        """Another session for a shard that was not opened: a new nonce, a new graph, and without who failed it.

        A device pays for every vector that it sends, and never more than the campaign said: so it may be asked again
        at any stage, and declines if it has nothing left (decisions/0010). Before vectors were asked for, those who
        answered are asked again, and others take the places of the rest. Later it is the others first, who have not
        paid for this round; in a study the others alone. Where most were silent it was the time that was too short, or
        the network: all are asked once more.
        """
        async with self._choosing:
            left, others = _without(plan.roster, {*summary.out, *summary.silent}), await self._others(plan)
            only_others = self.once and summary.sent
            roster = ([*others, *(() if only_others else left)] if summary.sent else [*left, *others])[
                : len(plan.roster)
            ]
            if len(roster) < FEWEST_LEFT * len(plan.roster):
                if only_others:
                    return None
                roster = _without(plan.roster, {*summary.out})
            try:
                again = await asyncio.get_running_loop().run_in_executor(
                    self.house.pool, SecureSumPlan.formed, task, plan.task, plan.number, plan.attempt + 1, roster
                )
            except InputError:  # too few are left to keep what the task promises
                return None
            await self.store.write(again.begin(), plan.forgotten)
        return again

    async def _others(self, plan: SecureSumPlan) -> list[bytes]:
        """Devices that are there and that this round has not asked, in random order; none where the sample is fixed."""
        if plan.round > 1 and self.campaign.cohort.sampling is Sampling.ONE:
            return []
        (asked, _), culprits = await self._asked(plan.round), await self._culprits()
        enrolled = self.house.enrolled
        recent = enrolled.recent(self.house.pace.recent(len(enrolled)))
        there = [each.identity for each in recent if each.name not in culprits and each.identity not in asked]
        return sample(there, len(there), Stream.from_os())

    async def _read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return await asyncio.get_running_loop().run_in_executor(None, self.store.read, sql, *values)


@dataclass
class DeviceTrustModel(CampaignRounds, DeviceRounds):
    """`AsyncTrust` over the network, for one campaign."""

    async def answer(self, question: Question, price: Budget) -> Answer:
        """`asked`, for a query of the campaign's algorithm."""
        answer = await self.asked(await asyncio.to_thread(self.task, question, price))
        self.rounds += 1
        return answer

    def task(self, question: Question, price: Budget, law: ReportLaw | None = None) -> Task:
        """The next round, with the law of its reports where people randomise them. Finding it takes a moment."""
        local, cohort = self.campaign.local_epsilon, self.campaign.cohort
        if local is not None and isinstance(question, Query):
            law = law_for_numbers(round_price(price), cohort.fewest_honest, local, question.size)
        return super().task(question, price, law)


async def together(work: Sequence[Awaitable[T]]) -> list[T]:
    """All at once; the first that fails ends the others, and its error is raised."""
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _without(roster: Sequence[bytes], out: set[int]) -> list[bytes]:
    return [identity for position, identity in enumerate(roster) if position not in out]


def _added(ended: Sequence[tuple[SecureSumPlan, ShardOutcome]], task: Task) -> Answer:
    """The sums of all opened shards, and the law of the noise that is really in them.

    It is a Pólya(1/N) share a person, or what each person did to their report.
    """
    law = task.randomiser
    opened = [(plan, outcome.people, outcome.sums) for plan, outcome in ended if outcome.sums is not None]
    if not opened:
        raise NotOpened(failure(ended, task.round))
    sums = sum((vector for _, _, vector in opened), np.zeros_like(opened[0][2]))
    if law is not None:
        return debiased(law, sums, sum(people for _, people, _ in opened), Stream.from_os())
    parts = sum((Fraction(people, plan.terms.noise.parties) for plan, people, _ in opened), Fraction(0))
    noise = opened[0][0].terms.noise
    if not isinstance(noise, DistributedNoise):
        raise TranscriptMismatch("a shard was opened without noise, though its task says that noise is added")
    return noisy_answer(sums, noise.scale, parts, sum(people for _, people, _ in opened))


def _report(plan: SecureSumPlan, outcome: ShardOutcome) -> None:
    summary = outcome.summary
    log.info(
        "%s, round %d, shard %d: %s, %d of %d people; dropped %s; refusals %s; culprits %d",
        plan.campaign,
        plan.round,
        plan.number,
        "opened" if outcome.sums is not None else f"lost ({summary.reason})",
        outcome.people,
        summary.clients,
        dict(summary.dropped),
        dict(summary.refusals),
        len(summary.culprits),
    )


def dealt(people: Sequence[T], sizes: Sequence[int]) -> list[Sequence[T]]:
    """A sample cut into shards of these sizes.

    >>> dealt("abcde", (3, 2))
    ['abc', 'de']
    """
    if sum(sizes) != len(people):
        raise InputError(f"shards of {sum(sizes)} people in all cannot be made of {len(people)}")
    return [people[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]


PATIENCE = 600.0
"""Seconds that the two servers have for a batch, unless said otherwise."""


def collected(
    client: CollectorClient,
    interval: TimeInterval,
    agg_param: bytes = b"",
    wait: float = PATIENCE,
    pause: Callable[[float], None] = sleep,
) -> AggregateResult:
    """The result of a batch within `wait` seconds; the same request again gives the same. Errors as of `collect`."""
    until, again = monotonic() + wait, 0.25
    while True:
        try:
            return client.collect(interval, agg_param, max(0.0, until - monotonic()))
        except Unreachable:
            if monotonic() + again > until:
                raise
            pause(again)
            again = min(2 * again, LONGEST)
