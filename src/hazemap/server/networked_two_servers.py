"""The trust model of a campaign over two servers: a report for each question, and the coordinator collects.

A round's tasks follow from its announcement, their keys from a secret that is stored with it. So a coordinator that is
killed anywhere gives the aggregators the same tasks again, shows the same announcement, and collects the same sums.
"""

import asyncio
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from hazemap.aggregator.collector_client import CollectorClient
from hazemap.aggregator.task_file import TaskFile
from hazemap.errors import TranscriptMismatch
from hazemap.noisy_queries import Answer, Question
from hazemap.privacy.budget import Budget
from hazemap.protocols.dap.collector import AggregateResult
from hazemap.server.carried_rounds import CarriedRounds
from hazemap.server.patient_collection import collected
from hazemap.server.stoppable_wait import stoppable
from hazemap.server.task_provisioning import SECRET, files_of, provision
from hazemap.trust.carried_tasks import CarriedTask
from hazemap.trust.two_server_tasks import batch_interval, round_noise, round_tasks
from hazemap.trust.two_servers import TwoServerPrices


class NetworkedTwoServers(CarriedRounds):
    """Each round is a task for each vector that is asked; its sums carry the noise of both servers."""

    SECRET: ClassVar[int] = SECRET

    def prices(self, budget: Budget) -> TwoServerPrices:
        """What a share of this budget buys."""
        return TwoServerPrices(budget)

    async def answer(self, question: Question, price: Budget) -> Answer:
        """Give out the round's tasks, wait for reports, collect; the answer is stored when this returns."""
        import httpx

        announcement, carried = await self.announced(self.task(question, price))
        files = [files_of(task, announcement.secret) for task in await asyncio.to_thread(round_tasks, carried)]
        async with httpx.AsyncClient(verify=self.house.peers.trusting(), timeout=60) as http:
            await provision(http, self.house.peers, files)
        await self.reported(announcement)
        collectors = [each["collector"] for each in files]
        results = await stoppable(lambda pause: self._collected(carried, collectors, pause))
        return await self.stored(question, self._answered(carried, results))

    def _collected(
        self, carried: CarriedTask, files: list[TaskFile], pause: Callable[[float], None]
    ) -> list[AggregateResult]:
        """The sums of each task. What was collected before gives the same again."""
        import httpx

        interval = batch_interval(carried)
        with httpx.Client(verify=self.house.peers.trusting(), timeout=60) as http:
            return [collected(CollectorClient(file, http, sleep=pause), interval, pause=pause) for file in files]

    @staticmethod
    def _answered(carried: CarriedTask, results: list[AggregateResult]) -> Answer:
        noise = round_noise(carried)
        sums = np.concatenate([np.array(each.sums, dtype=np.int64) for each in results])
        if len(sums) != carried.task.question.size:
            raise TranscriptMismatch("the servers' sums are of another question than was asked")
        return Answer(sums, np.array([noise.stddev]), noise.kurtosis, min(each.count for each in results))
