"""What the full model costs where a person is replaced: the formulas beside every event of a small mechanism."""

import math
from fractions import Fraction
from itertools import product

import pytest

from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.ledger_balance import for_a_replacement

COUNTS = range(-60, 62)


def two_sided(count: int, epsilon: float) -> list[float]:
    """A count with discrete Laplace noise: pure ε where one person is added or removed."""
    ratio = math.exp(-epsilon)
    return [(1 - ratio) / (1 + ratio) * ratio ** abs(noisy - count) for noisy in COUNTS]


def lost(one: list[float], other: list[float]) -> float:
    """The ε between two laws."""
    return max(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))


def test_pure_epsilon_doubles_and_a_histogram_of_two_cells_needs_all_of_it():
    epsilon = 0.7
    with_one = [a * b for a, b in product(two_sided(1, epsilon), two_sided(0, epsilon))]
    with_other = [a * b for a, b in product(two_sided(0, epsilon), two_sided(1, epsilon))]  # a value in the other cell
    with_nobody = [a * b for a, b in product(two_sided(0, epsilon), two_sided(0, epsilon))]
    assert lost(with_one, with_nobody) == pytest.approx(epsilon)
    assert lost(with_one, with_other) == pytest.approx(2 * epsilon)
    assert for_a_replacement(PureDP("0.7")) == PureDP("1.4")


def test_rho_is_four_times_as_much_and_a_count_that_moves_by_two_needs_all_of_it():
    rho = Fraction(1, 10)  # Gaussian noise: the Rényi divergence of order α is α d² / 2σ², and 1 / 2σ² is ρ
    sigma = math.sqrt(1 / (2 * rho))
    grid = [x / 50 for x in range(-1500, 1501)]

    def order_two(distance: float) -> float:
        pairs = ((math.exp(-(x**2) / 2 / sigma**2), math.exp(-((x - distance) ** 2) / 2 / sigma**2)) for x in grid)
        total = sum(a * a / b for a, b in pairs) / 50
        return math.log(total / (sigma * math.sqrt(2 * math.pi))) / 2

    assert order_two(1) == pytest.approx(float(rho), rel=1e-6)
    assert order_two(2) == pytest.approx(float(for_a_replacement(ZCDP(rho)).rho), rel=1e-6)
    assert for_a_replacement(ApproxDP(1, 1e-6)).rho == 4 * ApproxDP(1, 1e-6).rho
    assert for_a_replacement(ApproxDP(1, 1e-6), Fraction(1, 100)) == ZCDP(Fraction(1, 25))  # as it was booked
