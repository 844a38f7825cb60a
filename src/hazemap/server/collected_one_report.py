"""The trust model that a collector of one-report tasks is: its questions go to both servers over HTTP.

It keeps nothing. The servers answer the same question by the same bytes, so a run that was interrupted is run again:
the same method asks the same, and ends in the same map.
"""

from collections.abc import Callable, Iterable
from time import sleep

import numpy as np

from hazemap.aggregator.collector_client import CollectorClient
from hazemap.errors import InputError
from hazemap.noisy_queries import Answer, Query, Question
from hazemap.privacy.budget import Budget
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.protocols.dap.basic_types import Interval
from hazemap.protocols.dap.task import Task
from hazemap.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.server.patient_collection import PATIENCE, collected
from hazemap.trust.cell_strings import CellStrings
from hazemap.trust.prefix_questions import prefix_question
from hazemap.trust.prefix_walk import PrefixWalk
from hazemap.trust.report_batch import asked_of
from hazemap.trust.two_servers import TwoServerPrices


class CollectedOneReport:
    """Answers from a batch of reports of paths, of a task that names a budget. `told` hears of each question."""

    def __init__(
        self,
        client: CollectorClient,
        interval: Interval,
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
        self.terms, self.walk = terms, PrefixWalk(terms.levels)
        self._client, self._interval, self._wait = client, interval, wait
        self._pause, self._told = pause, told
        self._number = 0

    @property
    def task(self) -> Task:
        """The task that its reports were made for."""
        return self._client.collector.task

    def prices(self, budget: Budget) -> TwoServerPrices:
        """What a share of the task's budget buys; `InputError` for another budget than people paid."""
        if budget != self.terms.budget:
            raise InputError(f"the reports were made for {self.terms.budget}, and a run spends that, not {budget}")
        return TwoServerPrices(budget)

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
        noise = TwoServerNoise.within(price, asked.encoder.sensitivity)
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
        if (bits := CellStrings(self.walk.where[0]).bits) != measured.bits:
            raise InputError(
                f"paths in this tree have {bits} bits, and the task's have {measured.bits}: take the tree that the "
                "devices were told"
            )
        return asked
