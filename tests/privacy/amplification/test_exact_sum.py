"""The price by the exact law of the sum is never below the truth, and near to it."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from tests.privacy.amplification.exact_laws import (
    configurations,
    coordinate,
    divergence,
    product,
    replacement,
    worst_removal,
    worst_replacement,
)

from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import exp_bounds
from hazemap.privacy.amplification.neighbours import ReportNeighbours, SumRound, exact_sum, losses
from hazemap.privacy.amplification.sum_of_reports import all_pairs, coordinate_losses, cover

MICRO = Fraction(1, 10**6)
LAWS = [
    (Fraction(1, 2), Fraction(1, 10)),
    (Fraction(1, 2), Fraction(1, 1000)),
    (Fraction(3, 4), Fraction(1, 4)),
    (Fraction(24, 25), Fraction(1, 5)),
    (Fraction(1, 5), Fraction(1, 50)),
    (Fraction(99, 100), Fraction(1, 100)),
]
EPSILONS = [-1.0, 0.0, 0.1, 0.3, 0.8, 2.0, 4.5]


@pytest.mark.parametrize(("keep", "turn_on"), LAWS)
def test_no_configuration_of_the_others_gives_away_more_than_the_price(keep, turn_on):
    law = BitFlipLaw.unary(keep, turn_on)
    for honest in range(1, 9):
        (both,) = losses([SumRound(law, honest)], 1e-12, ReportNeighbours.REPLACEMENT)
        alone = losses([SumRound(law, honest)], 1e-12, ReportNeighbours.REMOVAL)
        for epsilon in EPSILONS:
            gamma = exp_bounds(Fraction(epsilon))[1]
            truth = float(worst_replacement(keep, turn_on, honest, gamma))
            assert truth <= both.delta(epsilon)
            assert keep + turn_on > 1 or both.delta(epsilon) <= truth * 1.4 + 0.01
            truth = float(worst_removal(keep, turn_on, honest, gamma))
            assert truth <= max(one.delta(epsilon) for one in alone) <= truth * 1.001 + 1e-3


@pytest.mark.parametrize(("keep", "turn_on"), LAWS)
def test_the_price_at_a_delta_holds_for_every_configuration(keep, turn_on):
    law = BitFlipLaw.unary(keep, turn_on)
    for honest in range(1, 9):
        for delta in (Fraction(1, 50), Fraction(1, 10**4), Fraction(1, 10**9)):
            for neighbours, worst in (
                (ReportNeighbours.REPLACEMENT, worst_replacement),
                (ReportNeighbours.REMOVAL, worst_removal),
            ):
                epsilon = exact_sum([SumRound(law, honest)], delta, neighbours)
                assert worst(keep, turn_on, honest, exp_bounds(epsilon)[1]) <= delta
                assert epsilon <= neighbours.local(law)


def test_rounds_with_any_configuration_in_each_give_away_no_more_than_their_price():
    one, two = LAWS[0], LAWS[2]
    schedule = [SumRound(BitFlipLaw.unary(*one), 3), SumRound(BitFlipLaw.unary(*two), 2)]
    (both,) = losses(schedule, 1e-12, ReportNeighbours.REPLACEMENT)
    (twice,) = losses([SumRound(BitFlipLaw.unary(*one), 2, times=2)], 1e-12, ReportNeighbours.REPLACEMENT)
    for epsilon in (0.0, 0.5, 1.5):
        gamma = exp_bounds(Fraction(epsilon))[1]
        pairs = [
            (replacement(*one, 3, *a), replacement(*two, 2, *b)) for a in configurations(3) for b in configurations(2)
        ]
        truth = max(divergence(product(x[0], y[0]), product(x[1], y[1]), gamma) for x, y in pairs)
        assert float(truth) <= both.delta(epsilon) <= float(truth) * 1.2
        pairs = [
            (replacement(*one, 2, *a), replacement(*one, 2, *b)) for a in configurations(2) for b in configurations(2)
        ]
        truth = max(divergence(product(x[0], y[0]), product(x[1], y[1]), gamma) for x, y in pairs)
        assert float(truth) <= twice.delta(epsilon) <= float(truth) * 1.2


def test_a_question_that_is_chosen_by_the_answer_before_it_gives_away_no_more():
    """After each first answer the second round has the bins, and so the holders, that give away most."""
    first, second = LAWS[0], LAWS[2]
    schedule = [SumRound(BitFlipLaw.unary(*first), 3), SumRound(BitFlipLaw.unary(*second), 3)]
    (both,) = losses(schedule, 1e-12, ReportNeighbours.REPLACEMENT)
    chosen = set()
    for epsilon in (0.2, 0.7, 1.5):
        gamma = exp_bounds(Fraction(epsilon))[1]
        found = []
        for a in configurations(3):
            likely, unlikely = replacement(*first, 3, *a)
            best = Fraction(0)
            for p, q in zip(likely, unlikely, strict=True):
                rest = {b: divergence(*replacement(*second, 3, *b), gamma * q / p) for b in configurations(3)}
                chosen.add(max(rest, key=rest.__getitem__))
                best += Fraction(p, sum(likely)) * max(rest.values())
            found.append(best)
        assert float(max(found)) <= both.delta(epsilon) <= float(max(found)) * 1.2
    assert len(chosen) > 1


def test_that_nobody_else_holds_the_bins_is_not_always_the_worst():
    """The twin: a price from that configuration alone would be too low, and is found out."""
    keep, turn_on = Fraction(1, 2), Fraction(1, 4)
    alone = divergence(*replacement(keep, turn_on, 8, 0, 0), Fraction(1))
    assert round(float(alone), 4) == 0.1121
    assert round(float(worst_replacement(keep, turn_on, 8, Fraction(1))), 4) >= 0.1145


def test_a_price_with_the_wrong_probability_is_found_out_by_the_exact_law():
    keep, turn_on = LAWS[0]
    (wrong,) = losses([SumRound(BitFlipLaw.unary(keep, turn_on * 2), 8)], 1e-12, ReportNeighbours.REPLACEMENT)
    assert wrong.delta(0.3) < worst_replacement(keep, turn_on, 8, exp_bounds(Fraction(3, 10))[1])


def test_a_larger_sum_gives_away_no_more():
    for keep, turn_on in LAWS:
        for gamma in (Fraction(1), Fraction(5, 4), Fraction(3)):
            truth = [worst_replacement(keep, turn_on, honest, gamma) for honest in range(1, 7)]
            assert truth == sorted(truth, reverse=True)
    for law in (BitFlipLaw.asymmetric(3), BitFlipLaw.symmetric(2), BitFlipLaw.unary(Fraction(24, 25), Fraction(1, 5))):
        prices = [
            float(exact_sum([SumRound(law, honest)], MICRO)) for honest in (1, 2, 10, 40, 41, 300, 301, 2000, 9999)
        ]
        assert prices == sorted(prices, reverse=True)


@pytest.mark.parametrize(
    ("honest", "epsilon", "price"),
    [
        (1000, 3, 0.376),
        (10**4, 6, 0.575),
        (10**5, 4, 0.0567),
        (10**6, 8, 0.1435),
        (1000, 8, 2.840),
        (10**4, 1, 0.0242),
    ],
)
def test_asymmetric_reports_cost_what_the_design_says(honest, epsilon, price):
    found = exact_sum([SumRound(BitFlipLaw.asymmetric(epsilon), honest)], MICRO)
    assert float(found) == pytest.approx(price, rel=2e-3)


@pytest.mark.parametrize(
    ("honest", "epsilon", "price", "removal"),
    [(1000, 1, 0.1814, 0.1269), (1000, 4, 2.1157, 1.6916), (10**4, 6, 1.6625, 1.3204), (10**6, 8, 0.3190, 0.2257)],
)
def test_symmetric_reports_cost_no_more_than_the_design_says(honest, epsilon, price, removal):
    rounds = [SumRound(BitFlipLaw.symmetric(epsilon), honest)]
    assert 0.99 * price < exact_sum(rounds, MICRO) < 1.001 * price
    assert 0.99 * removal < exact_sum(rounds, MICRO, ReportNeighbours.REMOVAL) < 1.001 * removal


def test_ten_rounds_cost_what_the_design_says_and_less_than_ten_times_one():
    law = BitFlipLaw.asymmetric(3)
    ten = exact_sum([SumRound(law, 10**4, times=10)], MICRO)
    assert float(ten) == pytest.approx(0.377, rel=2e-3)
    assert exact_sum([SumRound(law, 10**4)] * 10, MICRO) == pytest.approx(ten, rel=1e-3)


def test_large_sums_and_many_rounds_are_priced_like_a_gaussian():
    """μ = √2 sinh(ε₀/2)/√n, √R of it for R rounds: δ = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    from scipy.special import ndtr

    for rounds, honest in ((1, 10**7), (1000, 10**6), (100_000, 10**7)):
        mu = np.sqrt(2 * rounds / honest) * np.sinh(2)
        epsilon = float(exact_sum([SumRound(BitFlipLaw.asymmetric(4), honest, rounds)], MICRO))
        delta = ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
        assert 0.9e-6 < delta < 1.02e-6


