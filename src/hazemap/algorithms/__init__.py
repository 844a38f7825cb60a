"""Who asks: one file a method. A method is a pure function of the answers it is sent."""

from hazemap.algorithms.adaptive import Adaptive
from hazemap.algorithms.adaptive_grid import AdaptiveGrid
from hazemap.algorithms.best_level import BestLevel
from hazemap.algorithms.cell_values import CellValues
from hazemap.algorithms.count_min import CountMin
from hazemap.algorithms.dense_pyramid import DensePyramid
from hazemap.algorithms.fitted_level import FittedLevel
from hazemap.algorithms.flat import Flat
from hazemap.algorithms.found_bounds import FoundBounds
from hazemap.algorithms.found_box import FoundBox, Locate
from hazemap.algorithms.found_values import FoundValues
from hazemap.algorithms.geometric import Geometric
from hazemap.algorithms.hb import HB
from hazemap.algorithms.hierarchical import Hierarchical
from hazemap.algorithms.htf import HTF
from hazemap.algorithms.htf_plus import HTFPlus
from hazemap.algorithms.kd_tree import KDTree
from hazemap.algorithms.laplace_clip import LaplaceClip
from hazemap.algorithms.national import National
from hazemap.algorithms.prefix_tree import PrefixTree
from hazemap.algorithms.prepared_values import PreparedValues
from hazemap.algorithms.privlet import Privlet
from hazemap.algorithms.privtree import PrivTree
from hazemap.algorithms.proportion import Proportion
from hazemap.algorithms.published_pyramid import PublishedPyramid
from hazemap.algorithms.pyramid import Pyramid
from hazemap.algorithms.selected_cells import SelectedCells
from hazemap.algorithms.top_cells import TopCells
from hazemap.algorithms.uniform_grid import UniformGrid
from hazemap.algorithms.values_only import ValuesOnly

METHODS: tuple[type, ...] = (
    *(
        HB,
        HTF,
        HTFPlus,
        Adaptive,
        AdaptiveGrid,
        BestLevel,
        CountMin,
        Flat,
        FoundBox,
        Geometric,
        Hierarchical,
        Locate,
        PrefixTree,
    ),
    *(FittedLevel, KDTree, PrivTree, Privlet, PublishedPyramid, Pyramid, UniformGrid),
    *(DensePyramid, LaplaceClip, National, TopCells),
)
"""Every method of a map that a release may name."""

OF_VALUES: tuple[type, ...] = (CellValues, FoundValues, PreparedValues, FoundBounds, SelectedCells, ValuesOnly)
"""Every method that ends in statistics of a value, and what they are made of."""

__all__ = [
    "HB",
    "HTF",
    "METHODS",
    "OF_VALUES",
    "Adaptive",
    "AdaptiveGrid",
    "BestLevel",
    "CellValues",
    "CountMin",
    "DensePyramid",
    "FittedLevel",
    "Flat",
    "FoundBounds",
    "FoundBox",
    "FoundValues",
    "Geometric",
    "HTFPlus",
    "Hierarchical",
    "KDTree",
    "LaplaceClip",
    "Locate",
    "National",
    "PrefixTree",
    "PreparedValues",
    "PrivTree",
    "Privlet",
    "Proportion",
    "PublishedPyramid",
    "Pyramid",
    "SelectedCells",
    "TopCells",
    "UniformGrid",
    "ValuesOnly",
]
