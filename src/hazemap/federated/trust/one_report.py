"""One report of each person, and the whole tree: two servers walk down it, and add noise at every question."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hazemap.encoders import Counts, Encoder
from hazemap.federated.trust.prefix_walk import MOST_PREFIXES, PrefixWalk, flat
from hazemap.federated.trust.report_batch import BatchedReports, ReportBatch, asked_of
from hazemap.federated.trust.two_servers import (
    ADMITTED,
    BOTH_FOLLOW,
    CRYPTOGRAPHY,
    TOGETHER,
    noisy,
    of_batches,
    price_share,
)
from hazemap.privacy.budget import Budget
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.queries.noisy_queries import Answer, Question
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.votes import VotesTable


def moved(encoder: Encoder) -> Sensitivity:
    """How far a person's rows, there or not, move a question: twice as far where who is nowhere is counted, too.

    Everybody reports. So rows that are there or not turn a path into that of nowhere, which counts in another cell
    (`federated.protocols.dap.privacy_parameters`).

    >>> from hazemap import AtMostRows, Leaves, Outside, Quadtree
    >>> cells = Leaves.at_level(Quadtree.world(depth=1), 1)
    >>> moved(Counts(cells, AtMostRows(1, Outside.DROP))).l1, moved(Counts(cells, AtMostRows(1, Outside.PEOPLE))).l1
    (1, 2)
    """
    outside = any(isinstance(each, Counts) and each.bounding.outside.asked for each in flat(encoder))
    return Sensitivity(*(2 * each for each in encoder.sensitivity)) if outside else encoder.sensitivity


@dataclass(frozen=True)
class OneReportPrices:
    """Each of two servers adds the whole noise, for rows that move a question as far as `moved` says.

    >>> from hazemap import AtMostRows, Leaves, Outside, PureDP, Quadtree
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1), AtMostRows(1, Outside.DROP))
    >>> round(OneReportPrices(PureDP(1)).stddev(counts, Fraction(1, 10)), 2)
    19.99
    """

    budget: Budget

    def noise(self, encoder: Encoder, share: Fraction) -> TwoServerNoise:
        """Of each server, for a share of the budget."""
        return TwoServerNoise.within(self.budget.part(share), moved(encoder))

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return self.noise(encoder, share).stddev

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        return price_share(self.budget, moved(encoder), stddev)


class OneReportTrust(BatchedReports):
    """Answers as two servers would from one report of each person (Poplar1), by their exact law.

    People report once. The servers walk down the tree, at most `levels` levels with at most `most_prefixes` candidates
    on each, and add their noise for every question. Devices pay for all questions when they report: budgets add up, in
    ε or in ρ, and no question is answered beyond what is bound in the report. A person's L2 sensitivity is 1 a level
    where they are added or removed (√2 where their row is replaced by another). Questions that leave the walk are
    refused (`PrefixWalk`). Whoever runs it sees every row: it is for research, plans and tests.

    >>> import numpy as np
    >>> from hazemap import Adaptive, AtMostRows, MemoryTable, Quadtree, PureDP, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(5_000), {"lon": rng.normal(0, 9, 5_000), "lat": rng.normal(0, 9, 5_000)})
    >>> trust = OneReportTrust(table, ReportBatch(people=2_000, minimum=1_800), levels=5)
    >>> made = run(Adaptive.for_one_report(Quadtree.world(depth=8), AtMostRows(1)), trust, PureDP(1), Unrecorded())
    >>> len(made.transcript), len(trust.walk.candidates) <= 4
    (5, True)
    """

    one_is_known: ClassVar[bool] = False
    """Whether answers are those that somebody sees who works with one of the servers."""

    def __init__(
        self,
        table: VotesTable,
        batch: ReportBatch,
        levels: int,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
        most_prefixes: int = MOST_PREFIXES,
    ) -> None:
        self.walk = PrefixWalk(levels, most_prefixes)
        super().__init__(table, batch, stream, dropping, once=True)

    def prices(self, budget: Budget) -> OneReportPrices:
        """What a share of this budget buys: noise as with a report a round, for twice as far with people outside."""
        return OneReportPrices(budget)

    def answer(self, question: Question, price: Budget) -> Answer:
        """The sums of those who reported, and the noise of both servers; `Unanswerable` beyond the walk."""
        encoder = asked_of(question, "two servers").encoder
        self.walk.take(encoder)
        noise = TwoServerNoise.within(price, moved(encoder))
        sums, people = self._opened(encoder)
        return noisy(self._stream, sums, noise, people, self.one_is_known)


def assumed_of_walks(levels: int, batch: ReportBatch, reporters: tuple[str, ...] = ADMITTED) -> tuple[str, ...]:
    """What a statement says where two servers walk down a tree with one report of each person."""
    return (
        "proved of every report at every level that is asked: at most one of the candidates, and that with a 1; "
        "not proved: that its cells at different levels lie in each other. A bad device adds one false person a "
        "level",
        f"a device reports once and pays for all questions then: at most {levels} levels and the whole "
        "budget are bound in its report, and each server refuses more",
        "each server adds the whole noise, drawn once for a batch and a question; it keeps its share of the sums "
        "of each level, and never the noise",
        *of_batches(batch, reporters),
        TOGETHER,
        BOTH_FOLLOW,
        CRYPTOGRAPHY,
    )
