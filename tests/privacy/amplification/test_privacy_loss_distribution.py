"""Losses on a grid dominate what they were made from, however they are composed, coarsened and cut."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hazemap.privacy.amplification.certified_bounds import exp_bounds
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


def masses(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers of which few are short in binary, so that most operations round, and half of them down."""
    return rng.random(size) / size


def exact(told: PrivacyLossDistribution) -> list[Fraction]:
    return list(map(Fraction, told.mass.tolist()))


@pytest.mark.parametrize("seed", range(4))
def test_rounding_never_takes_away_from_what_exact_numbers_give(seed):
    """Each operation against rationals: never below, and by 10⁻¹¹ above at the most."""
    rng, most = np.random.default_rng(seed), 1 + Fraction(1, 10**11)
    one, two = (PrivacyLossDistribution(STEP, 3, masses(rng, size), 0.01) for size in (60, 200))
    a, b = exact(one), exact(two)
    told = one.compose(two)
    for place, mass in enumerate(exact(told)):
        truth = sum(a[i] * b[place - i] for i in range(max(0, place - 199), min(60, place + 1)))
        assert truth <= mass <= truth * most
    truth = Fraction(0.01) + Fraction(0.01) * sum(a)
    assert truth <= Fraction(told.infinite) <= truth * most

    coarse, up = two.coarser(), exp_bounds(-Fraction(STEP))  # first is odd, so that one mass comes before
    share = [1 / (1 + each) for each in up]
    padded = [Fraction(0), *b, Fraction(0)]
    for place, mass in enumerate(exact(coarse)):
        odd = padded[2 * place - 1] if place else Fraction(0), padded[2 * place + 1] if 2 * place + 1 < 202 else 0
        truth = padded[2 * place] + odd[0] * share[1] + odd[1] * (1 - share[0])
        assert truth <= mass <= truth * most

    for epsilon in (-2.0, 0.0, 0.5, 3.0):
        parts = [
            mass * (1 - exp_bounds(Fraction(epsilon) - Fraction(loss))[1])
            for mass, loss in zip(b, two.losses.tolist(), strict=True)
            if loss > epsilon
        ]
        truth = Fraction(0.01) + sum(parts)
        assert truth <= Fraction(two.delta(epsilon)) <= truth * most

    cut = told._trimmed(0.02)
    begin, end = cut.first - told.first, cut.first - told.first + len(cut.mass)
    whole, left = exact(told), exact(cut)
    assert begin > 0 and end < len(whole) and left[1:] == whole[begin + 1 : end]
    below, above = sum(whole[: begin + 1]), Fraction(told.infinite) + sum(whole[end:])
    assert below <= left[0] <= below * most and above <= Fraction(cut.infinite) <= above * most

    lost = PrivacyLossDistribution(STEP, 0, np.array([1e-3, 0.5, 1e-20]), 0.5)._trimmed(1e-19)
    assert Fraction(0.5) + Fraction(1e-20) <= Fraction(lost.infinite), "what is too little for a float is not lost"


def test_a_curve_is_dominated_exactly_at_each_of_its_points():
    curve = np.minimum.accumulate(np.minimum(0.9 * response(1) + 0.02, 1))
    told = PrivacyLossDistribution.from_curve(STEP, -100, curve)
    mass = exact(told)
    ratio = [exp_bounds(-Fraction(steps) * Fraction(STEP))[1] for steps in range(len(mass))]
    for place in range(0, len(mass), 7):
        above = sum(mass[j] * (1 - ratio[j - place]) for j in range(place + 1, len(mass)))
        assert Fraction(float(curve[place])) <= Fraction(told.infinite) + above
    assert told.delta(float(LOSSES[60])) <= curve[60] * (1 + 1e-9)
