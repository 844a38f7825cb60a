"""How the numbers of a map are read off its answers."""

from collections.abc import Iterable

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.estimate.consistent import unbiased
from hazemap.estimate.nonnegative import nonnegative
from hazemap.estimate.shrink import shrunk
from hazemap.estimate.transcripts import measurements
from hazemap.rounds import Answer, Question


def read(transcript: Iterable[tuple[Question, Answer]], cells: Leaves, reading: Reading) -> CellMap:
    """A map of these cells from all answers: O(cells asked · depth)."""
    estimate = unbiased(measurements(transcript, cells), cells)
    values = shrunk(estimate) if reading is Reading.SHRUNK else estimate.numbers
    if reading is not Reading.UNBIASED:
        values = nonnegative(estimate, values)
    return CellMap(cells, values, estimate.numbers, estimate.stddev, estimate)
