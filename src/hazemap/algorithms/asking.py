"""What all methods do when they ask for counts."""

import numpy as np

from hazemap.cells import NOWHERE, Leaves
from hazemap.tables.bounding import Bounding


def with_nowhere(cells: Leaves, bounding: Bounding) -> Leaves:
    """These cells, and `NOWHERE` where the bounding rule keeps rows that lie in none: it costs no budget."""
    if not bounding.nowhere or NOWHERE in cells.cells:
        return cells
    return Leaves(cells.tree, np.append(cells.cells, NOWHERE))
