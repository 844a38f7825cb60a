"""For those who write methods, trees, encoders and queries of their own: what they use, and what they implement.

How a method is written is in docs/extend.md, a tree in docs/extend-trees.md, an encoder in docs/extend-encoders.md.
"""

from hazemap.algorithms import AdaptiveSlots
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.algorithms.cumulative_distribution import CumulativeTree, best_branchings
from hazemap.algorithms.named_methods import NamedMethod, Parameter
from hazemap.algorithms.published.chop_user import CellVisits, ChopUserQuery, chop_user
from hazemap.algorithms.published.user_level_means import BalancedMean
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Partition, Tree
from hazemap.encoders import Counts, Entries, total
from hazemap.engines.memory import MemoryTable, SingleCellSamples
from hazemap.errors import HazemapError, InputError
from hazemap.estimate import read
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.algorithm_session import Session, Unrecorded, replay, run, run_async
from hazemap.queries.noisy_queries import Answer, Prices, Query
from hazemap.spatial.bounding_box import coordinates
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import VotesTable
from hazemap.temporal.time_slots import Clock
from hazemap.trust.curator import CentralPrices, Curator
from hazemap.values.interval_tree import IntervalTree
from hazemap.values.quantizer import Quantizer

__all__ = [
    "AdaptiveSlots",
    "Answer",
    "BalancedMean",
    "Bounding",
    "CellMap",
    "CellVisits",
    "CentralPrices",
    "ChopUserQuery",
    "Clock",
    "Counts",
    "CumulativeTree",
    "Curator",
    "Disclosure",
    "DiscreteLaplace",
    "Entries",
    "HazemapError",
    "InputError",
    "IntervalTree",
    "Learned",
    "Leaves",
    "MemoryTable",
    "NamedMethod",
    "Parameter",
    "Partition",
    "Prices",
    "Quantizer",
    "Query",
    "Reading",
    "Session",
    "SingleCellSamples",
    "Tree",
    "Unrecorded",
    "VotesTable",
    "best_branchings",
    "chop_user",
    "coordinates",
    "counted",
    "read",
    "replay",
    "run",
    "run_async",
    "total",
    "with_nowhere",
]
