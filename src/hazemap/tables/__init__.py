"""Rows, and the person each belongs to."""

from hazemap.tables.bounding import (
    AtMostCells,
    AtMostRows,
    Bounding,
    OneVote,
    Outside,
    OwnMeans,
    RowIsPerson,
    Sensitivity,
)
from hazemap.tables.engine import EngineTable, ReadReport
from hazemap.tables.memory import MemoryTable
from hazemap.tables.opening.csv_dialect import CsvDialect
from hazemap.tables.opening.files import belongs, files_of
from hazemap.tables.opening.ids import IdColumn
from hazemap.tables.opening.sources import open_table
from hazemap.tables.votes import Table, Votes

__all__ = [
    "AtMostCells",
    "AtMostRows",
    "Bounding",
    "CsvDialect",
    "EngineTable",
    "IdColumn",
    "MemoryTable",
    "OneVote",
    "Outside",
    "OwnMeans",
    "ReadReport",
    "RowIsPerson",
    "Sensitivity",
    "Table",
    "Votes",
    "belongs",
    "files_of",
    "open_table",
]
