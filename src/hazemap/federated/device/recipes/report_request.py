"""What a recipe asks of one device, with everything that its price depends on."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

from hazemap.codec import dumps
from hazemap.errors import InputError
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.recipes.recipe import Recipe
from hazemap.field_types import check_fields
from hazemap.privacy.report_price import ReportPrice

MOST_ROUNDS = 1_024


@dataclass(frozen=True)
class Schedule:
    """Rounds that are fixed before the first answer: ε₀ and the least cohort of each, and the price of all together.

    The price may come from the exact convolution of the rounds: that holds for questions chosen on the way, not for
    ε₀, cohorts or a number of rounds chosen on the way.

    >>> price = ReportPrice(Fraction(377, 1000), Fraction(1, 10**6))
    >>> len(Schedule(((Fraction(3), 10_000),) * 10, price, b"ten weeks").digest)
    32
    """

    rounds: tuple[tuple[Fraction, int], ...]
    price: ReportPrice
    name: bytes

    def __post_init__(self) -> None:
        if not 1 <= len(self.rounds) <= MOST_ROUNDS or not 1 <= len(self.name) <= 64:
            raise InputError(f"a schedule has 1 to {MOST_ROUNDS:,} rounds, and a name of 1 to 64 bytes")

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the rounds, the price and the name: the same schedule begun anew has another name."""
        rounds = tuple((epsilon, cohort) for epsilon, cohort in self.rounds)
        price = (self.price.epsilon, self.price.delta, self.price.rho, self.price.spill)
        return sha256(dumps((rounds, price, self.name.hex())).encode()).digest()


@dataclass(frozen=True)
class ReportRequest:
    """One report that a device is asked for.

    `recipe` is the digest of the recipe, `fields` what its query truly reads (the database says so, not the recipe),
    `cohort` the least number of people whose sum is opened. `price` is what the recipe states, and what is paid;
    `achieved` what the device has computed for ε₀ and the cohort (`privacy.amplification`), of the whole schedule where
    there is one. `whole` is what its `study` said that all its rounds cost together. `audience` names to whom the
    report goes: a digest of the roster and the shard, or of the servers and the batch. The same request to the same
    audience gets the same bytes again; another audience is another report.
    """

    analysis: str
    purpose: str
    recipe: bytes
    fields: frozenset[StreamFieldName]
    local_epsilon: Fraction
    cohort: int
    price: ReportPrice
    achieved: ReportPrice
    carrier: Carrier
    audience: bytes
    cohort_fields: frozenset[str] = frozenset()
    schedule: Schedule | None = None
    round: int = 1
    study: str = ""
    whole: ReportPrice | None = None

    def __post_init__(self) -> None:
        if len(self.recipe) != 32 or len(self.audience) != 32:
            raise InputError("a recipe and an audience are named by a digest of 32 bytes")
        if type(self.local_epsilon) is not Fraction or self.local_epsilon < 0:
            raise InputError("ε₀ of a report is a fraction of 0 or more")
        if type(self.cohort) is not int or self.cohort < 1 or type(self.round) is not int or self.round < 1:
            raise InputError("a cohort and a round are whole numbers of at least 1")
        check_fields(self.price)
        check_fields(self.achieved)

    @classmethod
    def of(
        cls, recipe: Recipe, touched: Iterable[StreamFieldName], achieved: ReportPrice, audience: bytes
    ) -> "ReportRequest":
        """A recipe asked by itself, of no schedule; `touched` is the sandbox's word on what its query reads.

        The ρ that is paid is the one that the device has computed: a recipe states none.
        """
        return cls(
            analysis=recipe.analysis,
            purpose=recipe.purpose,
            recipe=bytes.fromhex(recipe.digest),
            fields=frozenset(touched),
            local_epsilon=recipe.local_epsilon,
            cohort=recipe.minimum_cohort,
            price=ReportPrice(recipe.epsilon, recipe.delta, achieved.rho, achieved.spill),
            achieved=achieved,
            carrier=recipe.carrier,
            audience=audience,
            cohort_fields=frozenset(each.name for each in recipe.cohort),
        )

    @cached_property
    def key(self) -> bytes:
        """What the reply is kept under: the recipe, the round and the audience."""
        return sha256(self.recipe + self.round.to_bytes(8, "big") + self.audience).digest()
