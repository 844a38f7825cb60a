"""The map so far: what the answers of the rounds that are over already say."""

from collections.abc import Sequence

import numpy as np

from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves
from hazemap.codec import to_json
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.queries import Query
from hazemap.session import Exchange


def so_far(transcript: Sequence[Exchange]) -> CellMap:
    """The finest cells that were asked for last, read from all answers about their tree: O(cells asked · depth).

    Free: it is made of answers that are paid for. `InputError` before there are any.
    """
    asked = [
        question.encoder.cells
        for question, _ in transcript
        if isinstance(question, Query)
        and isinstance(question.encoder, Counts)
        and isinstance(question.encoder.cells, Leaves)
    ]
    if not asked:
        raise InputError("no round of this campaign has been answered yet, so there is no map: look again later")
    same = [cells for cells in asked if cells.tree == asked[-1].tree]
    finest = max(reversed(same), key=lambda cells: cells.size)
    return read(transcript, finest, Reading.SHRUNK)


def plain(cellmap: CellMap) -> dict[str, object]:
    """A map as JSON: its tree and cells in the codec's way, and the numbers of each cell."""
    numbers = (("values", cellmap.values), ("unbiased", cellmap.unbiased), ("stddev", cellmap.stddev))
    return {"cells": to_json(cellmap.cells), **{name: np.round(array, 6).tolist() for name, array in numbers}}
