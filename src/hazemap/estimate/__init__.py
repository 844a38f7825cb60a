"""Post-processing: arrays in, arrays out. Nothing here can leak."""

from collections.abc import Iterable

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.estimate.consistent import Consistent, Measurement, consistent
from hazemap.estimate.inside import inside, shown
from hazemap.estimate.likely import likely, roughness
from hazemap.estimate.nonnegative import nonnegative
from hazemap.estimate.read import read
from hazemap.estimate.shrink import shrunk
from hazemap.estimate.sketched import sketched
from hazemap.estimate.transcripts import measurements
from hazemap.estimate.wavelets import read_wavelet, wavelet_of
from hazemap.rounds import Answer, Question

__all__ = [
    "Consistent",
    "Measurement",
    "Reading",
    "consistent",
    "from_transcript",
    "inside",
    "likely",
    "measurements",
    "nonnegative",
    "read",
    "read_wavelet",
    "roughness",
    "shown",
    "shrunk",
    "sketched",
]


def from_transcript(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> CellMap:
    """The unbiased estimate from all answers of a run, and its errors; nothing shrunk."""
    transcript = tuple(transcript)
    wavelet = wavelet_of(transcript, cells)
    return read_wavelet(*wavelet, Reading.UNBIASED) if wavelet else read(transcript, cells, Reading.UNBIASED)
