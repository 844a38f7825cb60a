"""Who asks: one file a method. A method is a pure function of the answers it is sent."""

from hazemap.algorithms.adaptive import Adaptive
from hazemap.algorithms.flat import Flat
from hazemap.algorithms.found_box import FoundBox, Locate
from hazemap.algorithms.prefix_tree import PrefixTree
from hazemap.algorithms.proportion import Proportion
from hazemap.algorithms.uniform_grid import UniformGrid

METHODS: tuple[type, ...] = (Adaptive, Flat, FoundBox, Locate, PrefixTree, UniformGrid)
"""Every method that a release may name."""

__all__ = ["METHODS", "Adaptive", "Flat", "FoundBox", "Locate", "PrefixTree", "Proportion", "UniformGrid"]
