"""The baselines that clip noise at zero, or keep the top of it: what is asked, and what is shown."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from hazemap.cells import NOWHERE
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.federated.trust.local import LocalReports
from hazemap.lab.methods import LaplaceClip, TopCells
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
TREE, HEXAGONS = Quadtree.around(BERLIN, 6), Hexagons(BERLIN, 5, 7)
KEPT = OneVote(outside=Outside.PEOPLE)


def table(people=300):
    rng = np.random.default_rng(5)
    return MemoryTable(
        np.arange(people), {"lon": rng.normal(13.4, 0.02, people), "lat": rng.normal(52.5, 0.01, people)}
    )


def released(method, epsilon=1, seed=b"clip"):
    return run(method, Curator(table(), Stream.fixed(seed)), PureDP(epsilon), Unrecorded())


@pytest.mark.parametrize("method", [LaplaceClip(TREE, 6, KEPT), LaplaceClip(HEXAGONS, 2), TopCells(TREE, 4, KEPT)])
def test_every_cell_is_asked_once_with_the_whole_budget(method):
    [(question, answer)] = released(method).transcript
    assert question.share == 1
    assert (question.encoder.cells.levels[question.encoder.cells.cells != NOWHERE] == method.level).all()
    made = released(method).value
    assert np.array_equal(made.unbiased, answer.sums / method.bounding.unit)
    assert (made.stddev == answer.stddev / method.bounding.unit).all()


def test_what_is_below_zero_is_shown_as_zero_and_nothing_else_changes():
    made = released(LaplaceClip(TREE, 6)).value
    assert np.array_equal(made.values, np.where(made.unbiased > 0, made.unbiased, 0))
    assert (made.unbiased < 0).any()
    assert made.values.sum() > 300 + 4**6 * float(made.stddev[0]) / 4  # what clipping does to a sparse map: σ/√8 a cell


@pytest.mark.parametrize("part", [Fraction(1), Fraction(1, 7), Fraction(1, 10_000), Fraction(1, 100_000)])
def test_the_largest_numbers_are_kept_and_at_least_one_of_them(part):
    made = released(TopCells(TREE, 6, kept=part)).value
    number = ceil(part * 4**6)
    best = np.sort(made.unbiased)[::-1][:number]
    assert np.array_equal(np.sort(made.values)[::-1][:number], np.maximum(best, 0))
    assert np.count_nonzero(made.values) <= number
    shown = made.values > 0
    assert np.array_equal(made.values[shown], made.unbiased[shown])


def test_nowhere_is_no_cell_of_the_top_and_stays():
    made = released(TopCells(TREE, 6, KEPT, Fraction(1, 1000))).value
    assert np.count_nonzero(made.values[made.places]) == 5
    assert made.values[~made.places] == max(made.unbiased[~made.places][0], 0)


def test_a_part_of_the_cells_is_more_than_none_and_at_most_all():
    for part in (Fraction(0), Fraction(3, 2)):
        with pytest.raises(InputError, match="100 %"):
            TopCells(TREE, 6, kept=part)


def test_sums_are_all_they_need_so_any_trust_model_will_do():
    people, one = table(1_000), AtMostRows(1)
    for trust in (
        SimulatedSecureAggregation(people, Cohort(1_000, 1_000, corrupt=Fraction(0))),
        LocalReports(people, 1_000),
    ):
        for method in (LaplaceClip(TREE, 3, one), TopCells(TREE, 3, one, Fraction(1, 10))):
            made = run(method, trust, PureDP(3), Unrecorded()).value
            assert made.values.max() > 0
