"""Buckets: what a value falls into, and the label that tells it."""

from itertools import pairwise

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.errors import InputError
from hazemap.federated.recipes.features import (
    MOST_BINS,
    Categories,
    Feature,
    MapCells,
    NumericEdges,
    PrefixTree,
    StringPrefixes,
)
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.values.boolean_attribute import BinaryAttribute
from hazemap.values.histogram_bins import FloatGrid, Log2Bins

TREE = Quadtree.world(depth=3)


def test_a_number_lies_in_the_interval_that_begins_at_or_below_it():
    edges = (-2.5, 0, 0.1, 7)
    rule = NumericEdges(edges)
    chance = np.random.default_rng(1)
    values = [*edges, *chance.uniform(-4, 9, 200).tolist(), 1 << 62, -(1 << 62), 0.1 + 1e-17, None, "0"]
    for value, found in zip(values, rule.buckets([values]), strict=True):
        inside = [
            place
            for place, (low, high) in enumerate(pairwise(edges), 1)
            if isinstance(value, int | float) and low <= value < high
        ]
        assert [found] == (inside or [0])
    assert rule.labels() == ["(other)", "[-2.5, 0)", "[0, 0.1)", "[0.1, 7)"]


def test_edges_are_the_same_numbers_whether_written_as_whole_or_not():
    assert NumericEdges((0, 1)) == NumericEdges((-0.0, 1.0))
    assert str(NumericEdges((0, 1)).edges) == "(0.0, 1.0)"


def test_categories_are_texts_or_whole_numbers_and_not_both():
    assert Categories((1, 2)).buckets([[1, 1.0, "1", True, None, 2]]).tolist() == [1, 0, 0, 0, 0, 2]
    assert Categories(("caf\u00e9",)).buckets([["cafe\u0301"]]).tolist() == [1]


def test_every_bucket_of_a_prefix_tree_is_reached_by_its_own_text():
    rule = PrefixTree(("hello world", "i", "how are you"), ("a", "b", "you"))
    assert rule.size == 1 + 3 * (1 + 1 + 3)
    texts = ["good bye", *(
        f"{prefix} {token}".rstrip() for prefix in rule.prefixes for token in ("", "zzz", *rule.tokens)
    )]  # fmt: skip
    assert rule.buckets([texts]).tolist() == list(range(rule.size))
    longer = [f"{text} and more" for text in texts[1:] if text not in rule.prefixes]
    assert rule.buckets([longer]).tolist() == [place for place in range(1, rule.size) if (place - 1) % 5]
    assert rule.buckets([["hello", "", None, 7, "hello  world", " i a", "hello world "]]).tolist() == [
        *(0, 0, 0, 0, 0, 0, 2)
    ]


def test_the_empty_prefix_asks_for_the_first_token():
    first = PrefixTree(("",), ("hello", "i", "world"))
    assert first.buckets([["", "x y", "hello world", "i"]]).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "cells",
    [
        Leaves.at_level(TREE, 2),
        Leaves(TREE, np.concatenate([TREE.children(TREE.root)[1:], TREE.children(TREE.children(TREE.root)[:1])[:2]])),
        Leaves.at_level(Hexagons(Box(2.2, 48.8, 2.5, 48.9), 5, 5), 0),
        WholeDomain(TREE),
    ],
)
def test_places_fall_into_the_cells_of_any_partition(cells):
    rule = MapCells(cells)
    chance = np.random.default_rng(2)
    lon, lat = chance.uniform(2, 3, 100), chance.uniform(48, 50, 100)
    base = cells.tree.cell_at({"lon": lon, "lat": lat}, cells.tree.depth)
    wanted = np.where(base == NOWHERE, 0, cells.locate(base) + 1)
    assert rule.buckets([lon.tolist(), lat.tolist()]).tolist() == wanted.tolist()
    assert rule.buckets([[None, "x", 181.0, 2.3], [48.0, 48.0, 48.0, None]]).tolist() == [0] * 4
    assert len(rule.labels()) == rule.size == len(set(rule.labels()))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: NumericEdges((1,)),
        lambda: NumericEdges((1, 1)),
        lambda: NumericEdges((2, 1)),
        lambda: NumericEdges((0, float("nan"))),
        lambda: NumericEdges((0, float("inf"))),
        lambda: NumericEdges((0, (1 << 53) + 1)),
        lambda: NumericEdges((0, 10**400)),
        lambda: NumericEdges((0, True)),
        lambda: NumericEdges(("0", "1")),
        lambda: Categories(()),
        lambda: Categories(("a", "a")),
        lambda: Categories(("a", 1)),
        lambda: Categories((1.5,)),
        lambda: Categories(("(other)",)),
        lambda: Categories(("e\u0301",)),
        lambda: Categories((1 << 70,)),
        lambda: PrefixTree((), ("a",)),
        lambda: PrefixTree(("a", "a b"), ("c",)),
        lambda: PrefixTree(("", "a"), ("c",)),
        lambda: PrefixTree(("a", "a"), ("c",)),
        lambda: PrefixTree(("a",), ("b c",)),
        lambda: PrefixTree(("a",), ("b", "b")),
        lambda: PrefixTree(("a  b",), ("c",)),
        lambda: PrefixTree(("a",), ("(end)",)),
        lambda: PrefixTree((" ".join("a" * 17),), ("c",)),
        lambda: PrefixTree(tuple(f"a{i}" for i in range(1_100)), tuple(f"b{i}" for i in range(1_100))),
        lambda: MapCells(TREE),
        lambda: MapCells(Leaves(TREE, np.array([], dtype=np.uint64))),
        lambda: MapCells(Leaves.at_level(Quadtree.world(depth=10), 10)),
        lambda: MapCells(Log2Bins(FloatGrid())),
        lambda: MapCells(Leaves.at_level(BinaryAttribute(TREE), 1)),
        lambda: Feature("people", NumericEdges((0, 1))),
        lambda: Feature("A", NumericEdges((0, 1))),
        lambda: Feature("a", "edges"),
    ],
)
def test_buckets_that_are_not_exact_or_too_many_are_refused_in_words(wrong):
    with pytest.raises(InputError, match=r"\w+ \w+ \w+"):
        wrong()


def test_the_most_buckets_are_allowed():
    assert NumericEdges(tuple(range(MOST_BINS))).size == MOST_BINS


def test_no_two_buckets_of_a_tree_have_one_label():
    for tree in (PrefixTree(("",), ("a", "b")), PrefixTree(("a", "b c"), ("a", "b")), StringPrefixes(("",), "ab", 2)):
        labels = tree.labels()
        assert len(set(labels)) == len(labels) == tree.size
