"""How many more reports a leader stores: as many as credentials are given out, or as a task is declared open to."""

from typing import Final

from hazemap.aggregator.task_records import TaskRecords
from hazemap.protocols.dap.aggregator_task import AggregatorTask

LOOK: Final = 60
"""Seconds between two counts of a task that is full: reports that have expired leave room again."""


class ReportRoom:
    """A task's room. What is stored is counted seldom, as that is a walk over an index: at first, and when it is full.

    Another process that takes reports of the same task is seen at the next count; credentials count once all the same.
    """

    def __init__(self, task: AggregatorTask, records: TaskRecords) -> None:
        admission = task.task.admission
        self._most = (task.open_reports or 0) if admission is None else admission.reports
        self._count = records.stored if admission is None else records.all_spent
        self._stored = 0
        self._looked: int | None = None

    def left(self, now: int) -> int:
        """Reports that there is room for."""
        full = self._stored >= self._most
        if self._looked is None or (full and not 0 <= now - self._looked < LOOK):
            self._stored, self._looked = self._count(), now
        return max(0, self._most - self._stored)

    def taken(self, reports: int) -> None:
        """So many more are about to be stored; some of them may have been here: so a full task is counted again."""
        self._stored += reports
        if reports and self._stored >= self._most:
            self._looked = None
