"""Sketches decide on the cells, and fresh noise counts them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.algorithms.conftest import BOX, PEOPLE, TREE

from hazemap.cells import NOWHERE
from hazemap.encoders import CountMinSketch, Counts
from hazemap.errors import InputError
from hazemap.lab.methods import CountMin
from hazemap.privacy.budget import PureDP
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, Outside

DEEP = Quadtree.around(BOX, 14)


def test_levels_with_few_cells_are_counted_and_the_others_sketched():
    parts = CountMin(DEEP, width=600, rows=2).question.encoder.parts
    assert [type(part) for part in parts] == [Counts] * 5 + [CountMinSketch] * 9
    assert [part.size for part in parts] == [4, 16, 64, 256, 1024] + [1200] * 9
    assert CountMin(DEEP, width=600, rows=2).question.encoder.sensitivity.l1 == 5 + 9 * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [CountMin(DEEP), CountMin(DEEP, 500, 3), CountMin(TREE, bounding=OneVote())], ids=str
)
def test_the_cells_tile_the_domain_and_sum_to_the_people(method, curator):
    result = run(method, curator, PureDP(2), Unrecorded())
    made = result.value
    first, last = made.cells.spans
    begin, end = method.tree.span(method.tree.root)
    order = np.argsort(first)
    assert first[order][0] == begin[0] and last[order][-1] == end[0]
    assert np.array_equal(last[order][:-1] + np.uint64(1), first[order][1:])
    assert made.unbiased.sum() == pytest.approx(PEOPLE, abs=6 * made.noise.of(np.ones(made.cells.size)).stddev)
    assert sum(exchange.question.share for exchange in result.transcript) == 1


def test_cells_are_finer_where_people_are(curator):
    made = run(CountMin(DEEP), curator, PureDP(5), Unrecorded()).value
    centre, corner = made.cells.locate(
        DEEP.cell_at({"lon": np.array([13.32, 13.59]), "lat": np.array([52.46, 52.41])}, 14)
    )
    assert made.cells.levels[centre] > made.cells.levels[corner] + 1


def test_a_deep_tree_is_sent_in_few_numbers(curator):
    result = run(CountMin(DEEP, width=500), curator, PureDP(1), Unrecorded())
    assert sum(exchange.question.encoder.size for exchange in result.transcript) < 15_000 < 4**14 / 10_000


def test_the_numbers_of_sketches_alone_are_near_the_truth(curator):
    """What the paper shows: with much money the error is that of collisions, a small part of the people."""
    method = CountMin(DEEP, width=4000, rows=3)
    answer = curator.answer(method.question, PureDP(1000))
    cells, numbers = method.decided(answer, 10.0)
    votes = curator.table.votes(DEEP, AtMostRows(1))
    true = cells.total(votes.cells, votes.weights)
    assert cells.size > 300
    assert np.abs(numbers - true).sum() < 0.15 * PEOPLE


def test_hexagons_are_sketched_too(curator):
    tree = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 10)
    made = run(CountMin(tree, width=300), curator, PureDP(5), Unrecorded()).value
    assert made.unbiased.sum() == pytest.approx(PEOPLE, rel=0.05)


def test_rows_that_lie_nowhere_are_counted_beside_the_cells(lost):
    made = run(replace(CountMin(DEEP), bounding=AtMostRows(1, Outside.PEOPLE)), lost, PureDP(1), Unrecorded()).value
    assert made.unbiased[made.cells.cells == NOWHERE] == pytest.approx(5_000, abs=100)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountMin(DEEP, deciding=Fraction(1)),
        lambda: CountMin(DEEP, deciding=Fraction(0)),
        lambda: CountMin(DEEP, fullness=0),
        lambda: CountMin(DEEP, rows=0).question,
        lambda: CountMin(DEEP, width=1).question,
    ],
)
def test_impossible_parameters_are_refused(make):
    with pytest.raises(InputError):
        make()
