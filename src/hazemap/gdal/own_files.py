"""Files of this machine as GDAL may see them: one that is there, by its real path, that begins as its format does.

GDAL takes many names for addresses or archives, and finds out from a file's first bytes which of its drivers reads it.
A text that is called `people.gpkg` may tell it to read any other file, or to ask a server. So a name is followed to
the file that it leads to, and what does not begin with the bytes of its format never reaches GDAL.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from hazemap.errors import FileError

CLOSED = {"CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none", "GDAL_PAM_ENABLED": "NO"}
"""What GDAL is told while it reads: to fetch nothing from anywhere, and to believe no file beside the one it opens."""


def real_file(path: str | os.PathLike[str], begins: Sequence[bytes], companions: Sequence[str] = ()) -> str:
    """The real path of a file that begins with one of some texts; `FileError` for any other.

    Files beside it are read too whose names end in one of `companions`, in place of its own ending where that is one
    (`.dbf`), else behind it (`-wal`): none of them may be a link.
    """
    real = os.path.realpath(path)
    if real.startswith("/vsi") or set("!;") & set(real):
        raise FileError(f"GDAL takes {real} for an address or an archive: rename its folder or the file")
    if os.path.exists(real) and not os.path.isfile(real):  # noqa: PTH110, PTH113 - a path as text
        raise FileError(f"{path} cannot be read: it is no file")  # a pipe would be waited for
    try:
        with open(real, "rb") as file:  # noqa: PTH123 - a path as text
            start = file.read(max(map(len, begins)))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from error
    if not start.startswith(tuple(begins)):
        raise FileError(f"{path} cannot be read: it is damaged, or not of the kind that its name says")
    for ending in companions:
        stem = os.path.splitext(real)[0] if ending.startswith(".") else real  # noqa: PTH122 - a path as text
        for beside in (stem + ending, stem + ending.upper()):
            if Path(beside).is_symlink():
                raise FileError(f"{beside} is a link, and would be read with {path}: put the file itself there")
    return real


_GRID = re.compile(
    rb"""(?:init|grids|file|catalog)\s*=\s*[^\s",]*/|PROJ4_GRIDS"\s*,\s*"[^"]*/|PARAMETERFILE\s*\[[^]]*/""",
    re.IGNORECASE,
)


def refuse_named_files(said: bytes, path: str) -> None:
    """`FileError` where what says a reference system names a file by a path: PROJ would open it, wherever it is."""
    if _GRID.search(said):
        raise FileError(f"{path} cannot be read: its reference system names another file")
