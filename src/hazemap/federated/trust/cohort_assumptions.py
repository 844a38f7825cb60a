"""Cohorts of devices: who is asked and what is assumed of them, who answered, and how much noise that makes."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from math import floor, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders import Encoder
from hazemap.errors import InputError, NotOpened
from hazemap.federated.protocols.secure_aggregation.graph_degree import (
    MOST_IN_A_SESSION,
    degree_and_threshold,
    together,
)
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.field_types import check_fields
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import DiscreteLaplace, noise_for, share_for
from hazemap.queries.noisy_queries import Answer

MOST_SHARDS, MOST_PEOPLE = 1 << 17, 1 << 40
"""Shards of a round at most, each a session of its own; and people of a round, or of a shard, as they are written."""

ENROLLED = "an enrolled device is a person; that is the operator's word, who enrols them"
CRYPTOGRAPHY = (
    "nobody breaks X25519, AES, ChaCha20-Poly1305, SHA-256 or Ed25519; a session's random graph fails somebody with a "
    "probability of at most 2^-40"
)
OWN_DEVICE = (
    "a person's device runs this code, with good randomness and a clock that is right, and its store is not put back "
    "from an older copy"
)
"""What statements assume of every cohort; docs/threats.md says the same, in these words."""


class Sampling(Enum):
    """Whether every round asks other people. All samples are drawn without replacement."""

    ONE = "one sample for all rounds"
    FRESH = "a fresh sample each round"


EVERY_ROUND = {
    Sampling.ONE: "the same people are asked in every round, so each of them pays for all rounds",
    Sampling.FRESH: "each round asks people drawn anew; who happens to be asked in every round pays the whole",
}
"""What statements say of who pays for how many rounds."""


@dataclass(frozen=True)
class Cohort:
    """How many people are asked in a round, in shards of which size, and what is assumed of a shard.

    A shard is one secure sum. It is opened only if at least `survivors` of its people sent their vector, so at most
    `dropout` of it may be missing. Of those, at most the part `corrupt` of the shard works with the server and may
    leave its noise out. What remains, `honest`, is the number N of people whose noise is certain to be in the sum:
    each adds a Pólya(1/N) share, and N shares are the noise that was paid for (Bagdasaryan et al. 2022, section 3). A
    server that breaks the rules may open a sum over a part of a shard; then N is what
    `federated.protocols.secure_aggregation.graph_degree.together` proves. That is assumed unless `mode` says that the
    server follows the protocol.

    >>> cohort = Cohort(people=25_000, shard=10_000, dropout=Fraction(1, 10), corrupt=Fraction(1, 20))
    >>> cohort.shards, cohort.survivors(8_333), cohort.honest(8_333)
    ((8334, 8333, 8333), 7500, 4332)
    """

    people: int
    shard: int
    dropout: Fraction = Fraction(1, 10)
    corrupt: Fraction = Fraction(1, 10)
    sampling: Sampling = Sampling.FRESH
    mode: Mode = Mode.MALICIOUS

    def __post_init__(self) -> None:
        check_fields(self)
        for number, what in ((self.people, "the people asked in a round"), (self.shard, "the people in a shard")):
            if not 1 <= number <= MOST_PEOPLE:
                raise InputError(f"{what} are a whole number from 1 to {MOST_PEOPLE:,}, not {number!r:.40}")
        if -(-self.people // self.shard) > MOST_SHARDS:
            raise InputError(f"a round has at most {MOST_SHARDS:,} shards: ask fewer people, or larger shards")
        if -(-self.people // -(-self.people // self.shard)) > MOST_IN_A_SESSION:
            raise InputError(
                f"a shard has at most {MOST_IN_A_SESSION:,} people, not {self.smallest:,}: ask for smaller shards"
            )
        for part, what in ((self.dropout, "may drop out"), (self.corrupt, "may work with the server")):
            if not 0 <= part < 1:
                raise InputError(f"the part of a shard that {what} is a fraction from 0 to below 1, not {part!r:.40}")
        self.honest(self.smallest)

    @property
    def shards(self) -> tuple[int, ...]:
        """People in each shard: as few shards as the limit allows, as equal as can be, the larger ones first."""
        number = -(-self.people // self.shard)
        each, more = divmod(self.people, number)
        return (each + 1,) * more + (each,) * (number - more)

    @property
    def smallest(self) -> int:
        """People in the smallest shard."""
        return self.people // -(-self.people // self.shard)

    @property
    def weakest(self) -> int:
        """People in the shards of whom the fewest are certain: where parts are rounded down, not always the smallest.

        >>> in_two_sizes = Cohort(19, 10, mode=Mode.SEMI_HONEST)
        >>> in_two_sizes.shards, [in_two_sizes.honest(size) for size in in_two_sizes.shards], in_two_sizes.weakest
        ((10, 9), [8, 9], 10)
        """
        largest = -(-self.people // -(-self.people // self.shard))
        return min(self.smallest, largest, key=self.honest)

    @property
    def fewest_honest(self) -> int:
        """The n of every price: whose noise, or reports, are certain to be in any sum that is opened."""
        return self.honest(self.weakest)

    def survivors(self, size: int) -> int:
        """How many of a shard of this size must have sent their vector, or it is not opened."""
        return size - floor(size * self.dropout)

    def honest(self, size: int) -> int:
        """N: how many people's noise is certain to be in an opened sum of a shard of this size."""
        honest = self.survivors(size) - floor(size * self.corrupt)
        if honest < 1:
            raise InputError(
                f"in a shard of {size} people nobody's noise would be certain to be there: {self.survivors(size)} must "
                f"survive, and {floor(size * self.corrupt)} may work with the server; ask for larger shards, or assume "
                "less of both"
            )
        if self.mode is Mode.MALICIOUS:
            degree, threshold = self.degree_and_threshold(size)
            return min(honest, together(size, degree, threshold, self.corrupt, self.dropout))
        return honest

    def degree_and_threshold(self, size: int) -> tuple[int, int]:
        """How many peers hold shares of a secret in a shard of this size, and how many of them reveal it."""
        return degree_and_threshold(size, self.corrupt, self.dropout, self.mode)

    def assumed(self, hiding: str) -> tuple[str, ...]:
        """What a statement says of these rules, where the "noise" or the "reports" of others hide a person."""
        size = self.weakest
        follows = self.mode is Mode.SEMI_HONEST
        server = "the server follows the protocol" if follows else "the server may break the protocol's rules"
        return (
            f"{server}, and at most {_percent(self.corrupt)} of a shard work with it",
            f"a shard of {size:,} people is opened only if {self.survivors(size):,} of them answered; the {hiding} of "
            f"{self.honest(size):,} of them {'is' if hiding == 'noise' else 'are'} enough",
            ENROLLED,
            CRYPTOGRAPHY,
            OWN_DEVICE,
            EVERY_ROUND[self.sampling],
        )


