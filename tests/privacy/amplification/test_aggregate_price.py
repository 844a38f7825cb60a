"""The price of a report against whoever sees sums: the tightest bound, the least cohort, and what is assumed."""

from fractions import Fraction

import pytest
from tests.privacy.amplification.exact_laws import configurations, coordinate, divergence, product

from hazemap.errors import InputError, Refused
from hazemap.privacy.amplification.aggregate_price import aggregate_price, clone_bound, minimum_cohort
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import exp_bounds
from hazemap.privacy.amplification.neighbours import ReportNeighbours

MICRO = Fraction(1, 10**6)


def test_the_tightest_bound_is_chosen_and_named():
    law = BitFlipLaw.asymmetric(4)
    price = aggregate_price(law, 10**5, MICRO)
    assert (round(float(price.epsilon), 4), price.bound, price.delta) == (0.0567, "the exact law of the sum", MICRO)
    assert "100,000" in price.assumptions[1]
    alone = aggregate_price(law, 10**5, 0)
    assert (alone.epsilon, alone.bound) == (4, "the local ε₀ of the reports")
    assert "Nothing is assumed of the others" in alone.assumptions[1]
    assert "fixed beforehand" in aggregate_price(law, 10**5, MICRO, rounds=3).assumptions[-1]


def test_a_price_is_never_above_the_local_one():
    for law in (BitFlipLaw.asymmetric(6), BitFlipLaw.symmetric(4), BitFlipLaw.unary(Fraction(9, 10), Fraction(1, 5))):
        for neighbours in ReportNeighbours:
            for honest, delta, rounds in (
                (1, MICRO, 1),
                (2, MICRO, 2),
                (30, Fraction(0), 3),
                (10**6, Fraction(1, 10**30), 1),
            ):
                price = aggregate_price(law, honest, delta, rounds, neighbours)
                assert 0 < price.epsilon <= rounds * neighbours.local(law)


def test_where_floats_give_up_clones_are_added_up_over_the_rounds():
    law, delta = BitFlipLaw.asymmetric("0.5"), Fraction(1, 10**13)
    price = aggregate_price(law, 10**6, delta, rounds=2)
    assert price.bound == "clones (Feldman et al. 2022)"
    assert price.epsilon == 2 * clone_bound(10**6, law.replacement, delta / 2)


def test_a_random_report_costs_no_more_than_replacement_and_the_truth_is_below_it():
    """The bin is drawn from k = 3; the others hold what they like."""
    keep, turn_on, delta = Fraction(3, 4), Fraction(1, 4), Fraction(1, 50)
    law = BitFlipLaw.unary(keep, turn_on)
    assert ReportNeighbours.RANDOM_REPORT.allowed(delta, 3) == Fraction(3, 100)
    for honest in (1, 3, 5):
        price = aggregate_price(law, honest, delta, neighbours=ReportNeighbours.RANDOM_REPORT, bins=3)
        assert price.epsilon <= aggregate_price(law, honest, delta).epsilon
        gamma = exp_bounds(price.epsilon)[1]
        for a, b in configurations(honest):
            for c in range(honest - a - b):
                at = [
                    product(
                        *(coordinate(keep, turn_on, honest, held, place == own) for place, held in enumerate((a, b, c)))
                    )
                    for own in range(3)
                ]
                mean = [sum(weights) for weights in zip(*at, strict=True)]
                sure = [3 * weight for weight in at[0]]
                assert max(divergence(sure, mean, gamma), divergence(mean, sure, gamma)) <= delta


@pytest.mark.parametrize(("epsilon_0", "cohort"), [(4, 447), (6, 3423), (8, 25_455)])
def test_minimum_cohorts_are_those_of_the_design(epsilon_0, cohort):
    law = BitFlipLaw.asymmetric(epsilon_0)
    least = minimum_cohort(law, 1, MICRO)
    assert least == pytest.approx(cohort, rel=3e-3)
    assert aggregate_price(law, least, MICRO).epsilon <= 1 < aggregate_price(law, least - 1, MICRO).epsilon
    for more in (1.001, 1.01, 1.1, 2, 10, 1000):
        assert aggregate_price(law, int(least * more), MICRO).epsilon <= Fraction(1002, 1000)


def test_a_cohort_of_one_is_enough_where_the_local_price_is():
    assert minimum_cohort(BitFlipLaw.asymmetric(1), 1, MICRO) == 1
    assert minimum_cohort(BitFlipLaw.symmetric(1), 1, MICRO, neighbours=ReportNeighbours.REMOVAL) == 1
    assert minimum_cohort(BitFlipLaw.symmetric(1), 1, MICRO) == pytest.approx(53, abs=2)


def test_a_price_that_no_cohort_reaches_is_refused():
    with pytest.raises(Refused, match="100,000,000"):
        minimum_cohort(BitFlipLaw.asymmetric(30), 1, MICRO)
    with pytest.raises(InputError):
        minimum_cohort(BitFlipLaw.asymmetric(3), 0, MICRO)


@pytest.mark.parametrize(
    "wrong", [{"honest": 0}, {"delta": 1}, {"delta": -1}, {"rounds": 0}, {"rounds": 10**7}, {"honest": 10.5}]
)
def test_what_makes_no_sense_is_refused(wrong):
    options = {"law": BitFlipLaw.asymmetric(1), "honest": 10, "delta": MICRO} | wrong
    with pytest.raises(InputError):
        aggregate_price(**options)


def test_a_random_report_needs_two_bins():
    with pytest.raises(InputError, match="two bins"):
        aggregate_price(BitFlipLaw.asymmetric(1), 10, MICRO, neighbours=ReportNeighbours.RANDOM_REPORT, bins=1)