def test_a_cover_leaves_nobody_out():
    for law in (BitFlipLaw.asymmetric(1), BitFlipLaw.symmetric(5), BitFlipLaw.unary(Fraction(24, 25), Fraction(1, 5))):
        for people in (0, 1, 7, 1000, 10**6):
            spans = list(cover(law, people))
            assert spans[0][0] == 0
            assert spans[-1][1] == people
            assert all(low <= high for low, high in spans)
            assert all(last + 1 == first for (_, last), (first, _) in pairwise(spans))
            assert len(spans) < 700


def test_a_local_price_is_reached_by_one_report_alone():
    for law in (BitFlipLaw.asymmetric(2), BitFlipLaw.symmetric(2), BitFlipLaw.unary(*LAWS[3])):
        assert exact_sum([SumRound(law, 1)], Fraction(1, 10**12)) == pytest.approx(law.replacement, rel=1e-6)


def test_a_delta_of_nothing_costs_the_local_price():
    law = BitFlipLaw.asymmetric(2)
    for delta in (Fraction(0), Fraction(1, 10**60), Fraction(1, 10**400)):
        assert exact_sum([SumRound(law, 10**5, times=3)], delta) == 6


def test_tiny_deltas_and_huge_local_prices_still_have_prices():
    law = BitFlipLaw.asymmetric(4)
    prices = [exact_sum([SumRound(law, 10**4)], Fraction(1, 10**power)) for power in (3, 6, 9, 12, 20, 30)]
    assert prices == sorted(prices)
    assert prices[-1] < 1
    for epsilon in (50, 200):
        assert exact_sum([SumRound(BitFlipLaw.asymmetric(epsilon), 1000)], MICRO) <= epsilon
        assert exact_sum([SumRound(BitFlipLaw.symmetric(epsilon), 1000)], MICRO) <= 2 * epsilon
    assert exact_sum([SumRound(BitFlipLaw.asymmetric(Fraction(1, 1000)), 10)], MICRO) <= Fraction(1, 1000)


