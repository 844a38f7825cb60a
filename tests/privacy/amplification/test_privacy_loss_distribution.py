"""Losses on a grid dominate what they were made from, however they are composed, coarsened and cut."""

import math

import numpy as np
import pytest

from hazemap.privacy.amplification.privacy_loss_distribution import PrivacyLossDistribution

STEP = 2.0**-5
LOSSES = np.arange(-100, 101) * STEP


def response(epsilon: float) -> np.ndarray:
    """The curve of binary randomised response."""
    kept = 1 / (1 + np.exp(-epsilon))
    gamma = np.exp(LOSSES)
    return np.maximum(0, np.maximum(1 - gamma, kept - gamma * (1 - kept)))


def test_a_curve_is_dominated_at_its_points_and_between_them():
    told = PrivacyLossDistribution.from_curve(STEP, -100, response(1))
    assert all(told.delta(x) >= d for x, d in zip(LOSSES, response(1), strict=True))
    assert told.delta(0.31) == pytest.approx(max(0.0, (math.e - math.exp(0.31)) / (1 + math.e)), rel=1e-9)
    assert told.delta(-50) == pytest.approx(1)


def test_a_curve_with_rounding_in_it_and_a_rest_at_its_end_is_dominated_too():
    noise = np.random.default_rng(3).uniform(0, 1e-4, len(LOSSES))
    curve = np.minimum(1, 0.9 * response(1) + 0.02 + noise)
    told = PrivacyLossDistribution.from_curve(STEP, -100, curve)
    assert told.mass.min() >= 0
    assert told.infinite == np.minimum.accumulate(curve)[-1] >= 0.02
    assert all(told.delta(x) >= min(d, 0.9 * e + 0.02) for x, d, e in zip(LOSSES, curve, response(1), strict=True))
    assert told.delta(1e3) >= 0.02


def test_an_epsilon_is_the_least_that_its_delta_allows():
    told = PrivacyLossDistribution.from_curve(STEP, -100, response(1)).rounds(5)
    for delta in (0.9, 0.3, 1e-3, 1e-9):
        epsilon = told.epsilon(delta)
        assert told.delta(epsilon) <= delta
        assert epsilon == 0 or told.delta(epsilon - 1e-9) > delta * (1 - 1e-6)
    assert told.epsilon(1e-300) >= 5 * (1 - 1e-9)


def test_composed_responses_are_binomial():
    told = PrivacyLossDistribution.from_curve(STEP, -100, response(1)).rounds(6)
    kept = 1 / (1 + math.exp(-1))
    for epsilon in (0.0, 0.7, 2.5, 5.9):
        truth = sum(
            math.comb(6, k)
            * max(0, kept**k * (1 - kept) ** (6 - k) - math.exp(epsilon) * kept ** (6 - k) * (1 - kept) ** k)
            for k in range(7)
        )
        assert truth * (1 - 1e-12) <= told.delta(epsilon) <= truth * (1 + 1e-9)


def test_composition_agrees_with_another_library():
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    uniform = 2 / (1 + math.exp(1))
    other = accounting.from_randomized_response(uniform, 2, value_discretization_interval=1e-4).self_compose(7)
    told = PrivacyLossDistribution.from_curve(STEP, -100, response(1)).rounds(7)
    assert told.epsilon(1e-3) == pytest.approx(other.get_epsilon_for_delta(1e-3), rel=2e-3)


def test_a_coarser_grid_and_cut_ends_only_raise_delta():
    told = PrivacyLossDistribution.from_curve(STEP, -100, response(0.7)).rounds(4)
    coarse, cut = told.coarser(), told.compose(PrivacyLossDistribution(STEP, 0, np.ones(1), 0.0), 1e-4)
    assert len(coarse.mass) <= len(told.mass) // 2 + 2
    assert len(cut.mass) < len(told.mass)
    ends = told.compose(PrivacyLossDistribution(STEP, 0, np.ones(1), 0.0), 0.21)
    assert ends.infinite > 0.1
    assert ends.first > told.first
    for epsilon in (-3.0, 0.0, 0.4, 1.1, 2.7):
        assert ends.delta(epsilon) >= told.delta(epsilon)
        delta = told.delta(epsilon)
        assert delta * (1 - 1e-12) <= coarse.delta(epsilon) <= delta + 3e-3
        assert delta * (1 - 1e-12) <= cut.delta(epsilon) <= delta + 3e-4


def test_what_can_never_be_hidden_stays_infinite():
    told = PrivacyLossDistribution(STEP, 0, np.array([0.9]), 0.1)
    assert told.epsilon(0.05) == math.inf
    assert told.compose(told).infinite == pytest.approx(0.19)
    assert told.rounds(3).infinite == pytest.approx(1 - 0.9**3)
