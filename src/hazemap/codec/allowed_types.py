"""The closed list of types that may travel, and those that each protocol admits."""

from collections.abc import Mapping

from hazemap.cellmap import Reading
from hazemap.cells import Leaves, Partition, Tree, WholeDomain
from hazemap.encoders import (
    CellPresence,
    Concatenation,
    CountMinSketch,
    Counts,
    Encoder,
    EvenSplitScores,
    HaarWavelet,
    KnownCountValues,
    MedianSplitScores,
    QuantileScores,
    SplitCosts,
    Values,
)
from hazemap.encoders.sample_statistics import (
    PlaceArrayMeans,
    PlaceBalances,
    PlaceBins,
    PlaceMeans,
    PlaceQuantiles,
    PlaceVariances,
)
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Measure, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.districts import Districts
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.plane import PlaneQuadtree
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.spatial.subdivided_districts import DistrictQuadtree, SubdividedDistricts
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, OwnMeans, RowIsPerson
from hazemap.tables.sample_grouping import SampledPlaces
from hazemap.temporal.time_slots import Always, Clock, Spans, Weekdays
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.histogram_bins import FloatGrid, HistogramBins, Log2Bins
from hazemap.values.rows_with_values import RowsWithValues
from hazemap.values.sides_in_slots import SidesInSlots
from hazemap.values.timed_tree import TimedTree
from hazemap.values.value_encoding import ValueEncoding

TREES: tuple[type, ...] = (
    *(
        Quadtree,
        PlaneQuadtree,
        Hexagons,
        TwoLevelGrid,
        BinaryPartition,
        Districts,
        DistrictQuadtree,
        SubdividedDistricts,
        BinaryAttribute,
        CellTimeSlots,
        FloatGrid,
        RowsWithValues,
        TimedTree,
    ),
)
PARTITIONS: tuple[type, ...] = (
    *(Leaves, WholeDomain, AttributeCells, Log2Bins, HistogramBins, AllSlots, EachSlot, SidesInSlots),
)
ENCODERS: tuple[type, ...] = (
    Counts,
    Concatenation,
    CountMinSketch,
    HaarWavelet,
    Values,
    KnownCountValues,
    CellPresence,
)

CLOSED_LIST: tuple[type, ...] = (
    *(Query, Choice, Growth, Measure, Answer, SplitCosts, EvenSplitScores, MedianSplitScores, QuantileScores),
    *(*TREES, *PARTITIONS, *ENCODERS),
    *(SampledPlaces, PlaceMeans, PlaceArrayMeans, PlaceVariances, PlaceQuantiles, PlaceBins, PlaceBalances),
    *(Box, ValueEncoding, Always, Clock, Weekdays, Spans, Reading),
    *(AtMostRows, AtMostCells, OneVote, RowIsPerson, OwnMeans, PureDP, ZCDP, ApproxDP),
)
"""Every type that may travel. Methods are added by whoever stores them (`known` of `from_json`)."""

RENAMED: Mapping[str, str] = {"outside": "nowhere", "value_encoding": "gauge", "district_squares": "parcels"}
"""Fields whose name in texts is older than the one in the code: their digests stay what they were."""

YOUNGER: Mapping[str, frozenset[str]] = {
    "Adaptive": frozenset(
        {"descent", "smooth", "sizing", "telling", "even", "first_fullness", "total_within", "second_look"}
    ),
    "AdaptiveSlots": frozenset({"most_numbers", "first_fullness"}),
    "Answer": frozenset({"skewness", "chances", "blank"}),
    "HTF": frozenset({"height", "negative"}),
    "Pyramid": frozenset({"gamma"}),
    "PublishedPyramid": frozenset({"gamma"}),
    "Campaign": frozenset({"carrier", "local_epsilon"}),
    "Marked": frozenset({"sides"}),
    "Recipe": frozenset({"randomiser"}),
    "StudySpec": frozenset({"carrier"}),
    "Sides": frozenset({"sides"}),
    "SidesInSlots": frozenset({"sides"}),
    "Task": frozenset({"randomiser"}),
}
"""Optional fields, by type, that are left out of texts where they are None: older texts and digests stay."""

UNIONS: Mapping[type, tuple[type, ...]] = {Tree: TREES, Partition: PARTITIONS, Encoder: ENCODERS}
"""What may stand where a field is annotated with a protocol. For a protocol of methods it is those of `known`."""

WRITTEN: Mapping[str, str] = {
    "AdaptiveHierarchicalHistogram": "PrefixTree",
    "TreesWithinDistricts": "National",
    "AttributeCells": "Sides",
    "BinaryAttribute": "Marked",
    "BinaryPartition": "Cuts",
    "CellPresence": "Presences",
    "CellStatistics": "CellValues",
    "CellTimeSlots": "Measured",
    "Concatenation": "Stack",
    "CountMinSketch": "Sketch",
    "DistrictQuadtree": "Parcels",
    "FloatGrid": "Magnitudes",
    "HaarWavelet": "Wavelet",
    "HistogramBins": "Stretches",
    "LocateBox": "Locate",
    "Log2Bins": "Octaves",
    "MedianSplitScores": "Medians",
    "PartitionSelection": "SelectedCells",
    "PrefixTree": "TokenPrefixTree",
    "PrivateBoundingBox": "FoundBox",
    "PrivateBoxStatistics": "FoundValues",
    "PrivateValueBounds": "FoundBounds",
    "PublicLocationStatistics": "ValuesOnly",
    "KnownCountValues": "KeptValues",
    "QuantileScores": "Quantiles",
    "RowsWithValues": "Valued",
    "SplitCosts": "CutCosts",
    "SubdividedDistricts": "CutDistricts",
    "TwoLevelGrid": "Grids",
    "TwoStageStatistics": "PreparedValues",
    "ValueEncoding": "Gauge",
    "WholeDomain": "Everything",
}
"""Types whose name in texts is older than the one in the code, so that old texts are read and digests stay; and one
whose own name belongs to an older one there. No two have one name (tests/test_codec.py)."""


OWN = "hazemap"


def package_of(type_: type) -> str:
    """The package that defines a type."""
    return type_.__module__.partition(".")[0]


def written_name(type_: type) -> str:
    """What a type is called in texts: PACKAGE.CLASS where it is not hazemap's own, so that no two are taken for one."""
    if package_of(type_) != OWN:
        return f"{package_of(type_)}.{type_.__name__}"
    return WRITTEN.get(type_.__name__, type_.__name__)
