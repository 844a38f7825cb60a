"""Rectangles in longitude and latitude, and the two columns of coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Columns
from hazemap.errors import InputError, TableError
from hazemap.field_types import check_fields
from hazemap.files.number_text import decimals

MERCATOR_LATITUDE = 85.05112877980659
"""The northern edge of the square of Web Mercator."""


@dataclass(frozen=True)
class Box:
    """A rectangle in degrees (WGS 84), west < east and south < north; it does not cross the antimeridian.

    >>> Box.parse("-74.02,40.70,-73.93,40.80").west
    -74.02
    """

    west: float
    south: float
    east: float
    north: float

    def __post_init__(self) -> None:
        check_fields(self)
        if not (-180 <= self.west < self.east <= 180 and -90 <= self.south < self.north <= 90):
            swapped = max(abs(self.south), abs(self.north)) > 90
            raise InputError(
                f"a box is west,south,east,north in degrees with west < east and south < north; found {self}"
                + (" (are longitude and latitude swapped?)" if swapped else "")
            )

    @classmethod
    def parse(cls, text: str) -> "Box":
        """From `west,south,east,north`."""
        try:
            west, south, east, north = decimals(text)
        except ValueError:
            raise InputError(f"a box must be four numbers, west,south,east,north; found {text!r}") from None
        return cls(west, south, east, north)

    def holds(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points (degrees) lie in the box or on its edge; False for NaN."""
        held: NDArray[np.bool_] = (self.west <= lon) & (lon <= self.east) & (self.south <= lat) & (lat <= self.north)
        return held

    def distance(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
        """The distance of each point (degrees) from the box, in radians on the sphere; 0 inside.

        Along a meridian the cosine of the distance is R·cos(φ - φ*): the nearest point of an edge is at φ*
        or at one of its ends. A point between the meridians of the box is nearest to its own meridian.

        >>> np.degrees(Box(0, 0, 10, 10).distance(np.array([5.0, 5.0, -90.0]), np.array([5.0, -2.0, 0.0])))
        array([ 0.,  2., 90.])
        """
        x, y, south, north = np.radians(lon), np.radians(lat), np.radians(self.south), np.radians(self.north)
        between = (self.west <= lon) & (lon <= self.east)
        nearest = np.where(between, np.abs(y - np.clip(y, south, north)), np.pi)
        for meridian in (self.west, self.east):
            turn = x - np.radians(meridian)
            foot = np.clip(np.arctan2(np.sin(y), np.cos(y) * np.cos(turn)), south, north)
            for end in (foot, south, north):
                haversine = np.sin((y - end) / 2) ** 2 + np.cos(y) * np.cos(end) * np.sin(turn / 2) ** 2
                nearest = np.minimum(nearest, 2 * np.arcsin(np.sqrt(np.minimum(haversine, 1))))
        return nearest

    def __str__(self) -> str:
        """As `parse` reads it, with every digit."""
        edges = (self.west, self.south, self.east, self.north)
        return ",".join(str(float(edge)).removesuffix(".0") for edge in edges)


WORLD = Box(-180.0, -MERCATOR_LATITUDE, 180.0, MERCATOR_LATITUDE)


def coordinates(columns: Columns) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The columns `lon` and `lat` as contiguous float64, NaN for masked; `TableError` where they are unfit."""
    missing = [name for name in ("lon", "lat") if name not in columns]
    if missing:
        raise TableError(f"rows need the columns lon and lat in degrees; not found: {', '.join(missing)}")
    try:
        lon, lat = (np.ma.asarray(columns[name]).astype(np.float64, copy=False) for name in ("lon", "lat"))
    except (TypeError, ValueError):
        kinds = " and ".join(str(np.asarray(columns[name]).dtype) for name in ("lon", "lat"))
        raise TableError(f"lon and lat must be numbers in degrees; found columns of {kinds}") from None
    if lon.ndim != 1 or lon.shape != lat.shape:
        raise TableError(f"lon and lat must be one-dimensional and equally long; found {lon.shape} and {lat.shape}")
    return np.ascontiguousarray(np.ma.filled(lon, np.nan)), np.ascontiguousarray(np.ma.filled(lat, np.nan))
