"""Searches: algorithms that ask devices the same recipe round after round, each with bins that follow the answers."""

from hazemap.federated.study.searches.frequent_items import FrequentSequences, HeavyHitters, ListedSequences
from hazemap.federated.study.searches.item_counts import CountInterval, ItemCounts
from hazemap.federated.study.searches.refine import EdgeRefinement, RefinedBuckets

SEARCHES: tuple[type, ...] = (FrequentSequences, ListedSequences, HeavyHitters, EdgeRefinement)
"""Every one of them."""

__all__ = [
    "SEARCHES",
    "CountInterval",
    "EdgeRefinement",
    "FrequentSequences",
    "HeavyHitters",
    "ItemCounts",
    "ListedSequences",
    "RefinedBuckets",
]
