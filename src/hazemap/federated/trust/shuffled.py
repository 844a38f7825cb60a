"""A shuffler, which hands on sealed messages in an order that says nothing, and an analyser, who opens them.

By two protocols. In parts: people add shares of noise to their vector and split it in parts, so that only the noisy
sum is learned (Balle et al. 2020), as exactly as a curator would tell it. By reports: everybody sends one vector of
randomised bits, which the analyser sees, but not whose it is (Feldman et al. 2022).

Everything about a round's messages, and about the batch that holds them, follows from the announcement and from the two
keys that come with it: the coordinator, the shuffler and each device compute the same.
"""

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import floor, sqrt
from typing import Final

from hazemap.codec import digest
from hazemap.encoders import Encoder
from hazemap.errors import InputError
from hazemap.federated.protocols.shuffle.shuffle_parameters import SECURITY, BatchTerms, ShuffleParameters
from hazemap.federated.protocols.shuffle.shuffled_reports import ReportParameters
from hazemap.federated.trust.cohort_assumptions import ENROLLED, noisy_answer
from hazemap.federated.trust.device_tasks import check_report, pure
from hazemap.federated.trust.randomised_reports import check_most, debiased, stddev_of
from hazemap.federated.trust.report_batch import BatchedReports, ReportBatch, asked_of
from hazemap.federated.trust.report_carriers import ByShuffler, CarriedTask
from hazemap.privacy.amplification.aggregate_price import clone_bound
from hazemap.privacy.budget import ApproxDP, Budget, PureDP
from hazemap.privacy.distributed_noise import DistributedNoise
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.privacy.mechanisms import noise_for, share_for
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer, Query, Question
from hazemap.tables.votes import VotesTable

APART = (
    "the shuffler and the analyser do not work together: the shuffler knows who sent a message and cannot open it, the "
    "analyser opens it and does not know who sent it; together they read every message"
)
CRYPTOGRAPHY = "nobody breaks X25519, HKDF-SHA256 or AES-128-GCM"
"""What statements assume of a shuffle."""

_STEP = Fraction(1, 1 << 30)  # of the shares that `share_for` finds
_STEPS_OF_EPSILON = 16
_LARGEST_DELTA = Fraction(1, 2)
_DEAREST = Fraction(64)  # a share that is asked for is at most this


@dataclass(frozen=True)
class ShufflePrices:
    """What a share of a budget buys where people add noise in shares: that of a curator, a little wider.

    The shares of N honest people are the whole noise, so the least batch has √(minimum/N) times its spread.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.encoders import Counts
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1))
    >>> prices = ShufflePrices(PureDP(1), ReportBatch(100_000, 100_000, Fraction(1, 10)))
    >>> round(prices.stddev(counts, Fraction(1, 10)), 2)
    14.9
    """

    budget: PureDP
    batch: ReportBatch

    @property
    def parts(self) -> Fraction:
        """How many times the variance that a curator's noise would have."""
        return Fraction(self.batch.minimum, self.batch.honest)

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return noise_for(self.budget.part(share), encoder.sensitivity).stddev * sqrt(self.parts)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        share = share_for(self.budget, encoder.sensitivity, stddev / sqrt(self.parts))
        return share if self.stddev(encoder, share) <= stddev else share + _STEP  # where the division was rounded


