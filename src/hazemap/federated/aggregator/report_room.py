"""How many more reports a server takes: as many as credentials are given out, or as a task is declared open to."""

from typing import Final

from hazemap.federated.aggregator.task_records import TaskRecords
from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask

LOOK: Final = 60
"""Seconds between two counts of a task that is full: reports that have expired leave room again."""
_PART: Final = 8
"""A task is counted again once this part of the room that there was is taken: some 100 times until it is full."""


class ReportRoom:
    """A task's room. What is stored is counted seldom, as that is a walk over an index.

    Another process that takes reports of the same task is seen at the next count; credentials count once all the same.
    """

    def __init__(self, task: AggregatorTask, records: TaskRecords) -> None:
        admission = task.task.admission
        self._most = (task.open_reports or 0) if admission is None else admission.reports
        self._count = records.stored if admission is None else records.all_spent
        self._stored = self._until = 0
        self._looked: int | None = None

    def left(self, now: int) -> int:
        """Reports that there is room for."""
        full = self._stored >= self._most
        if self._looked is None or (full and not 0 <= now - self._looked < LOOK):
            self._stored, self._looked = self._count(), now
            self._until = self._stored + max(0, self._most - self._stored) // _PART
        return max(0, self._most - self._stored)

    def taken(self, reports: int) -> None:
        """So many more are stored, or about to be; some of them may have been here."""
        self._stored += reports
        if reports and self._stored >= self._until:
            self._looked = None
