"""Maps as offices publish them today, and what an attacker learns of people from these and from private ones."""

from math import tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hazemap.errors import InputError
from hazemap.lab.compare.attacked_releases import Attacked, less_one, people_of
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.lab.compare.practices import GridBlur, KAnonymity, Method, Rounding, Suppression, practice_named
from hazemap.lab.compare.presets import QUICK

COUNTS = arrays(np.int64, (8, 8), elements=st.integers(0, 9))


def squares(counts, k, most):
    """The same map by recursion: a square's numbers, cut while few would be left out."""
    half, shown = len(counts) // 2, np.full(counts.shape, counts.sum() / counts.size)
    if not half:
        return shown
    parts = [counts[r : r + half, c : c + half] for r in (0, half) for c in (0, half)]
    if sum(part.sum() for part in parts if part.sum() < k) * most > counts.sum():
        return shown
    made = [squares(part, k, most) if part.sum() >= k else np.zeros(part.shape) for part in parts]
    return np.block([made[:2], made[2:]])


@given(arrays(np.int64, (8, 8), elements=st.sampled_from([0, 0, 0, 1, 2, 9, 40])), st.integers(1, 40))
def test_nobody_is_told_of_in_a_square_of_fewer_than_k(counts, k):
    place = GroundTruthMap.of("some", counts)
    shown = KAnonymity(k).published(place)
    assert shown == pytest.approx(squares(counts, k, 20) if place.people >= k else np.zeros((8, 8)))
    assert shown.sum() <= place.people + 1e-9
    assert (np.unique(shown[shown > 0]) * 64 >= k - 1e-9).all()


@given(COUNTS, st.integers(1, 12))
def test_small_counts_are_left_out_and_others_rounded(counts, number):
    place = GroundTruthMap.of("some", counts)
    assert (Suppression(number).published(place) == np.where(counts < number, 0, counts)).all()
    rounded = Rounding(number).published(place)
    assert (rounded % number == 0).all() and (np.abs(rounded - counts) <= number / 2).all()


def test_a_blur_is_counts_of_squares_of_at_least_so_many_metres():
    place = GroundTruthMap.of("some", np.random.default_rng(1).poisson(3, (64, 64)))
    metres = np.sqrt(place.tree.area(place.tree.grid(6)[:1, 0]))[0]
    for asked, block in ((1, 1), (int(metres * 0.9), 1), (int(metres * 1.1), 2), (int(metres * 3), 4), (10**6, 64)):
        shown = GridBlur(asked).published(place)
        sums = place.counts.reshape(64 // block, block, 64 // block, block).sum(axis=(1, 3))
        assert shown[::block, ::block] == pytest.approx(sums / block**2)
        assert shown.sum() == pytest.approx(place.people)


@pytest.mark.parametrize(
    "text", ["", "k-anonymity", "rounding:0", "rounding:-1", "suppression:1e9", "blur:5", "grid-blur:500km"]
)
def test_a_practice_that_is_not_known_is_refused_in_words(text):
    with pytest.raises(InputError, match=r"there is no practice|takes a whole number"):
        practice_named(text)
    assert practice_named("grid-blur:500m") == practice_named("grid-blur:500")


SOME = GroundTruthMap.of("some", np.random.default_rng(3).poisson(4.0, (16, 16)))


def attacked(method, epsilon="inf", targets=40):
    return Attacked(targets=targets).measured(SOME, method, epsilon, 0)


def test_true_counts_tell_everybody_apart_and_find_newcomers():
    for practice in (Suppression(1), Rounding(1), GridBlur(1), KAnonymity(1)):
        row = attacked(practice)
        assert (row["advantage"], row["located"], row["bound"]) == (1.0, 1.0, 1.0)
    assert attacked(Suppression(10**6))["advantage"] == 0
    changed = np.mean([SOME.counts.ravel()[pixel] % 10 in (5,) for pixel in people_of(SOME, 40, b"targets 0")])
    assert attacked(Rounding(10))["advantage"] == changed


@pytest.mark.slow
def test_an_attack_on_a_private_map_stays_below_its_bound():
    """With 300 people looked for, 5 standard errors are 0.4 at most."""
    for method, epsilon in ((Method("flat", "flat:4"), "0.2"), (Method("auto", "auto"), "1")):
        row = attacked(method, epsilon, targets=150)
        assert row["bound"] == tanh(float(epsilon) / 2)
        assert row["advantage"] < row["bound"] + 0.4
        assert row["located"] < 0.5


def test_an_attack_on_a_map_with_hardly_any_noise_succeeds():
    """The twin: the attackers find what there is to be found."""
    row = attacked(Method("flat", "flat:4"), "1000")
    assert (row["advantage"], row["located"]) == (1.0, 1.0)


def test_people_are_drawn_by_where_they_are_and_one_can_be_missing():
    pixels = people_of(SOME, 20_000, b"some")
    there = np.bincount(pixels, minlength=256)
    assert (there[SOME.counts.ravel() == 0] == 0).all()
    assert np.abs(there / 20_000 - SOME.counts.ravel() / SOME.people).max() < 0.01
    gone = less_one(SOME, int(pixels[0]))
    assert (SOME.counts - gone.counts).ravel()[pixels[0]] == 1 and SOME.people - gone.people == 1
    with pytest.raises(InputError, match="nobody"):
        people_of(GroundTruthMap.of("none", np.zeros((2, 2), np.int64)), 1, b"")


def test_a_comparison_can_be_measured_beside_practices():
    beside = QUICK.beside((KAnonymity(5),))
    practice = [trial for trial in beside.trials() if trial.method == KAnonymity(5)]
    assert len(practice) == len(QUICK.maps) * QUICK.repetitions and {trial.epsilon for trial in practice} == {"inf"}
    assert len({trial.key(SOME) for trial in practice}) == QUICK.repetitions
    with pytest.raises(InputError, match="leave no room"):
        QUICK.__class__("other", "", ("city",), QUICK.methods, ("1",), 1, (), more=(QUICK,)).beside((KAnonymity(5),))
