"""Scripts that load a release into R (`sf`, `arrow`) and into DuckDB."""

from importlib.resources import files

from hazemap.errors import InputError

LOADERS = {"r": "loader.R", "duckdb": "loader.sql"}
PLACE = "@FILE@"
SLOTS = "@SLOTS@\n"
"""Stands before and after what is for files with slots alone."""


def loader_script(name: str, file: str, slots: bool) -> str:
    """The script for a tool that loads the file of this name; `InputError` for another tool.

    Of a file with `slots` the cells in each slot are apart from those of all slots together, so that sums are right.

    >>> "read_parquet('it''s.parquet')" in loader_script("duckdb", "it's.parquet", slots=False)
    True
    """
    if name not in LOADERS:
        raise InputError(f"there are scripts that load a release for {' and '.join(LOADERS)}; found {name!r}")
    if any(ord(letter) < ord(" ") for letter in file):
        raise InputError(f"the name of a file in a script holds no control codes; found {file!r}")
    text = files(__package__).joinpath("loaders", LOADERS[name]).read_text(encoding="utf-8")
    quoted = {
        "r": '"' + file.replace("\\", "\\\\").replace('"', '\\"') + '"',
        "duckdb": "'" + file.replace("'", "''") + "'",
    }
    parts = text.split(SLOTS)  # what comes first, what is for slots, the rest
    return (parts[0] + (parts[1] if slots else "") + parts[2]).replace(PLACE, quoted[name])
