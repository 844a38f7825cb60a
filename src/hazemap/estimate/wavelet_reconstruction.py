"""Reconstructs a grid from its wavelet coefficients."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Reading, Spread
from hazemap.cells import Leaves
from hazemap.encoders.haar_wavelet import HaarWavelet, transformed
from hazemap.errors import InputError
from hazemap.estimate.nonnegative_projection import nonnegative
from hazemap.machine_code.arrays import Floats
from hazemap.queries.noisy_queries import Answer, Query, Question


def restored(wavelet: HaarWavelet, sums: NDArray[Any]) -> Floats:
    """The votes in each cell, float64[cells], from the sums of a wavelet: its inverse, O(cells).

    A place has an equal part of the whole, and ± an equal part of the difference of each pair of blocks it is in.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> restored(HaarWavelet(Quadtree.world(depth=1), 1), np.array([11.0, -3.0, -5.0, 1.0]))
    array([1., 2., 3., 5.])
    """
    matrix, nowhere = _parts(wavelet, sums)
    turned = _added_up(np.ascontiguousarray(_added_up(matrix).T))  # rows are quicker to add than columns
    found = np.empty(wavelet.size)
    found[wavelet.places.T] = turned
    found[turned.size :] = nowhere
    return found


def _parts(wavelet: HaarWavelet, sums: NDArray[Any]) -> tuple[Floats, Floats]:
    """The numbers of a wavelet, each over the cells that it is about; and `NOWHERE`."""
    side = wavelet.side
    pair = 1 / np.concatenate(
        [[2.0**wavelet.level], *(np.full(1 << k, 2.0 ** (wavelet.level - k)) for k in range(wavelet.level))]
    )
    matrix = sums[: side * side].reshape(side, side) * pair
    matrix *= pair[:, None]
    return matrix, sums[side * side :] / (wavelet.level + 1)


def _added_up(matrix: Floats) -> Floats:
    """For every place of a column, the numbers of all pairs it is in, with the sign of its half; of each column."""
    sums, half = matrix[:1], 1
    while half < len(matrix):
        finer, differences = np.empty((2 * half, matrix.shape[1])), matrix[half : 2 * half]
        np.add(sums, differences, out=finer[0::2])
        np.subtract(sums, differences, out=finer[1::2])
        sums, half = finer, 2 * half
    return sums


@dataclass(frozen=True, eq=False)
class WaveletNoise:
    """The errors of cells whose wavelet was measured, with the same noise in every sum of it.

    A number's weight in Σ weights · cells is the number in its place of the wavelet of the weights, over the cells
    that it is about.
    """

    wavelet: HaarWavelet
    stddev: float
    kurtosis: float

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · unbiased: O(cells)."""
        matrix = transformed(weights[self.wavelet.places]).ravel()
        pull = _parts(self.wavelet, np.append(matrix, weights[matrix.size :]))
        squares = np.concatenate([part.ravel() for part in pull]) ** 2
        total = float(squares.sum())
        if total == 0:
            return Spread(0.0, 0.0)
        return Spread(self.stddev * total**0.5, self.kurtosis * float((squares**2).sum()) / total**2)

    @property
    def errors(self) -> Floats:
        """The standard error of each cell: the same for all, σ (1/n² + Σ_k 4^−k) over blocks of 2^k cells a side."""
        stddev = np.empty(self.wavelet.size)
        side = self.wavelet.side
        square = side**-2.0 + sum(4.0**-k for k in range(1, self.wavelet.level + 1))
        stddev[: side * side] = self.stddev * square
        stddev[side * side :] = self.stddev / (self.wavelet.level + 1)
        return stddev


def read_wavelet(wavelet: HaarWavelet, answer: Answer, reading: Reading) -> CellMap:
    """The map of a wavelet's cells. Its unbiased numbers are linear in the answer."""
    if answer.stddev.shape != (1,):
        raise InputError("a wavelet is read where every sum of it has the same noise")
    cells, unit = wavelet.cells, wavelet.bounding.unit
    unbiased = restored(wavelet, answer.sums)
    unbiased /= unit
    noise = WaveletNoise(wavelet, float(answer.stddev[0]) / unit, answer.kurtosis)
    values = unbiased if reading is Reading.UNBIASED else nonnegative(cells, unbiased)
    return CellMap(cells, values, unbiased, noise.errors, noise)


def wavelet_of(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> tuple[HaarWavelet, Answer] | None:
    """The wavelet of these cells that was asked for, and its answer; None if none was."""
    for question, answer in transcript:
        if (
            isinstance(question, Query)
            and isinstance(question.encoder, HaarWavelet)
            and question.encoder.cells == cells
        ):
            return question.encoder, answer
    return None
