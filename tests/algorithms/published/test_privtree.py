"""A tree that grows where people are, and the counts of its leaves."""

from fractions import Fraction

import numpy as np
import pytest
from tests.algorithms.conftest import BOX, PEOPLE, TREE, people

from hazemap.algorithms import PrivateBoundingBox, PrivTree
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, TranscriptMismatch, Unanswerable
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Session, Unrecorded, replay, run
from hazemap.queries.noisy_queries import Answer, Growth, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator

FINE = Quadtree.around(BOX, 12)


def test_half_of_the_budget_grows_the_tree_and_half_counts_its_leaves(curator):
    first, second = run(PrivTree(FINE), curator, PureDP(1), Unrecorded()).transcript
    assert isinstance(first.question, Growth) and first.question.share == Fraction(1, 2)
    assert isinstance(second.question, Query) and second.question.share == Fraction(1, 2)
    assert np.array_equal(second.question.encoder.cells.cells.astype(np.int64), first.answer.sums)
    assert np.array_equal(second.answer.stddev, curator.answer(second.question, PureDP("0.5")).stddev)


def test_cells_are_small_where_people_are(curator):
    made = run(PrivTree(FINE), curator, PureDP(1), Unrecorded()).value
    exact = curator.table.votes(FINE, AtMostRows(1))
    counts = made.cells.total(exact.cells, exact.weights)
    assert counts.sum() == PEOPLE
    empty, full = made.cells.levels[counts == 0], made.cells.levels[counts > 50]
    assert np.average(empty, weights=4.0**-empty) < 5 and full.min() >= 6
    assert counts.max() < 800  # the whole town at level 0, and the bias is 7 people a level


def test_an_empty_town_is_hardly_split(curator):
    """A cell is split by noise alone with probability 1/(2β): 1 + 4/8 + … cells of a root's children in expectation."""
    sizes = []
    for seed in range(60):
        empty = Curator(people().of(-1), Stream.fixed(b"%d" % seed))
        sizes.append(run(PrivTree(FINE), empty, PureDP(1), Unrecorded()).value.cells.size)
    assert np.mean(sizes) < 8 and min(sizes) == 1


def test_a_threshold_leaves_cells_of_few_people_whole(curator):
    low, high = (
        run(PrivTree(FINE, threshold=threshold), curator, PureDP(1), Unrecorded()).value.cells.size
        for threshold in (0, 200)
    )
    assert high < low / 2


def test_its_numbers_are_those_of_the_leaves(curator):
    result = run(PrivTree(FINE, reading=Reading.UNBIASED), curator, PureDP("0.1"), Unrecorded())
    counted = result.transcript[1].answer
    assert np.array_equal(result.value.values, counted.sums) and np.array_equal(result.value.unbiased, counted.sums)
    shown = run(PrivTree(FINE), curator, PureDP("0.1"), Unrecorded()).value
    assert shown.values.min() >= 0 and shown.values.sum() == pytest.approx(shown.unbiased.sum())


def test_a_stored_run_grows_the_same_tree(curator):
    result = run(PrivTree(FINE), curator, PureDP(1), Unrecorded())
    again = replay(PrivTree(FINE), curator.prices(PureDP(1)), PureDP(1), result.transcript)
    assert again.value.cells == result.value.cells


def test_an_answer_of_any_length_has_one_error_bar(curator):
    session = Session(PrivTree(FINE), curator.prices(PureDP(1)), PureDP(1), Unrecorded(), curator.answers)
    for answer in (Answer(np.zeros((2, 2), np.int64), np.zeros(1)), Answer(np.zeros(3, np.int64), np.zeros(2))):
        with pytest.raises(TranscriptMismatch):
            session.receive(answer)


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("rule", [AtMostRows(3), AtMostCells(3)], ids=str)
def test_people_with_several_rows_are_counted(rule, budget):
    rng = np.random.default_rng(3)
    lon, lat = rng.normal(13.4, 0.03, 30_000), rng.normal(52.5, 0.02, 30_000)
    table = MemoryTable(np.repeat(np.arange(10_000), 3), {"lon": lon, "lat": lat})
    made = run(PrivTree(TREE, rule), Curator(table, Stream.fixed(b"rows")), budget, Unrecorded()).value
    exact = table.votes(TREE, rule).weights.sum()
    assert made.unbiased.sum() == pytest.approx(exact, abs=6 * made.noise.of(np.ones(made.cells.size)).stddev)
    assert made.cells.size > 100


def test_votes_that_are_shared_out_are_counted_in_people():
    rng = np.random.default_rng(5)
    table = MemoryTable(np.arange(4_000), {"lon": rng.normal(13.4, 0.01, 4_000), "lat": rng.normal(52.5, 0.01, 4_000)})
    made = run(PrivTree(TREE, OneVote(64)), Curator(table, Stream.fixed(b"shared")), PureDP(2), Unrecorded()).value
    assert made.unbiased.sum() == pytest.approx(4_000, rel=0.05) and made.cells.size > 30


def test_people_nowhere_and_hexagons_and_found_boxes_do_too(curator, lost):
    kept = run(PrivTree(FINE, AtMostRows(1, outside=Outside.PEOPLE)), lost, PureDP(1), Unrecorded()).value
    assert kept.unbiased[kept.cells.cells == NOWHERE] == pytest.approx(5_000, abs=60)
    hexagons = PrivTree(Hexagons(BOX, 5, 9))
    made = run(hexagons, curator, PureDP(1), Unrecorded()).value
    assert hexagons.fan == 7 and isinstance(made.cells, Leaves) and made.cells.levels.max() >= 3
    assert made.unbiased.sum() == pytest.approx(PEOPLE, rel=0.02)
    found = run(PrivateBoundingBox(PrivTree(Quadtree.world(0))), curator, PureDP(10), Unrecorded()).value
    assert found.unbiased.sum() == pytest.approx(PEOPLE, rel=0.02)


def test_only_a_curator_can_grow_it(curator):
    with pytest.raises(Unanswerable, match="only a curator can"):
        Session(PrivTree(FINE), curator.prices(PureDP(1)), PureDP(1), Unrecorded(), lambda kind: kind is Query)


@pytest.mark.parametrize("growing", [Fraction(0), Fraction(1)])
def test_a_part_that_is_none_is_refused(growing):
    with pytest.raises(InputError):
        PrivTree(TREE, growing=growing)


def test_a_tree_of_one_cell_is_refused_by_the_question(curator):
    with pytest.raises(InputError, match="cells of its own"):
        run(PrivTree(Quadtree.around(Box(13, 52, 14, 53), 0)), curator, PureDP(1), Unrecorded())
