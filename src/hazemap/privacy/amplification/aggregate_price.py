"""What a person's report costs them against whoever sees only sums of reports: the tightest bound that is proved."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.errors import InputError, Refused
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import LARGEST_SUM, Neighbours, SumRound, exact_sum
from hazemap.privacy.amplification.shuffle_bounds import clone_bound, theorem_3_1
from hazemap.privacy.amplification.zcdp_of_sum import renyi_symmetric
from hazemap.privacy.budget import Number, exact


@dataclass(frozen=True)
class AggregatePrice:
    """(ε, δ) of the sum, ε rounded up; the bound that gave it; and what has to be true for it, in words.

    >>> price = aggregate_price(BitFlipLaw.asymmetric(4), 100_000, Fraction(1, 10**6))
    >>> round(float(price.epsilon), 4), price.bound
    (0.0567, 'the exact law of the sum')
    """

    epsilon: Fraction
    delta: Fraction
    bound: str
    assumptions: tuple[str, ...]


def aggregate_price(
    law: BitFlipLaw,
    honest: int,
    delta: Number,
    rounds: int = 1,
    neighbours: Neighbours = Neighbours.REPLACEMENT,
    bins: int | None = None,
) -> AggregatePrice:
    """The price of `rounds` sums of at least `honest` reports each, the person's own among them.

    It compares all bounds that are proved for the case: the local ε₀, theorem 3.1, clones and theorem C.3 (added up
    over the rounds, each at δ/rounds), and the exact law. It is never above rounds · ε₀. It holds for every larger sum
    too, since dropping a report is post-processing. `bins` is how many bins a random report chooses from.
    """
    given = _delta(delta)
    schedule = SumRound(law, honest, rounds)
    local = rounds * neighbours.local(law)
    allowed = neighbours.allowed(given, bins)
    found = [(local, "the local ε₀ of the reports")]
    if 0 < allowed < 1:
        each = allowed / rounds
        found.append((exact_sum([schedule], allowed, neighbours), "the exact law of the sum"))
        counted = min(honest, LARGEST_SUM)
        if (by_theorem := theorem_3_1(honest, law.replacement, each)) is not None:
            found.append((rounds * by_theorem, "theorem 3.1 of McMillan et al. 2022"))
        found.append((rounds * clone_bound(counted, law.replacement, each), "clones (Feldman et al. 2022)"))
        if law.mirrored:
            by_renyi = rounds * renyi_symmetric(counted, law.removal, each)
            found.append((by_renyi, "theorem C.3 of McMillan et al. 2022"))
    epsilon, bound = min(found, key=lambda one: one[0])
    return AggregatePrice(epsilon, given, bound, _assumptions(honest, rounds, neighbours, bound == found[0][1]))


def minimum_cohort(
    law: BitFlipLaw,
    epsilon: Number,
    delta: Number,
    rounds: int = 1,
    neighbours: Neighbours = Neighbours.REPLACEMENT,
) -> int:
    """The least number of honest reports in a sum whose exact price is at most ε, by bisection.

    The price of n reports holds for every larger sum, by proof, so compare sizes with this number, not prices again:
    where covers change, a price as computed might rise in its last digits.
    `Refused` where no sum up to 10⁸ is enough.

    >>> minimum_cohort(BitFlipLaw.asymmetric(4), 1, Fraction(1, 10**6))
    447
    """
    goal, given = exact(epsilon, "epsilon"), _delta(delta)
    if goal <= 0:
        raise InputError("a price is above 0: ask for an epsilon above 0")

    def enough(honest: int) -> bool:
        return exact_sum([SumRound(law, honest, rounds)], given, neighbours) <= goal

    if enough(1):
        return 1
    low, high = 1, 64
    while not enough(high):
        if high >= LARGEST_SUM:
            raise Refused(
                f"no sum of up to {LARGEST_SUM:,} reports brings them down to ε = {float(goal):.6g}: "
                "choose a smaller ε₀, fewer rounds, or a larger ε"
            )
        low, high = high, min(4 * high, LARGEST_SUM)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _delta(delta: Number) -> Fraction:
    value = exact(delta, "delta")
    if not 0 <= value < 1:
        raise InputError(f"delta must be at least 0 and below 1, not {float(value):.6g}")
    return value


def _assumptions(honest: int, rounds: int, neighbours: Neighbours, local: bool) -> tuple[str, ...]:
    unit = f"One person's report is made from their one-hot vector or from {neighbours.value}; they report either way."
    if local:
        return (unit, "Each report is randomised by its device as stated. Nothing is assumed of the others.")
    said = (
        unit,
        f"Only the sum is seen, and at least {honest:,} of its reports, this one included, are honest: randomised as "
        "stated, with fresh coins, and told to nobody. Nothing is assumed of what they say.",
        "No party can open, or obtain by subtracting two sums, one with fewer honest reports.",
    )
    if rounds == 1:
        return said
    schedule = f"The {rounds:,} rounds, their laws and their sizes were fixed beforehand; the questions need not be."
    return (*said, schedule)
