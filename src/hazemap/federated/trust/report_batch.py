"""Reports of many people that are opened together or not at all: who is asked, and how many must have answered."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor

from hazemap.encoders import Encoder
from hazemap.errors import InputError, NotOpened, Unanswerable
from hazemap.federated.trust.checked_contribution import within
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.sampled_table import SampledTable, happens
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Query, Question
from hazemap.tables.votes import VotesTable


@dataclass(frozen=True)
class ReportBatch:
    """How many people are asked in a round, the least number of reports that is opened, and what is assumed of them.

    Nothing below `minimum` reports is opened. At most the part `corrupt` of the people who are asked works with
    whoever sees the result, so of the reports that are opened `honest` are certain to be others'. Noise that servers
    add does not depend on it; noise and coins of the people themselves do.

    >>> ReportBatch(people=10_000, minimum=9_000, corrupt=Fraction(1, 20)).honest
    8500
    """

    people: int
    minimum: int
    corrupt: Fraction = Fraction(0)
    sampling: Sampling = Sampling.ONE

    @classmethod
    def of(cls, cohort: Cohort, minimum: int) -> "ReportBatch":
        """The batch of a round that asks a cohort, opened with `minimum` reports or more."""
        return cls(cohort.people, minimum, cohort.corrupt, cohort.sampling)

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.minimum <= self.people < 1 << 40:
            raise InputError(
                f"a batch is of 1 to 2^40 people and opened with 1 report to one of each; found {self.people:,} people "
                f"and a minimum of {self.minimum:,} reports"
            )
        if not 0 <= self.corrupt < 1 or self.honest < 1:
            raise InputError(
                f"of {self.minimum:,} reports none would be certain to be an honest person's: ask for a larger "
                "minimum, or assume that fewer people work with whoever sees the result"
            )

    @property
    def honest(self) -> int:
        """N: reports of people who work with nobody, in any batch that is opened."""
        return self.minimum - floor(self.people * self.corrupt)

    @property
    def blank(self) -> int:
        """Reports of nobody that two servers add together where people randomise theirs: each as many as hide one."""
        return 2 * (self.honest - 1)


class BatchedReports:
    """What trust models of batches have in common when they are simulated: a sample of people, and who of them reports.

    Each person asked says nothing with probability `dropping`, on their own. `reports` tells how many reports came in
    each round. With `once` people report once, and the same reports answer every round.
    """

    def __init__(
        self,
        table: VotesTable,
        batch: ReportBatch,
        stream: Stream | None,
        dropping: Fraction,
        once: bool = False,
    ) -> None:
        if not 0 <= dropping <= 1:
            raise InputError(f"the probability of saying nothing is a fraction from 0 to 1, not {dropping}")
        self.table, self.batch, self.dropping = table, batch, dropping
        self.reports: list[int] = []
        self._stream, self._once = stream or Stream.from_os(), once
        self._sample: SampledTable | None = None
        self._came = 0

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query

    def _answering(self, asked: int) -> int:
        self._came = asked - int(happens(self._stream, asked, self.dropping).sum()) if self.dropping else asked
        return self._came

    def _opened(self, encoder: Encoder) -> tuple[Ints, int]:
        """The exact sums of those who reported, and how many they are; `NotOpened` below the minimum."""
        sample = self._sample or SampledTable(self.table, self.batch.people, self._stream, self._answering)
        if self._once or self.batch.sampling is Sampling.ONE:
            self._sample = sample
        sums = encoder.total(sample)
        people = self._came
        self.reports.append(people)
        if not self._once:
            sample.next_round()
        if people < self.batch.minimum:
            raise NotOpened(
                f"{people:,} reports came, and nothing below {self.batch.minimum:,} is opened: nothing was learned, "
                "and the round is paid for. Ask more people, or when more devices are there"
            )
        return within(sums, encoder.sensitivity, people), people


def asked_of(question: Question, who: str) -> Query:
    """The question, if sums of reports answer it; `Unanswerable` in words that say who could not."""
    if not isinstance(question, Query):
        raise Unanswerable(f"{who} answer queries for sums, not a {type(question).__name__}")
    if question.cohort is not None:
        raise Unanswerable(f"{who} ask everyone in a batch; they know no cohorts: ask everyone (cohort=None)")
    return question
