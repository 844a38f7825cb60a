"""Who counts where: the caps hold, nothing is told that cannot be, and the best of what is tried is taken."""

from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.algorithms import contribution_selection as keeping
from hazemap.algorithms.contribution_selection import SPREAD, UNKNOWN, ContributionSelection, NoiseScale, best_selection
from hazemap.errors import InputError
from hazemap.tables.sample_grouping import PublicLocations

LAPLACE = NoiseScale(sqrt(2), rooted=False, reach=2.166)


def town(seed: int, people: int = 300, places: int = 40, most: int = 20) -> PublicLocations:
    """Everybody in some places, in the first ones more often."""
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, places + 1)
    chance /= chance.sum()
    many = rng.integers(1, min(most, places) + 1, people)
    each = [rng.choice(places, number, replace=False, p=chance) for number in many]
    firsts = np.concatenate([[0], np.cumsum([len(own) for own in each])])
    where = np.concatenate(each).astype(np.int32)
    return PublicLocations(firsts, where, rng.integers(1, 9, len(where)), places)


def follows(where: PublicLocations, best: ContributionSelection, records: int) -> None:
    """What a keeping says of itself is so."""
    weights = np.where(best.kept, where.weights(records), 0)
    assert np.array_equal(np.bincount(where.place, weights, where.number), best.weight)
    assert np.add.reduceat(weights, where.firsts[:-1]).max() == best.most
    assert np.add.reduceat(weights**2, where.firsts[:-1]).max() == best.squares
    assert np.add.reduceat(best.kept, where.firsts[:-1], dtype=int).max() <= best.places


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.booleans(), st.sampled_from([None, 1, 3]))
def test_nobody_counts_in_more_places_and_every_place_that_is_told_can_be(seed, records, rooted, most):
    where = town(seed, people=80, places=8)
    noise_scale = NoiseScale(0.3, rooted, 2.0)
    best = best_selection(where, records, noise_scale, most)
    follows(where, best, records)
    told = best.weight > 0
    assert told.any() and (best.weight[told] >= noise_scale.needed(best.most, best.squares)).all()
    assert most is None or best.places <= most


def test_what_is_told_is_near_the_most_that_could_be():
    """300 people pay for 300 ε ÷ 12.3 = 24 places at the very most, whatever the cap."""
    best = best_selection(town(1), 1, LAPLACE)
    assert 18 <= (best.weight > 0).sum() <= 24
    assert best.error < best_selection(town(1), 1, LAPLACE, 1).error + 1e-12


def test_more_budget_tells_more():
    errors = [
        best_selection(town(2), 1, NoiseScale(sqrt(2) / epsilon, False, 2.166)).error for epsilon in (0.5, 1, 2, 100)
    ]
    assert errors == sorted(errors, reverse=True)
    everything = best_selection(town(2), 1, NoiseScale(1e-6, False, 2.0))
    assert everything.kept.all()
    assert everything.error < 1e-4


def test_the_expected_error_is_as_it_is_described():
    where = PublicLocations(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 2], dtype=np.int32), np.ones(5, dtype=int), 3)
    best = best_selection(where, 1, NoiseScale(0.1, False, 1.0), 1)
    noise, told = 0.1 / best.weight[best.weight > 0], best.weight > 0
    people, kept = where.people[told], best.weight[told]
    error = np.sqrt(noise**2 + SPREAD**2 * (1 / kept - 1 / people))
    wanted = (error * people).sum() + UNKNOWN * where.people[~told].sum()
    assert best.error == pytest.approx(wanted / where.people.sum())


def test_no_choice_of_places_is_much_better_than_the_one_that_is_found():
    """Twelve people, four places, everybody in one place: all sets of places that may be told, by brute force."""
    where = PublicLocations(
        np.arange(0, 37, 3),
        np.tile([0, 1, 2, 1, 2, 3, 0, 1, 3, 0, 2, 1], 3).astype(np.int32),
        np.ones(36, dtype=int),
        4,
    )
    noise_scale = NoiseScale(0.25, False, 1.0)
    best = best_selection(where, 1, noise_scale)
    others = []
    for size in range(1, 5):
        for chosen in combinations(range(4), size):
            active = np.isin(np.arange(4), chosen)
            for cap in (1, 2, 3):
                weights = where.weights(1)
                choose = keeping._even(where, cap, weights)
                found = keeping._settled(where, weights, noise_scale, active, choose, "even")
                others += [each.error for each in found]
    assert best.error <= min(others) * 1.1


def test_chop_user_is_taken_where_it_is_better(monkeypatch):
    """One person is everywhere, all others in one place each: that one is left out of all but the emptiest."""
    people, places = 400, 4
    others = np.repeat(np.arange(4), [180, 120, 70, 30])
    firsts = np.concatenate([[0, places], places + 1 + np.arange(people)])
    where = PublicLocations(
        firsts,
        np.concatenate([np.arange(places), others]).astype(np.int32),
        np.ones(places + people, dtype=int),
        places,
    )
    for other in ("_drawn", "_even"):
        monkeypatch.setattr(keeping, other, lambda *_: lambda _: np.zeros(places + people, dtype=bool))
    best = best_selection(where, 1, LAPLACE)
    assert (best.route, best.most) == ("chopped", 1)
    assert best.kept[:places].tolist() == [False, False, False, True] and best.kept[places:].all()
    follows(where, best, 1)


def test_a_budget_that_is_too_small_is_refused_before_anything_is_paid():
    with pytest.raises(InputError, match=r"no place can be published: .* needs 12,.*nothing was paid"):
        best_selection(town(3), 1, NoiseScale(sqrt(2) * 1000, False, 2.166))


def test_people_of_whom_nobody_has_two_places_all_count():
    where = PublicLocations(np.arange(41), np.repeat([0, 1], 20).astype(np.int32), np.ones(40, dtype=int), 2)
    best = best_selection(where, 1, LAPLACE)
    assert best.kept.all() and best.places == 1