def _percent(part: Fraction) -> str:
    return f"{float(100 * part):.3g} %"


@dataclass(frozen=True)
class Participation:
    """For each shard how many were asked and how many answered; public, like all counts of devices.

    >>> turnout = Participation(Cohort(30, 10, dropout=Fraction(1, 5), corrupt=Fraction(0)), (10, 9, 4))
    >>> turnout.opened, turnout.lost, turnout.people, turnout.parts
    (2, 1, 19, Fraction(19, 4))
    """

    cohort: Cohort
    answered: tuple[int, ...]

    @property
    def opened(self) -> int:
        """How many shards were opened."""
        return len(self._open)

    @property
    def lost(self) -> int:
        """How many were not: too few answered, and nothing was learned of anybody in them."""
        return len(self.answered) - self.opened

    @property
    def people(self) -> int:
        """Whom the sums are over."""
        return sum(answered for _, answered in self._open)

    @property
    def by_honest(self) -> dict[int, int]:
        """People in the opened shards, by the number N that shares of their noise were made for."""
        people: dict[int, int] = {}
        for size, answered in self._open:
            honest = self.cohort.honest(size)
            people[honest] = people.get(honest, 0) + answered
        return people

    @property
    def parts(self) -> Fraction:
        """Σ people/N: how many times the noise that one curator would add is in the sum."""
        return sum((Fraction(people, honest) for honest, people in self.by_honest.items()), Fraction(0))

    def answer(self, sums: NDArray[np.int64], scale: Fraction) -> Answer:
        """The sums as an answer, with the law of the noise that is really in them."""
        return noisy_answer(sums, scale, self.parts, self.people)

    def need(self) -> None:
        """Raise `NotOpened` if no shard was."""
        if not self.opened:
            raise NotOpened(
                f"none of {len(self.answered)} shards could be opened: too few of their people answered; nothing was "
                "learned, and the round is paid for. Allow for more dropouts, or ask when more devices are there"
            )

    @property
    def _open(self) -> list[tuple[int, int]]:
        shards = zip(self.cohort.shards, self.answered, strict=True)
        return [(size, answered) for size, answered in shards if answered >= self.cohort.survivors(size)]


def noisy_answer(sums: NDArray[np.int64], scale: Fraction, parts: Fraction, people: int) -> Answer:
    """Sums with the noise of `parts` discrete Laplace numbers of a scale, made in shares by `people`.

    A sum of a·N Pólya shares of 1/N has a times the second and the fourth cumulant of one discrete Laplace number
    (Bagdasaryan et al. 2022, section 3).
    """
    one = DiscreteLaplace(scale)
    return Answer(sums, np.array([one.stddev * float(parts) ** 0.5]), one.kurtosis / float(parts), people)


_STEP = Fraction(1, 1 << 30)  # of the shares that `share_for` finds


@dataclass(frozen=True)
class SecureSumPrices:
    """The noise of a round in which as many people answer as the cohort declares.

    In a shard of which n people answered, each with a Pólya(1/N) share, noise has n/N times the variance σ² of one
    discrete Laplace number of scale Δ₁/ε; shards are independent, so the whole has Σ n/N · σ². The price is that of
    n = survivors, the least number with which a shard is opened. If more answer, there is more noise (at most
    1/(1 − dropout) times the variance, about what more people bring in counts): answers carry what is really in them.

    >>> from hazemap.encoders import Counts
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> prices = SecureSumPrices(PureDP(1), Cohort(100_000, 10_000, dropout=Fraction(0), corrupt=Fraction(0)))
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1))
    >>> round(prices.stddev(counts, Fraction(1, 10)) / 10**0.5, 3)
    15.481
    """

    budget: PureDP
    cohort: Cohort

    @cached_property
    def parts(self) -> float:
        """Σ n/N: how many times the variance that a curator's noise would have."""
        sizes = self.cohort.shards
        return float(sum(Fraction(self.cohort.survivors(size), self.cohort.honest(size)) for size in sizes))

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return noise_for(self.budget.part(share), encoder.sensitivity).stddev * sqrt(self.parts)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        share = share_for(self.budget, encoder.sensitivity, stddev / sqrt(self.parts))
        return share if self.stddev(encoder, share) <= stddev else share + _STEP  # where the division was rounded
