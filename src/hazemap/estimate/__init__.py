"""Post-processing: arrays in, arrays out. Nothing here can leak."""

from collections.abc import Iterable

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.estimate.empirical_bayes import roughness
from hazemap.estimate.nonnegative_projection import nonnegative
from hazemap.estimate.postprocess import read
from hazemap.estimate.smooth_disaggregation import shown
from hazemap.estimate.transcript_measurements import measurements
from hazemap.estimate.tree_least_squares import ConsistentEstimate, Measurement, consistent
from hazemap.estimate.wavelet_reconstruction import read_wavelet, wavelet_of
from hazemap.queries.noisy_queries import Answer, Question

__all__ = [
    "ConsistentEstimate",
    "Measurement",
    "consistent",
    "from_transcript",
    "measurements",
    "nonnegative",
    "read",
    "read_wavelet",
    "roughness",
    "shown",
]


def from_transcript(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> CellMap:
    """The unbiased estimate from all answers of a run, and its errors; nothing shrunk."""
    transcript = tuple(transcript)
    wavelet = wavelet_of(transcript, cells)
    return read_wavelet(*wavelet, Reading.UNBIASED) if wavelet else read(transcript, cells, Reading.UNBIASED)
