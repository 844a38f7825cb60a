"""Trust models of one-report tasks: a collector, or a coordinator, walks down a tree with two servers over HTTP.

A campaign's task is announced in the first round, and people report. Every question after that is for the two servers
alone. They answer the same question by the same bytes, so a run that was interrupted anywhere asks again and ends in
the same map.
"""

import asyncio
from collections.abc import Callable, Iterable
from time import sleep
from typing import ClassVar, Final

import numpy as np

from hazemap.errors import InputError, Unanswerable
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.protocols.dap.basic_types import TimeInterval
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere
from hazemap.federated.protocols.dap.task import DapTask
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.federated.server.announced_rounds import check_counted
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import exchange_write, stored_exchanges
from hazemap.federated.server.carried_rounds import CarriedCampaign
from hazemap.federated.server.networked_secure_aggregation import PATIENCE, collected
from hazemap.federated.server.networked_two_servers import SECRET, files_of, issuing, provision, stoppable
from hazemap.federated.trust.device_tasks import Task, round_price
from hazemap.federated.trust.one_report import OneReportPrices, moved
from hazemap.federated.trust.prefix_walk import CellStrings, PrefixWalk, prefix_question
from hazemap.federated.trust.report_batch import asked_of
from hazemap.federated.trust.report_carriers import ByOneReport, CarriedTask
from hazemap.federated.trust.two_server_tasks import batch_interval, walk_task, whole_tree
from hazemap.privacy.budget import Budget
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.queries.noisy_queries import Answer, Query, Question

OUTSIDE: Final = {
    Nowhere.REFUSED: "the servers of this task tell nobody how many are outside of the map: say --outside drop, or set "
    "the task up with --outside, for twice the noise",
    Nowhere.PAID: "devices have paid for a map that counts who is outside of it, and its noise is for that: say "
    "--outside people or count, or set the task up without --outside",
}
"""What is said of a method that counts people outside, and a task that does not; or the other way round."""


class CollectedOneReport:
    """Answers from a batch of reports of paths, of a task that names a budget. `told` hears of each question."""

    def __init__(
        self,
        client: CollectorClient,
        interval: TimeInterval,
        wait: float = PATIENCE,
        pause: Callable[[float], None] = sleep,
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        terms = client.collector.task.walk
        if terms is None:
            raise InputError(
                "this task answers no questions about a tree: set one up with `hazemap collector task prefixes:BITS "
                "--levels N --questions`"
            )
        self.terms, self.walk = terms, PrefixWalk(terms.levels, terms.prefixes)
        self._client, self._interval, self._wait = client, interval, wait
        self._pause, self._told = pause, told
        self._number = 0

    @property
    def task(self) -> DapTask:
        """The task that its reports were made for."""
        return self._client.collector.task

    def prices(self, budget: Budget) -> OneReportPrices:
        """What a share of the task's budget buys; `InputError` for another budget than people paid."""
        if budget != self.terms.budget:
            raise InputError(f"the reports were made for {self.terms.budget}, and a run spends that, not {budget}")
        return OneReportPrices(budget)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query

    def answer(self, question: Question, price: Budget) -> Answer:
        """Ask both servers, and wait; `NotOpened` where the batch is too small, or not ready in time."""
        asked = self._taken(question)
        sent = prefix_question(self.walk, self._number, asked.encoder, asked.share)
        self._told(f"question {self._number + 1}: {sent.size:,} sums")
        found = collected(self._client, self._interval, sent.to_bytes(), self._wait, self._pause)
        self._number += 1
        noise = TwoServerNoise.within(price, moved(asked.encoder))
        return Answer(np.array(found.sums, dtype=np.int64), np.array([noise.stddev]), noise.kurtosis, found.count)

    def walked(self, questions: Iterable[Question]) -> None:
        """Go where these questions, which were answered in an earlier run, have led."""
        for question in questions:
            self._taken(question)
            self._number += 1

    def _taken(self, question: Question) -> Query:
        asked = asked_of(question, "two servers")
        self.walk.take(asked.encoder)
        measured = self.task.measured
        assert isinstance(measured, Poplar1Configuration)  # noqa: S101 - as the terms of the task have checked
        assert self.walk.where is not None  # noqa: S101 - it has taken a question
        if self.walk.where[1].outside.asked != (self.terms.nowhere is Nowhere.PAID):
            raise InputError(OUTSIDE[self.terms.nowhere])
        if (bits := CellStrings(self.walk.where[0]).bits) != measured.bits:
            raise InputError(
                f"paths in this tree have {bits} bits, and the task's have {measured.bits}: take the tree that the "
                "devices were told"
            )
        return asked


FORGOTTEN = 8 * 7 * 86_400
"""Seconds after which the two servers forget reports and shares: a campaign that failed is resumed before that."""


class NetworkedOneReport(CarriedCampaign):
    """Questions to two servers about one report of each person."""

    SECRET: ClassVar[int] = SECRET

    async def answer(self, question: Question, price: Budget) -> Answer:
        """Ask both servers, at first when people have reported; the answer is stored when this returns."""
        import httpx

        announcement, carried = await self.announced(_whole_tree(self.campaign))
        issuer = self.house.identity
        task = await asyncio.to_thread(walk_task, carried, issuer.public)
        files = files_of(task, announcement.secret, FORGOTTEN)
        if not self.rounds:
            async with httpx.AsyncClient(verify=self.house.peers.trusting(), timeout=60) as http:
                await provision(http, self.house.peers, [files])
            await self.reported(announcement, issue=issuing(issuer, announcement.secret, announcement.batch, [task]))
        answer = await stoppable(lambda pause: self._asked(carried, files["collector"], question, price, pause))
        await asyncio.to_thread(check_counted, self.store, announcement, answer.people or 0)
        name, round_ = self.campaign.name, self.rounds + 1
        await self.store.write(exchange_write(name, round_, question, answer))
        self.rounds += 1
        return answer

    def _asked(
        self, carried: CarriedTask, file: TaskFile, question: Question, price: Budget, pause: Callable[[float], None]
    ) -> Answer:
        import httpx

        before = stored_exchanges(self.store, self.campaign.name)
        with httpx.Client(verify=self.house.peers.trusting(), timeout=60) as http:
            walk = CollectedOneReport(CollectorClient(file, http, sleep=pause), batch_interval(carried), pause=pause)
            walk.walked(each.question for each in before)
            return walk.answer(question, price)


def check_walk(campaign: Campaign, carrier: ByOneReport) -> None:
    """`InputError` for a campaign that one report cannot answer, as far as that is known before anything is paid."""
    if campaign.bounding.outside.asked:
        raise InputError("one report says who is nowhere, and nobody is told how many are: leave people outside out")
    try:
        walk_task(CarriedTask(_whole_tree(campaign), carrier, "0" * 64, 0), bytes(32))
        first = next(iter(campaign.algorithm.rounds(OneReportPrices(campaign.budget))))
        walk = PrefixWalk(carrier.levels, carrier.prefixes)
        walk.take(asked_of(first, "two servers").encoder)
    except Unanswerable as error:
        raise InputError(f"one report of each person does not answer this: {error}") from error
    if walk.where != (campaign.asking.tree, campaign.bounding):
        raise InputError(
            "people report once, where they are in the map's own tree, so no box can be found first: say the box"
        )


def _whole_tree(campaign: Campaign) -> Task:
    """What people are told: the tree, and the price of everything that will be asked."""
    asked = whole_tree(campaign.asking.tree, campaign.bounding)
    price = round_price(campaign.budget)
    return Task(campaign.name, campaign.purpose, 1, asked, price, campaign.budget, campaign.cohort)
