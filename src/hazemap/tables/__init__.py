"""Rows, and the person each belongs to."""

from hazemap.tables.bounding import AtMostCells, AtMostRows, Bounding, OneVote, OwnMeans, RowIsPerson, Sensitivity
from hazemap.tables.engine import EngineTable, ReadReport
from hazemap.tables.memory import MemoryTable
from hazemap.tables.opening.sources import open_table
from hazemap.tables.votes import Table, Votes

__all__ = [
    "AtMostCells",
    "AtMostRows",
    "Bounding",
    "EngineTable",
    "MemoryTable",
    "OneVote",
    "OwnMeans",
    "ReadReport",
    "RowIsPerson",
    "Sensitivity",
    "Table",
    "Votes",
    "open_table",
]
