"""A person's one report for two servers that walk down a tree: the path to their cell, or that they are nowhere."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from hazemap.cells import NOWHERE, Tree
from hazemap.engines.memory import MemoryTable
from hazemap.federated.device.two_server_line import ComputedTasksLine
from hazemap.federated.protocols.dap.task import Task
from hazemap.federated.protocols.secure_aggregation.coins import Drawn
from hazemap.federated.trust.cell_strings import CellStrings
from hazemap.federated.trust.two_server_tasks import walk_task, walked
from hazemap.tables.contribution_bounding import Bounding


class WholeTreeLine(ComputedTasksLine):
    """The `CarrierLine` of a campaign to which people report once."""

    def tasks(self) -> Sequence[Task]:
        """One for all questions."""
        return (walk_task(self._carried, self._credentials.issuer),)

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, coins: Drawn) -> tuple[bytes, str, str | None]:
        """The report of one path."""
        tree, bounding = walked(self._carried)
        path, trouble = path_of(tree, bounding, rows)
        said = (
            "a path to one cell of the tree, in two halves, each unreadable alone; the servers ask about it level by "
            "level, add noise to every answer, and spend no more than this campaign's price"
        )
        return self.sealed([path], seconds, partial(coins, b"parcel", b"%d" % path)), said, trouble


def path_of(tree: Tree, bounding: Bounding, rows: Callable[[], MemoryTable]) -> tuple[int, str | None]:
    """A person's string of bits, and what kept it from being made of their rows: then it is that of nobody's.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> path_of(Quadtree.world(depth=3), AtMostRows(1), lambda: 1 / 0)
    (128, 'ZeroDivisionError')
    """
    cell, trouble = NOWHERE, None
    try:
        votes = rows().votes(tree, bounding)
        if len(votes.cells) > 1 or (len(votes.cells) and votes.weights[0] != 1):
            trouble = "more than one cell"
        elif len(votes.cells):
            cell = votes.cells[0]
    except Exception as error:  # of whatever kind, it must look the same from outside (`checked_contribution`)
        trouble = type(error).__name__
    return int(CellStrings(tree).of_people(np.array([cell], dtype=np.uint64))[0]), trouble
