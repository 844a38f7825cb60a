"""What the full model costs where a person is replaced: the formulas beside every event of a small mechanism."""

import math
from fractions import Fraction
from itertools import product

import pytest

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.replacement_neighbours import for_a_replacement, pair_for_a_replacement

COUNTS = range(-60, 62)


def two_sided(count: int, epsilon: float) -> list[float]:
    """A count with discrete Laplace noise: pure ε where one person is added or removed."""
    ratio = math.exp(-epsilon)
    return [(1 - ratio) / (1 + ratio) * ratio ** abs(noisy - count) for noisy in COUNTS]


def lost(one: list[float], other: list[float]) -> float:
    """The ε between two laws."""
    return max(abs(math.log(a / b)) for a, b in zip(one, other, strict=True))


def told_apart(one: list[float], other: list[float], epsilon: float) -> float:
    """The least δ at this ε: the sum over the outcomes of the worst event."""
    return sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(one, other, strict=True))


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


def test_an_epsilon_and_delta_alone_cost_twice_epsilon_and_no_more_than_this_delta():
    """Every mechanism of three outcomes in twelfths, and of three tables: with, without, and with other values."""
    epsilon, delta = 0.5, 0.1
    far = pair_for_a_replacement(ApproxDP("0.5", "0.1"))
    assert (far.epsilon, float(far.delta)) == (1, pytest.approx((1 + math.exp(epsilon)) * delta, rel=1e-12))
    laws = [(i / 12, j / 12, (12 - i - j) / 12) for i in range(13) for j in range(13 - i)]
    near = {one: [other for other in laws if _near(one, other, epsilon, delta)] for one in laws}
    worst = max(told_apart(one, other, 2 * epsilon) for none in laws for one, other in product(near[none], repeat=2))
    assert 0.6 * far.delta < worst <= far.delta


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "0.1"), ("1", "0.05"), ("0.2", "1/5")])
def test_a_mechanism_that_may_be_needs_all_of_that_delta(epsilon, delta):
    far = pair_for_a_replacement(ApproxDP(epsilon, delta))
    small, step = float(Fraction(delta)), math.exp(float(epsilon))
    other, nobody = (0.0, 1.0), (small, 1 - small)
    one = ((1 + step) * small, 1 - (1 + step) * small)
    assert _near(one, nobody, float(epsilon), small) and _near(nobody, other, float(epsilon), small)
    assert told_apart(one, other, float(far.epsilon)) == pytest.approx(float(far.delta))


def _near(one, other, epsilon: float, delta: float) -> bool:
    return max(told_apart(one, other, epsilon), told_apart(other, one, epsilon)) <= delta + 1e-12


def test_a_promise_of_which_nothing_is_left_is_refused():
    for pair in (ApproxDP(1, "0.3"), ApproxDP(5000, "1e-300")):
        with pytest.raises(InputError, match="promises nothing"):
            pair_for_a_replacement(pair)


def test_the_exponential_is_rounded_up():
    assert pair_for_a_replacement(ApproxDP(1, "1e-6")).delta / Fraction(1, 10**6) - 1 > Fraction(
        "2.718281828459045235360287471352662497757"
    )
