"""A file of any format as a release: its first bytes say which it is."""

from pathlib import Path

from hazemap.errors import FileError
from hazemap.releases import geotiff as raster
from hazemap.releases import map_geoparquet as file
from hazemap.releases.file_integrity import reading
from hazemap.releases.file_metadata import MapContents

TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def opened(path: Path) -> MapContents:
    """What `Release.save` wrote; `FileError` for anything else."""
    with reading(path):
        start = path.open("rb").read(4)
    if start == b"PAR1":
        return file.read(path)
    if start in TIFF:
        return raster.read(path)
    raise FileError(
        f"{path} is neither Parquet nor TIFF, so it is no release of hazemap"
        + ("; it is empty" if not start else "; an export cannot be opened again")
    )


def holds_values(path: Path) -> bool:
    """Whether a file holds statistics of a value (`Statistics.open`); else `Release.open` knows what it is."""
    import json

    import pyarrow.parquet as pq

    with reading(path):
        with path.open("rb") as opened_file:
            if opened_file.read(4) != b"PAR1":
                return False
        label = (pq.read_metadata(path).metadata or {}).get(file.LABEL)
        return label is not None and json.loads(label).get("kind") == file.OF_VALUES
