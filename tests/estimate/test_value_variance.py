"""Variances are in their intervals wherever they lie: at a bound, near one, and of as few people as are told of."""

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.estimate.value_estimates import Measurements, variances, variances_known
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Always
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

PLACES = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=6), 6), Always(), ValueEncoding(0, 65, degree=2))
TOLD = 1000
"""Of 1,000 places or more a share is within 0.037 of 0.95 but for 1 map in 10⁷; of 4,096, within 0.019."""

VALUES = {
    "all alike at the low bound": np.zeros(1),
    "all alike near the low bound": np.array([0.02]),
    "all alike in the middle": np.array([0.5]),
    "all alike at the high bound": np.ones(1),
    "1 in 100 at the other bound": np.repeat([0.0, 1], [99, 1]),
    "1 in 20 at the other bound": np.repeat([0.0, 1], [95, 5]),
    "1 in 5 at the other bound": np.repeat([0.0, 1], [80, 20]),
    "half at either bound": np.array([0.0, 1]),
    "close together": np.linspace(0.85, 0.95, 11),
    "anywhere": np.linspace(0, 1, 101),
}
NOISE = {"Laplace": 3.0, "Gaussian": 0.0}


def noise(law: str, seed: int, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.laplace(0, 0.5**0.5, shape) if law == "Laplace" else rng.normal(0, 1, shape)


@pytest.mark.slow
@pytest.mark.parametrize("law", NOISE)
def test_fault_8_variances_near_a_bound_hold_in_every_place_that_is_told(law):
    """A true 207 was told as [0, 0], and 67 to 70 % held. Places of one and the same kind each, all that are told."""
    for seed, (kind, y) in enumerate(VALUES.items()):
        parts = np.array([((1 - y) ** 2).mean(), (2 * y * (1 - y)).mean(), (y * y).mean()])
        for least in (0.75, 1.0, 1.3, 2.0, 20.0):
            drawn = noise(law, seed, PLACES.places, 3)
            needed = Measurements(PLACES, drawn, 1.0, NOISE[law]).variance_threshold
            found = Measurements(PLACES, least * needed * parts + drawn, 1.0, NOISE[law]).variances()
            told = ~found.too_few
            truth = 65**2 * y.var()
            held = ((found.low <= truth + 1e-9) & (truth <= found.high + 1e-9))[told]
            if told.sum() >= TOLD:
                assert held.mean() >= 0.95 - (0.019 if told.all() else 0.037), (kind, least)
            assert (found.high > 0).all(), "nothing is certain"
            assert least < 1.5 or told.mean() > 0.99


def test_fault_8_intervals_by_the_slope_alone_do_not_hold_near_a_bound():
    """The twin that must fail: what was told before, where the width of the interval decided what is told."""
    y = VALUES["1 in 5 at the other bound"]
    counters = 14 * np.array([((1 - y) ** 2).mean(), (2 * y * (1 - y)).mean(), (y * y).mean()])
    counters = counters + noise("Laplace", 5, 12_288, 3)
    exact = variances(counters, (1.0, 3.0), 0.95)
    value = exact.value
    told = np.clip(value + 1.96 * exact.stddev, 0, 0.25) - np.clip(value - 1.96 * exact.stddev, 0, 0.25) < 0.125
    held = (np.abs(value - y.var()) < 1.96 * exact.stddev)[told]
    assert told.sum() > TOLD and held.mean() < 0.95 - 0.037


@pytest.mark.parametrize("law", NOISE)
@pytest.mark.parametrize("people", [25.0, 60.0, 1000.0])
def test_variances_of_known_numbers_of_people_hold_near_a_bound(law, people):
    """4,096 places: within 0.019 of 0.95 but for 1 run in 10⁷. Of 25 people noise alone moves a variance by 0.09."""
    for seed, (kind, y) in enumerate(VALUES.items()):
        drawn = noise(law, seed, 4096, 2)
        sums, bent = people * y.mean() + drawn[:, 0], people * (y * (1 - y)).mean() + drawn[:, 1]
        found = variances_known(sums, bent, np.full(4096, people), (1.0, NOISE[law]), 0.95)
        held = (found.low <= y.var() + 1e-12) & (y.var() <= found.high + 1e-12)
        assert held.mean() >= 0.931, kind
        assert (found.high > 0).all()


@pytest.mark.parametrize("law", NOISE)
def test_the_ends_of_a_variance_are_those_of_all_sums_within_reach(law):
    """Against 20,000 directions tried one by one."""
    rng = np.random.default_rng(3)
    y = rng.beta(0.4, 0.4, (60, 5))
    counters = 30 * np.stack([((1 - y) ** 2).mean(1), (2 * y * (1 - y)).mean(1), (y * y).mean(1)], axis=1)
    found = variances(counters, (1.0, NOISE[law]), 0.95)
    way = rng.normal(size=(20_000, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    from hazemap.estimate.confidence_margins import reach

    sums = counters[:, None] + (reach(0.95, NOISE[law] * (way**4).sum(1))[:, None] * way)[None]
    every = (sums[..., 0] * sums[..., 2] - sums[..., 1] ** 2 / 4) / sums.sum(axis=2) ** 2
    assert found.high == pytest.approx(np.clip(every.max(axis=1), 0, 0.25), abs=3e-3)
    assert found.low == pytest.approx(np.clip(every.min(axis=1), 0, 0.25), abs=3e-3)
