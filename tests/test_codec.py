"""What travels: golden files, round trips, refusals. `python tests/test_codec.py` writes the golden files anew."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap import codec
from hazemap.algorithms import (
    GOALS,
    HTF,
    METHODS,
    OF_VALUES,
    Adaptive,
    AdaptiveGrid,
    AdaptiveHierarchicalHistogram,
    AdaptiveSlots,
    CellStatistics,
    FittedLevel,
    Flat,
    HTFPlus,
    LocateBox,
    PartitionSelection,
    PrivateBoundingBox,
    PrivateBoxStatistics,
    PrivateValueBounds,
    PrivTree,
    ProportionInSlots,
    PublicLocationStatistics,
    TwoStageStatistics,
    UniformGrid,
)
from hazemap.algorithms.comparators import CLASSES, comparator_type
from hazemap.algorithms.plug_ins import plug_in_type
from hazemap.algorithms.proportion import Narrow
from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.codec.allowed_types import CLOSED_LIST, written_name
from hazemap.encoders import (
    CellPresence,
    Concatenation,
    CountMinSketch,
    Counts,
    EvenSplitScores,
    HaarWavelet,
    KnownCountValues,
    MedianSplitScores,
    QuantileScores,
    Values,
)
from hazemap.errors import CodecError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import NumericEdges
from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
from hazemap.federated.study.searches import SEARCHES
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling
from hazemap.federated.trust.device_tasks import KNOWN, Task
from hazemap.lab.methods import HB, BestLevel, CountMin, Geometric, Hierarchical, KDTree, Privlet
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.plane import Plane, PlaneBox, PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, OwnMeans, RowIsPerson
from hazemap.temporal.time_slots import Always, Clock, Spans, Weekdays
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.histogram_bins import FloatGrid, HistogramBins, Log2Bins
from hazemap.values.rows_with_values import RowsWithValues
from hazemap.values.sides_in_slots import SidesInSlots
from hazemap.values.timed_tree import TimedTree
from hazemap.values.value_encoding import ValueEncoding

GOLDEN = Path(__file__).parent / "vectors" / "codec"
TREE = Quadtree(0.25, 0.5, 0.125, 6)
CUTS = BinaryPartition.uncut(TREE).cut(np.array([1, 3], dtype=np.uint64), np.array([0, 1]), np.array([5, 9]))
QUARTERS = Leaves(TREE, np.append(TREE.children(TREE.root), NOWHERE))
QUARTERS_ALONE, HALVES = Leaves(TREE, TREE.children(TREE.root)), Clock("UTC", (0, 43200))
COUNTS = Counts(QUARTERS, AtMostRows(3, outside=Outside.COUNT))
PLANE = PlaneQuadtree.over(Plane.parse("1000,800"), PlaneBox(0, 0, 1000, 800), 3)
HEXAGONS = Hexagons(Box(2.2, 48.8, 2.4, 48.9), 7, 9)

VALUE_ENCODING = ValueEncoding(0, 65, degree=2, branchings=(16, 4), weights=(20, 9, 2))

ONLY_VALUES = KnownCountValues(
    CellTimeSlots(Leaves(TREE, TREE.children(TREE.root)[:2]), Clock("UTC", (0, 43200)), VALUE_ENCODING),
    OwnMeans(2, 3, 42 << 20),
    np.array([5, 0, 7, 1]),
    np.array([9, 0, 6, 0]),
    most=5,
    squares=13,
)
BEFORE = {
    "deciding": (Fraction(2, 100), Fraction(5, 100), Fraction(10, 100)),
    "coarser": ((2, Fraction(8, 100)), (4, Fraction(2, 100))),
    "first_cells": 256,
    "fullness": (20, 6, 6),
    "smooth": None,
    "sizing": None,
    "even": None,
    "first_fullness": None,
    "total_within": None,
    "second_look": None,
}
OF_EVEN_MAPS = {
    "deciding": (Fraction(15, 1000), Fraction(4, 100), Fraction(16, 100)),
    "fullness": (20, 6, 16),
    "first_fullness": None,
    "total_within": None,
    "second_look": None,
}
WITH_ITS_TOTAL = {
    **BEFORE,
    "deciding": tuple(Fraction(k, 100) for k in (2, 5, 11)),
    "coarser": ((4, Fraction(1, 100)), (64, Fraction(95, 1000))),
}
"""The shares of the adaptive method that files of earlier versions hold: they are read and replayed as they were."""

THINGS = {
    "query": Query(COUNTS, Fraction(1, 20)),
    "query-of-a-cohort": Query(Counts(QUARTERS, AtMostCells(5)), Fraction(1), cohort=3),
    "query-of-a-stack": Query(Concatenation((COUNTS, Counts(QUARTERS, OneVote(1024))), (1, 4)), Fraction(1, 3)),
    "query-over-hexagons": Query(Counts(Leaves(HEXAGONS, HEXAGONS.root), RowIsPerson()), Fraction(1, 2)),
    "query-over-a-plane": Query(Counts(Leaves(PLANE, PLANE.children(PLANE.root)), AtMostRows(1)), Fraction(1, 2)),
    "query-of-everything": Query(Counts(WholeDomain(HEXAGONS), AtMostRows(2)), Fraction(95, 1000)),
    "query-about-people-outside": Query(Counts(QUARTERS, OneVote(outside=Outside.PEOPLE)), Fraction(1, 2)),
    "choice": Choice(QuantileScores(QUARTERS, (Fraction(1, 2), Fraction(9, 10)), AtMostRows(1)), Fraction(1, 7)),
    "answer": Answer(np.array([5, -3, 2**40, 0, 1]), np.array([1.4142135623730951]), 3.0),
    "answer-of-devices": Answer(np.array([7, -2]), np.array([1.5, 2.5]), 0.5, people=8_750),
    "task": Task(
        "homes",
        "A map of where people live, for the bus lines of 2027.",
        3,
        Query(Counts(QUARTERS, AtMostRows(3)), Fraction(1, 20)),
        PureDP("0.1"),
        PureDP(2),
        Cohort(100_000, 1_000, Fraction(1, 5), Fraction(1, 20), Sampling.ONE, Mode.MALICIOUS),
    ),
    "task-of-a-recipe": Task.asking(
        recipe_from_toml(EXAMPLE), "study", 2, Cohort(30_000, 10_000), ApproxDP(1, "1e-5"), Fraction(3, 10)
    ),
    "choice-of-medians": Choice(
        MedianSplitScores(Leaves(CUTS, CUTS.ends), np.array([1, 0, 1]), OneVote(), 512), Fraction(1, 9)
    ),
    "choice-of-even-splits": Choice(
        EvenSplitScores(Leaves(CUTS, CUTS.ends), np.array([1, 0, 1]), OneVote(), 512), Fraction(1, 9)
    ),
    "growth": Growth(TREE, AtMostRows(2), Fraction(1, 2), threshold=3),
    "budgets": (PureDP("0.1"), ZCDP("0.5"), ApproxDP(1, "1e-6")),
    "adaptive": Adaptive(TREE, OneVote(), prior=Leaves(TREE, TREE.children(TREE.root)), **BEFORE),
    "adaptive-with-its-total": Adaptive(TREE, OneVote(), **WITH_ITS_TOTAL),
    "adaptive-that-skips-a-round": Adaptive(TREE, OneVote(), smooth=Fraction(3, 10), **(OF_EVEN_MAPS | {"even": None})),
    "adaptive-of-even-maps": Adaptive(TREE, OneVote(), **OF_EVEN_MAPS),
    "adaptive-of-few-rounds": (
        Adaptive(TREE, OneVote(), second_look=None),
        AdaptiveSlots(TREE, Clock.hours("Europe/Berlin")),
    ),
    "adaptive-that-looks-again": Adaptive(TREE, OneVote()),
    "query-of-a-sketch": Query(
        Concatenation((COUNTS, CountMinSketch(TREE, 5, width=100, rows=3, bounding=OneVote(), key=7)), (1, 1)),
        Fraction(1, 2),
    ),
    "query-of-a-wavelet": Query(HaarWavelet(TREE, 5, AtMostRows(2)), Fraction(1)),
    "query-over-grids": Query(
        Counts(
            Leaves.at_level(TwoLevelGrid(Quadtree(0.25, 0.5, 0.125, 9), 2, np.array([1, 3, 2, 1])), 2), AtMostRows(2)
        ),
        Fraction(49, 100),
    ),
    "query-over-cuts": Query(Counts(Leaves(CUTS, CUTS.ends), AtMostRows(2)), Fraction(1, 7)),
    "baselines": (
        FittedLevel(TREE),
        *(AdaptiveGrid(TREE, people=1000, reading=Reading.NONNEGATIVE), BestLevel(TREE, 3), CountMin(TREE, width=50)),
        *(Geometric(TREE, 4), Hierarchical(TREE, 5)),
    ),
    "decompositions": (KDTree(TREE), KDTree.uniform(TREE), KDTree.hybrid(TREE, OneVote()), PrivTree(TREE, threshold=5)),
    "even-density": (HTF.published(TREE, "0.1"), HTFPlus(TREE, deeper=2)),
    "hierarchies": (HB.published(TREE, 6), HB.least(TREE, 6), Privlet(TREE, 6, OneVote())),
    "query-of-values": Query(
        Values(
            CellTimeSlots(Leaves.at_level(TREE, 1), Clock.hours("Europe/Berlin"), VALUE_ENCODING),
            OwnMeans(24, 3, VALUE_ENCODING.scale),
        ),
        Fraction(1),
    ),
    "values-only": (
        Query(ONLY_VALUES, Fraction(1)),
        PublicLocationStatistics(ONLY_VALUES, "even: everybody counts in 2 places"),
    ),
    "methods-of-values": (
        CellStatistics(TREE, 3, Weekdays("Asia/Tokyo"), ValueEncoding(-5, 5), OwnMeans(7)),
        CellStatistics(TREE, 3, Spans("UTC", (0, 3600, 7200)), ValueEncoding(-5, 5), OwnMeans(1)),
        PrivateBoxStatistics(CellStatistics(HEXAGONS, 0, Always(), ValueEncoding(-5, 5), OwnMeans(1))),
    ),
    "queries-before-values": (
        Query(Counts(Log2Bins(FloatGrid()), OneVote()), Fraction(1, 30)),
        Query(
            Counts(HistogramBins.between(FloatGrid(Box(2.2, 48.8, 2.4, 48.9), Weekdays("UTC")), 0, 64, 8), OneVote()),
            Fraction(1, 30),
        ),
        Query(
            CellPresence(Leaves.at_level(RowsWithValues(Quadtree(0.25, 0.5, 0.125, 2)), 2), AtMostCells(8)),
            Fraction(1, 10),
        ),
    ),
    "maps-with-time": (
        *(
            Query(Counts(partition(TimedTree(TREE, Clock.hours("Europe/Berlin")), cells), OneVote()), Fraction(1, 10))
            for partition in (AllSlots, EachSlot)
            for cells in (Leaves.at_level(TREE, 1), WholeDomain(TREE))
        ),
        AdaptiveSlots(TREE, Clock.hours("Europe/Berlin"), fullness=4, first_fullness=None),
        PrivateBoundingBox(
            AdaptiveSlots(HEXAGONS, Weekdays("Asia/Tokyo"), AtMostCells(3), fullness=4, first_fullness=None)
        ),
    ),
    "marks-in-slots": (
        *(
            Query(Counts(SidesInSlots(partition(TimedTree(TREE, HALVES), QUARTERS_ALONE), sides)), Fraction(1, 10))
            for partition, sides in ((AllSlots, None), (EachSlot, 6))
        ),
        ProportionInSlots(TREE, Weekdays("Asia/Tokyo"), OneVote(), marks=("ill", "status=3")),
        PrivateBoundingBox(ProportionInSlots(HEXAGONS, HALVES, goal=Narrow(Fraction(1, 5)))),
    ),
    "methods-that-find": (
        TwoStageStatistics(
            CellStatistics(TREE, 3, Always(), ValueEncoding(-5, 5), OwnMeans(7)),
            PrivateValueBounds(FloatGrid(), low=-5),
            PartitionSelection(),
        ),
        PrivateBoxStatistics(
            TwoStageStatistics(
                CellStatistics(HEXAGONS, 2, Always(), ValueEncoding(0, 1), OwnMeans(1)),
                PrivateValueBounds(FloatGrid()),
                PartitionSelection(most=8),
            )
        ),
    ),
    "methods": (
        Flat(TREE, 3),
        FittedLevel(TREE),
        UniformGrid(TREE, reading=Reading.NONNEGATIVE),
        AdaptiveHierarchicalHistogram(TREE),
        LocateBox(),
        PrivateBoundingBox(Adaptive(TREE, **BEFORE)),
    ),
}


@pytest.mark.parametrize("name", THINGS)
def test_a_thing_is_written_as_its_golden_file_says(name):
    assert codec.to_json(THINGS[name]) == json.loads((GOLDEN / f"{name}.json").read_text())


@pytest.mark.parametrize("name", THINGS)
def test_a_thing_survives_the_wire(name):
    back = codec.loads(codec.dumps(THINGS[name]), (*METHODS, *GOALS, *OF_VALUES, *KNOWN), plug_ins=plug_in_type)
    assert back == THINGS[name]
    assert codec.digest(back) == codec.digest(THINGS[name])


def test_no_two_types_have_one_name_in_texts():
    """What a reader may know together: methods old and new, tasks, campaigns and recipes."""
    comparators = filter(None, map(comparator_type, CLASSES))
    every = dict.fromkeys((*CLOSED_LIST, *METHODS, *comparators, *OF_VALUES, *SEARCHES, *KNOWN))
    names = [written_name(each) for each in every]
    assert len(names) == len(set(names)), {name for name in names if names.count(name) > 1}


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.lists(st.floats(0, 1e300)), st.floats(-2, 6))
def test_no_number_is_rounded(sums, stddev, kurtosis):
    answer = Answer(np.array(sums, dtype=np.int64), np.array(stddev, dtype=np.float64), kurtosis)
    assert codec.loads(codec.dumps(answer)) == answer


def test_digests_of_rules_are_what_they_were_when_rows_outside_were_dropped_or_kept():
    """Before there was a third choice the field was `nowhere`, false or true; old transcripts must be replayed."""
    written = [codec.dumps(AtMostRows(3, outside)) for outside in (Outside.DROP, Outside.COUNT, Outside.PEOPLE)]
    assert written == [f'{{"AtMostRows":{{"most":3,"nowhere":{word}}}}}' for word in ("false", "true", '"people"')]


@pytest.mark.parametrize(
    "data",
    [
        {"AtMostRows": {"most": 3, "nowhere": 0}},
        {"AtMostRows": {"most": 3, "nowhere": "drop"}},
        {"AtMostRows": {"most": 3, "outside": False}},
        {"Curator": {}},
        {"Query": {}},
        {"Query": {"encoder": 1, "share": {"fraction": "2"}, "cohort": None}},
        {"Box": {"west": 1, "south": 0, "east": 0, "north": 1}},
        {"Box": {"west": 0, "south": 0, "east": 1, "north": 1, "height": 3}},
        {"Box": {}, "Query": {}},
        {"array": ["object", [1]]},
        {"array": ["uint64", [-1]]},
        {"fraction": "1/0"},
        {"PureDP": {"epsilon": {"fraction": "-1"}}},
        {"Quadtree": {"left": "a", "top": 0, "side": 1, "depth": 2}},
        {
            "Leaves": {
                "tree": {"Quadtree": {"left": 0, "top": 0, "side": 1, "depth": 2}},
                "cells": {"array": ["uint64", [4, 4]]},
            }
        },
    ],
)
def test_json_that_is_not_ours_is_refused(data):
    with pytest.raises(CodecError):
        codec.from_json(data)


@pytest.mark.parametrize("text", ["", "{", "nul", "[1,2", '{"array": 3}'])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(CodecError):
        codec.loads(text)


def test_what_is_not_on_the_closed_list_cannot_be_written():
    with pytest.raises(CodecError, match="closed list"):
        codec.to_json(object())


def test_equal_queries_and_only_they_have_one_digest():
    assert codec.digest(Query(COUNTS, 1)) == codec.digest(Query(COUNTS, Fraction(1)))
    assert codec.digest(Query(COUNTS, Fraction(5, 100))) != codec.digest(Query(COUNTS, Fraction(6, 100)))


def test_a_long_text_in_pieces_is_the_same_text():
    query = Query(Counts(Leaves(CUTS, CUTS.root)), Fraction(1, 3))
    things = (query, Answer(np.array([5]), np.array([1.5]), 3.0), query)
    assert "".join(codec.pieces(things)) == codec.dumps(things)
    assert codec.dumps(things).count('"Cuts"') == 1


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, thing in THINGS.items():
        (GOLDEN / f"{name}.json").write_text(json.dumps(codec.to_json(thing), indent=1) + "\n")


@pytest.mark.parametrize("edges", ["2,20.0", "-0.0,20.0"])
def test_numbers_that_their_class_would_rewrite_are_refused(edges):
    assert codec.loads('{"NumericEdges":{"edges":[0.0,20.0]}}', (NumericEdges,)).edges == (0.0, 20.0)
    with pytest.raises(CodecError, match="a thing has one text"):
        codec.loads(f'{{"NumericEdges":{{"edges":[{edges}]}}}}', (NumericEdges,))
