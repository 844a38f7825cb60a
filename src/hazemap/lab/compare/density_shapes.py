"""What made-up maps are put together from: distances, bells, lines, hills and single pixels on a square."""

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Floats
from hazemap.planning.synthetic_city import normal, uniform
from hazemap.privacy.random_stream import Stream

SIDE = 256
AXIS = (np.arange(SIDE) + 0.5) / SIDE
ROW, COLUMN = np.meshgrid(AXIS, AXIS, indexing="ij")


def distance(row: float, column: float) -> Floats:
    """How far each pixel is from a place."""
    return np.hypot(ROW - row, COLUMN - column)


def bell(row: float, column: float, spread: float) -> Floats:
    """A Gaussian of sum 1."""
    bell = np.exp(-0.5 * (distance(row, column) / spread) ** 2)
    return np.asarray(bell / max(bell.sum(), 1e-300))


def segment(start: tuple[float, float], end: tuple[float, float]) -> Floats:
    """How far each pixel is from a straight line between two places."""
    along = np.subtract(end, start)
    part = ((ROW - start[0]) * along[0] + (COLUMN - start[1]) * along[1]) / max(float(along @ along), 1e-12)
    part = np.clip(part, 0, 1)
    away = np.hypot(ROW - start[0] - part * along[0], COLUMN - start[1] - part * along[1])
    return np.asarray(away, dtype=np.float64)


def hills(stream: Stream, steepness: float) -> Floats:
    """Smooth random heights of mean 0 and deviation 1: noise whose spectrum falls by this power of the frequency."""
    waves = np.fft.fftfreq(SIDE) * SIDE
    frequency = np.maximum(np.hypot(*np.meshgrid(waves, waves)), 1.0)
    heights = np.fft.ifft2(np.fft.fft2(normal(stream, SIDE * SIDE).reshape(SIDE, SIDE)) / frequency**steepness).real
    return np.asarray((heights - heights.mean()) / heights.std())


def pixels(places: NDArray[np.int64], weights: Floats) -> Floats:
    """Weights in some pixels, nothing elsewhere."""
    return np.asarray(np.bincount(places, weights, SIDE * SIDE).reshape(SIDE, SIDE), dtype=np.float64)


def anywhere(stream: Stream, number: int) -> NDArray[np.int64]:
    """So many pixels at random; some may come twice."""
    return (uniform(stream, number) * SIDE * SIDE).astype(np.int64)
