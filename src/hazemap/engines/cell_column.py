"""The place of a row as an H3 cell: its coordinates are the centre of the hexagon that the cell lies in.

So whatever finds hexagons of points (`spatial.h3_hexagons`) finds those of cells: the centre of a hexagon lies in it.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import numbers, valid
from hazemap.engines.coordinate_readers import LonLat

_HEXADECIMAL = re.compile("0?[0-9a-fA-F]{15}")
_DECIMAL = re.compile("[0-9]{18,19}")
_LONGEST = 64
"""Letters of a text that are looked at, blanks around it included: a cell has 15 to 19."""


@dataclass(frozen=True)
class CellColumn:
    """A column of H3 cells, as texts or as whole numbers of 64 bits, read at a resolution.

    A cell of that resolution stands for itself, a finer one for its ancestor there. A coarser one says too little: such
    a row is nowhere, like one without a cell and one with anything else than a cell. Each row is read for what it is
    itself.

    >>> import pyarrow
    >>> column = CellColumn(("h3",), resolution=6)
    >>> lon, lat = column.lonlat([pyarrow.array(["8642d9d6fffffff", "8742d9d68ffffff", "8542d9d7fffffff", "here"])])
    >>> lon.round(2), lat.round(2)
    (array([72.81, 72.81,   nan,   nan]), array([21.18, 21.18,   nan,   nan]))
    """

    sql: tuple[str]
    resolution: int

    def lonlat(self, columns: list[Any]) -> LonLat:
        """The centres of the hexagons; NaN where there is none. O(rows), and a little more for each distinct cell."""
        from h3ronpy import cells_valid, change_resolution
        from h3ronpy.vector import cells_to_coordinates

        cells = cells_of(columns[0])
        distinct, which = np.unique(cells, return_inverse=True)
        fine = ((distinct >> np.uint64(52)) & np.uint64(15)) >= self.resolution
        good = np.flatnonzero(np.asarray(cells_valid(distinct, booleanarray=True), dtype=bool) & fine)
        found = np.full((2, len(distinct)), np.nan)
        if good.size:
            hexagons = np.asarray(change_resolution(distinct[good], self.resolution), dtype=np.uint64)
            centres = cells_to_coordinates(hexagons)
            found[:, good] = np.asarray(centres["lng"]), np.asarray(centres["lat"])
        return found[0][which], found[1][which]


def cells_of(column: Any) -> NDArray[np.uint64]:
    """The numbers of an Arrow array of uint64 or of texts, hexadecimal or decimal; 0, which is no cell, for the rest.

    >>> import pyarrow
    >>> [hex(cell) for cell in cells_of(pyarrow.array([" 8642D9D6FFFFFFF", "604658404186652671", None])).tolist()]
    ['0x8642d9d6fffffff', '0x8642d9d6fffffff', '0x0']
    """
    import pyarrow

    if pyarrow.types.is_uint64(column.type):
        return np.where(valid(column), numbers(column, np.uint64), np.uint64(0))
    words = column.dictionary_encode()
    known = np.array([_cell(text) for text in words.dictionary.to_pylist()] + [0], dtype=np.uint64)
    rows = words.indices.fill_null(len(known) - 1)
    found: NDArray[np.uint64] = known[np.asarray(rows, dtype=np.int64)]
    return found


def _cell(text: str) -> int:
    """The number that a text stands for, below 2⁶⁴; 0 for any other text."""
    if len(text) > _LONGEST:
        return 0
    text = text.strip()
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    return int(text) if _DECIMAL.fullmatch(text) and int(text) < 1 << 63 else 0
