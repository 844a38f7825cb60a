"""A grid counted through its wavelet."""

import numpy as np
import pytest
from tests.algorithms.conftest import TREE

from hazemap.algorithms import Flat
from hazemap.cellmap import Reading
from hazemap.errors import InputError
from hazemap.lab.methods import Privlet
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import AtMostRows, Outside


@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostRows(1, outside=Outside.PEOPLE)], ids=repr)
def test_the_people_are_counted(lost, rule):
    made = run(Privlet(TREE, 6, rule), lost, PureDP(1), Unrecorded()).value
    people = made.places.astype(float)
    assert (people * made.unbiased).sum() == pytest.approx(50_000, abs=6 * made.noise.of(people).stddev)
    assert made.values[made.places].min() >= 0
    assert made.values.sum() == pytest.approx(made.unbiased.sum())
    assert not rule.outside.asked or made.unbiased[-1] == pytest.approx(5_000, abs=6 * made.stddev[-1])


def test_errors_are_as_large_as_they_say(curator):
    """The mean of z² over 4,096 cells and ten runs has a standard error of 2 %: a miss by 15 % is below 1e-6.

    So a claim that is 15 % off in the variance, such as an axis with one level too few, would be found out.
    """
    method = Privlet(TREE, 6, reading=Reading.UNBIASED)
    exact = run(Flat(TREE, 6, reading=Reading.UNBIASED), curator, PureDP(10**9), Unrecorded()).value.unbiased
    weights = np.zeros(4096)
    weights[100:900] = 1
    cells, unions = [], []
    for _ in range(10):
        made = run(method, curator, PureDP(1), Unrecorded()).value
        cells.append(np.mean(((made.unbiased - exact) / made.stddev) ** 2))
        unions.append((weights @ (made.unbiased - exact)) / made.noise.of(weights).stddev)
    assert np.mean(cells) == pytest.approx(1, abs=0.15)
    assert np.mean(cells) * (1 + 1 / 16) ** 4 != pytest.approx(1, abs=0.15)  # the twin: σ (1 − 4^−2) an axis
    assert np.abs(unions).max() < 6


def test_a_large_union_is_known_far_better_than_by_its_cells(curator):
    flat = run(Flat(TREE, 8), curator, PureDP(1), Unrecorded()).value.noise
    privlet = run(Privlet(TREE, 8), curator, PureDP(1), Unrecorded()).value.noise
    half = (np.arange(4**8) < 4**8 / 2).astype(float)
    one = (np.arange(4**8) == 77).astype(float)
    assert privlet.of(half).stddev < flat.of(half).stddev
    assert privlet.of(one).stddev > flat.of(one).stddev * 20


def test_the_same_answers_give_the_same_map(curator):
    method = Privlet(TREE, 5)
    made = run(method, curator, PureDP(1), Unrecorded())
    again = replay(method, curator.prices(PureDP(1)), PureDP(1), made.transcript)
    assert np.array_equal(again.value.values, made.value.values)


def test_hexagons_and_shrinkage_are_refused():
    with pytest.raises(InputError, match="rows and columns"):
        Privlet(Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 9), 2)
    with pytest.raises(InputError, match="unbiased or non-negative"):
        Privlet(TREE, 5, reading=Reading.SHRUNK)
