"""Methods of the papers to compare with: each in one question or two, and none that a steward would choose.

A release may name them all the same; `hazemap.algorithms.comparators` has their names, and imports them on demand.
"""

from hazemap.lab.methods.count_min_tree import CountMin
from hazemap.lab.methods.hierarchical_histogram import HB, Geometric, Hierarchical, Privlet
from hazemap.lab.methods.kd_tree import KDTree
from hazemap.lab.methods.one_level_baselines import BestLevel, LaplaceClip, TopCells

__all__ = [
    "HB",
    "BestLevel",
    "CountMin",
    "Geometric",
    "Hierarchical",
    "KDTree",
    "LaplaceClip",
    "Privlet",
    "TopCells",
]
