"""The conversation between an algorithm and a trust model.

An algorithm is a generator: it yields a query, is sent an answer, and in the end returns what it made of
them. It sees no row, draws no randomness and does no I/O, so

* its privacy is the privacy of its queries, whatever it does with the answers;
* the same code runs against a table in memory or a week of devices;
* sending the same answers again brings it back to the same place after a crash.
"""

from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Growing, Leaves, Tree
from hazemap.encoders import Counts, Encoder, EvenSplitScores, MedianSplitScores, QuantileScores, SplitCosts
from hazemap.encoders.sample_statistics import (
    ArrayBins,
    ArrayMeans,
    ArrayQuantiles,
    PlaceArrayMeans,
    PlaceBalances,
    PlaceBins,
    PlaceMeans,
    PlaceQuantiles,
    PlaceVariances,
    RobustMeanScores,
)
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields
from hazemap.privacy.budget import Budget
from hazemap.tables.contribution_bounding import Bounding

Where = tuple[Leaves, Bounding] | None
"""The cells that a question is about and the rule it is asked under; None where it is about everybody."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class _Asked:
    """What all questions check when they are made: an exact share in ]0, 1], and the types of their fields."""

    share: Fraction
    only_a_curator: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if type(self.share) not in (Fraction, int) or not 0 < self.share <= 1:
            raise InputError(
                "a share of the budget is a Fraction above 0 and at most 1, such as Fraction(1, 4), not "
                f"{self.share!r:.40}: shares are added up exactly"
            )
        object.__setattr__(self, "share", Fraction(self.share))
        check_fields(self)


class _Scored(_Asked):
    """A question about what rows score, which is no sum over people."""

    scores: Any

    @property
    def where(self) -> Where:
        """The cells that are cut: a vote elsewhere moves none of these scores. All others are of everybody's rows."""
        scores = self.scores
        of_cells = isinstance(scores, MedianSplitScores | EvenSplitScores | SplitCosts)
        return (scores.cells, scores.bounding) if of_cells else None


@dataclass(frozen=True)
class Query(_Asked):
    """Ask for the noisy sums of `encoder`, spending `share` of the run's budget.

    People are asked in cohorts: a cohort pays only for its own queries. With `cohort=None` everyone is
    asked, and everyone pays.
    """

    encoder: Encoder
    share: Fraction
    cohort: int | None = None
    only_a_curator: ClassVar[bool] = False

    @property
    def size(self) -> int:
        """How many sums the answer has."""
        return self.encoder.size

    @property
    def where(self) -> Where:
        """The cells it is about: people elsewhere are not asked, and do not pay (`privacy.parallel_composition`)."""
        counts = self.encoder
        if isinstance(counts, Counts) and isinstance(counts.cells, Leaves):
            return counts.cells, counts.bounding
        return None


@dataclass(frozen=True)
class Choice(_Scored):
    """Ask for one of several candidates by how well the rows score it (McSherry and Talwar 2007).

    A score is not a sum over people, so only a curator can answer: `Answer.sums` are the chosen candidates. Of choices
    in places, `Answer.stddev` is that of the exponential noise of report noisy max, which is the same mechanism: 2/ε,
    in units of how far one person moves a score.
    """

    scores: (
        QuantileScores
        | (MedianSplitScores | EvenSplitScores)
        | (ArrayQuantiles | ArrayBins | RobustMeanScores)
        | (PlaceQuantiles | PlaceBins | PlaceBalances)
    )
    share: Fraction
    cohort: int | None = None

    @property
    def size(self) -> int:
        """How many candidates are chosen."""
        return self.scores.choices


@dataclass(frozen=True)
class Measure(_Scored):
    """Ask for noisy numbers that are no sums over people, such as what it costs to cut a cell here or there.

    Only a curator can answer: with the noise that the numbers' exact sensitivity asks for, as it answers a `Query`.
    """

    scores: SplitCosts | ArrayMeans | PlaceMeans | PlaceArrayMeans | PlaceVariances
    share: Fraction
    cohort: int | None = None

    @property
    def size(self) -> int:
        """How many numbers the answer has."""
        return self.scores.size


@dataclass(frozen=True)
class Growth(_Asked):
    """Ask for a tree that is split wherever many votes are: its cells that were not split
    (`privacy.private_splitting`).

    A cell of this tree is split iff its noisy count, less a bias that grows with its depth, is above `threshold` (in
    votes); `fan` is β, how many times less every further depth may cost. Splits depend on each other, so only a curator
    can answer, and of how many cells is part of the answer: `Answer.sums` are the numbers of the cells.
    """

    tree: Tree
    bounding: Bounding
    share: Fraction
    threshold: int = 0
    fan: int = 4
    cohort: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tree.depth < 1 or self.fan < 2 or isinstance(self.tree, Growing):
            raise InputError(
                "a tree to grow needs cells of its own, at least one level of them, each cut in at least 2"
            )

    @property
    def size(self) -> None:
        """Nobody knows how many cells the answer has."""
        return

    @property
    def where(self) -> Where:
        """All cells of the tree."""
        return Leaves(self.tree, self.tree.root), self.bounding


Question = Growth | Query | Choice | Measure
"""The closed list of what may be asked."""


@dataclass(frozen=True, eq=False)
class Answer(EqualByFields):
    """Unbiased noisy sums, int64[size], and what is publicly known of their noise.

    `stddev` is float64[size] or float64[1] (the same for all); `kurtosis` is the excess kurtosis of each
    sum's noise (discrete Laplace about 3, discrete Gaussian 0), which intervals need. `people` is how many
    people the sums are over, where that is public: devices that answered, of those that were asked. `skewness` is that
    of the noise in a cell of nobody, where it is not symmetric: of randomised reports. `chances` are those with which a
    report sent its own bit as 1, and any other: where the law of the sums is known exactly. `blank` reports
    more, of nobody, are in the sums. Nobody writes into the arrays: what is kept is what was answered.

    >>> Answer(np.array([3, -1]), np.array([1.4])).stddev
    array([1.4])
    """

    sums: NDArray[np.int64]
    stddev: NDArray[np.float64]
    kurtosis: float = 0.0
    people: int | None = None
    skewness: float | None = None
    chances: tuple[float, float] | None = None
    blank: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("sums", "stddev"):
            numbers = getattr(self, name)
            object.__setattr__(self, name, np.frombuffer(numbers.tobytes(), numbers.dtype).reshape(numbers.shape))


class Prices(Protocol):
    """What a share of the run's budget buys: public, deterministic, given by the trust model."""

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share (above 1 if no share will do) that buys a standard deviation this small."""


Rounds = Generator[Question, Answer, T]


class Algorithm(Protocol[T_co]):
    """Who asks: a frozen dataclass of public parameters."""

    def rounds(self, prices: Prices) -> Generator[Question, Answer, T_co]:
        """Yield queries, be sent their answers, return the result."""


class _Answering(Protocol):
    def prices(self, budget: Budget) -> Prices:
        """What a share of this budget buys."""

    def answers(self, question: type[Question]) -> bool:
        """Whether this trust model can answer this type of query."""


class Trust(_Answering, Protocol):
    """Who answers: the only party that sees rows, or shares of them, and the only one that adds noise."""

    def answer(self, question: Question, price: Budget) -> Answer:
        """Answer, spending exactly `price`."""


class AsyncTrust(_Answering, Protocol):
    """`Trust` over a network."""

    def answer(self, question: Question, price: Budget) -> Awaitable[Answer]:
        """Answer, spending exactly `price`."""
