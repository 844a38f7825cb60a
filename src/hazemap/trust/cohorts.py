"""Who is asked, and what is believed about them: the public rules of a campaign among devices."""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import floor

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.protocols.secure_aggregation.graph_degree import degree_and_threshold, together
from hazemap.protocols.secure_aggregation.session_parameters import Mode

MOST_SHARDS = 1 << 17
"""Shards of a round at most: each is a session of its own."""


class Sampling(Enum):
    """Whether every round asks other people. All samples are drawn without replacement."""

    ONE = "one sample for all rounds"
    FRESH = "a fresh sample each round"


@dataclass(frozen=True)
class Cohort:
    """How many people are asked in a round, in shards of which size, and what is assumed of a shard.

    A shard is one secure sum. It is opened only if at least `survivors` of its people sent their vector, so at most
    `dropout` of it may be missing. Of those, at most the part `corrupt` of the shard works with the server and may
    leave its noise out. What remains, `honest`, is the number N of people whose noise is certain to be in the sum:
    each adds a Pólya(1/N) share, and N shares are the noise that was paid for (Bagdasaryan et al. 2022, section 3). A
    server that breaks the rules may open a sum over a part of a shard; then N is what
    `protocols.secure_aggregation.graph_degree.together` proves.

    >>> cohort = Cohort(people=25_000, shard=10_000, dropout=Fraction(1, 10), corrupt=Fraction(1, 20))
    >>> cohort.shards, cohort.survivors(8_333), cohort.honest(8_333)
    ((8334, 8333, 8333), 7500, 7084)
    """

    people: int
    shard: int
    dropout: Fraction = Fraction(1, 10)
    corrupt: Fraction = Fraction(1, 10)
    sampling: Sampling = Sampling.FRESH
    mode: Mode = Mode.SEMI_HONEST

    def __post_init__(self) -> None:
        check_fields(self)
        for number, what in ((self.people, "the people asked in a round"), (self.shard, "the people in a shard")):
            if number < 1:
                raise InputError(f"{what} are a whole number of at least 1, not {number!r:.40}")
        if -(-self.people // self.shard) > MOST_SHARDS:
            raise InputError(f"a round has at most {MOST_SHARDS:,} shards: ask fewer people, or larger shards")
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
        """How many peers hold shares of a secret in a shard of this size, and how many of them tell it."""
        return degree_and_threshold(size, self.corrupt, self.dropout, self.mode)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a statement has to say about these rules."""
        size = self.smallest
        follows = self.mode is Mode.SEMI_HONEST
        server = "the server follows the protocol" if follows else "the server may break the protocol's rules"
        every = {
            Sampling.ONE: "the same people are asked in every round, so each of them pays for all rounds",
            Sampling.FRESH: "each round asks people drawn anew; who happens to be asked in every round pays the whole",
        }
        return (
            f"{server}, and at most {_percent(self.corrupt)} of a shard work with it",
            f"a shard of {size:,} people is opened only if {self.survivors(size):,} of them answered; the noise of "
            f"{self.honest(size):,} of them is enough",
            "an enrolled device is a person",
            every[self.sampling],
        )


def _percent(part: Fraction) -> str:
    return f"{float(100 * part):.3g} %"
