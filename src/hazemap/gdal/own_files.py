"""Files of this machine as GDAL may see them, and GeoTIFF by GDAL's driver for it and no other.

GDAL takes many names for addresses or archives, and finds out from a file's first bytes which of its drivers reads it.
A text that is called `people.gpkg` may tell it to read any other file, or to ask a server. So a name is followed to
the file that it leads to, and what does not begin with the bytes of its format never reaches GDAL.
"""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
ALONE = {**CLOSED, "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR", "GDAL_GEOREF_SOURCES": "INTERNAL"}
"""No overviews, masks or places of pixels are taken from other files: GDAL would open them by any of its drivers."""

COG = {"driver": "COG", "COMPRESS": "DEFLATE", "PREDICTOR": "YES", "BLOCKSIZE": 256, "BIGTIFF": "IF_SAFER"}


@contextmanager
def open_tiff(path: str | os.PathLike[str]) -> Generator[Any, None, None]:
    """A picture to read; `FileError` for a file that is no TIFF, or is not there."""
    import rasterio

    file = real_file(path, TIFF)
    with rasterio.Env(**ALONE), rasterio.open(file, driver="GTiff") as picture:
        yield picture


@contextmanager
def new_tiff(path: Path, **profile: Any) -> Generator[Any, None, None]:
    """A plain GeoTIFF to write; `OSError` says what GDAL says."""
    import rasterio

    with _plain_errors(), rasterio.open(path, "w", driver="GTiff", **profile) as picture:
        yield picture


def copy_optimised(plain: Path, path: Path) -> None:
    """The cloud-optimised GeoTIFF of a plain one; `OSError` says what GDAL says."""
    from rasterio.shutil import copy

    with _plain_errors():
        copy(plain, path, OVERVIEW_RESAMPLING="AVERAGE", **COG)


@contextmanager
def _plain_errors() -> Generator[None, None, None]:
    from rasterio._err import CPLE_BaseError  # GDAL's own errors have no public name

    try:
        yield
    except CPLE_BaseError as error:
        raise OSError(f"GDAL says: {error}") from error
