"""The laws of encoders, for every encoder, bounding rule, tree and table: by brute force over neighbours.

`total(table) == Σ total(person)`; the engine's total is memory's; no person moves the sums by more than the
sensitivity, in L1 and in L2. Neighbours are all tables with one person fewer (or, seen from there, more).
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Cells, Leaves, Tree, WholeDomain
from hazemap.encoders import Concatenation, CountMinSketch, Counts, Encoder, HaarWavelet, QuantileScores, total
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson, Sensitivity

BOX = Box(13.0, 52.3, 13.8, 52.7)
QUADTREE, HEXAGONS = Quadtree.around(BOX, 3), Hexagons(BOX, 4, 6)
PLACES = [*product((13.05, 13.3, 13.31, 13.7), (52.35, 52.5, 52.65)), (0.0, 0.0), (np.nan, 52.5), (13.3, 95.0)]
PERSONAL = [
    *(rule(1, outside) for rule in (AtMostRows, AtMostCells) for outside in (Outside.DROP, Outside.COUNT)),
    *(rule(3, outside) for rule in (AtMostRows, AtMostCells) for outside in Outside),
    *(OneVote(1, outside) for outside in (Outside.DROP, Outside.COUNT)),
    *(OneVote(6, outside) for outside in Outside),
]
TINY = [rule(k, outside) for rule, k in ((AtMostRows, 2), (AtMostCells, 2), (OneVote, 5)) for outside in Outside]
RULES = [*PERSONAL, RowIsPerson(), RowIsPerson(outside=Outside.COUNT)]


def down(tree: Tree, *levels: int) -> Cells:
    """All cells of these levels."""
    found, cells = [], tree.root
    for level in range(max(levels) + 1):
        found += [cells] if level in levels else []
        cells = tree.children(cells) if level < tree.depth else cells
    return np.concatenate(found)


def leaves(tree: Tree) -> dict[str, Leaves]:
    """Antichains, a chain, some cells with some of their descendants, in any order, with and without NOWHERE."""
    every = down(tree, 0, 1, 2)
    some = np.random.default_rng(3).permutation(every)[: len(every) // 3]
    return {
        "root": Leaves(tree, tree.root),
        "one level": Leaves(tree, down(tree, 1)),
        "base": Leaves(tree, down(tree, tree.depth)),
        "mixed levels": Leaves(tree, np.concatenate([tree.children(down(tree, 1)[:1]), down(tree, 1)[1:]])),
        "nested": Leaves(tree, every[::-1]),
        "some nested": Leaves(tree, some),
        "nested and nowhere": Leaves(tree, np.append(some, NOWHERE)),
        "nothing": Leaves(tree, np.empty(0, dtype=np.uint64)),
    }


def encoders(tree: Tree, rule) -> dict[str, Encoder]:
    partitions = leaves(tree)
    counts = {name: Counts(cells, rule) for name, cells in (partitions | {"all": WholeDomain(tree)}).items()}
    alone = (Counts(partitions["root"], rule), Counts(partitions["some nested"], rule))
    stacks = {
        "stack": Concatenation(alone, (3, 1)),
        "stack of stacks": Concatenation((Concatenation(alone, (2, 1)), counts["nested and nowhere"]), (4, 1)),
    }
    if rule in PERSONAL:
        stacks["stack of rules"] = Concatenation((*alone, Counts(partitions["base"], AtMostCells(2))), (1, 2, 5))
    sketches = {
        "sketch": CountMinSketch(tree, 1, width=5, rows=2, bounding=rule),
        "sketch of base cells": CountMinSketch(tree, tree.depth, width=4, rows=3, bounding=rule, key=8),
        "stack of a sketch": Concatenation(
            (CountMinSketch(tree, 2, width=3, rows=2, bounding=rule), counts["root"]), (2, 1)
        ),
    }
    if not isinstance(tree, Quadtree):
        return counts | stacks | sketches
    wavelets = {
        "wavelet": HaarWavelet(tree, 2, rule),
        "stack of a wavelet": Concatenation((HaarWavelet(tree, tree.depth, rule), counts["root"]), (1, 3)),
    }
    return counts | stacks | sketches | wavelets


ENCODERS = [
    pytest.param(encoder, id=f"{where}, {name}, {rule!r}")
    for where, tree in (("quadtree", QUADTREE), ("hexagons", HEXAGONS))
    for rule in RULES
    for name, encoder in encoders(tree, rule).items()
]
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)
rows = st.tuples(
    st.sampled_from([1, 2, -5, 2**62]), st.sampled_from(PLACES), st.sampled_from([0.0, 0.3, 1.0, 1e9, np.nan])
)
quick = settings(max_examples=max(3, settings().max_examples // 20))


@st.composite
def tables(draw: st.DrawFn) -> MemoryTable:
    chosen, key = draw(st.lists(rows, max_size=12)), draw(st.integers(0, 2**64))
    lon, lat = (np.array([place[i] for _, place, _ in chosen], dtype=np.float64) for i in (0, 1))
    columns = {"lon": lon, "lat": lat, "weight": np.array([weight for *_, weight in chosen], dtype=np.float64)}
    return MemoryTable(np.array([who for who, *_ in chosen], dtype=np.int64), columns, key)


def taken(table: MemoryTable, rows: np.ndarray) -> MemoryTable:
    return MemoryTable(table.person[rows], {name: column[rows] for name, column in table.columns.items()}, table.key)


def engine(table: MemoryTable) -> EngineTable:
    import pyarrow

    return open_table(pyarrow.table({"user": table.person, **table.columns}), key=table.key, value="weight")


def units(table: MemoryTable, encoder: Encoder) -> list[np.ndarray]:
    """The rows of each person; every row alone where each is a person of its own."""
    if "RowIsPerson" in repr(encoder):
        return [np.arange(len(table.person)) == i for i in range(len(table.person))]
    return [table.person == person for person in np.unique(table.person)]


def is_within(sensitivity: Sensitivity, difference: np.ndarray) -> bool:
    l1, l2_squared = int(np.abs(difference).sum()), int((difference**2).sum())
    return l1 <= sensitivity.l1 and l2_squared <= sensitivity.l2_squared


@every_encoder
@quick
@given(table=tables())
def test_sums_are_those_of_each_person_and_nobody_moves_them_by_more_than_the_sensitivity(encoder, table):
    whole = encoder.total(table)
    assert whole.dtype == np.int64 and whole.shape == (encoder.size,)
    each = [total(encoder, table.of(person)) for person in np.unique(table.person)]
    assert np.array_equal(whole, sum(each, start=np.zeros(encoder.size, dtype=np.int64)))
    assert np.array_equal(whole, total(encoder, table))
    for own in units(table, encoder):
        assert is_within(encoder.sensitivity, whole - encoder.total(taken(table, ~own)))


@pytest.mark.slow
@pytest.mark.parametrize("tree", [QUADTREE, HEXAGONS], ids=["quadtree", "hexagons"])
@settings(max_examples=10)
@given(table=tables())
def test_an_engine_gives_the_sums_of_memory(tree, table):
    rows = engine(table)
    for rule in RULES:
        for encoder in encoders(tree, rule).values():
            assert np.array_equal(encoder.total(rows), encoder.total(table))


@pytest.mark.slow
@pytest.mark.parametrize("rule", TINY, ids=repr)
def test_no_person_of_any_tiny_table_moves_the_sums_by_more(rule):
    """Every table of up to three rows, of two people, in three places, with two weights."""
    encoder = Concatenation(
        (Counts(leaves(QUADTREE)["some nested"], rule), Counts(leaves(QUADTREE)["nested and nowhere"], rule)), (1, 2)
    )
    choices = list(product([1, 2], PLACES[:2] + PLACES[-3:-2], [1.0, 0.3]))
    for size in (1, 2, 3):
        for chosen in product(choices, repeat=size):
            person, places, weights = zip(*chosen, strict=True)
            lon, lat = np.array(places, dtype=np.float64).T
            table = MemoryTable(np.array(person), {"lon": lon, "lat": lat, "weight": np.array(weights)}, 9)
            whole = encoder.total(table)
            for own in units(table, encoder):
                assert is_within(encoder.sensitivity, whole - encoder.total(taken(table, ~own)))


def full_house() -> MemoryTable:
    """One person with all of many places."""
    lon, lat = np.array(PLACES[:12]).T
    return MemoryTable(np.ones(12, dtype=np.int64), {"lon": lon, "lat": lat, "weight": np.ones(12)}, 4)


@pytest.mark.parametrize("rule", PERSONAL, ids=repr)
def test_the_sensitivity_is_reached_so_a_smaller_one_is_found_out(rule):
    """The twin that must fail: a claim of one less than the sensitivity."""
    encoder = Counts(leaves(QUADTREE)["root"], rule)
    table = full_house()
    moved = encoder.total(table)
    assert is_within(encoder.sensitivity, moved)
    assert not is_within(Sensitivity(encoder.sensitivity.l1 - 1, encoder.sensitivity.l2_squared), moved)
    assert not is_within(Sensitivity(encoder.sensitivity.l1, encoder.sensitivity.l2_squared - 1), moved)


def test_a_stack_that_forgot_its_weights_is_found_out():
    counts = Counts(leaves(QUADTREE)["root"], AtMostRows(3))
    stack, flat = Concatenation((counts, counts), (1, 2)), Concatenation((counts, counts), (1, 1))
    moved = stack.total(full_house())
    assert is_within(stack.sensitivity, moved) and not is_within(flat.sensitivity, moved)


def test_a_sketch_that_forgot_its_rows_is_found_out():
    sketch, one_row = (CountMinSketch(QUADTREE, 0, width=4, rows=rows, bounding=AtMostRows(3)) for rows in (3, 1))
    moved = sketch.total(full_house())
    assert is_within(sketch.sensitivity, moved) and not is_within(one_row.sensitivity, moved)


@pytest.mark.parametrize("rule", PERSONAL, ids=repr)
@pytest.mark.parametrize("rank", [Fraction(0), Fraction(1, 2), Fraction(1, 3), Fraction(9, 10), Fraction(1)], ids=str)
@settings(max_examples=10)
@given(table=tables())
def test_no_person_moves_the_score_of_a_quantile_by_more(rule, rank, table):
    cells = leaves(QUADTREE)["one level"]
    quantiles = QuantileScores(cells, (rank,), rule)
    whole = quantiles.scores(table, rank)
    for person in np.unique(table.person):
        rest = quantiles.scores(taken(table, table.person != person), rank)
        assert np.abs(whole - rest).max() <= quantiles.sensitivity(rank)


@pytest.mark.parametrize(
    "weights",
    [(0, 1), (1, 0), (-1, 1), (1, -1), (1,), (1, 1, 1), (), (1.5, 1), (1, True), (1, Fraction(1, 2))],
    ids=repr,
)
def test_a_stack_has_a_whole_weight_above_zero_for_each_part(weights):
    """With a weight of 0 or less the noise would be for less than a person moves."""
    counts = Counts(leaves(QUADTREE)["root"], AtMostRows(3))
    with pytest.raises(InputError, match="a concatenation needs at least one part, and a positive"):
        Concatenation((counts, counts), weights)
    with pytest.raises(InputError, match="at least one part"):
        Concatenation((), ())
