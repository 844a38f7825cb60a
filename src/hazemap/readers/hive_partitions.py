"""Columns in the names of folders, as Hive writes them: `city=Berlin/day=2024-05-31/part-0.parquet`.

Such a column is text, whatever its values look like, and a number or a time is read in each value by itself, as in CSV:
if all values together decided, one folder would change how the rows of others are read.
"""

import re
from urllib.parse import unquote_to_bytes

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name for the folder of rows without a value."""

_NAMED = re.compile(r"([^=]+)=(.*)", re.DOTALL)


def partitions_in(path: str) -> dict[str, str | None]:
    """The columns in a path below the table's folder, and their value for all rows of the file; None for no value.

    >>> partitions_in("city=S%C3%A3o%20Paulo/day=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'city': 'São Paulo', 'day': None}
    """
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        named = _NAMED.fullmatch(folder)
        name = None if named is None else _text(named[1])
        if named is not None and name:
            found[name] = None if named[2] in {NOTHING, ""} else _text(named[2])
    return found


def _text(written: str) -> str | None:
    try:
        return unquote_to_bytes(written.encode("utf-8", "surrogateescape")).decode()
    except UnicodeDecodeError:
        return None
