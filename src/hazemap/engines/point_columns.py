"""Where the coordinates of a row are: two columns or a geometry, in WGS 84 or another reference system."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import floats
from hazemap.engines.well_known_binary import coordinates_of

LonLat = tuple[NDArray[np.float64], NDArray[np.float64]]


class Points(Protocol):
    """How to read the longitude and latitude of rows."""

    @property
    def sql(self) -> tuple[str, ...]:
        """The columns to read."""
        ...

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Longitude and latitude in WGS 84, from these columns as Arrow arrays; NaN where there is none."""
        ...


@dataclass(frozen=True)
class TwoColumns:
    """Longitude and latitude in degrees, each a column of its own."""

    sql: tuple[str, str]

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Longitude and latitude; NaN where there is none."""
        lon, lat = (floats(column) for column in columns)
        return lon, lat


@dataclass(frozen=True)
class WellKnownBinary:
    """Points in the encoding of GeoParquet."""

    sql: tuple[str]

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Both coordinates of each point; NaN for anything else."""
        return coordinates_of(columns[0])


@dataclass(frozen=True)
class Reprojected:
    """Points in another reference system than WGS 84."""

    points: Points
    crs: str

    @property
    def sql(self) -> tuple[str, ...]:
        """The columns to read."""
        return self.points.sql

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Longitude and latitude; NaN where there is none."""
        from pyproj import Transformer

        x, y = self.points.lonlat(columns)
        lon, lat = Transformer.from_crs(self.crs, "OGC:CRS84", always_xy=True).transform(x, y, errcheck=False)
        usable = np.isfinite(lon) & np.isfinite(lat)  # pyproj answers infinity where it has none
        return np.where(usable, lon, np.nan), np.where(usable, lat, np.nan)
