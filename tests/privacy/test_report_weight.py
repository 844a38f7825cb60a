"""How many 1s a report has: against the law summed in rationals, and the table of the design."""

from fractions import Fraction
from math import comb

import pytest

from hazemap.errors import InputError
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding, most_ones

RARE = Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("epsilon", "weights"), [("3", (95, 282, 3_441)), ("5", (28, 65, 570)), ("6.5", (15, 27, 164))]
)
def test_weights_are_those_of_the_design(epsilon, weights):
    law = Symmetric(Fraction(epsilon))
    assert tuple(most_ones(law, size, RARE) for size in (1_024, 4_096, 65_536)) == weights


def tail(law, size, most):
    """P(W > most), exactly."""
    p, q = law.keep, law.turn_on

    def others(ones):
        return comb(size - 1, ones) * q**ones * (1 - q) ** (size - 1 - ones) if 0 <= ones < size else 0

    return sum(p * others(ones - 1) + (1 - p) * others(ones) for ones in range(most + 1, size + 1))


@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 100), RARE])
def test_the_weight_is_the_least_that_is_enough(size, chance):
    law = UnaryEncoding(Fraction(2, 3), Fraction(1, 9))
    most = most_ones(law, size, chance)
    assert tail(law, size, most) <= chance
    assert most == 0 or tail(law, size, most - 1) > chance


def test_chances_that_mean_nothing_are_refused():
    for size, chance in ((0, RARE), (4, Fraction(1)), (4, Fraction(1, 10**41))):
        with pytest.raises(InputError, match="weight of a report"):
            most_ones(Asymmetric(Fraction(3)), size, chance)