def test_masses_add_up_to_one_but_for_rounding():
    for law, honest in ((BitFlipLaw.asymmetric(Fraction(1, 2)), 10**6), (BitFlipLaw.symmetric(3), 500)):
        for way in vars(coordinate_losses(law, honest, 1e-13)).values():
            assert way.mass.sum() + way.infinite == pytest.approx(1, abs=1e-9)


def test_laws_of_one_coordinate_are_exact():
    assert coordinate(Fraction(1, 2), Fraction(1, 4), 2, 0, True) == (6, 8, 2)


def test_every_number_of_others_who_hold_a_bin_is_looked_at():
    """0 … n − 1 of them; the outcomes with the person's bit set, and with it not, have all of the mass."""
    pairs = all_pairs(BitFlipLaw.unary(Fraction(3, 4), Fraction(1, 4)), 6)
    assert pairs is not None and len(pairs) == 6
    for holders, (set_, unset, _) in enumerate(pairs):
        assert np.exp(set_).sum() == pytest.approx(1) == np.exp(unset).sum()
        mean = holders * 0.75 + (5 - holders) * 0.25
        assert np.exp(set_) @ np.arange(7) == pytest.approx(mean + 0.75)
        assert np.exp(unset) @ np.arange(7) == pytest.approx(mean + 0.25)
