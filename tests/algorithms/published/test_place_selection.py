"""Which places an estimator tells, from whereabouts alone, and for how many samples people count there."""

import numpy as np
import pytest

from hazemap.algorithms.published.place_means import MOST_SAMPLES, PlaceNoise, PlaceRules, selected_places
from hazemap.errors import InputError
from hazemap.tables.sample_grouping import PublicLocations, SampleCounts

QUIET = PlaceNoise(0.001, rooted=False, reach=2.0)


def test_lengths_are_those_of_their_rules_and_never_more_than_somebody_has():
    some = SampleCounts(np.array([1, 9, 5, 9, 400]))
    lengths = {
        rule: PlaceRules("levy", rule).length_of(some, 0.01) for rule in ("median", "k-root-m", "worst-case", "7")
    }
    assert lengths == {"median": 9, "k-root-m": 400, "worst-case": 1, "7": 7}
    assert PlaceRules("plain").length_of(some, 1) == 400 == PlaceRules("plain", "500").length_of(some, 1)
    assert PlaceRules("array-averaging").length_of(some, 1) == 9
    assert PlaceRules("quantile").length_of(some, 1) == 400
    assert 1 <= PlaceRules("balanced").length_of(some, 0.1) <= PlaceRules("balanced").length_of(some, 10) <= 400
    assert PlaceRules("plain").length_of(SampleCounts(np.array([10**6])), 1) == MOST_SAMPLES


def where(number: int = 60) -> PublicLocations:
    """Everybody is in place 0, every second in place 1 too; one person is in place 2 as well."""
    places = [[0, 1, 2] if person == 0 else [0, 1] if person % 2 == 0 else [0] for person in range(number)]
    firsts = np.concatenate([[0], np.cumsum([len(each) for each in places])])
    place = np.concatenate(places).astype(np.int32)
    return PublicLocations(firsts, place, np.ones(len(place), dtype=np.int64), 4)


def test_places_with_too_much_noise_are_given_up_and_cost_nobody_anything():
    found = selected_places(where(), PlaceRules("plain"), PlaceNoise(1.0, rooted=False, reach=2.0))
    assert found.length.tolist() == [1, 1, 0, 0] and found.together == 2
    louder = selected_places(where(), PlaceRules("plain"), PlaceNoise(4.0, rooted=False, reach=2.0))
    assert louder.length.tolist() == [1, 0, 0, 0] and louder.together == 1
    every = selected_places(where(), PlaceRules("plain"), QUIET)
    assert every.length.tolist() == [1, 1, 1, 0] and every.together == 3
    with pytest.raises(InputError, match="no place can be told"):
        selected_places(where(), PlaceRules("plain"), PlaceNoise(1000.0, rooted=False, reach=2.0))


@pytest.mark.parametrize("most", [1, 2])
def test_nobody_counts_in_more_places_than_the_cap(most):
    found = selected_places(where(), PlaceRules("plain", most_places=most), QUIET)
    assert found.together == most == np.bincount(where().person[found.counting]).max()


def test_what_variances_and_choices_cost_is_reckoned_with():
    noise = PlaceNoise(2.0, rooted=False, reach=2.0)
    assert selected_places(where(), PlaceRules("plain"), noise).length[0]
    for rules in (PlaceRules("levy"), PlaceRules("plain", variance=True)):
        told = selected_places(where(), rules, noise).length
        assert told.tolist() == [1, 0, 0, 0]
