"""Rows, and the person each belongs to."""

from hazemap.tables.bounding import AtMostCells, AtMostRows, Bounding, OneVote, RowIsPerson, Sensitivity
from hazemap.tables.memory import MemoryTable
from hazemap.tables.votes import Table, Votes

__all__ = [
    "AtMostCells",
    "AtMostRows",
    "Bounding",
    "MemoryTable",
    "OneVote",
    "RowIsPerson",
    "Sensitivity",
    "Table",
    "Votes",
]
