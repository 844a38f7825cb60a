"""The trust model of a campaign to which people report once: the coordinator walks down a tree with two servers.

The task is announced in the first round, and people report. Every question after that is for the two servers alone,
who answer it again by the same bytes: so a coordinator that is killed anywhere asks again, and goes on.
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar

from hazemap.codec import dumps
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.aggregator.task_file import TaskFile
from hazemap.federated.server.announced_rounds import check_counted
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.campaign_store import stored_exchanges
from hazemap.federated.server.carried_rounds import CarriedCampaign, exchange
from hazemap.federated.server.collected_one_report import CollectedOneReport
from hazemap.federated.server.networked_two_servers import SECRET, files_of, issuing, provision
from hazemap.federated.server.stoppable_wait import stoppable
from hazemap.federated.trust.device_tasks import Task, round_price
from hazemap.federated.trust.one_report import OneReportPrices
from hazemap.federated.trust.prefix_walk import PrefixWalk
from hazemap.federated.trust.report_batch import asked_of
from hazemap.federated.trust.report_carriers import ByOneReport, CarriedTask
from hazemap.federated.trust.two_server_tasks import batch_interval, walk_task, whole_tree
from hazemap.privacy.budget import Budget
from hazemap.queries.noisy_queries import Answer, Question

FORGOTTEN = 8 * 7 * 86_400
"""Seconds after which the two servers forget reports and shares: a campaign that failed is resumed before that."""


class NetworkedOneReport(CarriedCampaign):
    """Questions to two servers about one report of each person."""

    SECRET: ClassVar[int] = SECRET

    def prices(self, budget: Budget) -> OneReportPrices:
        """What a share of this budget buys."""
        return OneReportPrices(budget)

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
        await self.store.write(exchange(name, round_, dumps(question), dumps(answer)))
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
