"""People with several places: their truth, the law they are drawn by, and how heatmaps of them are scored."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare import earth_movers_distance as transport
from hazemap.lab.compare.datasets import mixture
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.practices import Method
from hazemap.lab.compare.trial_settings import Everyone, Trial
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote
from research.compare import gaussian_blur as heatmaps
from research.compare.evaluation_datasets import evaluation_datasets
from research.compare.location_visits import Visits, around_homes, dealt, laid
from research.compare.multi_location_trials import BLUR, Dealt, MultiLocationSetting, heat_scores

ADAPTIVE = Method("adaptive", "adaptive")


def some_map(side=32):
    return GroundTruthMap.of("some", np.random.default_rng(1).poisson(0.4, (side, side)) + np.eye(side, dtype=int))


@given(st.integers(0, 1000), st.integers(1, 40))
def test_the_truth_is_the_mean_of_everybodys_own_distribution(seed, number):
    rng = np.random.default_rng(seed)
    person, x, y = rng.integers(0, 6, number), rng.random(number), rng.random(number)
    known = laid("some", Quadtree.world(3), person, x, y, "")
    slow = np.zeros((8, 8))
    for each in set(person.tolist()):
        own = np.flatnonzero(person == each)
        for visit in own:
            slow[int(y[visit] * 8), int(x[visit] * 8)] += 1 / len(own) / len(set(person.tolist()))
    assert known.truth == pytest.approx(slow) and known.people == len(set(person.tolist()))


def test_a_curator_holds_nearly_that_truth():
    known = around_homes(some_map(), 50, 19, 0.02, b"a")
    votes = known.table.votes(known.tree, OneVote(1 << 16))
    counted = Leaves.at_level(known.tree, known.tree.depth).total(votes.cells, votes.weights)
    by_cell = known.truth.ravel()[np.argsort(known.tree.grid(5).ravel())] * 50 * (1 << 16)
    assert np.abs(counted - by_cell).max() <= 50  # each person's share is rounded to less than one


def test_homes_are_those_of_the_map_and_places_lie_around_them():
    counts = np.zeros((64, 64), dtype=int)
    counts[10, 50], counts[40, 5] = 3, 1
    known = around_homes(GroundTruthMap.of("two", counts), 4_000, 19, 0.0, b"a")
    assert known.people == 4_000
    assert set(zip(*np.nonzero(known.truth), strict=True)) == {(10, 50), (40, 5)}
    assert known.truth[10, 50] == pytest.approx(0.75, abs=5 * (0.75 * 0.25 / 4_000) ** 0.5)
    number = np.unique(known.person, return_counts=True)[1]
    assert set(number) == set(range(1, 20)) and number.mean() == pytest.approx(10, abs=5 * 5.5 / 4_000**0.5)
    far = around_homes(GroundTruthMap.of("two", counts), 4_000, 19, 0.05, b"a")
    row, column = np.nonzero(far.truth)
    first = column > 30
    spread = np.sqrt(np.average((row[first] - 10.0) ** 2, weights=far.truth[row[first], column[first]]))
    assert spread == pytest.approx(0.05 * 64, rel=0.1)


def test_people_are_the_same_for_a_seed_and_others_for_another():
    one, again, other = (around_homes(some_map(), 20, 19, 0.01, seed) for seed in (b"a", b"a", b"b"))
    assert one.digest == again.digest != other.digest
    assert one.digest != one.at(3).digest
    assert one.some(5, b"x").digest == again.some(5, b"x").digest != one.some(5, b"y").digest
    assert one.some(5, b"x").people == 5 and one.some(20, b"x") is one


@pytest.mark.parametrize("sparsity", [0.01, 0.05, 0.2])
def test_points_are_dealt_until_so_many_pixels_are_touched(sparsity):
    known = dealt(mixture(5), 30, sparsity, 64, b"a").at(6)
    assert known.people == 30
    assert (known.truth > 0).mean() == pytest.approx(sparsity, abs=1 / 64**2)


def test_heatmaps_are_scored_by_the_metrics_of_the_paper():
    known = around_homes(some_map(), 50, 19, 0.02, b"a")
    shown = densities.density(known.truth + np.random.default_rng(1).random(known.truth.shape) / 500)
    found = heat_scores(known, shown)
    true, ours = (heatmaps.heatmap(density, (BLUR * 32) ** 2) for density in (known.truth, shown))
    assert found["emd"] == pytest.approx(transport.emd(known.truth, shown))
    assert found["heat_similarity"] == pytest.approx(densities.similarity(true, ours))
    assert found["heat_kl"] == pytest.approx(densities.kl(true, ours))
    assert heat_scores(known, known.truth)["heat_pearson"] == pytest.approx(1)


@pytest.mark.parametrize("setting", [MultiLocationSetting(people=30, side=32), Dealt(people=30, side=32, sparsity=0.1)])
def test_a_trial_of_a_crowd_has_the_scores_of_a_heatmap(setting):
    row = setting.measured(some_map(), ADAPTIVE, "10", 0)
    assert {"emd", "heat_similarity", "heat_pearson", "heat_kl", "seconds", "cells", "sparsity"} == set(row)
    assert 0 < row["emd"] < 0.5 and 0 < row["sparsity"] < 1


def test_people_with_visits_are_a_crowd_of_their_own():
    known = around_homes(some_map(), 60, 19, 0.02, b"a")
    row = MultiLocationSetting(people=30, side=16).measured(known, ADAPTIVE, "10", 0)
    assert row["emd"] < 0.5
    with pytest.raises(InputError, match="holds nothing that adaptive could be compared on"):
        Trial("some", ADAPTIVE, Everyone(), "1", 0).key(known)
    with pytest.raises(InputError, match="drawn from a map"):
        Dealt(people=30).measured(known, ADAPTIVE, "1", 0)
    with pytest.raises(InputError, match="2, 4, 8"):
        MultiLocationSetting(side=100).measured(known, ADAPTIVE, "1", 0)


def test_visits_that_are_none_are_refused():
    square, one = Quadtree(0.5, 0.5, 0.25, 2), np.array([1])
    for person, lon in ((one[:0], one[:0] * 1.0), (one, np.array([-100.0]))):
        with pytest.raises(InputError, match="visits of"):
            Visits("wrong", square, person, lon, lon)


def test_the_evaluation_data_has_people_with_visits(shared):
    atlas = evaluation_datasets(shared / "data")
    known = atlas.map("gowalla-people/256")
    assert (known.people, known.side) == (7_115, 256)
    assert 10 <= atlas.map("fixations-3").people <= 22
    with pytest.raises(InputError, match="draws some itself"):
        atlas.map("tokyo-people@100")
