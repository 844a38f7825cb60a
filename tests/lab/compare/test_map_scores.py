"""What a trial is scored by, against the slow way and against the workbench that everybody's figures come from."""

import importlib.util

import numpy as np
import pytest

from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare import map_scores as scores
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.map_scores import DENSITIES, MRE, WORKLOAD, Scorer, mre, workloads


@pytest.fixture
def truth():
    rng = np.random.default_rng(5)
    return GroundTruthMap.of("some", rng.poisson(np.exp(rng.normal(1, 2, (64, 64)))))


@pytest.fixture
def noisy(truth):
    return truth.counts + np.random.default_rng(6).laplace(0, 5, truth.counts.shape)


def test_range_errors_are_those_of_each_workload_on_its_own(truth, noisy):
    found = Scorer(truth).ranges(noisy)
    for name, asked in workloads(WORKLOAD, (64, 64)).items():
        assert found[MRE[name]] == pytest.approx(mre(truth.counts, noisy, asked), rel=1e-12)


def test_both_readings_are_scored_and_densities_are_of_the_one_that_is_shown(truth, noisy):
    shown = np.maximum(noisy, 0)
    found, known = Scorer(truth).all(shown, noisy), Scorer(truth)
    assert found["mre"] == known.ranges(shown)["mre"] and found["unbiased_mre_2"] == known.ranges(noisy)["mre_2"]
    for name, score in DENSITIES.items():
        assert found[name] == score(densities.density(truth.counts), densities.density(shown))
    assert found["mre"] > found["unbiased_mre"]  # clamping at zero inflates


def test_a_perfect_map_has_no_error(truth):
    found = Scorer(truth).all(truth.counts.astype(float), truth.counts.astype(float))
    assert all(found[name] == 0 for name in (*MRE.values(), "mse", "l1", "l2", "kl", "mape", "smape", "maape"))
    assert found["similarity"] == pytest.approx(1) and found["pearson"] == pytest.approx(1)
    assert Scorer(truth).moved(truth.counts.astype(float)) == {"emd": 0.0}


def test_the_earth_movers_distance_of_a_large_map_is_that_of_larger_pixels(truth, noisy, monkeypatch):
    monkeypatch.setattr(scores, "EMD_DEPTH", 4)
    picture = np.maximum(noisy, 0)
    coarse = [
        density.reshape(16, 4, 16, 4).sum(axis=(1, 3)) for density in map(densities.density, (truth.counts, picture))
    ]
    assert Scorer(truth).moved(picture)["emd"] == pytest.approx(emd(*coarse), rel=1e-9)


def test_errors_agree_with_those_of_the_workbench(truth, shared):
    """Other rectangles of the same law: means of 2,000 errors differ by some per cent of themselves."""
    place = importlib.util.spec_from_file_location("range_queries", shared / "bench" / "range_queries.py")
    bench = importlib.util.module_from_spec(place)
    place.loader.exec_module(bench)
    ours = {name: [] for name in MRE}
    theirs = {name: [] for name in MRE}
    for seed in range(20):
        picture = truth.counts + np.random.default_rng(seed).laplace(0, 5, truth.counts.shape)
        for name, error in bench.relative_errors(truth.counts, picture).items():
            theirs[name].append(error / 100)
            ours[name].append(Scorer(truth).ranges(picture)[MRE[name]])
        found = bench.density_errors(truth.counts, picture)
        p, q = densities.density(truth.counts), densities.density(picture)
        assert found == pytest.approx((densities.mse(p, q), densities.l1(p, q)), rel=1e-9)
    for name in MRE:
        assert np.mean(ours[name]) == pytest.approx(np.mean(theirs[name]), rel=0.25), name
