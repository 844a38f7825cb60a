"""Two servers, each of which sees a share of every report and adds the whole noise: a report for each round.

A person's device splits its report in two shares, proves to the two servers that it is well formed, and neither learns
anything else (Prio3, draft-irtf-cfrg-vdaf). Each server adds up the shares of a batch and adds exact noise; whoever
asks adds the two. One honest server is enough for privacy; right sums need both.

A report proves that a person added 1 in one place of a vector and nothing elsewhere. A stack of such vectors is a
report for each. What a person would have to be believed about (several votes, weights, negative numbers) is refused:
the circuits for those prove bounds place by place, so that a bad device could add the bound everywhere.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from hazemap.encoders import CellPresence, Concatenation, CountMinSketch, Counts, Encoder
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.trust.cohort_assumptions import ENROLLED
from hazemap.federated.trust.device_tasks import check_report, round_price
from hazemap.federated.trust.randomised_reports import (
    ReportPrices,
    check_most,
    debiased,
    law_for_numbers,
)
from hazemap.federated.trust.report_batch import BatchedReports, ReportBatch, asked_of
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import Budget
from hazemap.privacy.local_randomisers import TOO_HEAVY, Randomiser, most_ones
from hazemap.privacy.mechanisms import share_for
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.two_server_noise import TwoServerNoise
from hazemap.queries.noisy_queries import Answer, Question
from hazemap.tables.contribution_bounding import Sensitivity
from hazemap.tables.votes import VotesTable

MOST_VECTORS: Final = 16
"""Vectors that one round may ask for: each is a report of its own."""


def histograms(encoder: Encoder) -> tuple[int, ...]:
    """The lengths of the vectors in each of which a person has a single 1, or none; `Unanswerable` if that is not so.

    >>> from hazemap import AtMostRows, Counts, Leaves, Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> histograms(Concatenation((Counts(Leaves.at_level(tree, 1)), Counts(Leaves.at_level(tree, 2))), (1, 3)))
    (4, 16)
    """
    if isinstance(encoder, Concatenation):
        return tuple(size for part in encoder.parts for size in histograms(part))
    if isinstance(encoder, CountMinSketch) and encoder.bounding.sensitivity.l1 == 1:
        return (encoder.width,) * encoder.rows
    if isinstance(encoder, Counts | CellPresence | RecipeBins) and encoder.sensitivity.l1 == 1:
        return (encoder.size,)
    if isinstance(encoder, Counts | CellPresence | CountMinSketch):
        raise Unanswerable(
            f"a report proves a single 1 in one place, but here a person may add {encoder.bounding.sensitivity.l1}: "
            'bound each person to one row (--bounding "one row"), or ask a curator or secure sums'
        )
    raise Unanswerable(
        f"a report proves a single 1 in one place, and {type(encoder).__name__} adds other numbers, which servers "
        "that see shares cannot check: choose a method of counts, or ask a curator or secure sums"
    )


def vectors(encoder: Encoder) -> tuple[int, ...]:
    """The lengths of the vectors that a round asks two servers for; `Unanswerable` for what it cannot ask.

    This alone decides, for rounds over HTTP, for simulations and for plans.

    >>> from hazemap import AtMostRows, Counts, Leaves, Quadtree
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=3), 1), AtMostRows(1))
    >>> vectors(Concatenation((counts, counts), (1, 1)))
    (4, 4)
    """
    if _weighed(encoder):
        raise Unanswerable(
            "reports of a single 1 have no weights, and this method asks levels with different ones: choose another "
            "method, such as adaptive"
        )
    sizes = histograms(encoder)
    if len(sizes) > MOST_VECTORS:
        raise Unanswerable(
            f"a round asks two servers for at most {MOST_VECTORS} vectors, not {len(sizes):,}: choose another method"
        )
    return sizes


def _weighed(encoder: Encoder) -> bool:
    if not isinstance(encoder, Concatenation):
        return False
    return any(weight != 1 for weight in encoder.weights) or any(map(_weighed, encoder.parts))


TOGETHER = (
    "the two servers do not work together: whoever reads both reads every report; with one of them, and with whoever "
    "sees the result, nothing is learned beyond the noisy sums"
)
BOTH_FOLLOW = "the sums are right only if both servers follow the protocol; privacy needs one of them"
TAKES_PART = "that a device takes part is public; whether it has a row is not"
CRYPTOGRAPHY = "nobody breaks X25519, Ed25519, SHA-256, AES-128-GCM, TurboSHAKE128 or AES-128"
"""What statements assume of two servers."""

_STEP = Fraction(1, 1 << 30)  # of the shares that `share_for` finds


@dataclass(frozen=True)
class TwoServerPrices:
    """What a share of a budget buys where each of two servers adds the whole noise: √2 times a curator's spread.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.encoders import Counts
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1))
    >>> round(TwoServerPrices(PureDP(1)).stddev(counts, Fraction(1, 10)), 2)
    19.99
    """

    budget: Budget

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return TwoServerNoise.within(self.budget.part(share), encoder.sensitivity).stddev

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        return price_share(self.budget, encoder.sensitivity, stddev)


def price_share(budget: Budget, sensitivity: Sensitivity, stddev: float) -> Fraction:
    """The least share of a budget for which the noise of both servers has a standard deviation this small."""
    share = share_for(budget, sensitivity, stddev / sqrt(2))
    enough = TwoServerNoise.within(budget.part(share), sensitivity).stddev <= stddev
    return share if enough else share + _STEP  # where the division was rounded


class TwoServers(BatchedReports):
    """Answers as two servers would, by their exact law: a batch of reports each round, and the noise of both.

    Each round asks for a report of a single 1 (Prio3Histogram, with one more place for devices without a row, which
    the servers drop before they open anything; over HTTP, Prio3MultihotCountVec of a single 1 at most, which needs no
    such place), or for one of each level where a question asks several,
    all with weight 1. Questions that such a report does not fit are
    refused. The budget may be in ε, ρ or (ε, δ).

    With a `local_epsilon` people randomise their reports themselves (Prio3MultihotCountVec: bits, and at most so many
    of them, are proved; honest coins are not), each server adds reports of nobody, and nothing below the batch's
    minimum is opened: with recipes, nothing below the minimum cohort that a recipe states.

    Whoever runs it sees every row: it is for research, plans and tests. O(people asked + cells) a round.

    >>> import numpy as np
    >>> from hazemap import Adaptive, AtMostRows, MemoryTable, Quadtree, PureDP, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(5_000), {"lon": rng.normal(0, 9, 5_000), "lat": rng.normal(0, 9, 5_000)})
    >>> trust = TwoServers(table, ReportBatch(people=2_000, minimum=1_800), dropping=Fraction(1, 20))
    >>> result = run(Adaptive(Quadtree.world(depth=8), AtMostRows(1)), trust, PureDP(1), Unrecorded())
    >>> len(trust.reports)
    5
    """

    one_is_known: ClassVar[bool] = False
    """Whether answers are those that somebody sees who works with one of the servers: an audit looks at them so."""

    def __init__(
        self,
        table: VotesTable,
        batch: ReportBatch,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
        local_epsilon: Fraction | None = None,
    ) -> None:
        if local_epsilon is not None:
            check_most(local_epsilon)
        self.local_epsilon = local_epsilon
        super().__init__(table, batch, stream, dropping)

    def prices(self, budget: Budget) -> TwoServerPrices | ReportPrices:
        """What a share of this budget buys."""
        if self.local_epsilon is None:
            return TwoServerPrices(budget)
        return ReportPrices(budget, self.batch, self.local_epsilon)

    def answer(self, question: Question, price: Budget) -> Answer:
        """The sums of those who reported, and the noise of both servers, or of the reports."""
        encoder = asked_of(question, "two servers").encoder
        if self.local_epsilon is not None:
            return self._of_randomised(encoder, price, self.local_epsilon)
        vectors(encoder)
        noise = TwoServerNoise.within(price, encoder.sensitivity)
        sums, people = self._opened(encoder)
        return noisy(self._stream, sums, noise, people, self.one_is_known)

    def _of_randomised(self, encoder: Encoder, price: Budget, most: Fraction) -> Answer:
        check_report(encoder)
        if isinstance(encoder, RecipeBins) and self.batch.minimum < encoder.recipe.minimum_cohort:
            raise InputError(
                f"the recipe {encoder.recipe.id} is summed over {encoder.recipe.minimum_cohort:,} people or more, but "
                f"these servers open batches of {self.batch.minimum:,}: set a larger minimum"
            )
        law = law_for_numbers(round_price(price), self.batch.honest, most, encoder.size)
        sums, people = self._opened(encoder)
        blank = self.batch.blank // (2 if self.one_is_known else 1)
        return debiased(law, law.sums(self._stream, sums, people + blank), people, self._stream, blank)


def assumed_of_histograms(batch: ReportBatch) -> tuple[str, ...]:
    """What a statement says where a report of a single 1 answers each question, and servers add the noise."""
    return (
        "proved of every report: numbers of 0 and 1, with a single 1 at most; so a bad device adds one false person",
        "each server adds the whole noise, drawn once for a batch and a question",
        *of_batches(batch),
        TOGETHER,
        BOTH_FOLLOW,
        CRYPTOGRAPHY,
    )


def assumed_of_randomised(batch: ReportBatch, local_epsilon: Fraction | None) -> tuple[str, ...]:
    """What a statement says where people randomise their reports; without an ε₀ where each question has its own."""
    alone = "its own ε₀" if local_epsilon is None else f"ε₀ = {float(local_epsilon):.6g} at most"
    return (
        "proved of every report: numbers of 0 and 1, and no more 1s than an honest report has but for a chance "
        "of 2^-40 in all; so a bad device adds as many false 1s, where they help it most",
        f"each server adds the reports of {batch.honest - 1:,} people who hold nothing, drawn once for a batch: those "
        "of one honest server hide a report as the price says, whoever else has reported or was left out",
        f"NOT proved: honest coins. A report by itself hides its person by {alone}",
        *of_batches(batch),
        TOGETHER,
        BOTH_FOLLOW,
        CRYPTOGRAPHY,
    )


def ones_allowed(law: Randomiser, size: int, batch: ReportBatch) -> int:
    """How many 1s servers let through: among all people, an honest report has more with a chance of 2^−40."""
    return most_ones(law, size, TOO_HEAVY / batch.people)


ADMITTED = (
    "proved of every counted report: its person was admitted once, by a credential of the coordinator for this round "
    "that the report carries; each server counts a credential once, whatever the other says",
    "the coordinator can know who took part: it gives out the credentials, and hears who has reported",
    ENROLLED,
)
"""Who reported, where reports carry credentials."""
OPEN = (
    "NOT proved: that a person reported once. The task was open: whoever had its id could upload any number of reports",
)
"""Who reported to a task that is open."""


def of_batches(batch: ReportBatch, reporters: tuple[str, ...] = ADMITTED) -> tuple[str, ...]:
    """What a statement says of a batch, whoever opens it, and of those who reported."""
    return (f"nothing below a batch of {batch.minimum:,} reports is opened", TAKES_PART, *reporters)


def noisy(stream: Stream, sums: Ints, noise: TwoServerNoise, people: int, one_is_known: bool) -> Answer:
    """Sums with the noise of both servers and its law; where that does not fit 64 bits, noise alone, as of curators."""
    if one_is_known and noise.fits:
        return Answer(noise.share(stream, len(sums)) + sums, np.array([noise.each.stddev]), noise.each.kurtosis, people)
    drawn = noise.together(stream, len(sums)) + sums if noise.fits else noise.widest.together(stream, len(sums))
    return Answer(drawn, np.array([noise.stddev]), noise.kurtosis, people)
