"""What may travel: a closed list, and what stands behind each protocol on it."""

from collections.abc import Mapping

from hazemap.cellmap import Reading
from hazemap.cells import Leaves, Partition, Tree
from hazemap.domains import (
    Always,
    Box,
    Clock,
    CutDistricts,
    Cuts,
    Districts,
    Everything,
    Gauge,
    Grids,
    Hexagons,
    Magnitudes,
    Marked,
    Measured,
    Octaves,
    Parcels,
    Quadtree,
    Sides,
    Spans,
    Stretches,
    Valued,
    Weekdays,
)
from hazemap.encoders import (
    Counts,
    CutCosts,
    Encoder,
    KeptValues,
    Medians,
    Presences,
    Quantiles,
    Sketch,
    Stack,
    Values,
    Wavelet,
)
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.rounds import Answer, Choice, Growth, Measure, Query
from hazemap.tables.bounding import AtMostCells, AtMostRows, OneVote, OwnMeans, RowIsPerson

TREES: tuple[type, ...] = (
    *(Quadtree, Hexagons, Grids, Cuts, Districts, Parcels, CutDistricts, Marked, Measured, Magnitudes, Valued),
)
PARTITIONS: tuple[type, ...] = (Leaves, Everything, Sides, Octaves, Stretches)
ENCODERS: tuple[type, ...] = (Counts, Stack, Sketch, Wavelet, Values, KeptValues, Presences)

CLOSED_LIST: tuple[type, ...] = (
    *(Query, Choice, Growth, Measure, Answer, CutCosts, Medians, Quantiles),
    *(*TREES, *PARTITIONS, *ENCODERS),
    *(Box, Gauge, Always, Clock, Weekdays, Spans, Reading),
    *(AtMostRows, AtMostCells, OneVote, RowIsPerson, OwnMeans, PureDP, ZCDP, ApproxDP),
)
"""Every type that may travel. Methods are added by whoever stores them (`known` of `from_json`)."""

RENAMED: Mapping[str, str] = {"outside": "nowhere"}
"""Fields whose name in texts is older than the one in the code: their digests stay what they were."""

UNIONS: Mapping[type, tuple[type, ...]] = {Tree: TREES, Partition: PARTITIONS, Encoder: ENCODERS}
"""What may stand where a field is annotated with a protocol. For a protocol of methods it is those of `known`."""
