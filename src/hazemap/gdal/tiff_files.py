"""GeoTIFF by GDAL's driver for it and no other: read alone, written plain, and copied into a cloud-optimised one."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hazemap.gdal.own_files import CLOSED, real_file

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
