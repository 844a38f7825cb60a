"""What neighbouring slots say of one: used where it helps, as the answers themselves tell, and left out elsewhere."""

import numpy as np
import pytest

from hazemap.estimate.slot_maps import from_neighbours
from hazemap.temporal.time_slots import Clock, Spans, Weekdays

HOURS = Clock.hours("UTC")
DAY = np.full((24, 40), 50.0)


def waves(strength: float) -> np.ndarray:
    """Cells that are full at one time of the day and empty at another."""
    hour, cell = np.mgrid[:24, :40]
    return DAY * (1 + strength * np.sin(2 * np.pi * (hour / 24 + cell / 40)))


def errors(truth, stddev, slots=HOURS, seed=1):
    """The mean square of what the day, and what neighbours predict, are off."""
    rng = np.random.default_rng(seed)
    measured, spread = truth + rng.normal(0, stddev, truth.shape), np.full(truth.shape, float(stddev))
    found = from_neighbours(measured, DAY[: len(truth)], spread, slots)
    return float(((DAY[: len(truth)] - truth) ** 2).mean()), float(((found - truth) ** 2).mean()), found


@pytest.mark.parametrize("stddev", [1, 10, 40])
def test_hours_that_are_like_the_next_are_predicted_by_it(stddev):
    day, neighbours, _ = errors(waves(0.8), stddev)
    assert neighbours < day / (1.5 if stddev == 40 else 4)


@pytest.mark.parametrize("stddev", [1, 10, 40])
def test_hours_that_have_nothing_to_do_with_the_next_are_predicted_by_the_day(stddev):
    """No neighbour says anything, and cross-validation finds it out, up to its own noise."""
    rng = np.random.default_rng(7)
    truth = DAY * rng.uniform(0.5, 1.5, DAY.shape)
    day, neighbours, _ = errors(truth, stddev)
    assert neighbours < 1.05 * day
    same = errors(DAY, stddev)
    assert same[1] < 0.02 * stddev**2


def test_alternating_slots_are_left_alone():
    truth = DAY * np.where(np.arange(24) % 2, 1.5, 0.5)[:, None]
    found = from_neighbours(truth, DAY, np.full(DAY.shape, 0.1), HOURS)
    # The nearest slots say the opposite, those two away the same: the sum of all is no better than the day
    assert ((found - truth) ** 2).mean() <= ((DAY - truth) ** 2).mean()


def test_own_noise_does_not_come_back_in_the_prediction():
    """One slot's answer is changed: its own prediction stays what it was, for the same choice."""
    truth, spread = waves(0.8), np.full(DAY.shape, 5.0)
    first = from_neighbours(truth, DAY, spread, HOURS)
    changed = truth.copy()
    changed[5] += 1.0
    second = from_neighbours(changed, DAY, spread, HOURS)
    assert np.allclose(first[5], second[5])
    assert not np.allclose(first[4], second[4])


def test_a_ring_goes_over_midnight_and_stretches_of_time_do_not():
    truth = DAY * (1 + 0.8 * np.cos(np.arange(24) / 24 * 2 * np.pi))[:, None]
    spans = Spans("UTC", tuple(range(0, 25 * 3600, 3600)))
    spread = np.full(DAY.shape, 2.0)
    ring, line = (from_neighbours(truth, DAY, spread, slots) for slots in (HOURS, spans))
    assert np.abs(ring[0] - truth[0]).max() < 5
    assert not np.allclose(ring[0], line[0]) and np.abs(line - truth).max() < 20


@pytest.mark.parametrize("slots", [1, 2])
def test_one_or_two_slots_have_no_neighbours_to_tell(slots):
    truth = waves(0.8)[:slots]
    assert errors(truth, 1, Clock("UTC", tuple(range(slots))))[2] is not None
    assert np.array_equal(from_neighbours(truth, DAY[:slots], np.ones(truth.shape), HOURS), DAY[:slots])


def test_odd_numbers_do_no_harm():
    for measured, predicted in ((np.zeros((7, 3)), np.zeros((7, 3))), (np.full((7, 3), -1e9), np.full((7, 3), 1e-9))):
        found = from_neighbours(measured, predicted, np.full((7, 3), 0.0), Weekdays("UTC"))
        assert np.isfinite(found).all() and (found >= 0).all()
    assert from_neighbours(np.zeros((7, 0)), np.zeros((7, 0)), np.zeros((7, 0)), Weekdays("UTC")).shape == (7, 0)
