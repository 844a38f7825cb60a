"""Searches: algorithms that ask devices the same recipe round after round, each with bins that follow the answers."""

from hazemap.federated.study.searches.frequent_items import FrequentSequences, HeavyHitters, ListedSequences
from hazemap.federated.study.searches.item_counts import CountInterval, ItemCounts
from hazemap.federated.study.searches.refine import Refine, RefinedBuckets

SEARCHES: tuple[type, ...] = (FrequentSequences, ListedSequences, HeavyHitters, Refine)
"""Every one of them."""

__all__ = [
    "SEARCHES",
    "CountInterval",
    "FrequentSequences",
    "HeavyHitters",
    "ItemCounts",
    "ListedSequences",
    "Refine",
    "RefinedBuckets",
]
