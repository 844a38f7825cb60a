"""A person's one report for two servers that walk down a tree: the path to their cell, or that they are nowhere."""

from collections.abc import Callable

import numpy as np

from hazemap.cells import NOWHERE, Tree
from hazemap.device.consent_policy import Policy
from hazemap.device.report_lines import ReportLines
from hazemap.device.two_server_line import TwoServerLine
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError
from hazemap.privacy.random_stream import Stream
from hazemap.tables.contribution_bounding import Bounding
from hazemap.trust.carried_tasks import CarriedTask
from hazemap.trust.cell_strings import CellStrings
from hazemap.trust.two_server_tasks import walk_task, walked


class WholeTreeLine:
    """The `CarrierLine` of a campaign to which people report once. Its task is computed here."""

    def __init__(self, carried: CarriedTask, policy: Policy, lines: ReportLines) -> None:
        self._carried, self._policy, self._lines = carried, policy, lines
        self._line: TwoServerLine | None = None

    def refusal(self) -> str | None:
        """Why no report of a path answers this."""
        try:
            self._known()
        except HazemapError as error:
            return str(error)
        return None

    async def ready(self) -> None:
        """Fetch both servers' keys."""
        await self._known().ready()

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, stream: Stream) -> tuple[bytes, str, str | None]:
        """The report of one path."""
        tree, bounding = walked(self._carried)
        path, trouble = path_of(tree, bounding, rows)
        said = (
            "a path to one cell of the tree, in two halves, each unreadable alone; the servers ask about it level by "
            "level, add noise to every answer, and spend no more than this campaign's price"
        )
        return self._known().parcel([path], seconds, stream), said, trouble

    async def sent(self, parcel: bytes) -> None:
        """Upload it to the leader."""
        await self._known().sent(parcel)

    def _known(self) -> TwoServerLine:
        if self._line is None:
            self._line = TwoServerLine(self._carried, (walk_task(self._carried),), self._policy, self._lines)
        return self._line


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
