"""Algorithms, one file each: pure functions of the answers they receive."""

from hazemap.algorithms.adaptive_slots import AdaptiveSlots
from hazemap.algorithms.adaptive_tree import Adaptive
from hazemap.algorithms.built_in_methods import BUILT_IN
from hazemap.algorithms.cell_statistics import CellStatistics, PublicLocationStatistics
from hazemap.algorithms.emd_pyramids import DensePyramid, PublishedPyramid, Pyramid
from hazemap.algorithms.htf_plus import HTFPlus
from hazemap.algorithms.named_methods import NamedMethod
from hazemap.algorithms.partition_selection import PartitionSelection
from hazemap.algorithms.private_bounding_box import LocateBox, PrivateBoundingBox
from hazemap.algorithms.private_value_bounds import PrivateValueBounds
from hazemap.algorithms.proportion import Narrow, Proportion, ProportionInSlots, Significant
from hazemap.algorithms.published.adaptive_hierarchical_histogram import AdaptiveHierarchicalHistogram
from hazemap.algorithms.published.htf import HTF
from hazemap.algorithms.published.place_means import PublishedStatistics
from hazemap.algorithms.published.privtree import PrivTree
from hazemap.algorithms.published.uniform_and_adaptive_grid import AdaptiveGrid, UniformGrid
from hazemap.algorithms.single_level import FittedLevel, Flat
from hazemap.algorithms.trees_within_districts import TreesWithinDistricts
from hazemap.algorithms.two_stage_statistics import PrivateBoxStatistics, TwoStageStatistics

METHODS: tuple[type, ...] = (
    *dict.fromkeys(type_ for method in BUILT_IN.values() for type_ in method.types),
    *(LocateBox, PrivateBoundingBox, Proportion, AdaptiveSlots, ProportionInSlots),
)
"""Every method of a map that a release may name, without the comparators."""

GOALS: tuple[type, ...] = (Significant, Narrow)
"""What the cells of a map with marks are cut for."""

OF_VALUES: tuple[type, ...] = (
    CellStatistics,
    PrivateBoxStatistics,
    TwoStageStatistics,
    PrivateValueBounds,
    PartitionSelection,
    PublicLocationStatistics,
    PublishedStatistics,
)
"""Every method that ends in statistics of a value, and what they are made of."""

READABLE: tuple[type, ...] = (*METHODS, *GOALS, *OF_VALUES)
"""Every type of a method that a file of a release may hold."""

__all__ = [
    "GOALS",
    "HTF",
    "METHODS",
    "OF_VALUES",
    "READABLE",
    "Adaptive",
    "AdaptiveGrid",
    "AdaptiveHierarchicalHistogram",
    "AdaptiveSlots",
    "CellStatistics",
    "DensePyramid",
    "FittedLevel",
    "Flat",
    "HTFPlus",
    "LocateBox",
    "NamedMethod",
    "PartitionSelection",
    "PrivTree",
    "PrivateBoundingBox",
    "PrivateBoxStatistics",
    "PrivateValueBounds",
    "Proportion",
    "ProportionInSlots",
    "PublicLocationStatistics",
    "PublishedPyramid",
    "PublishedStatistics",
    "Pyramid",
    "TreesWithinDistricts",
    "TwoStageStatistics",
    "UniformGrid",
]
