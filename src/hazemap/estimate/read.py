"""How the numbers of a map are read off its answers."""

from collections.abc import Iterable
from enum import Enum

from hazemap.cellmap import CellMap
from hazemap.cells import Leaves
from hazemap.estimate.consistent import consistent
from hazemap.estimate.nonnegative import nonnegative
from hazemap.estimate.shrink import shrunk
from hazemap.estimate.transcripts import measurements
from hazemap.rounds import Answer, Question


class Reading(Enum):
    """The best guess that a map shows. The unbiased estimate is kept beside it, whichever is chosen."""

    UNBIASED = "unbiased"  # least squares over all rounds
    NONNEGATIVE = "nonnegative"  # the nearest map without minus signs that has the same totals
    SHRUNK = "shrunk"  # first drawn toward the density around it, as far as noise explains the difference


def read(transcript: Iterable[tuple[Question, Answer]], cells: Leaves, reading: Reading) -> CellMap:
    """A map of these cells from all answers: O(cells asked · depth)."""
    estimate = consistent(measurements(transcript, cells), cells)
    values = shrunk(estimate) if reading is Reading.SHRUNK else estimate.numbers
    if reading is not Reading.UNBIASED:
        values = nonnegative(estimate, values)
    return CellMap(cells, values, estimate.numbers, estimate.stddev, estimate)
