"""The trust model that a collector of one-report tasks is: its questions go to both servers over HTTP.

It keeps nothing. The servers answer the same question by the same bytes, so a run that was interrupted is run again:
the same method asks the same, and ends in the same map.
"""

from collections.abc import Callable, Iterable
from time import sleep
from typing import Final

import numpy as np

from hazemap.errors import InputError
from hazemap.federated.aggregator.collector_client import CollectorClient
from hazemap.federated.protocols.dap.basic_types import Interval
from hazemap.federated.protocols.dap.privacy_parameters import Nowhere
from hazemap.federated.protocols.dap.task import Task
from hazemap.federated.protocols.dap.vdaf_configuration import Poplar1Configuration
from hazemap.federated.server.networked_secure_aggregation import PATIENCE, collected
from hazemap.federated.trust.one_report import OneReportPrices, moved
from hazemap.federated.trust.prefix_walk import CellStrings, PrefixWalk, prefix_question
from hazemap.federated.trust.report_batch import asked_of
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
        self.terms, self.walk = terms, PrefixWalk(terms.levels, terms.prefixes)
        self._client, self._interval, self._wait = client, interval, wait
        self._pause, self._told = pause, told
        self._number = 0

    @property
    def task(self) -> Task:
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
