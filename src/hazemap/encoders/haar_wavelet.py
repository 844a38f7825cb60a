"""Haar wavelet: differences of neighbouring blocks of a grid, from coarse to fine."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.spatial.quadtree import LARGEST_GRID, Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Sensitivity
from hazemap.tables.votes import VotesTable

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable


@dataclass(frozen=True)
class HaarWavelet:
    """The votes of one level of a quadtree under the weighted Haar wavelet of two dimensions (Xiao et al. 2010).

    In one dimension, over n = 2^L places: their sum, then for every block of 2, 4 … n places the sum of its first half
    less the sum of its second. (A coefficient is half the difference of two means; its weight, the length of the block,
    makes it this whole number.) In two dimensions every row is transformed, and then every column of what came out. So
    the vector is a matrix of n × n numbers, rows first: place 0 of an axis is the sum, places 2^k … 2^(k+1) − 1 are the
    blocks of n/2^k places, from west to east or north to south.

    A place is in L + 1 sums of its axis, each time with weight 1 or −1. So a vote moves (L + 1)² numbers of the matrix
    by one each: Δ₁ is (L + 1)² times what the rule allows a person, and Δ₂, by the triangle inequality, L + 1 times.
    Where the rule keeps `NOWHERE`, its votes stand behind the matrix, L + 1 times, which both bounds have room for.

    >>> wavelet = HaarWavelet(Quadtree.world(depth=10), level=10)
    >>> wavelet.size, wavelet.sensitivity
    (1048576, Sensitivity(l1=121, l2_squared=121))
    """

    tree: Quadtree
    level: int
    bounding: Bounding = AtMostRows(1)

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.tree, Quadtree):
            raise InputError("a wavelet needs rows and columns: choose quadtree cells")
        if not 1 <= self.level <= min(self.tree.depth, LARGEST_GRID):
            raise InputError(
                f"a wavelet needs level 1 to {min(self.tree.depth, LARGEST_GRID)} of its tree, not of {self.level}"
            )

    @property
    def side(self) -> int:
        """n: rows, and columns."""
        return 1 << self.level

    @property
    def size(self) -> int:
        """The matrix, and `NOWHERE` where it is kept."""
        return self.side**2 + self.bounding.outside.asked

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the vector."""
        times, most = (self.level + 1) ** 2, self.bounding.sensitivity.l1
        return Sensitivity(times * most, times * most**2)

    @cached_property
    def cells(self) -> Leaves:
        """The cells of the level, and `NOWHERE` behind them where it is kept."""
        cells = Leaves.at_level(self.tree, self.level)
        return Leaves(self.tree, np.append(cells.cells, NOWHERE)) if self.bounding.outside.asked else cells

    @property
    def places(self) -> NDArray[np.int64]:
        """Which of the cells stands in each row and column of a picture, int64[rows, columns]."""
        return self.tree.grid(self.level).view(np.int64) - (1 << 2 * self.level)

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person adds where: (L + 1)² entries for each of their cells."""
        person, base, weight = table.bounded(self.tree, self.bounding)
        real = base != NOWHERE
        column, row = (self._axis(at[real]) for at in self.tree.pixels(base))
        position = (row.place[:, :, None] * self.side + column.place[:, None, :]).ravel()
        value = (row.sign[:, :, None] * column.sign[:, None, :] * weight[real, None, None]).ravel()
        entries = Entries(np.repeat(person[real], (self.level + 1) ** 2), position, value)
        if not self.bounding.outside.asked:
            return entries
        lost = Entries(person[~real], np.full((~real).sum(), self.size - 1), (self.level + 1) * weight[~real])
        return Entries(*(np.concatenate(column) for column in zip(entries, lost, strict=True)))

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes: O(cells)."""
        votes = table.votes(self.tree, self.bounding)
        column, row = (at >> (self.tree.depth - self.level) for at in self.tree.pixels(votes.cells))
        real = votes.cells != NOWHERE
        picture = np.zeros(self.side**2, dtype=np.int64)
        np.add.at(picture, (row * self.side + column)[real], votes.weights[real])
        matrix = transformed(picture.reshape(self.side, self.side)).ravel()
        lost = votes.weights[~real].sum(keepdims=True)
        return np.append(matrix, (self.level + 1) * lost) if self.bounding.outside.asked else matrix

    def _axis(self, pixel: NDArray[np.int64]) -> "_Axis":
        """The places on one axis that each pixel is in."""
        up = self.tree.depth - np.arange(self.level)[None, :]  # the block of place 2^k + b holds pixels of b << up
        ahead = np.zeros((len(pixel), 1), dtype=np.int64)
        blocks = (1 << np.arange(self.level)) + (pixel[:, None] >> up)
        signs = 1 - 2 * ((pixel[:, None] >> (up - 1)) & 1)
        return _Axis(np.concatenate([ahead, blocks], axis=1), np.concatenate([ahead + 1, signs], axis=1))


class _Axis(NamedTuple):
    """Places on an axis and the signs there, int64[pixels, L + 1]."""

    place: NDArray[np.int64]
    sign: NDArray[np.int64]


def transformed(picture: NDArray[Any]) -> NDArray[Any]:
    """Sums and differences of a square picture, as `HaarWavelet` has them: O(pixels), exact for whole numbers.

    >>> transformed(np.array([[1, 2], [3, 5]]))
    array([[11, -3],
           [-5,  1]])
    """
    return _columns(np.ascontiguousarray(_columns(picture).T)).T


def _columns(picture: NDArray[Any]) -> NDArray[Any]:
    """Every column on its own."""
    found, sums = np.empty_like(picture), picture
    half = len(picture) // 2
    while half:
        found[half : 2 * half] = sums[0::2] - sums[1::2]
        sums = sums[0::2] + sums[1::2]
        half //= 2
    found[0] = sums[0]
    return found
