"""Rectangles in longitude and latitude."""

from dataclasses import dataclass

from hazemap.errors import InputError

MERCATOR_LATITUDE = 85.05112877980659
"""Where the square of Web Mercator ends."""


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
        if not (-180 <= self.west < self.east <= 180 and -90 <= self.south < self.north <= 90):
            raise InputError(
                f"a box is west,south,east,north in degrees with west < east and south < north; found {self}"
                + (" (are longitude and latitude swapped?)" if max(abs(self.south), abs(self.north)) > 90 else "")
            )

    @classmethod
    def parse(cls, text: str) -> "Box":
        """From `west,south,east,north`."""
        try:
            west, south, east, north = (float(part) for part in text.split(","))
        except ValueError:
            raise InputError(f"a box is four numbers, west,south,east,north; found {text!r}") from None
        return cls(west, south, east, north)

    def __str__(self) -> str:
        return f"{self.west:g},{self.south:g},{self.east:g},{self.north:g}"


WORLD = Box(-180.0, -MERCATOR_LATITUDE, 180.0, MERCATOR_LATITUDE)
