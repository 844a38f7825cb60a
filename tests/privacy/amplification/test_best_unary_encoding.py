"""The best unary encoding keeps both prices, and varies less than those of the literature."""

from fractions import Fraction

import pytest

from hazemap.errors import InputError
from hazemap.privacy.amplification.aggregate_price import best_unary
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import SumRound, exact_sum

MICRO = Fraction(1, 10**6)


def variance(keep, turn_on, honest, share):
    own = share * (keep * (1 - keep) - turn_on * (1 - turn_on))
    return float(honest * (turn_on * (1 - turn_on) + own) / (keep - turn_on) ** 2)


@pytest.mark.parametrize(
    ("epsilon", "honest", "share", "least"),
    [
        ("0.25", 10**5, "0.1", 1211),
        (2, 12, 0, 20),
        pytest.param("0.25", 10**5, 0, 477, marks=pytest.mark.slow),
        pytest.param(1, 10**4, "0.01", 52.7, marks=pytest.mark.slow),
        pytest.param("0.1", 10**4, "0.1", 2761, marks=pytest.mark.slow),
    ],
)
def test_it_varies_no_more_than_the_design_says_and_keeps_both_prices(epsilon, honest, share, least):
    keep, turn_on = best_unary(epsilon, MICRO, honest, 8, share)
    law = BitFlipLaw.unary(keep, turn_on)
    assert law.replacement <= 8
    assert exact_sum([SumRound(law, honest)], MICRO) <= Fraction(epsilon)
    assert variance(keep, turn_on, honest, Fraction(share)) <= least * 1.005


def test_a_tight_local_cap_binds():
    keep, turn_on = best_unary(1, MICRO, 1000, 1, 0)
    law = BitFlipLaw.unary(keep, turn_on)
    assert float(law.replacement) == pytest.approx(1, abs=1e-6)
    assert law.replacement <= 1
    assert keep == Fraction(1, 2)


@pytest.mark.parametrize("wrong", [{"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"local_cap": 0}, {"share": 2}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(InputError, match="best encoding"):
        best_unary(**({"epsilon": 1, "delta": MICRO, "honest": 100, "local_cap": 8} | wrong))
