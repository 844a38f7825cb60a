"""Proportions: the tree of marked rows, the two goals, the intervals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap import codec
from hazemap.algorithms import Proportion
from hazemap.algorithms.proportion import Narrow, Significant
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders import Counts, total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, TableError
from hazemap.estimate.marked_counts import MarkedShares
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import askable
from hazemap.federated.trust.in_memory_secure_aggregation import SimulatedSecureAggregation
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside
from hazemap.trust.curator import Curator
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute

BOX = Box(13.0, 52.3, 13.8, 52.7)
TREE = Quadtree.around(BOX, 7)
HEXAGONS = Hexagons(BOX, 4, 6)


def table(people=30_000, seed=1):
    rng = np.random.default_rng(seed)
    x, y = np.where(rng.random(people) < 0.7, 0.3, 0.7) + rng.normal(0, 0.08, (2, people))
    x, y = np.clip(x, 0.01, 0.99), np.clip(y, 0.01, 0.99)
    mark = (rng.random(people) < 0.1 + 0.6 * (x < 0.5)).astype(np.int64)
    lon, lat = BOX.west + x * (BOX.east - BOX.west), BOX.south + y * (BOX.north - BOX.south)
    return MemoryTable(np.arange(people), {"lon": lon, "lat": lat, "mark": mark})


@pytest.mark.parametrize("inner", [TREE, HEXAGONS], ids=["quadtree", "hexagons"])
def test_a_marked_tree_keeps_the_laws_of_trees(inner):
    tree, rows = BinaryAttribute(inner), {**table(500).columns}
    rows["mark"] = np.where(np.arange(500) % 50, rows["mark"], 7)  # neither yes nor no
    base = tree.cell_at(rows, tree.depth)
    assert (base[::50] == NOWHERE).all()
    cells = base[base != NOWHERE]
    for level in range(tree.depth, 0, -1):
        assert (tree.level(cells) == level).all()
        up = tree.cell_at(rows, level - 1)
        assert np.array_equal(tree.parent(cells), up[base != NOWHERE])
        first, last = tree.span(cells)
        assert (first <= base[base != NOWHERE]).all() and (base[base != NOWHERE] <= last).all()
        parents = np.unique(tree.parent(cells))
        children = tree.children(parents)
        low, high = tree.span(children)
        outer_low, outer_high = tree.span(parents)
        begins = np.isin(low, outer_low)
        assert begins.sum() == len(parents) and np.array_equal(low[~begins], high[np.flatnonzero(~begins) - 1] + 1)
        assert set(outer_high) <= set(high)
        assert np.array_equal(tree.named(tree.names(cells[:20])), cells[:20])
        cells = tree.parent(cells)
    assert not np.isin(base, [NOWHERE]).all()


def test_a_table_without_marks_is_refused():
    plain = MemoryTable(np.arange(2), {"lon": np.array([13.1, 13.2]), "lat": np.array([52.4, 52.5])})
    with pytest.raises(TableError, match="'mark'"):
        plain.votes(BinaryAttribute(TREE), AtMostRows(1))


rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([13.05, 13.3, 13.7]), st.sampled_from([52.35, 52.6]), st.booleans()),
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(rows, st.sampled_from([AtMostRows(1), AtMostRows(2), AtMostCells(2), OneVote(5)]))
def test_nobody_moves_the_sides_by_more_than_the_sensitivity(drawn, rule):
    people, lon, lat, mark = (np.array(column) for column in zip(*drawn, strict=True)) if drawn else [np.zeros(0)] * 4
    whole = MemoryTable(people.astype(np.int64), {"lon": lon * 1.0, "lat": lat * 1.0, "mark": mark.astype(np.int64)})
    encoder = Counts(AttributeCells(Leaves.at_level(TREE, 3)), rule)
    all_sums = encoder.total(whole)
    assert np.array_equal(all_sums, total(encoder, whole))
    assert np.array_equal(all_sums, sum((total(encoder, whole.of(p)) for p in set(people.tolist())), 0 * all_sums))
    for person in set(people.tolist()):
        moved = total(encoder, whole.of(person))
        assert np.abs(moved).sum() <= encoder.sensitivity.l1
        assert (moved**2).sum() <= encoder.sensitivity.l2_squared


@pytest.mark.parametrize("goal", [Significant(), Narrow(Fraction(1, 5))], ids=["significant", "narrow"])
def test_the_cells_meet_the_goal_they_were_cut_for(goal):
    rows = table()
    trust = Curator(rows, Stream.fixed(b"goals"))
    found = run(Proportion(TREE, goal=goal), trust, PureDP(1), Unrecorded()).value
    assert found.cells.size > 16
    good = goal.met(found.shares("mark"))
    cut = found.cells.levels > 2  # the first cells are not chosen
    assert good[cut].mean() > 0.6  # noise, and parts that are not alike


def test_a_goal_that_any_cell_meets_makes_no_more_cells_than_may_be(monkeypatch):
    monkeypatch.setattr("hazemap.algorithms.proportion.MOST_NUMBERS", 2 * 100)
    for goal in (Significant(Fraction(0)), Narrow(Fraction(1))):
        found = run(Proportion(TREE, goal=goal), Curator(table(2_000)), PureDP(1), Unrecorded()).value
        assert 90 < found.cells.size <= 100 and (found.cells.areas > 0).all()


def test_proportions_are_asked_of_devices_as_well():
    cohort = Cohort(people=20_000, shard=1_000, dropout=Fraction(1, 5))
    found = run(Proportion(TREE), SimulatedSecureAggregation(table(), cohort), PureDP(1), Unrecorded()).value
    assert found.people.sum() == pytest.approx(20_000, rel=0.1)
    assert askable(Counts(AttributeCells(found.cells), AtMostRows(1)))


def test_narrower_intervals_leave_fewer_cells():
    rows = table()
    sizes = [
        run(Proportion(TREE, goal=Narrow(width)), Curator(rows), PureDP(1), Unrecorded()).value.cells.size
        for width in (Fraction(1, 10), Fraction(2, 5))
    ]
    assert sizes[0] < sizes[1]


def test_intervals_hold_as_often_as_they_say():
    rng = np.random.default_rng(5)  # 20,000 cells: 0.95 ± 0.0075 is 5 standard errors (6e-7)
    people = rng.integers(300, 3000, 20_000).astype(float)
    share = rng.random(20_000)
    for sampled in (False, True):
        marked = rng.binomial(people.astype(int), share) if sampled else np.rint(people * share)
        true = share if sampled else marked / people
        noise = rng.normal(0, 12, (2, 20_000))
        found = MarkedShares(marked + noise[0], people - marked + noise[1], (12.0, 12.0))
        low, high = found.interval(0.95, sampled)
        held = ((low <= true) & (true <= high)).mean()
        assert abs(held - 0.95) < 0.0075
        low, high = MarkedShares(found.marked, found.without, (8.0, 8.0)).interval(0.95, False)  # the twin
        assert ((low <= true) & (true <= high)).mean() < 0.93


def test_where_nobody_is_a_proportion_is_anything():
    nobody = MarkedShares(np.array([3.0]), np.array([-5.0]), (5.0, 5.0))
    assert np.isnan(nobody.values).all()
    assert [end.tolist() for end in nobody.interval()] == [[0.0], [1.0]]


def test_without_noise_the_interval_is_wilsons():
    low, high = MarkedShares(np.array([10.0]), np.array([90.0]), (0.0, 0.0)).interval(0.95, sampled=True)
    assert low[0] == pytest.approx(0.0552, abs=1e-4) and high[0] == pytest.approx(0.1744, abs=1e-4)


def test_a_marked_query_travels():
    query = Counts(AttributeCells(Leaves.at_level(TREE, 2)), AtMostRows(1))
    assert codec.loads(codec.dumps(query)) == query


def test_rows_that_lie_nowhere_have_no_proportion():
    with pytest.raises(InputError, match="outside the map"):
        Proportion(TREE, AtMostRows(1, outside=Outside.PEOPLE))


@pytest.mark.parametrize("kind", ["bool", "number", "text"])
@pytest.mark.parametrize("rule", [AtMostRows(2), AtMostCells(2), OneVote(7)], ids=str)
def test_files_and_frames_give_the_same_sides_as_memory(kind, rule):
    pyarrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(2)
    people, marks = rng.integers(0, 60, 400), rng.integers(0, 2, 400)
    lon, lat = rng.uniform(BOX.west, BOX.east, 400), rng.uniform(BOX.south, BOX.north, 400)
    column = {"bool": marks.astype(bool), "number": marks, "text": np.where(marks == 1, "true", "no such word")}[kind]
    mark = np.where(marks == 1, 1.0, np.nan) if kind == "text" else marks
    memory = MemoryTable(people, {"lon": lon, "lat": lat, "mark": mark}, key=5)
    engine = open_table(pyarrow.table({"user": people, "lon": lon, "lat": lat, "ill": column}), mark="ill", key=5)
    for tree in (BinaryAttribute(TREE), BinaryAttribute(HEXAGONS)):
        ours, theirs = memory.votes(tree, rule), engine.votes(tree, rule)
        assert np.array_equal(ours.cells, theirs.cells) and np.array_equal(ours.weights, theirs.weights)