class ShuffledParts(BatchedReports):
    """Answers as a shuffled sum of parts would, by its exact law: a curator's sums, in pure ε.

    Each person adds a Pólya share of the noise, made for the batch's `honest` people, and splits the vector in parts
    modulo 2^b. What the analyser sees is a function of the noisy sum, but for a total-variation distance of 2^−60 in
    each round. Any sums are answered that secure sums answer. Whoever runs it sees every row.

    >>> import numpy as np
    >>> from hazemap import Adaptive, AtMostRows, MemoryTable, Quadtree, PureDP, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(5_000), {"lon": rng.normal(0, 9, 5_000), "lat": rng.normal(0, 9, 5_000)})
    >>> trust = ShuffledParts(table, ReportBatch(people=2_000, minimum=1_800, corrupt=Fraction(1, 20)))
    >>> result = run(Adaptive(Quadtree.world(depth=8), AtMostRows(1)), trust, PureDP(1), Unrecorded())
    >>> trust.reports
    [2000, 2000, 2000, 2000, 2000]
    """

    def __init__(
        self,
        table: VotesTable,
        batch: ReportBatch,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
    ) -> None:
        super().__init__(table, batch, stream, dropping)

    def prices(self, budget: Budget) -> ShufflePrices:
        """What a share of this budget buys; `InputError` unless it is in pure ε."""
        return ShufflePrices(pure(budget, "a shuffled sum"), self.batch)

    def answer(self, question: Question, price: Budget) -> Answer:
        """The sums of those who reported, with the noise that all of them made together."""
        encoder = asked_of(question, "a shuffler and an analyser").encoder
        noise = noise_of(encoder, price, self.batch)
        terms_of(encoder, noise, self.batch)
        sums, people = self._opened(encoder)
        sums = sums + noise.together(self._stream, len(sums), people)
        return noisy_answer(sums, noise.scale, Fraction(people, self.batch.honest), people)


class ShuffledReports(BatchedReports):
    """Answers from shuffled reports, one message a person, by the exact law of their sum.

    Everybody randomises a vector with a single 1 with the largest ε₀ ≤ `most` for which clones bound what is seen of
    the shuffled reports by the round's part of (ε, δ); prices of rounds add up in ε and in δ. `budget` is that of the
    run: it has to be known beforehand, as a part of ρ does not say which ε and δ it is. Neighbours replace a person's
    row by another, or by none. Whoever runs it sees every row.

    >>> from hazemap import AtMostRows, Flat, MemoryTable, Quadtree, Unrecorded, run
    >>> import numpy as np
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(9_000), {"lon": rng.normal(0, 9, 9_000), "lat": rng.normal(0, 9, 9_000)})
    >>> trust = ShuffledReports(table, ReportBatch(9_000, 9_000), ApproxDP(1, "1e-6"))
    >>> trust.law(Fraction(1))
    Asymmetric(epsilon=Fraction(85, 16))
    >>> made = run(Flat(Quadtree.world(depth=3), 2), trust, ApproxDP(1, "1e-6"), Unrecorded())
    >>> bool(12 < made.value.stddev[0] < 16)
    True
    """

    def __init__(
        self,
        table: VotesTable,
        batch: ReportBatch,
        budget: ApproxDP,
        stream: Stream | None = None,
        dropping: Fraction = Fraction(0),
        most: Fraction = Fraction(8),
    ) -> None:
        check_most(most)
        self.budget, self.most = budget, most
        super().__init__(table, batch, stream, dropping)

    def prices(self, budget: Budget) -> "ShuffledReportPrices":
        """What a share of this budget buys; `InputError` unless it is the one that was given beforehand."""
        if budget != self.budget:
            raise InputError(f"these reports were to be paid from {self.budget}, not from {budget}")
        return ShuffledReportPrices(self.budget, self.batch, self.most)

    def law(self, share: Fraction) -> Asymmetric:
        """Everybody's randomiser in a round with this share."""
        return ShuffledReportPrices(self.budget, self.batch, self.most).law(share)

    def answer(self, question: Question, price: Budget) -> Answer:
        """The unbiased numbers of those who reported, with the law of their errors."""
        query: Query = asked_of(question, "a shuffler and an analyser")
        check_report(query.encoder)
        if price != self.budget.part(query.share):
            raise InputError(f"this question's part of {self.budget} is another one than {price}")
        law = self.law(query.share)
        sums, people = self._opened(query.encoder)
        return debiased(law, law.sums(self._stream, sums, people), people, self._stream)


