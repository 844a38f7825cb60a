"""Bounds from counts: exact, one-sided, and together at the confidence that is stated."""

from math import exp, inf, log

import numpy as np
import pytest

from hazemap.lab.audit.findings import Claim, Fact, LawTest, LossTest, at_least, at_most, guesses, judge


def tail(hits, trials, p):
    from scipy.stats import binom

    return binom.sf(hits - 1, trials, p)


def test_a_bound_is_where_so_many_hits_have_the_probability_of_the_error():
    for hits, trials, alpha in ((3, 10, 0.05), (97, 100, 1e-4), (10, 10, 0.01)):
        assert tail(hits, trials, at_least(hits, trials, alpha)) == pytest.approx(alpha)
    assert at_least(0, 10, 0.05) == 0 and at_most(10, 10, 0.05) == 1
    assert at_most(3, 10, 0.05) == pytest.approx(1 - at_least(7, 10, 0.05))


def test_a_loss_of_epsilon_is_the_logarithm_of_a_ratio():
    claim = Claim("ε", 1.0)
    assert claim.loss(0.6, 0.3) == pytest.approx(log(2)) and claim.loss(0.3, 0.6) == 0 and claim.loss(0.1, 0) == inf


def test_a_loss_with_delta_leaves_so_much_of_every_event_out():
    stated = Claim("ε", 1.0, 0.01)
    assert stated.loss(0.51, 0.25) == log(2) and stated.loss(0.01, 0.0) == 0.0
    assert stated.loss(0.02, 0.0) == inf
    for there in (0.0, 0.001, 0.3):  # as likely as (ε, δ) allows, up to rounding
        assert stated.loss(exp(1) * there + 0.01, there) <= 1 + 1e-12


def test_a_loss_in_rho_never_passes_that_of_the_normal_law_and_comes_near():
    from scipy.stats import norm

    for shift in (0.5, 1.0, 2.0):
        found = [Claim("ρ", 1.0).loss(norm.sf(t), norm.sf(t + shift)) for t in np.linspace(-3, 6, 40)]
        assert max(found) <= shift**2 / 2 + 1e-9
        assert max(found) >= 0.7 * shift**2 / 2


def test_the_best_guesses_of_an_epsilon_prove_less_than_it_and_more_prove_more():
    chance = exp(1.0) / (1 + exp(1.0))
    assert 0.9 < guesses(round(chance * 10_000), 10_000, 1e-3) < 1.0
    assert guesses(9_000, 10_000, 1e-3) > 1.5 and guesses(5_000, 10_000, 1e-3) == 0.0 and guesses(0, 0, 0.1) == 0.0


def test_the_error_is_divided_among_all_tests_by_chance():
    asked = []
    tests = [
        LossTest("e", "a", Claim("ε", 1.0), lambda alpha: asked.append(alpha) or 0.5, 1),
        LawTest("e", "a", 0.004, 1),
        LawTest("e", "a", 0.04, 1),
        Fact("e", "a", True, 1),
    ]
    findings = judge(tests, 0.97)
    assert asked == [pytest.approx(0.01)]
    assert [finding.broken for finding in findings] == [False, True, False, True]


def test_epsilon_with_delta_is_judged_as_the_normal_law_that_keeps_it():
    from scipy.stats import norm

    from hazemap import ApproxDP

    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (4.0, 1e-4)):
        budget = ApproxDP(str(epsilon), str(delta))
        rho = Claim.of(budget).value
        move = (2 * rho) ** 0.5
        kept = norm.cdf(move / 2 - epsilon / move) - np.exp(epsilon) * norm.cdf(-move / 2 - epsilon / move)
        assert kept == pytest.approx(delta, rel=1e-3)
        assert float(budget.rho) <= rho
