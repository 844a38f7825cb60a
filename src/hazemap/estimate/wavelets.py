"""A grid read off its wavelet."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Reading, Spread
from hazemap.cells import Leaves
from hazemap.encoders.wavelet import Wavelet, transformed
from hazemap.errors import InputError
from hazemap.estimate.nonnegative import nonnegative
from hazemap.rounds import Answer, Query, Question

Floats = NDArray[np.float64]


def restored(wavelet: Wavelet, sums: Floats) -> Floats:
    """The votes in each cell, float64[cells], from the sums of a wavelet: its inverse, O(cells).

    The halves of a block of sum a and difference d are (a ± d)/2.

    >>> from hazemap.domains import Quadtree
    >>> restored(Wavelet(Quadtree.world(depth=1), 1), np.array([11.0, -3.0, -5.0, 1.0]))
    array([1., 2., 3., 5.])
    """
    side = wavelet.side
    picture = _columns(_columns(sums[: side * side].reshape(side, side).T).T)
    found = np.empty(wavelet.size)
    found[wavelet.places] = picture
    found[side * side :] = sums[side * side :] / (wavelet.level + 1)
    return found


def _columns(matrix: Floats) -> Floats:
    """The inverse of the transform of every column."""
    sums, half = matrix[:1], 1
    while half < len(matrix):
        finer = np.empty((2 * half, matrix.shape[1]))
        differences = matrix[half : 2 * half]
        np.add(sums, differences, out=finer[0::2])
        np.subtract(sums, differences, out=finer[1::2])
        finer /= 2
        sums, half = finer, 2 * half
    return sums


@dataclass(frozen=True, eq=False)
class WaveletNoise:
    """The errors of cells whose wavelet was measured, with the same noise in every sum of it.

    A cell is Σ ± (number of a pair of blocks)/(cells in the pair). So the weight of a number in Σ weights · cells is
    the number of the same pair in the wavelet of the weights, over the cells in the pair.
    """

    wavelet: Wavelet
    stddev: float
    kurtosis: float

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · unbiased: O(cells)."""
        side = self.wavelet.side
        blocks = _block(self.wavelet.level)
        pull = transformed(weights[self.wavelet.places]) / (blocks[:, None] * blocks)
        squares = np.append(pull.ravel(), weights[side * side :] / (self.wavelet.level + 1)) ** 2
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


def read_wavelet(wavelet: Wavelet, answer: Answer, reading: Reading) -> CellMap:
    """The map of a wavelet's cells. Its unbiased numbers are linear in the answer."""
    if answer.stddev.shape != (1,):
        raise InputError("a wavelet is read where every sum of it has the same noise")
    cells, unit = wavelet.cells, wavelet.bounding.unit
    unbiased = restored(wavelet, answer.sums / unit)
    noise = WaveletNoise(wavelet, float(answer.stddev[0]) / unit, answer.kurtosis)
    values = unbiased if reading is Reading.UNBIASED else nonnegative(cells, unbiased)
    return CellMap(cells, values, unbiased, noise.errors, noise)


def wavelet_of(transcript: Iterable[tuple[Question, Answer]], cells: Leaves) -> tuple[Wavelet, Answer] | None:
    """The wavelet of these cells that was asked for, and its answer; None if none was."""
    for question, answer in transcript:
        if isinstance(question, Query) and isinstance(question.encoder, Wavelet) and question.encoder.cells == cells:
            return question.encoder, answer
    return None


def _block(level: int) -> Floats:
    """How many places are in the pair of blocks of each number of an axis."""
    return np.concatenate([[2.0**level], *(np.full(1 << k, 2.0 ** (level - k)) for k in range(level))])