@dataclass(frozen=True)
class ShuffledReportPrices:
    """What a share of (ε, δ) buys in shuffled reports: by clones, and basic composition over rounds."""

    budget: ApproxDP
    batch: ReportBatch
    most: Fraction

    def law(self, share: Fraction) -> Asymmetric:
        """Everybody's randomiser in a round: the largest multiple of 1/16 that the round's (ε, δ) pays for."""
        return _law(self.budget.epsilon * share, self.budget.delta * share, self.batch.honest, self.most)

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum, where everybody who is asked reports."""
        return stddev_of(self.law(share), self.batch.people, encoder.size)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """A share that buys a standard deviation this small, at most 1 % above the least; 64 if no share will do."""
        steps = int(self.most * _STEPS_OF_EPSILON)

        def enough(step: int) -> bool:
            law = Asymmetric(Fraction(step, _STEPS_OF_EPSILON))
            return stddev_of(law, self.batch.people, encoder.size) <= stddev

        if not enough(steps):
            return _DEAREST
        step = 1 + bisect_left(range(1, steps), True, key=enough)
        low, high = Fraction(0), min(Fraction(step, _STEPS_OF_EPSILON) / self.budget.epsilon, _DEAREST)
        while high - low > high / 128:
            middle = (low + high) / 2
            low, high = (low, middle) if self._pays(middle, Fraction(step, _STEPS_OF_EPSILON)) else (middle, high)
        return high

    def _pays(self, share: Fraction, epsilon: Fraction) -> bool:
        """Whether a share pays for reports of this local ε."""
        bound = clone_bound(self.batch.honest, epsilon, min(self.budget.delta * share, _LARGEST_DELTA))
        return bound <= self.budget.epsilon * share


def noise_of(encoder: Encoder, price: Budget, batch: ReportBatch) -> DistributedNoise:
    """The noise that the people of a batch make together for this price."""
    return DistributedNoise(encoder.sensitivity.l1 / pure(price, "a shuffled sum").epsilon, batch.honest)


def terms_of(encoder: Encoder, noise: DistributedNoise, batch: ReportBatch, task: bytes = b"") -> ShuffleParameters:
    """The parameters of one shuffled sum: all follow from the question, its price and the batch."""
    bits = noise.bits(batch.people, encoder.sensitivity.l1, encoder.size)
    return ShuffleParameters.cheapest(sha256(task).digest(), encoder.size, bits, batch.honest, batch.minimum)


def assumed_of_parts(batch: ReportBatch) -> tuple[str, ...]:
    """What a statement says of vectors in parts: whose noise it is, what is seen, and what has to be believed."""
    return (
        f"people add shares of the noise; those of {batch.honest:,} honest people are enough, and at most "
        f"{floor(batch.people * batch.corrupt):,} of {batch.people:,} work with the analyser",
        f"the analyser sees parts, which tell nothing but the noisy sum, but for a chance of 2^-{SECURITY} a "
        f"round: that adds (1 + e^ε) 2^-{SECURITY} a round to δ",
        "nothing of a vector is proved: a bad device can change any sum by any number",
        *of_shuffler(batch),
    )


def assumed_of_reports(batch: ReportBatch, most: Fraction) -> tuple[str, ...]:
    """What a statement says of reports: what is seen, whose coins hide it, and what has to be believed."""
    return (
        f"the analyser sees every report without its sender; the reports of {batch.honest:,} honest people "
        f"hide each other, and each by itself hides its person by ε₀ = {float(most):.6g} at most in a round",
        "NOT proved: honest coins, and that a report has no more 1s than coins make; a bad device can set every bit",
        *of_shuffler(batch),
    )


def of_shuffler(batch: ReportBatch) -> tuple[str, ...]:
    """What a statement says of any shuffle."""
    return (
        f"the shuffler hands on nothing below the messages of {batch.minimum:,} people, a person's whole or not at "
        "all, in an order drawn uniformly, and forgets them; it counts nobody twice and makes up nobody",
        APART,
        ENROLLED,
        CRYPTOGRAPHY,
    )


@lru_cache(maxsize=4096, typed=True)
def _law(epsilon: Fraction, delta: Fraction, honest: int, most: Fraction) -> Asymmetric:
    low, high = 0, int(most * _STEPS_OF_EPSILON) + 1
    while high - low > 1:
        middle = (low + high) // 2
        enough = clone_bound(honest, Fraction(middle, _STEPS_OF_EPSILON), delta) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    return Asymmetric(Fraction(low, _STEPS_OF_EPSILON) if low else min(epsilon, most))


OPEN: Final = 7 * 86_400
"""Seconds for which the batch of a round takes messages: as long as a coordinator may wait for devices."""
_VERSION: Final = 1


def shuffled_batch(carried: CarriedTask) -> ReportBatch:
    """Who is asked in a round, and how few are never opened; `InputError` for a round of another carrier."""
    if not isinstance(carried.carrier, ByShuffler):
        raise InputError("this round's reports are carried by others than a shuffler")
    return ReportBatch.of(carried.task.cohort, carried.carrier.minimum)


def shuffled_noise(carried: CarriedTask) -> DistributedNoise:
    """The noise that the honest people of the smallest batch make together for the round's price."""
    return noise_of(carried.task.question.encoder, carried.task.price, shuffled_batch(carried))


