"""The tables of the page on amplification are what the code says."""

from fractions import Fraction
from math import exp
from pathlib import Path

import pytest

from hazemap.privacy.amplification.aggregate_price import best_unary, clone_bound, minimum_cohort, theorem_3_1
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import ReportNeighbours, SumRound, exact_sum
from hazemap.privacy.amplification.zcdp_of_sum import renyi_symmetric

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "amplification.md"
MICRO = Fraction(1, 10**6)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below this line."""
    lines = PAGE.read_text().partition(heading)[2].strip().splitlines()[2:]
    table = lines[: next(i for i, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip().replace(",", "") for cell in line.strip("|").split("|")] for line in table]


def largest(price) -> Fraction:
    """The largest asymmetric ε₀ that costs ε = 0.25, by bisection."""
    low, high = Fraction(1), Fraction(8)
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if price(middle) <= Fraction(1, 4) else (low, middle)
    return low


@pytest.mark.slow
def test_the_table_of_best_encodings():
    """The figures of the design, section 6: rare bins 1,913 and 477, bins of a tenth 11,913, 10,477 and 1,211."""
    people, local = 10**5, []
    local.append(largest(lambda epsilon: clone_bound(people, epsilon, MICRO)))
    local.append(largest(lambda epsilon: exact_sum([SumRound(BitFlipLaw.asymmetric(epsilon), people)], MICRO)))
    pairs = [(0.5, 1 / (exp(epsilon) + 1)) for epsilon in local]
    pairs += [tuple(map(float, best_unary(Fraction(1, 4), MICRO, people, 8, share))) for share in ("0.001", "0.1")]
    found = rows("with a local cap of 8:\n")
    for (keep, turn_on), (_, *told) in zip(pairs, found, strict=True):
        empty = turn_on * (1 - turn_on)
        variances = [
            people * (empty + share * (keep * (1 - keep) - empty)) / (keep - turn_on) ** 2
            for share in (0, 0.001, 0.01, 0.1)
        ]
        assert told == [f"{keep:.3f}", f"{turn_on:.5f}", *(f"{each:.0f}" for each in variances)]


def shown(price: Fraction | None) -> str:
    return "–" if price is None else f"{float(price):.4f}"


def test_the_table_of_asymmetric_reports():
    found = rows("Asymmetric reports:\n")
    assert len(found) == 5
    for honest, local, *prices in found:
        n, epsilon = int(honest), Fraction(local)
        once = [SumRound(BitFlipLaw.asymmetric(epsilon), n)]
        assert prices == [
            shown(theorem_3_1(n, epsilon, MICRO)),
            shown(clone_bound(n, epsilon, MICRO)),
            shown(exact_sum(once, MICRO)),
            shown(exact_sum(once, MICRO, ReportNeighbours.REMOVAL)),
        ]


def test_the_table_of_symmetric_reports():
    found = rows("2ε₀ for a replacement:\n")
    assert len(found) == 4
    for honest, local, *prices in found:
        n, epsilon = int(honest), Fraction(local)
        once = [SumRound(BitFlipLaw.symmetric(epsilon), n)]
        assert prices == [
            shown(clone_bound(n, 2 * epsilon, MICRO)),
            shown(renyi_symmetric(n, epsilon, MICRO)),
            shown(exact_sum(once, MICRO)),
            shown(exact_sum(once, MICRO, ReportNeighbours.REMOVAL)),
        ]


@pytest.mark.parametrize("row", range(3))
def test_the_table_of_cohorts(row):
    local, by_theorem, by_clones, exactly = map(int, rows("Honest reports that ε = 1 takes, asymmetric:\n")[row])
    assert minimum_cohort(BitFlipLaw.asymmetric(local), 1, MICRO) == exactly
    for bound, least in ((theorem_3_1, by_theorem), (clone_bound, by_clones)):
        assert bound(least, Fraction(local), MICRO) <= 1 < bound(least - 1, Fraction(local), MICRO)
