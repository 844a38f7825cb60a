"""Asking every part of a distribution by itself: the baseline of trees."""

from fractions import Fraction

import numpy as np

from hazemap.algorithms.cumulative_distribution import CumulativeTree, best_branchings
from hazemap.engines.memory import SingleCellSamples
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.trust.curator import Curator
from hazemap.values.interval_tree import IntervalTree
from research.compare.user_level.interval_queries import interval_queries


def test_trees_have_a_fraction_of_the_error_of_interval_queries():
    """20,000 people, ε = 0.1, 20 draws of each, fixed streams."""
    values = np.clip(np.random.default_rng(0).normal(30, 9, 20_000), 0, 65)
    tree = IntervalTree(0, 65, 100, best_branchings(100))
    true = np.cumsum(np.histogram(values, tree.edges)[0]) / len(values)
    table, stream = SingleCellSamples(np.arange(20_000), values), Stream.fixed(b"intervals")
    direct, chosen = [], []
    for _ in range(20):
        parts = interval_queries(values, tree.edges, Fraction(1, 10), stream)
        assert (np.diff(parts) >= 0).all() and parts[0] >= 0 and parts[-1] <= 1
        direct.append(((parts - true) ** 2).mean() ** 0.5)
        found = run(CumulativeTree(tree), Curator(table, stream), PureDP("0.1"), Unrecorded()).value.parts
        chosen.append(((found - true) ** 2).mean() ** 0.5)
    assert np.mean(direct) > 4 * np.mean(chosen)