def shuffled_parts(carried: CarriedTask) -> ShuffleParameters:
    """In how many parts, blocks and bits people split what they say; `InputError` where it cannot be done safely.

    Computed once for each announcement that was read: some 50 ms.
    """
    known: ShuffleParameters | None = carried.__dict__.get("_shuffled_parts")
    if known is None:
        noise, asked = shuffled_noise(carried), digest(carried).encode()
        known = terms_of(carried.task.question.encoder, noise, shuffled_batch(carried), asked)
        object.__setattr__(carried, "_shuffled_parts", known)
    return known


def shuffled_law(carried: CarriedTask) -> Asymmetric | None:
    """How each person randomises their report: the largest ε₀ that clones cover; None where a round is in parts."""
    carrier, task = carried.carrier, carried.task
    if not isinstance(carrier, ByShuffler) or carrier.local is None:
        return None
    if not isinstance(task.budget, ApproxDP):
        raise InputError(f"what is seen of shuffled reports costs (ε, δ), not {task.budget}: give a delta")
    return ShuffledReportPrices(task.budget, shuffled_batch(carried), carrier.local).law(task.question.share)


def shuffled_contents(carried: CarriedTask) -> ShuffleParameters | ReportParameters:
    """What the messages of a round are: parts, or reports of one message each."""
    if shuffled_law(carried) is None:
        return shuffled_parts(carried)
    asked = sha256(digest(carried).encode()).digest()
    return ReportParameters(asked, carried.task.question.size, shuffled_batch(carried).minimum)


def check_law(carried: CarriedTask) -> None:
    """`InputError` unless a round's reports are randomised as its price and its people have it."""
    law = shuffled_law(carried)
    if carried.task.randomiser != law:
        raise InputError(
            f"the round says that reports are randomised by {carried.task.randomiser}, but its price and its people "
            f"make it {law}"
        )


def batch_terms(carried: CarriedTask, issuer: bytes, analyser: bytes) -> BatchTerms:
    """The batch that a shuffler holds for this round."""
    contents, batch = shuffled_contents(carried), shuffled_batch(carried)
    return BatchTerms(
        _VERSION,
        sha256(b"hazemap batch of a campaign" + bytes.fromhex(carried.batch)).digest()[:16],
        issuer,
        analyser,
        contents.digest,
        contents.messages,
        contents.message_bytes,
        batch.minimum,
        batch.people,
        carried.begun + OPEN,
    )
