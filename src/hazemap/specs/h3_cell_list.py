"""H3 cells listed in a file: a public list, such as those of a service area."""

import csv
import re
from pathlib import Path

from hazemap.errors import FileError, InputError
from hazemap.files.text_files import MOST_OF_A_LIST, read_text

COLUMNS = ("h3", "hex", "cell", "h3_index", "h3index", "index", "hex_id", "h3_cell")
"""Names of the column of cells, in lower case, where a file has several."""


def listed(path: Path) -> tuple[str, ...]:
    """The names in a file, in ascending order, none twice: text with a name a line, CSV, or Parquet.

    A table has one column, or one called h3, hex, cell, … . `FileError` for a file that cannot be read, `InputError`
    for names that are no H3 cells, for several resolutions, and for a list without any.
    """
    names = sorted({name.lower() for name in (_parquet(path) if path.suffix.lower() == ".parquet" else _text(path))})
    if not names:
        raise InputError(f"{path} lists no cells: write one H3 cell per line, such as 871f18b24ffffff")
    for name in names:
        if not re.fullmatch("8[0-9a-f]{14}", name):
            raise InputError(f"{path} lists {name!r}; an H3 cell has 15 hexadecimal digits, such as 871f18b24ffffff")
    resolutions = sorted({int(name[1], 16) for name in names})
    if len(resolutions) > 1:
        raise InputError(
            f"{path} lists cells of resolutions {resolutions[0]} to {resolutions[-1]}: list one resolution"
        )
    return tuple(names)


def _parquet(path: Path) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise FileError(f"{path} cannot be read as Parquet: {error}") from error
    column = table[_column(path, table.column_names)]
    if pa.types.is_integer(column.type):
        return [f"{number:015x}" for number in column.to_pylist() if number is not None]
    return [str(name).strip() for name in column.to_pylist() if name is not None]


def _text(path: Path) -> list[str]:
    lines = read_text(path, "the list of cells", MOST_OF_A_LIST).splitlines()
    rows = [[word.strip() for word in row] for row in csv.reader(line for line in lines if line.strip()) if row]
    rows = [row for row in rows if not row[0].startswith("#")]
    if not rows or (len(rows[0]) == 1 and re.fullmatch("[0-9a-fA-F]{15}", rows[0][0])):
        return [row[0] for row in rows]
    at = rows[0].index(_column(path, rows[0]))
    return [row[at] for row in rows[1:] if len(row) > at and row[at]]


def _column(path: Path, names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    lower = {name.lower(): name for name in reversed(names)}
    for known in COLUMNS:
        if known in lower:
            return lower[known]
    raise InputError(f"{path} has columns {', '.join(names[:8])}: which of them lists cells? Call it h3")
