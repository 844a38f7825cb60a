"""Comparisons in which devices answer."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import Adaptive
from hazemap.errors import InputError
from hazemap.lab.compare.density_metrics import density, mse
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.practices import ADAPTIVE, AG, Method
from research.compare.device_trials import DeviceSample, DeviceSetting

FLAT = Method("flat", "flat:3", published=True)
SOME = DeviceSetting(people=1_000, shard=500)


@pytest.fixture
def place():
    return GroundTruthMap.of("some", np.random.default_rng(1).poisson(40.0, (16, 16)))


def test_what_a_device_sends_is_counted(place):
    row = SOME.measured(place, FLAT, "1", 0)
    assert (row["numbers"], row["rounds"], row["answers"], row["shards_lost"]) == (64, 1, 1_000, 0)
    assert 64 <= row["bytes"] <= 64 * 4 and row["peak_mb"] > 10
    assert {"mse", "l1", "mre", "seconds", "cells"} <= set(row)


def test_devices_that_fall_silent_are_missing(place):
    row = DeviceSetting(1_000, 500, lost=Fraction(3, 10), dropping=Fraction(1, 10)).measured(place, FLAT, "1", 0)
    # binomial: mean 900, variance 90; seven standard deviations
    assert abs(row["answers"] - 900) < 67


def test_an_adaptive_tree_has_the_parameters_for_devices(place):
    made = SOME.algorithm(place, ADAPTIVE.but(most_numbers=400), "1")
    assert made == Adaptive.for_devices(place.tree, SOME.rule, 400)
    assert SOME.measured(place, ADAPTIVE.but(most_numbers=330), "1", 0)["numbers"] <= 330


def test_a_sample_without_privacy_is_as_good_as_its_grid(place):
    row = DeviceSample(place.people).measured(place, Method("flat", "flat:4"), "1", 0)
    assert row["mse"] == 0 and row["cells"] == 256
    coarse = np.repeat(np.repeat(place.coarser(2).counts, 4, axis=0), 4, axis=1)
    row = DeviceSample(place.people).measured(place, Method("flat", "flat:2"), "1", 0)
    assert row["mse"] == pytest.approx(mse(density(place.counts), density(coarse)))
    with pytest.raises(InputError, match="one level"):
        DeviceSample().measured(place, AG, "1", 0)
